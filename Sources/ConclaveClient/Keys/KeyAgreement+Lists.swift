import Contract
import Crypto
import MediaModel

/// Lists: the server's announcements, and this device's checks of them.
extension KeyAgreement {
  /// An announced epoch, its list not yet checked.
  struct Announcement {
    var epoch: UInt32
    var mode: RotationMode
    var list: EpochList
    var previous: [UInt8]
    var listHash: [UInt8]
    /// The list before was seen in full.
    var isNext: Bool
  }

  mutating func rotate(
    _ rotation: Rotate, now: Instant, using generator: inout some RandomNumberGenerator,
    into effects: inout [KeyEffect]
  ) {
    // An epoch that was announced before comes again late, or this device has become its leader.
    guard !isBroken, rotation.epoch >= max(1, newest) else { return }
    if rotation.epoch == newest {
      guard rotation.listHash.bytes == epochs[newest]?.listHash else { return breakHistory(into: &effects) }
    } else {
      do throws(KeyRefusal) {
        guard let announcement = try read(rotation, into: &effects) else { return }
        try accept(announcement, now: now, into: &effects)
      } catch {
        return refuse(error, into: &effects)
      }
    }
    if let deliver = rotation.deliver { lead(rotation.epoch, deliver, now: now, using: &generator, into: &effects) }
    openWaiting(now: now, into: &effects)
  }

  /// nil when it is not for this stay, or comes after a gap that has to be closed first.
  private mutating func read(
    _ rotation: Rotate, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) -> Announcement? {
    let list: EpochList
    if newest == 0 {
      // An announcement for an earlier stay does not hold this one's join.
      guard let whole = rotation.list, whole.contains(where: { $0.joinId == join.joinId }) else { return nil }
      list = try work.list(whole, epoch: rotation.epoch, listHash: rotation.listHash.bytes)
    } else if rotation.epoch - newest == 1, let before = epochs[newest] {
      guard rotation.previous.bytes == before.listHash else {
        breakHistory(into: &effects)
        return nil
      }
      if let whole = rotation.list {
        list = try work.list(whole, epoch: rotation.epoch, listHash: rotation.listHash.bytes)
      } else {
        list = try work.list(
          after: before.list, adding: rotation.added ?? [], removing: rotation.removed ?? [], epoch: rotation.epoch,
          listHash: rotation.listHash.bytes)
      }
    } else {
      askForList(into: &effects)
      return nil
    }
    return Announcement(
      epoch: rotation.epoch, mode: rotation.mode, list: list, previous: rotation.previous.bytes,
      listHash: rotation.listHash.bytes, isNext: newest > 0)
  }

  // MARK: keys/list

  mutating func askForList(into effects: inout [KeyEffect]) {
    guard listing == nil, !isBroken else { return }
    listing = newest
    effects.append(.request(.inCall(call, .listKeys(ListKeys(since: newest > 0 ? newest : nil)))))
  }

  mutating func take(_ reply: KeyList?, now: Instant, into effects: inout [KeyEffect]) {
    listing = nil
    defer { watch.answered(now: now) }
    guard !isBroken, let reply, reply.epoch >= max(1, newest) else { return }
    if reply.epoch == newest {
      guard reply.listHash.bytes == epochs[newest]?.listHash else { return breakHistory(into: &effects) }
    } else {
      do throws(KeyRefusal) {
        guard newest > 0 || reply.list.contains(where: { $0.joinId == join.joinId }) else { return }
        let list = try work.list(reply.list, epoch: reply.epoch, listHash: reply.listHash.bytes)
        guard follows(reply, list) else { return breakHistory(into: &effects) }
        try accept(
          Announcement(
            epoch: reply.epoch, mode: reply.mode, list: list, previous: reply.previous.bytes,
            listHash: reply.listHash.bytes, isNext: newest > 0 && reply.epoch - newest == 1), now: now, into: &effects)
      } catch {
        return refuse(error, into: &effects)
      }
    }
    take(KeysConfirmed(epoch: reply.epoch, buckets: reply.confirmed), into: &effects)
    openWaiting(now: now, into: &effects)
  }

