import Contract
import Crypto
import MediaModel

/// The changes that an input makes in the parts, in order.
extension KeyAgreement {
  // MARK: epoch 1

  mutating func begin(_ first: Epoch, now: Instant, into effects: inout [KeyEffect]) {
    guard let secret = first.secret else { return }
    lists.begin(first)
    epochs[1] = first
    epochs[1]?.secret = nil
    epochs.examine(first.list.entries, of: 1, known: known)
    adopt(secret, for: 1, now: now, into: &effects)
    switchTo(1, now: now, into: &effects)
  }

  // MARK: members

  mutating func see(_ state: CallState, now: Instant, into effects: inout [KeyEffect]) {
    if let minutes = state.policy.rotateMinutes { switching.rotateMinutes = min(max(minutes, 1), 1_440) }
    watch.see(state.members, now: now)
    seat(state.members.flatMap(\.joinedDevices), into: &effects)
  }

  mutating func see(_ member: MemberState, now: Instant, into effects: inout [KeyEffect]) {
    watch.see(member, now: now)
    seat(member.joinedDevices, into: &effects)
  }

  mutating func seat(_ joined: [JoinedDevice], into effects: inout [KeyEffect]) {
    guard current == 1 || newest <= 1 else { return seats.forget() }
    guard seats.note(joined, first: epochs[1]?.list) else { return }
    epochs.install(1, seats: seats, own: own, known: known, into: &effects)
  }

  // MARK: lists

  mutating func rotate(
    _ rotation: Rotate, now: Instant, using generator: inout some RandomNumberGenerator,
    into effects: inout [KeyEffect]
  ) {
    do throws(KeyRefusal) {
      switch try lists.next(rotation, own: own, work: work, into: &effects) {
      case .nothing: return
      case .same: lettingIn.take(rotation.admissions, rotation.signers, isWhole: false)
      case .accepted(let accepted):
        takeWords(rotation.admissions, rotation.signers, isWhole: rotation.list != nil)
        admit(accepted, now: now, into: &effects)
      }
    } catch {
      return lists.refuse(error, into: &effects)
    }
    if let deliver = rotation.deliver, let epoch = epochs[rotation.epoch] {
      handout.lead(
        epoch, deliver, own: own, known: &known, warnings: &warnings, using: &generator, into: &effects)
    }
    openWaiting(now: now, into: &effects)
  }

  mutating func take(_ reply: KeyList?, now: Instant, into effects: inout [KeyEffect]) {
    lists.answered()
    defer { watch.answered(now: now) }
    guard let reply else { return }
    do throws(KeyRefusal) {
      let step = try lists.catchUp(reply, own: own, work: work, into: &effects)
      if case .nothing = step { return }
      takeWords(reply.admissions, reply.signers, isWhole: true)
      if case .accepted(let accepted) = step { admit(accepted, now: now, into: &effects) }
    } catch {
      return lists.refuse(error, into: &effects)
    }
    take(KeysConfirmed(epoch: reply.epoch, buckets: reply.confirmed), into: &effects)
    openWaiting(now: now, into: &effects)
  }

  /// Words that came with an accepted list. If they are all that it needs, others are forgotten, except those of guests who wait.
  private mutating func takeWords(_ admissions: [Admission]?, _ signers: [Signer]?, isWhole: Bool) {
    lettingIn.take(admissions, signers, isWhole: isWhole)
    let waiting = waitingGuests.words
    if isWhole, !waiting.admissions.isEmpty {
      lettingIn.take(waiting.admissions, waiting.signers, isWhole: false)
    }
  }

