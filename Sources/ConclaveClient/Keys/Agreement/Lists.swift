import Contract
import MediaModel

/// The lists of a call that this stay has accepted: the server's announcements, and this device's checks of them (protocol sections 5.2 and 5.4).
struct Lists: Sendable {
  /// A list that was accepted.
  struct Accepted: Sendable {
    var epoch: UInt32
    var mode: RotationMode
    var list: EpochList
    var listHash: [UInt8]
    /// The previous list was seen in full.
    var isNext: Bool
    /// The number of the previously accepted list; 0 for the first.
    var before: UInt32
    var added: [ListEntry]
    var gone: [ListEntry]
  }

  /// The outcome of an announcement.
  enum Step: Sendable {
    /// It is of no use, or something must be requested first.
    case nothing
    /// The newest list again: this device may have become its leader.
    case same
    case accepted(Accepted)
  }

  /// An announced epoch, its list not yet checked.
  private struct Announcement {
    var epoch: UInt32
    var mode: RotationMode
    var list: EpochList
    var previous: [UInt8]
    var listHash: [UInt8]
    var isNext: Bool
  }

  private struct Newest: Sendable {
    var list: EpochList
    var listHash: [UInt8]
  }

  /// A newcomer requests the list after 5 s, plus 10 ms for each member up to 1,000: in a large call a restart of the server brings everybody back at once, and
  /// the announcement comes after the last.
  private static func time(members: Int) -> Duration { .seconds(5) + .milliseconds(10) * min(members, 1_000) }

  /// The highest epoch whose list was accepted; 0 before the first.
  private(set) var number: UInt32 = 0
  private var newest: Newest?
  /// Stays that were on an accepted list and no longer are: neither joinId nor number returns.
  private var goneJoins: Set<[UInt8]> = []
  private var goneNumbers: Set<ParticipantNumber> = []
  /// Lists do not follow from each other: nothing is accepted or sent any longer.
  private(set) var isBroken = false
  /// `keys/list` is under way.
  private var isAsked = false
  /// When a device that is on no list yet requests the newest.
  private var due: Instant?
  private var time = Self.time(members: 0)

  /// The newest list that was accepted.
  var list: EpochList? { newest?.list }
  var nextTimeout: Instant? { due }

  // MARK: asking

  /// The reply to the join has arrived; its call has this many members.
  mutating func enter(members: Int, now: Instant) {
    time = Self.time(members: members)
    due = now.advanced(by: time)
  }

  mutating func handleTimeout(_ call: CallID, now: Instant, into effects: inout [KeyEffect]) {
    guard let due, due <= now else { return }
    self.due = number == 0 ? now.advanced(by: time) : nil
    if number == 0 { ask(call, into: &effects) }
  }

  /// Requests the newest list, unless that is already under way.
  mutating func ask(_ call: CallID, into effects: inout [KeyEffect]) {
    guard !isAsked, !isBroken else { return }
    askAgain(call, into: &effects)
  }

  /// Requests it even if an earlier request may be under way.
  mutating func askAgain(_ call: CallID, into effects: inout [KeyEffect]) {
    isAsked = true
    effects.append(.request(.inCall(call, .listKeys(ListKeys(since: number > 0 ? number : nil)))))
  }

  /// The request was answered, or its connection is gone.
  mutating func answered() { isAsked = false }

  // MARK: announcements

  /// Epoch 1 as made by this device, or as brought by a ring.
  mutating func begin(_ first: Epoch) {
    number = 1
    newest = Newest(list: first.list, listHash: first.listHash)
    due = nil
  }

  /// Handles `keys.rotate`. Throws if the list must be refused; nothing has changed then.
  mutating func next(
    _ rotation: Rotate, own: OwnStay, work: PublicWork, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) -> Step {
    // A previously announced epoch arrives again late, or this device has become its leader.
    guard !isBroken, rotation.epoch >= max(1, number) else { return .nothing }
    if rotation.epoch == number { return try same(rotation.listHash.bytes) }
    guard let announcement = try read(rotation, own, work, into: &effects) else { return .nothing }
    return .accepted(try accept(announcement, own, into: &effects))
  }

  /// Handles the reply of `keys/list`.
  mutating func catchUp(
    _ reply: KeyList, own: OwnStay, work: PublicWork, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) -> Step {
    guard !isBroken, reply.epoch >= max(1, number) else { return .nothing }
    if reply.epoch == number { return try same(reply.listHash.bytes) }
    guard number > 0 || reply.list.contains(where: { $0.joinId == own.join.joinId }) else { return .nothing }
    let list = try work.list(reply.list, epoch: reply.epoch, listHash: reply.listHash.bytes)
    guard follows(reply, list, of: own.call) else { throw .brokenHistory }
    let announcement = Announcement(
      epoch: reply.epoch, mode: reply.mode, list: list, previous: reply.previous.bytes,
      listHash: reply.listHash.bytes, isNext: number > 0 && reply.epoch - number == 1)
    return .accepted(try accept(announcement, own, into: &effects))
  }

  /// Reports why a list was refused. A history that does not fit ends this stay: only a new join helps.
  mutating func refuse(_ refusal: KeyRefusal, into effects: inout [KeyEffect]) {
    guard refusal == .brokenHistory else { return effects.append(.refused(refusal)) }
    guard !isBroken else { return }
    isBroken = true
    effects.append(.refused(.brokenHistory))
    effects.append(.rejoin)
  }

