import ConclaveClient
import Foundation

/// A device's private keys, and what it knows about others, in a file that only its owner can read.
struct KeyFile: Codable, Equatable {
  /// A failure that a person can do something about.
  struct Failure: Error, CustomStringConvertible { var description: String }

  var user: String
  var device: String
  /// 32 bytes in base64. Secret.
  var wrapKey: Data
  /// 32 bytes in base64. Secret.
  var signKey: Data
  var pins: [PinnedDevice] = []
  var statements: [TrustStatement] = []
  /// How far the reels of recordings went, by the recordings' ids.
  var seen: [String: [SeenReel]] = [:]

  init(_ identity: DeviceIdentity) {
    user = identity.user
    device = identity.device
    wrapKey = Data(identity.wrapKeyBytes)
    signKey = Data(identity.signKeyBytes)
  }

  /// nil if the keys or ids are of another form.
  var identity: DeviceIdentity? {
    DeviceIdentity(user: user, device: device, wrapKeyBytes: Array(wrapKey), signKeyBytes: Array(signKey))
  }

  /// Notes what the device has learnt; the last pin of a device counts.
  mutating func note(_ event: ClientEvent) {
    switch event {
    case .pinned(let pin):
      pins.removeAll { $0.user == pin.user && $0.device == pin.device }
      pins.append(pin)
    case .statement(let statement):
      if !statements.contains(statement) { statements.append(statement) }
    default: break
    }
  }

  // MARK: on the disk

  init(reading path: String) throws {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    guard let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue,
      let data = FileManager.default.contents(atPath: path)
    else { throw Failure(description: "\(path): cannot be read; make a key with 'conclave-recording make-key'") }
    guard mode & 0o077 == 0 else {
      throw Failure(description: "\(path): others may read this key; run 'chmod 600 \(path)'")
    }
    guard let file = try? JSONDecoder().decode(KeyFile.self, from: data), file.identity != nil else {
      throw Failure(description: "\(path): is no key file of conclave-recording")
    }
    self = file
  }

  /// Replaces the file at `path`.
  /// - Parameter isNew: there must be none.
  func write(to path: String, isNew: Bool = false) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let temporary = path + ".new"
    try? FileManager.default.removeItem(atPath: temporary)
    guard !isNew || !FileManager.default.fileExists(atPath: path) else {
      throw Failure(description: "\(path): is there already; name another file")
    }
    // Others cannot read it at any moment.
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else { throw Failure(description: "\(path): cannot be written") }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try handle.write(contentsOf: encoder.encode(self))
    try handle.synchronize()
    try handle.close()
    guard rename(temporary, path) == 0 else { throw Failure(description: "\(path): cannot be written") }
  }
}
