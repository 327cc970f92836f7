import Contract
import Crypto
import MediaModel

/// Lists and epochs: what the server announces, and what of it this device believes.
extension KeyAgreement {
  mutating func rotate(
    _ rotation: Rotate, now: Instant, using generator: inout some RandomNumberGenerator,
    into effects: inout [KeyEffect]
  ) {
    do {
      guard let list = try announcedList(rotation) else {
        effects.append(.request(.listKeys(call, ListKeys())))
        return
      }
      try checkOwnEntry(list)
      try checkDelivery(rotation.deliver ?? [], list)
      announce(rotation, list, into: &effects)
    } catch {
      effects.append(.refused(error))
      return
    }
    if let deliver = rotation.deliver { lead(rotation.epoch, deliver, using: &generator, into: &effects) }
  }

  /// The list that `rotation` means; nil when it builds on one that this device has missed.
  private func announcedList(_ rotation: Rotate) throws(KeyRefusal) -> EpochList? {
    guard rotation.epoch >= newest else { throw .lowerEpoch }
    let known = epochs[newest]?.list
    let list: EpochList
    if rotation.epoch == newest, let known {
      list = known
    } else if let whole = rotation.list {
      list = try EpochList(whole)
    } else {
      guard let known, rotation.epoch == newest + 1 else { return nil }
      list = try known.changed(adding: rotation.added ?? [], removing: rotation.removed ?? [])
      guard list.hash == rotation.listHash.bytes else { return nil }
    }
    guard list.hash == rotation.listHash.bytes else { throw .listHashMismatch }
    if rotation.mode == .ratchet, rotation.epoch == newest + 1, let known,
      !known.fingerprints.isSubset(of: list.fingerprints)
    {
      throw .ratchetDropsDevice
    }
    return list
  }

  private func checkOwnEntry(_ list: EpochList) throws(KeyRefusal) {
    guard let own = list[identity.address], own.participant > 0, own.fingerprint.bytes == identity.fingerprint,
      own.joinId == join.joinId, own.joinKey == join.joinKey
    else { throw .notOnList }
  }

  /// Everyone that the leader is to send the key to must be on the list; their keys are learnt on the way.
  private mutating func checkDelivery(_ deliver: [ListEntry], _ list: EpochList) throws(KeyRefusal) {
    for entry in deliver {
      guard list.holds(entry) else { throw .strangerOnDelivery }
      directory.learn(entry)
    }
  }

  private mutating func announce(_ rotation: Rotate, _ list: EpochList, into effects: inout [KeyEffect]) {
    guard rotation.epoch > newest else { return }
    let before = epochs[newest]
    newest = rotation.epoch
    lookedUp = []
    epochs[newest] = Epoch(number: newest, mode: rotation.mode, list: list, secret: nil)
    pinNew(list.entries, into: &effects)
    lookUp(list, into: &effects)
    warnOfProblems(list, into: &effects)
    // An epoch that was announced and never switched to is superseded.
    if let before, let current, before.number > current, retirements[before.number] == nil {
      epochs[before.number] = nil
      effects.append(.retire(epoch: before.number))
    }
    if rotation.mode == .ratchet, let before, before.number + 1 == newest, before.list[identity.address] != nil,
      let secret = before.ratcheted
    {
      adopt(secret, for: newest, into: &effects)
    }
  }

  /// Keeps the first valid secret of an epoch.
  mutating func adopt(_ secret: SymmetricKey, for number: UInt32, into effects: inout [KeyEffect]) {
    guard epochs[number] != nil, epochs[number]?.secret == nil else { return }
    epochs[number]?.secret = secret
    if proposal?.epoch == number { proposal = nil }
    install(number, into: &effects)
    guard number == current else { return }
    missing = nil
    send(under: number, into: &effects)
  }

  mutating func follow(switchTo number: UInt32, now: Instant, into effects: inout [KeyEffect]) {
    guard number > current ?? 0 else { return }
    guard number <= newest else {
      // The announcement was missed; its list is asked for, and the key with it.
      missing = MissingKey(epoch: number, asked: 0, askAgain: now.advanced(by: Self.requestInterval))
      effects.append(.request(.listKeys(call, ListKeys())))
      return
    }
    current = number
    for old in epochs.keys where old < number && retirements[old] == nil {
      retirements[old] = now.advanced(by: Self.overlap)
    }
    if epochs[number]?.secret != nil {
      missing = nil
      send(under: number, into: &effects)
    } else {
      // Whether its own envelopes counted only the server can say. That no other's came is no proof: the server forgets them when the next epoch begins.
      let isAnswerDue = proposal?.epoch == number
      missing = MissingKey(
        epoch: number, asked: 0, askAgain: isAnswerDue ? now.advanced(by: Self.requestInterval) : now)
      effects.append(.stopSending)
      if !isAnswerDue { askForMissingKey(now: now, into: &effects) }
    }
    if let code { effects.append(.code(code)) }
  }

  mutating func askForMissingKey(now: Instant, into effects: inout [KeyEffect]) {
    guard var wanted = missing else { return }
    if wanted.epoch <= newest, wanted.epoch > current ?? 0 {
      // Its announcement has been made up for: the switch that waited for it asks by itself.
      return follow(switchTo: wanted.epoch, now: now, into: &effects)
    }
    guard missing != nil, epochs[wanted.epoch]?.secret == nil else {
      missing = nil
      return
    }
    guard wanted.asked < Self.requestLimit else {
      missing = nil
      return
    }
    wanted.asked += 1
    wanted.askAgain = now.advanced(by: Self.requestInterval)
    missing = wanted
    effects.append(.request(.requestKey(call, RequestKey(epoch: wanted.epoch))))
  }
}
