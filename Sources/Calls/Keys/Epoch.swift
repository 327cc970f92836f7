import Contract
import MediaModel

/// One epoch as it was announced: number, mode, list and its place in the chain never change (protocol section 5, "List").
struct Epoch {
  let number: UInt32
  let mode: RotationMode
  /// Sorted by user, then device, as bytes; without `keys`.
  let list: [ListEntry]
  /// The hash of the list alone.
  let roster: Base64Bytes
  /// The `listHash` of the epoch announced before.
  let previous: Base64Bytes
  /// Binds the list to the call, the number and all lists before.
  let listHash: Base64Bytes
  /// Devices that ring have a place on it: only epoch 1.
  let isOfRing: Bool
  /// The devices in order of their participant numbers.
  let byNumber: [Device]
  private let places: [Device: Int]
  private let keys: [Device: [DeviceKey]]

  /// The hash that stands for the epoch before the first.
  static let noHash = Base64Bytes([UInt8](repeating: 0, count: 32))

  /// - Parameters:
  ///   - previous: the `listHash` of the epoch announced before, switched to or not.
  ///   - entries: with the devices' `keys`, in any order.
  init(
    number: UInt32, mode: RotationMode, call: CallID, previous: Base64Bytes, entries: [ListEntry],
    digest: ([UInt8]) -> [UInt8]
  ) {
    self.number = number
    self.mode = mode
    self.previous = previous
    let sorted = entries.sorted { $0.address < $1.address }
    keys = Dictionary(sorted.map { ($0.address, $0.keys ?? []) }) { first, _ in first }
    list = sorted.map { entry in
      var entry = entry
      entry.keys = nil
      return entry
    }
    byNumber = list.sorted { $0.participant < $1.participant }.map(\.address)
    isOfRing = list.contains { $0.participant == 0 }
    places = Dictionary(list.indices.map { (sorted[$0].address, $0) }) { first, _ in first }
    roster = Base64Bytes(digest(Self.roster(of: list, digest: digest)))
    listHash = number == 0 ? Self.noHash : Base64Bytes(digest(Self.link(call, number, previous, roster)))
  }

  var link: EpochLink { EpochLink(epoch: number, roster: roster) }

  /// Where the device stands on the list.
  func place(of device: Device) -> Int? { places[device] }

  func entry(of device: Device) -> ListEntry? { places[device].map { list[$0] } }

  /// As in `deliver` and `keys.request`, but for `refresh`.
  func entryWithKeys(of device: Device) -> ListEntry? {
    guard var entry = entry(of: device) else { return nil }
    entry.keys = keys[device]
    return entry
  }

  /// Whether the device is on the list for this stay in the call. A device that accepted a ring was on epoch 1's list before it had a joinId.
  func holds(_ seat: Seat) -> Bool {
    guard let entry = entry(of: seat.device) else { return false }
    return entry.joinId == nil || entry.joinId == seat.joinId
  }

  /// Whether the device was on the list with the same joinId.
  func holdsJoin(_ device: Device, _ joinId: Base64Bytes?) -> Bool {
    guard let entry = entry(of: device), let joinId else { return false }
    return entry.joinId == joinId
  }

  // MARK: hashes

  /// Label ‖ u32(count) ‖ lp(user) ‖ lp(device) ‖ u32(participant) ‖ fingerprint ‖ joinId ‖ SHA-256(join key SPKI) of each entry; zeros for what an
  /// entry of a ring lacks.
  private static func roster(of list: [ListEntry], digest: ([UInt8]) -> [UInt8]) -> [UInt8] {
    var bytes = Array("conclave-roster-v2".utf8)
    bytes.reserveCapacity(32 + list.count * 128)
    bytes.appendBigEndian(UInt32(truncatingIfNeeded: list.count))
    for entry in list {
      bytes.appendPrefixed(entry.user.text)
      bytes.appendPrefixed(entry.device.text)
      bytes.appendBigEndian(entry.participant)
      bytes += entry.fingerprint.bytes
      bytes += entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16)
      bytes += entry.joinKey.map { digest($0.publicKey.bytes) } ?? [UInt8](repeating: 0, count: 32)
    }
    return bytes
  }

  private static func link(
    _ call: CallID, _ number: UInt32, _ previous: Base64Bytes, _ roster: Base64Bytes
  ) -> [UInt8] {
    var bytes = Array("conclave-list-v2".utf8)
    bytes.appendPrefixed(call.text)
    bytes.appendBigEndian(number)
    return bytes + previous.bytes + roster.bytes
  }
}

/// How the protocol writes what is hashed (section 5): numbers are big-endian, `lp(x)` is x behind its length in 2 bytes.
extension [UInt8] {
  mutating func appendBigEndian(_ number: UInt32) {
    for shift in stride(from: 24, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
  }

  /// `part` is shorter than 65,536 bytes.
  mutating func appendPrefixed(_ part: some Collection<UInt8>) {
    append(UInt8(truncatingIfNeeded: part.count >> 8))
    append(UInt8(truncatingIfNeeded: part.count))
    append(contentsOf: part)
  }

  mutating func appendPrefixed(_ text: String) { appendPrefixed(text.utf8) }
}