  /// A list was accepted.
  mutating func admit(_ new: Lists.Accepted, now: Instant, into effects: inout [KeyEffect]) {
    let before = epochs[new.before]
    handout.forget(new.gone)
    // Devices that stay are already pinned, and their problems reported unless their standing has changed since.
    known.pinNew(new.added, warnings: &warnings, into: &effects)
    lettingIn.admit(new.list, added: new.added, isFirst: new.before == 0, now: now)
    let judged = lookUps.announced(
      new.list, added: new.added, isFirst: before == nil, known: known, spread: &spread, now: now, into: &effects)
    judgeWords(now: now)
    warnOfProblems(judged, into: &effects)
    epochs[new.epoch] = Epoch(
      number: new.epoch, mode: new.mode, list: new.list, listHash: new.listHash, minimumGeneration: join.published,
      unheard: (before?.unheard ?? []).subtracting(new.gone.map(\.participant)))
    epochs.examine(judged, of: new.epoch, known: known)
    if let before, epochs.isSuperseded(before.number) {
      switching.forget(before.number)
      handout.forgetProposal(of: before.number)
      forget(before.number, into: &effects)
    }
    if new.mode == .ratchet { ratchet(from: before, new, now: now, into: &effects) }
    if !new.isNext, before != nil { demandSoon(now: now) }
    if switching.awaited <= newest { switchTo(switching.awaited, now: now, into: &effects) }
  }

  /// Derives the new secret from the old one. This device never ratchets past a list that it has not seen, because a device on that
  /// list could follow.
  mutating func ratchet(
    from before: Epoch?, _ new: Lists.Accepted, now: Instant, into effects: inout [KeyEffect]
  ) {
    guard new.isNext, let before, before.list[own.address]?.joinId == join.joinId else { return }
    if let secret = before.ratcheted(to: new.epoch, listHash: new.listHash, of: own.call) {
      adopt(secret, for: new.epoch, now: now, into: &effects)
    } else {
      demandSoon(now: now)
    }
  }

  /// The epoch and its envelopes are of no use any longer.
  mutating func forget(_ epoch: UInt32, into effects: inout [KeyEffect]) {
    guard epochs.remove(epoch) else { return }
    privateMessages.forget(epoch)
    effects.append(.retire(epoch: epoch))
    received.forget(epoch, into: &effects)
  }

  // MARK: secrets

  /// Keeps the first valid secret of an epoch.
  mutating func adopt(
    _ secret: SymmetricKey, for number: UInt32, now: Instant, into effects: inout [KeyEffect]
  ) {
    guard !lists.isBroken, epochs[number] != nil, epochs[number]?.secret == nil, number >= epochs.currentNumber
    else { return }
    epochs[number]?.secret = secret
    handout.forgetProposal(of: number)
    demands.end(number)
    epochs.install(number, seats: seats, own: own, known: known, into: &effects)
    guard let epoch = epochs[number] else { return }
    if number == current {
      confirmations.began(epoch, own: own, spread: &spread, now: now)
    } else if number > 1 || current != nil {
      switching.keyed(epoch, inUse: epochs.inUse, now: now)
    }
  }

  mutating func switchTo(_ number: UInt32, now: Instant, into effects: inout [KeyEffect]) {
    guard !lists.isBroken, number > epochs.currentNumber else { return }
    guard number <= newest else {
      switching.await(number)
      return lists.ask(own.call, into: &effects)
    }
    guard let epoch = epochs[number] else { return }
    epochs.use(number, now: now)
    switching.use(epoch, now: now)
    watch.use(epoch.list, now: now)
    lettingIn.use(epoch.list, newest: lists.list)
    if epoch.secret != nil {
      demands.endAll()
    } else {
      // Only the server can say whether this device's envelopes counted. That no others arrived proves nothing, because the server forgets them when the
      // next epoch begins.
      let isAnswerDue = handout.isOffering(number)
      let first = isAnswerDue ? KeyDemands.interval : spread.part(of: KeyDemands.spread)
      demands.use(number, at: now.advanced(by: first), now: now)
    }
    confirmations.began(epoch, own: own, spread: &spread, now: now)
    if let code { effects.append(.code(code)) }
    effects.append(.tilesChanged)
  }

