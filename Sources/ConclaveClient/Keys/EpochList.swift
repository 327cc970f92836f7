import Contract
import Crypto
import MediaModel
import Octets

/// The list of an epoch: the devices that get its secret. It never changes once announced (protocol section 5, "List").
///
/// A class, because the list in use, the newest and the users of both hold it: a large call's list is created once for each
/// epoch.
final class EpochList: Sendable {
  static let maximumCount = 8_192

  /// Sorted by user, then device, as bytes.
  let entries: [ListEntry]
  let rosterHash: [UInt8]
  /// Whether it contains a device that rang and has not joined, which is possible only in epoch 1.
  let hasRung: Bool
  /// The roster's bytes of each entry. The next list shares most of them.
  private let rows: [[UInt8]]
  private let numbers: [ParticipantNumber: Int]
  private let fingerprints: Set<[UInt8]>
  private let joins: Set<[UInt8]>
  private let identity = Identity()
  /// How it was derived from the previous list, if it was made from changes.
  private let step: Step?

  /// Represents a list where keeping the list itself would keep all previous ones, too.
  private final class Identity: Sendable {}

  private struct Step: Sendable {
    var before: Identity
    var added: [ListEntry]
    var gone: [ListEntry]
  }

  /// The entries with their rows, in the list's order, and the values that were checked to be unique.
  private struct Content {
    var entries: [ListEntry] = []
    var rows: [[UInt8]] = []
    var fingerprints: Set<[UInt8]> = []
    var joins: Set<[UInt8]> = []

    /// Adds an entry after all others.
    mutating func append(_ entry: ListEntry, epoch: UInt32) throws(KeyRefusal) {
      guard EpochList.isWellFormed(entry, epoch: epoch), fingerprints.insert(entry.fingerprint.bytes).inserted,
        entry.joinId.map({ joins.insert($0.bytes).inserted }) ?? true,
        entries.last.map({ $0.address < entry.address }) ?? true
      else { throw .malformedList }
      entries.append(EpochList.bare(entry))
      rows.append(EpochList.row(entry))
    }
  }

  /// Refuses entries of the wrong shape or order, and two entries that share a device, a participant, a fingerprint or a joinId: a KID must name one
  /// sender.
  convenience init(_ listed: [ListEntry], epoch: UInt32) throws(KeyRefusal) {
    guard listed.count <= Self.maximumCount else { throw .malformedList }
    var content = Content()
    for entry in listed { try content.append(entry, epoch: epoch) }
    try self.init(content, step: nil)
  }

  private init(_ content: Content, step: Step?) throws(KeyRefusal) {
    guard content.entries.count <= Self.maximumCount else { throw .malformedList }
    var numbers = [ParticipantNumber: Int](minimumCapacity: content.entries.count)
    var hasRung = false
    for (position, entry) in content.entries.enumerated() {
      guard entry.participant > 0 else {
        hasRung = true
        continue
      }
      guard numbers.updateValue(position, forKey: entry.participant) == nil else { throw .malformedList }
    }
    entries = content.entries
    rows = content.rows
    fingerprints = content.fingerprints
    joins = content.joins
    self.numbers = numbers
    self.hasRung = hasRung
    self.step = step
    rosterHash = Self.hash(of: content.rows)
  }

  subscript(address: Device) -> ListEntry? { position(of: address).map { entries[$0] } }
  subscript(participant: ParticipantNumber) -> ListEntry? { numbers[participant].map { entries[$0] } }

  func holds(participant: ParticipantNumber) -> Bool { numbers[participant] != nil }

  func position(of address: Device) -> Int? {
    let position = place(of: address)
    return position < entries.count && entries[position].address == address ? position : nil
  }

  /// Whether it contains exactly this device's join, whatever keys the entry has.
  func holds(_ entry: ListEntry) -> Bool {
    let known = entry.participant > 0 ? self[entry.participant] : self[entry.address]
    return known == Self.bare(entry)
  }

  func holds(fingerprint: Base64Bytes) -> Bool { fingerprints.contains(fingerprint.bytes) }

  /// The devices of a user.
  func entries(of user: UserID) -> ArraySlice<ListEntry> {
    let start = firstIndex { $0.user.text >= user.text }
    return entries[start...].prefix { $0.user == user }
  }

  /// The devices of these users; all devices if nil.
  func entries(of users: Set<UserID>?) -> [ListEntry] {
    guard let users else { return entries }
    // Looking for each costs more than visiting all.
    guard 8 * users.count < entries.count else { return entries.filter { users.contains($0.user) } }
    return users.flatMap { entries(of: $0) }
  }