  /// Whether a chain of links leads from the newest list that was accepted to this one. A device without one trusts the first `previous`.
  private func follows(_ reply: KeyList, _ list: EpochList) -> Bool {
    guard newest > 0, let known = epochs[newest] else { return true }
    let links = reply.links.drop { $0.epoch <= newest }
    guard links.last?.roster.bytes == list.rosterHash, links.last?.epoch == reply.epoch else { return false }
    var (epoch, hash) = (newest, known.listHash)
    for link in links {
      // Below the reply's number the increment can't overflow.
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
    _ new: Announcement, now: Instant, into effects: inout [KeyEffect]
  ) throws(KeyRefusal) {
    guard new.list.hash(new.epoch, of: call, previous: new.previous) == new.listHash else { throw .listHashMismatch }
    guard new.epoch > 1 || new.previous == EpochList.noPrevious else { throw .listHashMismatch }
    let changes = new.list.changes(since: epochs[newest]?.list)
    try checkOwnEntry(new, changes.added, into: &effects)
    try checkStaying(changes.added)
    if new.mode == .ratchet, new.isNext { try checkRatchet(to: new.list, changes) }
    announce(new, changes, now: now, into: &effects)
  }

  /// Exactly one entry is this device's, in all its parts, and no other entry shares any of them.
  private func checkOwnEntry(
    _ new: Announcement, _ added: [ListEntry], into effects: inout [KeyEffect]
  ) throws(KeyRefusal) {
    guard let own = new.list[identity.address] else {
      effects.append(.askState)
      throw .notOnList
    }
    guard own.participant == participant, own.fingerprint.bytes == identity.fingerprint, own.joinId == join.joinId,
      own.joinKey == join.joinKey
    else { throw .notOnList }
    let ownKey = join.joinKey.publicKey
    guard added.allSatisfy({ $0.joinKey?.publicKey != ownKey || $0.address == own.address }) else {
      throw .notOnList
    }
  }

  /// A device that stays keeps number, fingerprint and key; a join or number that is gone does not return.
  private func checkStaying(_ added: [ListEntry]) throws(KeyRefusal) {
    let before = epochs[newest]?.list
    for entry in added where entry.participant > 0 {
      guard before?[entry.participant] == nil, !gone.numbers.contains(entry.participant),
        let joinId = entry.joinId?.bytes, !gone.joins.contains(joinId), before?[entry.address]?.joinId != entry.joinId
      else { throw .changedEntry }
    }
  }

  /// No device with the old secret may be left out: the ratchet would give it the new one. And one must have come: a server that calls each epoch a ratchet
  /// keeps a secret that it knows alive for ever.
  private func checkRatchet(
    to list: EpochList, _ changes: (added: [ListEntry], gone: [ListEntry])
  ) throws(KeyRefusal) {
    guard let before = epochs[newest] else { return }
    guard !before.list.hasRung, !changes.added.isEmpty,
      changes.gone.allSatisfy({ list.holds(fingerprint: $0.fingerprint) })
    else { throw .unsafeRatchet }
  }

  func refuse(_ refusal: KeyRefusal, into effects: inout [KeyEffect]) { effects.append(.refused(refusal)) }

  mutating func breakHistory(into effects: inout [KeyEffect]) {
    guard !isBroken else { return }
    isBroken = true
    effects.append(.refused(.brokenHistory))
    effects.append(.rejoin)
  }

  // MARK: a new epoch

  private mutating func announce(
    _ new: Announcement, _ changes: (added: [ListEntry], gone: [ListEntry]), now: Instant,
    into effects: inout [KeyEffect]
  ) {
    let before = epochs[newest]
    for old in changes.gone where old.participant > 0 {
      gone.numbers.insert(old.participant)
      if let joinId = old.joinId?.bytes { gone.joins.insert(joinId) }
      generations[old.joinId?.bytes ?? []] = nil
    }
    newest = new.epoch
    listDue = nil
    lookedUp = []
    // Devices that stay are pinned already, and their problems told unless their standing has changed since.
    pinNew(changes.added, into: &effects)
    let unknown = unproven.filter { new.list.holds($0) }
    let changed = unknown.isEmpty ? changes.added : unknown + changes.added
    unproven = changed.filter { !directory.contains($0.fingerprint) }
    lookUpSoon(in: new.list, isFirst: before == nil, now: now, into: &effects)
    let judged = pins.revision == judgedPins ? changed : new.list.entries
    judgedPins = pins.revision
    warnOfProblems(judged, into: &effects)
    epochs[newest] = Epoch(
      number: newest, mode: new.mode, list: new.list, listHash: new.listHash, minimumGeneration: join.published,
      unheard: (before?.unheard ?? []).subtracting(changes.gone.map(\.participant)))
    examine(judged, of: newest)
    // An epoch that was announced and never switched to is superseded.
    if let before, before.number > current ?? 0, retirements[before.number] == nil {
      ownSwitches[before.number] = nil
      if proposal?.epoch == before.number { proposal = nil }
      forget(before.number, into: &effects)
    }
    if new.mode == .ratchet { ratchet(from: before, new, now: now, into: &effects) }
    if !new.isNext, before != nil { askSoon(now: now) }
    if awaitedSwitch <= newest { follow(switchTo: awaitedSwitch, now: now, into: &effects) }
  }

  /// Derives the new secret from the old one. This device never ratchets past a list that it has not seen: a device on it could follow.
  private mutating func ratchet(
    from before: Epoch?, _ new: Announcement, now: Instant, into effects: inout [KeyEffect]
  ) {
    guard new.isNext, let before, before.list[identity.address]?.joinId == join.joinId else { return }
    if let secret = before.ratcheted(to: new.epoch, listHash: new.listHash, of: call) {
      adopt(secret, for: new.epoch, now: now, into: &effects)
    } else {
      askSoon(now: now)
    }
  }

  /// The key of the newest epoch is asked for in a moment, unless its envelope comes before.
  private mutating func askSoon(now: Instant) {
    guard epochs[newest]?.secret == nil else { return }
    missing = MissingKey(epoch: newest, asked: 0, askAgain: now.advanced(by: spread(.milliseconds(500))))
  }

  /// The epoch is of no use any more, nor are envelopes of it.
  mutating func forget(_ number: UInt32, into effects: inout [KeyEffect]) {
    guard epochs.removeValue(forKey: number) != nil else { return }
    openedMessages[number] = nil
    effects.append(.retire(epoch: number))
    if let envelope = untrusted.removeValue(forKey: number) { effects.append(.drop(delivery: envelope.delivery)) }
  }
}
