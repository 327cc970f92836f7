import Contract
import MediaModel

/// One epoch as it was announced: number, mode and list never change (protocol section 5, "List").
struct Epoch {
  let number: UInt32
  let mode: RotationMode
  /// Sorted by user, then device, as bytes; without `keys`.
  let list: [ListEntry]
  let listHash: Base64Bytes
  /// Ring envelopes were made for it: only epoch 1.
  let hadRingEnvelopes: Bool
  private let places: [Device: Int]
  private let keys: [Device: [DeviceKey]]

  /// - Parameter entries: with the devices' `keys`, in any order.
  init(
    number: UInt32, mode: RotationMode, entries: [ListEntry], hadRingEnvelopes: Bool, digest: ([UInt8]) -> [UInt8]
  ) {
    self.number = number
    self.mode = mode
    self.hadRingEnvelopes = hadRingEnvelopes
    let sorted = entries.sorted { $0.address < $1.address }
    keys = Dictionary(sorted.map { ($0.address, $0.keys ?? []) }) { first, _ in first }
    list = sorted.map { entry in
      var entry = entry
      entry.keys = nil
      return entry
    }
    places = Dictionary(list.indices.map { (sorted[$0].address, $0) }) { first, _ in first }
    listHash = Base64Bytes(digest(Self.bytes(of: list, digest: digest)))
  }

  func entry(of device: Device) -> ListEntry? { places[device].map { list[$0] } }

  /// As in `deliver` and `keys.request`.
  func entryWithKeys(of device: Device) -> ListEntry? {
    guard var entry = entry(of: device) else { return nil }
    entry.keys = keys[device]
    return entry
  }

  /// Whether the device is on the list for this stay in the call. Who accepted a ring was on epoch 1's list before it had a joinId.
  func holds(_ seat: Seat) -> Bool {
    guard let entry = entry(of: seat.device) else { return false }
    return entry.joinId == nil || entry.joinId == seat.joinId
  }

  /// Whether the device was on the list with the same joinId.
  func holdsJoin(_ device: Device, _ joinId: Base64Bytes?) -> Bool {
    guard let entry = entry(of: device), let joinId else { return false }
    return entry.joinId == joinId
  }

  /// fingerprint ‖ joinId ‖ SHA-256(join key SPKI) of each device, zeros for what is not there.
  private static func bytes(of list: [ListEntry], digest: ([UInt8]) -> [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(list.count * 80)
    for entry in list {
      bytes += entry.fingerprint.bytes
      bytes += entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16)
      bytes += entry.joinKey.map { digest($0.publicKey.bytes) } ?? [UInt8](repeating: 0, count: 32)
    }
    return bytes
  }
}
