import Contract
import Crypto
import MediaModel

/// Who is in an epoch: the devices that get its secret. It never changes once announced (protocol section 5, "List").
struct EpochList: Sendable {
  /// Sorted by user, then device, as bytes.
  let entries: [ListEntry]
  /// fingerprint ‖ joinId ‖ SHA-256(join key) of each entry.
  let bytes: [UInt8]
  let hash: [UInt8]
  private let positions: [Device: Int]

  /// Refuses entries of the wrong shape, and two of one device or one participant: a KID must name one sender.
  init(_ unsorted: [ListEntry]) throws(KeyRefusal) {
    entries = unsorted.sorted { $0.address < $1.address }
    var bytes: [UInt8] = []
    var positions: [Device: Int] = [:]
    var participants: Set<ParticipantNumber> = []
    for (position, entry) in entries.enumerated() {
      let joinId = entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16)
      guard entry.fingerprint.bytes.count == 32, joinId.count == 16,
        positions.updateValue(position, forKey: entry.address) == nil,
        entry.participant == 0 || participants.insert(entry.participant).inserted
      else { throw .malformedList }
      bytes += entry.fingerprint.bytes
      bytes += joinId
      if let key = entry.joinKey {
        bytes += SHA256.hash(data: key.publicKey.bytes)
      } else {
        bytes += [UInt8](repeating: 0, count: 32)
      }
    }
    self.bytes = bytes
    self.positions = positions
    hash = Array(SHA256.hash(data: bytes))
  }

  subscript(address: Device) -> ListEntry? { positions[address].map { entries[$0] } }

  /// Whether it holds exactly this device's join, whatever keys the entry brings.
  func holds(_ entry: ListEntry) -> Bool {
    guard let own = self[entry.address] else { return false }
    return own.participant == entry.participant && own.fingerprint == entry.fingerprint && own.joinId == entry.joinId
      && own.joinKey == entry.joinKey
  }

  var fingerprints: Set<[UInt8]> { Set(entries.map(\.fingerprint.bytes)) }

  /// The list of the next epoch, from what `keys.rotate` says has changed; an added device takes the place of its older join.
  func changed(adding added: [ListEntry], removing removed: [ParticipantNumber]) throws(KeyRefusal)
    -> EpochList
  {
    let gone = Set(removed)
    let replaced = Set(added.map(\.address))
    // A ring's entries have no number, and all go with the epoch after it.
    return try EpochList(
      entries.filter { $0.participant > 0 && !gone.contains($0.participant) && !replaced.contains($0.address) } + added)
  }
}
