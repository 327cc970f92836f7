import Contract
import Crypto
import MediaModel

/// The list of an epoch: the devices that get its secret. It never changes once announced (protocol section 5, "List").
struct EpochList: Sendable {
  static let maximumCount = 8_192

  /// Sorted by user, then device, as bytes.
  let entries: [ListEntry]
  let rosterHash: [UInt8]
  /// The roster's bytes of each entry: the next list has most of them too.
  private let rows: [[UInt8]]
  private let numbers: [ParticipantNumber: Int]
  private let fingerprints: Set<[UInt8]>
  private let joins: Set<[UInt8]>

  /// Refuses entries of the wrong shape or order, and two that share a device, a participant, a fingerprint or a joinId: a KID must name one sender.
  init(_ listed: [ListEntry], epoch: UInt32) throws(KeyRefusal) {
    try self.init(
      listed.map(Self.bare), rows: listed.map(Self.row), checked: ([], []), unchecked: listed, epoch: epoch)
  }

  /// - Parameters:
  ///   - checked: the fingerprints and joinIds of those entries that a list before had as well.
  ///   - unchecked: the other entries.
  private init(
    _ entries: [ListEntry], rows: [[UInt8]], checked: (fingerprints: Set<[UInt8]>, joins: Set<[UInt8]>),
    unchecked: [ListEntry], epoch: UInt32
  ) throws(KeyRefusal) {
    guard entries.count <= Self.maximumCount else { throw .malformedList }
    var (fingerprints, joins) = checked
    for entry in unchecked {
      guard Self.isWellFormed(entry, epoch: epoch), fingerprints.insert(entry.fingerprint.bytes).inserted,
        entry.joinId.map({ joins.insert($0.bytes).inserted }) ?? true
      else { throw .malformedList }
    }
    var numbers = [ParticipantNumber: Int](minimumCapacity: entries.count)
    for position in entries.indices {
      guard position == 0 || entries[position - 1].address < entries[position].address else { throw .malformedList }
      let number = entries[position].participant
      guard number == 0 || numbers.updateValue(position, forKey: number) == nil else { throw .malformedList }
    }
    self.entries = entries
    self.rows = rows
    self.numbers = numbers
    self.fingerprints = fingerprints
    self.joins = joins
    rosterHash = Self.hash(of: rows)
  }

  subscript(address: Device) -> ListEntry? { position(of: address).map { entries[$0] } }
  subscript(participant: ParticipantNumber) -> ListEntry? { numbers[participant].map { entries[$0] } }

  func position(of address: Device) -> Int? {
    let position = firstIndex { $0.address >= address }
    return position < entries.count && entries[position].address == address ? position : nil
  }

  /// Whether it has a device that rang and has not joined: only epoch 1 can.
  var hasRung: Bool { entries.contains { $0.participant == 0 } }

  /// Whether it holds exactly this device's join, whatever keys the entry brings.
  func holds(_ entry: ListEntry) -> Bool { self[entry.address] == Self.bare(entry) }

  func holds(fingerprint: Base64Bytes) -> Bool { fingerprints.contains(fingerprint.bytes) }

  /// The devices of a user.
  func entries(of user: UserID) -> ArraySlice<ListEntry> {
    let start = firstIndex { $0.user >= user }
    let end = firstIndex { $0.user > user }
    return entries[start..<end]
  }

  /// The devices of these users; all devices if nil.
  func entries(of users: Set<UserID>?) -> [ListEntry] { users.map { $0.flatMap { entries(of: $0) } } ?? entries }

  /// Entries that are new or altered since the list before, and its entries that are gone or altered.
  func changes(since before: EpochList?) -> (added: [ListEntry], gone: [ListEntry]) {
    guard let before else { return (entries, []) }
    var (added, gone): ([ListEntry], [ListEntry]) = ([], [])
    var old = before.entries[...]
    for entry in entries {
      while let next = old.first, next.address < entry.address { gone.append(old.removeFirst()) }
      if let same = old.first, same.address == entry.address {
        old.removeFirst()
        if same == entry { continue }
        gone.append(same)
      }
      added.append(entry)
    }
    return (added, gone + old)
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
    var (merged, mergedRows): ([ListEntry], [[UInt8]]) = ([], [])
    merged.reserveCapacity(entries.count + added.count)
    mergedRows.reserveCapacity(entries.count + added.count)
    var (fingerprints, joins) = (fingerprints, joins)
    var rest = added[...]
    func take(_ entry: ListEntry) {
      merged.append(Self.bare(entry))
      mergedRows.append(Self.row(entry))
    }
    for (entry, row) in zip(entries, rows) {
      guard entry.participant > 0, !gone.contains(entry.participant) else {
        fingerprints.remove(entry.fingerprint.bytes)
        if let joinId = entry.joinId { joins.remove(joinId.bytes) }
        continue
      }
      while let next = rest.first, next.address < entry.address { take(rest.removeFirst()) }
      merged.append(entry)
      mergedRows.append(row)
    }
    for entry in rest { take(entry) }
    return try EpochList(
      merged, rows: mergedRows, checked: (fingerprints, joins), unchecked: added, epoch: epoch)
  }

  /// The hash of an epoch's list, chained to that of the epoch announced before; for epoch 1 `previous` is `noPrevious`.
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

  static func rosterHash(_ entries: [ListEntry]) -> [UInt8] { hash(of: entries.map(row)) }

  private static func hash(of rows: [[UInt8]]) -> [UInt8] {
    var head = Transcript("conclave-roster-v2")
    head.append(UInt32(rows.count))
    var hash = SHA256()
    hash.update(data: head.bytes)
    for row in rows { hash.update(data: row) }
    return Array(hash.finalize())
  }

  private static func row(_ entry: ListEntry) -> [UInt8] {
    var row = Transcript("")
    row.appendPrefixed(entry.user.text)
    row.appendPrefixed(entry.device.text)
    row.append(entry.participant)
    row.append(entry.fingerprint.bytes)
    row.append(entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16))
    if let key = entry.joinKey {
      row.append(SHA256.hash(data: key.publicKey.bytes))
    } else {
      row.append([UInt8](repeating: 0, count: 32))
    }
    return row.bytes
  }

  private static func bare(_ entry: ListEntry) -> ListEntry {
    var entry = entry
    entry.keys = nil
    entry.refresh = nil
    return entry
  }
}