  /// Requests the key of the newest epoch in a moment, unless its envelope arrives before.
  mutating func demandSoon(now: Instant) {
    guard epochs[newest]?.secret == nil else { return }
    demands.begin(newest, at: now.advanced(by: spread.part(of: KeyDemands.spread)))
  }

  mutating func demand(now: Instant, into effects: inout [KeyEffect]) {
    guard let wanted = demands.epoch else { return }
    let isMissing = wanted == newest && epochs[wanted] != nil && epochs[wanted]?.secret == nil
    let outcome = demands.ask(
      isMissing: isMissing, isInUse: wanted <= epochs.currentNumber, hasEnvelope: received.isHeld(of: wanted), now: now)
    switch outcome {
    case .nothing: break
    case .ask: effects.append(.request(.inCall(own.call, .requestKey(RequestKey(epoch: wanted)))))
    case .failed: effects.append(.refused(.keyWithheld))
    }
  }

  // Opens an envelope, or keeps it until its list, its sender's keys or the person's trust is there.

  mutating func handedOut(
    _ epoch: UInt32, taken: Bool?, now: Instant, into effects: inout [KeyEffect]
  ) {
    guard handout.proposal?.epoch == epoch else { return }
    if let secret = handout.answered(epoch, taken: taken) {
      adopt(secret, for: epoch, now: now, into: &effects)
    } else if demands.epoch == epoch {
      demand(now: now, into: &effects)
    }
    openWaiting(now: now, into: &effects)
  }

  mutating func answer(_ request: KeyRequest, into effects: inout [KeyEffect]) {
    guard !lists.isBroken, request.epoch == newest, let epoch = epochs[newest] else { return }
    handout.answer(request, in: epoch, own: own, known: &known, warnings: &warnings, into: &effects)
  }

  /// Opens an envelope, or keeps it until its list, its sender's keys or the person's trust is there.
  mutating func take(
    _ new: ReceivedEnvelopes.Received, now: Instant, into effects: inout [KeyEffect]
  ) {
    let number = new.envelope.epoch
    guard !lists.isBroken, let epoch = epochs[number] else {
      guard number > newest, !lists.isBroken, received.keep(new) else {
        // Superseded: the server no longer requests anything of it.
        return effects.append(.acknowledge(delivery: new.delivery, opened: number <= newest))
      }
      return lists.ask(own.call, into: &effects)
    }
    guard epoch.secret == nil, number >= epochs.currentNumber else {
      return effects.append(.acknowledge(delivery: new.delivery, opened: true))
    }
    if handout.isOffering(number), received.keep(new) { return }
    guard
      let secret = received.take(
        new, epoch, own: &own, known: known, lookUps: &lookUps, into: &effects)
    else { return }
    adopt(secret, for: number, now: now, into: &effects)
    effects.append(.acknowledge(delivery: new.delivery, opened: true))
  }

  /// A list or public keys arrived: examines again what waited for them.
  mutating func openWaiting(now: Instant, into effects: inout [KeyEffect]) {
    for envelope in received.takeWaiting() { take(envelope, now: now, into: &effects) }
  }

  /// The person trusts a key, or its device has become known: opens what the device had sent.
  mutating func openTrusted(now: Instant, into effects: inout [KeyEffect]) {
    for envelope in received.takeTrusted(epochs, known) { take(envelope, now: now, into: &effects) }
  }

  // MARK: confirmations

  mutating func take(_ confirmed: KeysConfirmed, into effects: inout [KeyEffect]) {
    guard !confirmed.buckets.isEmpty, let list = epochs[confirmed.epoch]?.list else { return }
    confirmations.take(
      confirmed, list, isNewest: confirmed.epoch == newest, call: own.call, into: &effects)
  }

  mutating func take(
    _ reply: ConfirmationTags?, _ bucket: Int, of epoch: UInt32, into effects: inout [KeyEffect]
  ) {
    for number in confirmations.take(reply, bucket: bucket, epoch: epoch, into: &effects) {
      if let entry = epochs[epoch]?.list[number] { warnings.warn(.otherKey, entry, into: &effects) }
    }
  }