  /// Entries that are new or changed since the previous list, and the previous list's entries that are gone or changed.
  func changes(since before: EpochList?) -> (added: [ListEntry], gone: [ListEntry]) {
    guard let before else { return (entries, []) }
    if let step, step.before === before.identity { return (step.added, step.gone) }
    var (added, gone): ([ListEntry], [ListEntry]) = ([], [])
    let old = before.entries
    // Positions, because a copy of an entry costs more than the comparison.
    var next = 0
    for place in entries.indices {
      while next < old.count, old[next].address < entries[place].address {
        gone.append(old[next])
        next += 1
      }
      if next < old.count, old[next].address == entries[place].address {
        next += 1
        if old[next - 1] == entries[place] { continue }
        gone.append(old[next - 1])
      }
      added.append(entries[place])
    }
    return (added, gone + old[next...])
  }

  /// The index of the device, or where it would be inserted. Ids are ASCII, whose texts compare as their bytes do.
  private func place(of address: Device) -> Int {
    let (user, device) = (address.user.text, address.device.text)
    return firstIndex { $0.user.text == user ? $0.device.text >= device : $0.user.text > user }
  }

  private func firstIndex(where isBehind: (ListEntry) -> Bool) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(entries[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The list of the next epoch, from the changes in `keys.rotate`. Devices that only rang are removed in any case.
  func changed(
    adding added: [ListEntry], removing removed: [ParticipantNumber], epoch: UInt32
  ) throws(KeyRefusal) -> EpochList {
    let gone = Set(removed)
    guard gone.count == removed.count, gone.allSatisfy({ numbers[$0] != nil }) else { throw .malformedList }
    var content = Content()
    content.entries.reserveCapacity(entries.count + added.count)
    content.rows.reserveCapacity(entries.count + added.count)
    (content.fingerprints, content.joins) = (fingerprints, joins)
    var leaving = gone.compactMap { numbers[$0] }
    if hasRung { leaving += entries.indices.filter { entries[$0].participant == 0 } }
    leaving.sort()
    let left = leaving.map { entries[$0] }
    for entry in left {
      content.fingerprints.remove(entry.fingerprint.bytes)
      if let joinId = entry.joinId { content.joins.remove(joinId.bytes) }
    }
    var position = 0
    var nextLeaving = leaving[...]
    /// Takes over the entries up to an index.
    func keep(upTo end: Int) {
      while position < end {
        let stop = min(end, nextLeaving.first ?? end)
        content.entries += entries[position..<stop]
        content.rows += rows[position..<stop]
        position = stop
        if stop < end {
          nextLeaving.removeFirst()
          position += 1
        }
      }
    }
    for entry in added {
      let place = place(of: entry.address)
      guard place >= position else { throw .malformedList }
      keep(upTo: place)
      // A device that is on the list appears again only as a replacement of itself.
      if place < entries.count, entries[place].address == entry.address {
        guard nextLeaving.first == place else { throw .malformedList }
        nextLeaving.removeFirst()
        position = place + 1
      }
      try content.append(entry, epoch: epoch)
    }
    keep(upTo: entries.count)
    let new = added.map(Self.bare)
    let unaltered = left.isEmpty ? [] : Set(left).intersection(new)
    let step = Step(
      before: identity, added: new.filter { !unaltered.contains($0) }, gone: left.filter { !unaltered.contains($0) })
    return try EpochList(content, step: step)
  }

  /// The hash of an epoch's list, chained to that of the previously announced epoch; for epoch 1 `previous` is
  /// `noPrevious`.
  func hash(_ epoch: UInt32, of call: CallID, previous: [UInt8]) -> [UInt8] {
    Self.hash(epoch, of: call, previous: previous, rosterHash: rosterHash)
  }

  static let noPrevious = [UInt8](repeating: 0, count: 32)

  static func hash(_ epoch: UInt32, of call: CallID, previous: [UInt8], rosterHash: [UInt8]) -> [UInt8] {
    Transcript.list(call: call.text, epoch: epoch, previous: previous, rosterHash: rosterHash).sha256
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
    var hash = SHA256()
    hash.update(data: Transcript.roster(count: rows.count).bytes)
    for row in rows { hash.update(data: row) }
    return Array(hash.finalize())
  }

  private static func row(_ entry: ListEntry) -> [UInt8] {
    var row = Transcript()
    row.appendEntry(
      user: entry.user.text, device: entry.device.text, participant: entry.participant,
      fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes,
      joinKeyHash: entry.joinKey.map { Array(SHA256.hash(data: $0.publicKey.bytes)) })
    return row.bytes
  }

  private static func bare(_ entry: ListEntry) -> ListEntry {
    var entry = entry
    entry.keys = nil
    entry.refresh = nil
    return entry
  }
}
