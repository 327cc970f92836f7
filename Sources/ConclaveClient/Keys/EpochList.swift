import Contract
import Crypto
import MediaModel

/// Who is in an epoch: the devices that get its secret. It never changes once announced (protocol section 5, "List").
struct EpochList: Sendable {
  static let maximumCount = 8_192

  /// Sorted by user, then device, as bytes.
  let entries: [ListEntry]
  let rosterHash: [UInt8]
  private let positions: [Device: Int]
  private let numbers: [ParticipantNumber: Int]

  /// Refuses entries of the wrong shape or order, and two that share a device, a participant, a fingerprint or a joinId: a KID must name one sender.
  init(_ listed: [ListEntry], epoch: UInt32) throws(KeyRefusal) {
    guard listed.count <= Self.maximumCount else { throw .malformedList }
    var positions: [Device: Int] = [:]
    var numbers: [ParticipantNumber: Int] = [:]
    var fingerprints: Set<[UInt8]> = []
    var joins: Set<[UInt8]> = []
    for (position, entry) in listed.enumerated() {
      guard position == 0 || listed[position - 1].address < entry.address, Self.isWellFormed(entry, epoch: epoch),
        fingerprints.insert(entry.fingerprint.bytes).inserted
      else { throw .malformedList }
      if let joinId = entry.joinId {
        guard joins.insert(joinId.bytes).inserted,
          numbers.updateValue(position, forKey: entry.participant) == nil
        else { throw .malformedList }
      }
      positions[entry.address] = position
    }
    entries = listed.map(Self.bare)
    rosterHash = Self.rosterHash(listed)
    self.positions = positions
    self.numbers = numbers
  }

  subscript(address: Device) -> ListEntry? { positions[address].map { entries[$0] } }
  subscript(participant: ParticipantNumber) -> ListEntry? { numbers[participant].map { entries[$0] } }

  func position(of address: Device) -> Int? { positions[address] }

  /// A device that rang and has not joined is on it: epoch 1 alone has such.
  var hasRung: Bool { entries.contains { $0.participant == 0 } }

  /// Whether it holds exactly this device's join, whatever keys the entry brings.
  func holds(_ entry: ListEntry) -> Bool { self[entry.address] == Self.bare(entry) }

  /// The devices of a user.
  func entries(of user: UserID) -> ArraySlice<ListEntry> {
    let start = firstIndex { $0.user >= user }
    let end = firstIndex { $0.user > user }
    return entries[start..<end]
  }

  private func firstIndex(where isBehind: (ListEntry) -> Bool) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(entries[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The list of the next epoch, from what `keys.rotate` says has changed. Devices that only rang go in any case.
  func changed(
    adding added: [ListEntry], removing removed: [ParticipantNumber], epoch: UInt32
  ) throws(KeyRefusal) -> EpochList {
    let gone = Set(removed)
    guard gone.count == removed.count, gone.allSatisfy({ numbers[$0] != nil }) else { throw .malformedList }
    let staying = entries.filter { $0.participant > 0 && !gone.contains($0.participant) }
    var merged: [ListEntry] = []
    merged.reserveCapacity(staying.count + added.count)
    var rest = added[...]
    for entry in staying {
      while let next = rest.first, next.address < entry.address { merged.append(rest.removeFirst()) }
      merged.append(entry)
    }
    return try EpochList(merged + rest, epoch: epoch)
  }

  /// The hash of an epoch's list behind that of the epoch announced before; of epoch 1 `previous` is `noPrevious`.
  func hash(_ epoch: UInt32, of call: CallID, previous: [UInt8]) -> [UInt8] {
    Self.hash(epoch, of: call, previous: previous, rosterHash: rosterHash)
  }

  static let noPrevious = [UInt8](repeating: 0, count: 32)

  static func hash(_ epoch: UInt32, of call: CallID, previous: [UInt8], rosterHash: [UInt8]) -> [UInt8] {
    var transcript = Transcript("conclave-list-v2")
    transcript.appendPrefixed(call.text)
    transcript.append(epoch)
    transcript.append(previous)
    transcript.append(rosterHash)
    return transcript.sha256
  }

  /// Only a ring's list has entries that have not joined, and these have neither number, joinId nor join key; all others have all three.
  private static func isWellFormed(_ entry: ListEntry, epoch: UInt32) -> Bool {
    guard entry.fingerprint.bytes.count == 32, entry.fingerprint.bytes.contains(where: { $0 != 0 }) else {
      return false
    }
    if entry.participant == 0 { return epoch == 1 && entry.joinId == nil && entry.joinKey == nil }
    guard let joinId = entry.joinId?.bytes, let key = entry.joinKey else { return false }
    return joinId.count == 16 && joinId.contains { $0 != 0 } && key.generation == 0 && !key.publicKey.bytes.isEmpty
  }

  static func rosterHash(_ entries: [ListEntry]) -> [UInt8] {
    var roster = Transcript("conclave-roster-v2")
    roster.append(UInt32(entries.count))
    for entry in entries { append(entry, to: &roster) }
    return roster.sha256
  }

  private static func append(_ entry: ListEntry, to roster: inout Transcript) {
    roster.appendPrefixed(entry.user.text)
    roster.appendPrefixed(entry.device.text)
    roster.append(entry.participant)
    roster.append(entry.fingerprint.bytes)
    roster.append(entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16))
    if let key = entry.joinKey {
      roster.append(SHA256.hash(data: key.publicKey.bytes))
    } else {
      roster.append([UInt8](repeating: 0, count: 32))
    }
  }

  private static func bare(_ entry: ListEntry) -> ListEntry {
    var entry = entry
    entry.keys = nil
    entry.refresh = nil
    return entry
  }
}