  // MARK: trust

  /// Public keys arrived, or did not.
  mutating func learn(_ devices: Devices?, now: Instant, into effects: inout [KeyEffect]) {
    let entries = devices?.devices ?? []
    known.directory.learn(entries)
    lookUps.answered(devices, spread: &spread, now: now)
    lettingIn.reconsider()
    if lookUps.awaited == 0 { warnOfProblems(lookUps.unproven, into: &effects) }
    if let list = lists.list { warnOfProblems(list.entries(of: Set(entries.map(\.user))), into: &effects) }
    epochs.installProven(seats: seats, own: own, known: known, into: &effects)
    openWaiting(now: now, into: &effects)
    openTrusted(now: now, into: &effects)
  }

  /// Something new is known of any users.
  mutating func trustChanged(now: Instant, into effects: inout [KeyEffect]) {
    if let list = lists.list { warnOfProblems(list.entries, into: &effects) }
    epochs.judge(nil, seats: seats, own: own, known: known, into: &effects)
    openWaiting(now: now, into: &effects)
    openTrusted(now: now, into: &effects)
  }

  /// A device that was refused has been examined: it is heard, and may have the key.
  mutating func trusted(_ device: Device, now: Instant, into effects: inout [KeyEffect]) {
    warnings.forget(device)
    epochs.judge([device.user], seats: seats, own: own, known: known, into: &effects)
    openTrusted(now: now, into: &effects)
    guard let epoch = epochs[newest], epoch.list[device] != nil, epoch.secret == nil, newest == current else { return }
    // Its envelope may have been refused.
    demands.begin(newest, at: now)
    demand(now: now, into: &effects)
  }

  /// Judges who let whom in, if something new is known about it.
  mutating func judgeWords(now: Instant) {
    lettingIn.judge(lists.list, own: own, known: known, work: work)
    let uninvited = Set(lettingIn.uninvited.keys)
    known.uninvited =
      uninvited.isEmpty ? [] : uninvited.filter { !(lettingIn.uninvited[$0].map(watch.isAccepted) ?? false) }
    watch.see(uninvited: uninvited, isUndecided: lookUps.isUnderWay, now: now)
  }

  mutating func warnOfProblems(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    known.warnOfProblems(entries, isLookingUp: lookUps.isUnderWay, warnings: &warnings, into: &effects)
  }

  // MARK: what follows

  /// Decides whether this device sends, requests what is needed for that, and reports what has changed.
  mutating func settle(now: Instant, into effects: inout [KeyEffect]) {
    let barred = known.uninvited
    judgeWords(now: now)
    // Opens envelopes of users who have been let in, or to whom the person sends anyway.
    if !barred.subtracting(known.uninvited).isEmpty { openTrusted(now: now, into: &effects) }
    if watch.takeQuestion(now: now) {
      effects.append(.askState)
      lists.askAgain(own.call, into: &effects)
    }
    watch.tell(lettingIn, now: now, into: &effects)
    lettingIn.tell(isLookingUp: lookUps.isUnderWay, now: now, into: &effects)
    let links = waitingGuests.links.filter { lettingIn.isWaiting($0, own: own, known: known, work: work) }
    waitingGuests.tell(by: links, into: &effects)
    switching.tellAge(isInUse: current != nil, isBroken: lists.isBroken, now: now, into: &effects)
    let confirmed = confirmations.epoch
    confirmations.tell(
      confirmed.flatMap { epochs[$0]?.list }, isNewest: confirmed == newest, own: own, known: known, now: now,
      into: &effects)
    switching.review(
      epochs.inUse, isBroken: lists.isBroken, watch: watch, own: own, known: known, lettingIn: lettingIn,
      confirmations: confirmations, now: now, into: &effects)
  }
}
