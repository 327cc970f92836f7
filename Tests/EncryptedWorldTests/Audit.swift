import Contract
import Crypto
import MediaModel
import Octets

@testable import ConclaveClient

/// A frame in flight, and its true properties, whatever anybody claims.
struct Sent {
  let call: CallID
  let sender: Device
  let participant: ParticipantNumber
  let epoch: UInt32
  let bytes: [UInt8]
  let at: Int64
}

/// Checks the invariants of every world, and keeps the first breach.
final class Audit {
  struct Failure: Error, Equatable {
    var breach: Breach
    var what: String
  }

  private(set) var failure: Failure?
  private(set) var opened = 0
  /// The devices on each epoch's list, by join; rung devices have none.
  private var lists: [CallID: [UInt32: [Device: Base64Bytes?]]] = [:]
  private var nonces: Set<[UInt8]> = []
  private(set) var recent: [Sent] = []

  /// The joins of stays that are over, as the server knows.
  private var gone: Set<Base64Bytes> = []

  func fail(_ breach: Breach, _ what: String) { failure = failure ?? Failure(breach: breach, what: what) }

  func check() throws { if let failure { throw failure } }

  func isOver(_ join: Base64Bytes) { gone.insert(join) }

  func hasGone(_ join: Base64Bytes) -> Bool { gone.contains(join) }

  func note(_ list: [ListEntry], epoch: UInt32, of call: CallID) {
    let devices = Dictionary(list.map { ($0.address, $0.joinId) }) { first, _ in first }
    if let known = lists[call]?[epoch] {
      if known != devices { fail(.twoLists, "epoch \(epoch) has two lists") }
      return
    }
    if devices.values.contains(where: { $0.map(gone.contains) ?? false }) { fail(.listsGone, "who left is listed") }
    lists[call, default: [:]][epoch] = devices
  }

  /// No (base key, KID, counter) is ever used twice, by anyone, over all joins and restarts.
  func sealed(_ frame: [UInt8], baseKey: SymmetricKey?) {
    guard let header = try? frame.withUnsafeBytes({ try SFrameHeader(parsing: $0.bytes) }), let baseKey else {
      return fail(.broken, "a frame without a key was sent")
    }
    let key = baseKey.withUnsafeBytes { Array($0.prefix(16)) }
    let count = [header.keyID, header.counter].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
    if !nonces.insert(key + count).inserted {
      fail(.keyAndNonceRepeat, "a (key, nonce) was used twice: KID \(header.keyID)")
    }
  }

  func sent(_ frame: Sent) {
    recent.append(frame)
    if recent.count > 400 { recent.removeFirst(200) }
  }

  /// Only a device on the epoch's list, in the stay for which it is there, opens a frame.
  func opened(_ frame: Sent, by device: Device, joins: Set<Base64Bytes>, as opened: FrameCipher.Opened) {
    self.opened += 1
    if opened.participant != frame.participant {
      fail(.passesForAnother, "a frame of \(frame.participant) passed for \(opened.participant)'s")
    }
    guard let entry = lists[frame.call]?[frame.epoch]?[device] else {
      return fail(
        .opensUnlisted,
        "\(device.user.text)/\(device.device.text) opened a frame of epoch \(frame.epoch), on whose list it is not")
    }
    if let listed = entry, !joins.contains(listed) {
      fail(.opensUnlisted, "a device opened a frame of epoch \(frame.epoch) in another stay")
    }
  }
}