  private func same(_ listHash: [UInt8]) throws(KeyRefusal) -> Step {
    guard listHash == newest?.listHash else { throw .brokenHistory }
    return .same
  }

  /// nil if it is not for this stay, or comes after a gap that has to be closed first.
  private mutating func read(
    _ rotation: Rotate, _ own: OwnStay, _ work: PublicWork, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) -> Announcement? {
    let (epoch, listHash) = (rotation.epoch, rotation.listHash.bytes)
    let list: EpochList
    if number == 0 {
      // An announcement for an earlier stay does not contain this one's join.
      guard let whole = rotation.list, whole.contains(where: { $0.joinId == own.join.joinId }) else { return nil }
      list = try work.list(whole, epoch: epoch, listHash: listHash)
    } else if epoch - number == 1, let newest {
      guard rotation.previous.bytes == newest.listHash else { throw .brokenHistory }
      if let whole = rotation.list {
        list = try work.list(whole, epoch: epoch, listHash: listHash)
      } else {
        list = try work.list(
          after: newest.list, adding: rotation.added ?? [], removing: rotation.removed ?? [], epoch: epoch,
          listHash: listHash)
      }
    } else {
      ask(own.call, into: &effects)
      return nil
    }
    return Announcement(
      epoch: epoch, mode: rotation.mode, list: list, previous: rotation.previous.bytes, listHash: listHash,
      isNext: number > 0)
  }

  /// Whether a chain of links leads from the newest accepted list to this one. A device without a list trusts the first `previous`.
  private func follows(_ reply: KeyList, _ list: EpochList, of call: CallID) -> Bool {
    guard let newest else { return true }
    let links = reply.links.drop { $0.epoch <= number }
    guard links.last?.roster.bytes == list.rosterHash, links.last?.epoch == reply.epoch else { return false }
    var (epoch, hash) = (number, newest.listHash)
    for link in links {
      // Below the reply's number the increment cannot overflow.
      guard epoch < reply.epoch, link.epoch == epoch + 1, link.epoch < reply.epoch || hash == reply.previous.bytes
      else {
        return false
      }
      epoch += 1
      hash = EpochList.hash(epoch, of: call, previous: hash, rosterHash: link.roster.bytes)
    }
    return epoch == reply.epoch && hash == reply.listHash.bytes
  }

  // MARK: checks

  private mutating func accept(
    _ new: Announcement, _ own: OwnStay, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) -> Accepted {
    guard new.list.hash(new.epoch, of: own.call, previous: new.previous) == new.listHash else {
      throw .listHashMismatch
    }
    guard new.epoch > 1 || new.previous == EpochList.noPrevious else { throw .listHashMismatch }
    let (added, gone) = new.list.changes(since: newest?.list)
    try checkOwnEntry(new, added, own, into: &effects)
    try checkStaying(added)
    if new.mode == .ratchet, new.isNext { try checkRatchet(to: new.list, added, gone) }
    for old in gone where old.participant > 0 {
      goneNumbers.insert(old.participant)
      if let joinId = old.joinId?.bytes { goneJoins.insert(joinId) }
    }
    defer {
      number = new.epoch
      newest = Newest(list: new.list, listHash: new.listHash)
      due = nil
    }
    return Accepted(
      epoch: new.epoch, mode: new.mode, list: new.list, listHash: new.listHash, isNext: new.isNext, before: number,
      added: added, gone: gone)
  }

  /// Exactly one entry is this device's, in all its parts, and no other entry shares any of them.
  private func checkOwnEntry(
    _ new: Announcement, _ added: [ListEntry], _ own: OwnStay, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) {
    guard let entry = new.list[own.address] else {
      effects.append(.askState)
      throw .notOnList
    }
    guard entry.participant == own.participant, entry.fingerprint.bytes == own.identity.fingerprint,
      entry.joinId == own.join.joinId, entry.joinKey == own.join.joinKey
    else { throw .notOnList }
    let ownKey = own.join.joinKey.publicKey
    guard added.allSatisfy({ $0.joinKey?.publicKey != ownKey || $0.address == entry.address }) else {
      throw .notOnList
    }
  }

  /// A device that stays keeps number, fingerprint and key; a join or number that is gone does not return.
  private func checkStaying(_ added: [ListEntry]) throws(KeyRefusal) {
    let before = newest?.list
    for entry in added where entry.participant > 0 {
      guard before?[entry.participant] == nil, !goneNumbers.contains(entry.participant),
        let joinId = entry.joinId?.bytes, !goneJoins.contains(joinId), before?[entry.address]?.joinId != entry.joinId
      else { throw .changedEntry }
    }
  }

  /// No device with the old secret may be left out, because the ratchet would give it the new one. And at least one must have joined: a server that calls
  /// each epoch a ratchet would keep a secret that it knows alive forever.
  private func checkRatchet(to list: EpochList, _ added: [ListEntry], _ gone: [ListEntry]) throws(KeyRefusal) {
    guard let before = newest?.list else { return }
    guard !before.hasRung, !added.isEmpty, gone.allSatisfy({ list.holds(fingerprint: $0.fingerprint) }) else {
      throw .unsafeRatchet
    }
  }
}
