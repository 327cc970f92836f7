import Contract
import Crypto
import MediaModel

/// Envelopes: made by the leader, opened by the others.
extension KeyAgreement {
  /// Hands out the epoch's secret as its leader; a fresh one counts only when the server has taken it.
  mutating func lead(
    _ number: UInt32, _ deliver: [ListEntry], now: Instant, using generator: inout some RandomNumberGenerator,
    into effects: inout [KeyEffect]
  ) {
    guard let epoch = epochs[number] else { return }
    let secret: SymmetricKey
    if let known = epoch.secret {
      secret = known
    } else if epoch.mode == .fresh {
      let own =
        proposal.flatMap { $0.epoch == number ? $0 : nil }
        ?? Proposal(epoch: number, secret: Self.secret(using: &generator))
      proposal = own
      proposal?.isAwaited = true
      secret = own.secret
    } else {
      // A leader that can't follow the ratchet says so, and a fresh epoch follows.
      effects.append(.request(.inCall(call, .requestKey(RequestKey(epoch: number)))))
      return
    }
    var envelopes: [Envelope] = []
    for entry in deliver {
      if let envelope = envelope(secret, for: entry, in: epoch, into: &effects) { envelopes.append(envelope) }
    }
    effects.append(.request(.inCall(call, .keys(HandOutKeys(epoch: number, envelopes: envelopes)))))
  }

  mutating func handedOut(_ number: UInt32, taken: Bool?, now: Instant, into effects: inout [KeyEffect]) {
    guard let own = proposal, own.epoch == number else { return }
    proposal?.isAwaited = false
    if taken == true {
      adopt(own.secret, for: number, now: now, into: &effects)
    } else if missing?.epoch == number {
      askForMissingKey(now: now, into: &effects)
    }
    openWaiting(now: now, into: &effects)
  }

  /// Sends the newest epoch's secret to one device that lacks it.
  mutating func answer(_ request: KeyRequest, into effects: inout [KeyEffect]) {
    guard !isBroken, request.epoch == newest, let epoch = epochs[newest], let secret = epoch.secret,
      let envelope = envelope(secret, for: request.to, in: epoch, into: &effects)
    else { return }
    effects.append(.request(.inCall(call, .keys(HandOutKeys(epoch: newest, envelopes: [envelope])))))
  }

  /// The secret for one device, if it is on the list, trusted, and signed the key that it is to be sealed to.
  private mutating func envelope(
    _ secret: SymmetricKey, for wanted: ListEntry, in epoch: Epoch, into effects: inout [KeyEffect]
  ) -> Envelope? {
    guard let entry = epoch.list[wanted.address], epoch.list.holds(wanted) else {
      refuse(.strangerOnDelivery, into: &effects)
      return nil
    }
    directory.learn(wanted)
    guard problem(of: entry) == nil,
      let key = sealingKey(of: entry, refresh: wanted.refresh, into: &effects)
    else { return nil }
    return .sealing(
      secret, for: entry.address, alg: key.alg, publicKey: key.publicKey.bytes, in: context(epoch), from: identity)
  }

  /// The newest join key of a stay; nil if it is older than the newest that this device has seen, or not signed.
  private mutating func sealingKey(
    of entry: ListEntry, refresh: JoinKey?, into effects: inout [KeyEffect]
  ) -> JoinKey? {
    guard let joinId = entry.joinId?.bytes, let key = refresh ?? entry.joinKey,
      refresh == nil || key.generation > 0
    else { return nil }
    let keyHash = JoinCredentials.hash(key)
    if let known = generations[joinId],
      key.generation < known.generation || key.generation == known.generation && keyHash != known.keyHash
    {
      warn(.oldJoinKey, entry, into: &effects)
      return nil
    }
    guard isSigned(key, of: entry) else {
      warn(.joinKeyNotSigned, entry, into: &effects)
      return nil
    }
    generations[joinId] = (key.generation, keyHash)
    return key
  }

  // MARK: opening

  /// Opens an envelope, or keeps it until its list, its sender's keys or the person's trust is there.
  mutating func take(_ waiting: WaitingEnvelope, now: Instant, into effects: inout [KeyEffect]) {
    let envelope = waiting.envelope
    guard !isBroken, let epoch = epochs[envelope.epoch] else {
      guard envelope.epoch > newest, !isBroken, self.waiting.count < Self.waitingLimit else {
        // Superseded: the server asks for nothing of it any more.
        return effects.append(.acknowledge(delivery: waiting.delivery, opened: envelope.epoch <= newest))
      }
      self.waiting.append(waiting)
      return askForList(into: &effects)
    }
    guard epoch.secret == nil, epoch.number >= current ?? 0 else {
      return effects.append(.acknowledge(delivery: waiting.delivery, opened: true))
    }
    if let proposal, proposal.epoch == epoch.number, proposal.isAwaited, self.waiting.count < Self.waitingLimit {
      return self.waiting.append(waiting)
    }
    guard let from = envelope.from, let entry = epoch.list[from], from != identity.address,
      !pins.isRevoked(entry.user, entry.fingerprint.bytes)
    else { return refuse(waiting, .envelopeNotAuthentic, into: &effects) }
    guard isHeard(entry), let sender = directory[entry.fingerprint] else {
      return keep(waiting, from: entry, into: &effects)
    }
    do throws(KeyRefusal) {
      guard envelope.isAuthentic(for: identity.address, from: sender, in: context(epoch)) else {
        throw .envelopeNotAuthentic
      }
      let secret = try open(envelope, epoch)
      adopt(secret, for: epoch.number, now: now, into: &effects)
      effects.append(.acknowledge(delivery: waiting.delivery, opened: true))
    } catch {
      refuse(waiting, error, into: &effects)
    }
  }

  private func refuse(_ waiting: WaitingEnvelope, _ refusal: KeyRefusal, into effects: inout [KeyEffect]) {
    effects.append(.acknowledge(delivery: waiting.delivery, opened: false))
    effects.append(.refused(refusal))
  }

  /// Only the stay's own keys count, of the generation that was published when the epoch was announced, or a later one.
  private mutating func open(_ envelope: Envelope, _ epoch: Epoch) throws(KeyRefusal) -> SymmetricKey {
    guard let key = join.opener(envelope.key.bytes), key.generation >= epoch.minimumGeneration else {
      throw .envelopeForOldKey
    }
    let secret = try envelope.opened(with: key.privateKey)
    join.opened(key.generation)
    return secret
  }

  /// The sender's public keys are looked up, or the person has to trust them: no ACK, which would be a lie, and no NACK, which would bring the same again.
  private mutating func keep(_ new: WaitingEnvelope, from entry: ListEntry, into effects: inout [KeyEffect]) {
    if !directory.contains(entry.fingerprint), lookUpDue != nil { lookUpUnproven(into: &effects) }
    if !directory.contains(entry.fingerprint), lookUps > 0, waiting.count < Self.waitingLimit {
      return waiting.append(new)
    }
    if let old = untrusted.updateValue(new, forKey: new.envelope.epoch) {
      effects.append(.drop(delivery: old.delivery))
    } else {
      effects.append(.request(.inCall(call, .waitForKey(WaitForKey(epoch: new.envelope.epoch, reason: .trust)))))
    }
  }

  /// A list or public keys came: what waited for them is looked at again.
  mutating func openWaiting(now: Instant, into effects: inout [KeyEffect]) {
    let envelopes = waiting
    waiting = []
    for envelope in envelopes { take(envelope, now: now, into: &effects) }
  }

  /// The person trusts a key, or its device has become known: what it had sent opens now.
  mutating func openUntrusted(now: Instant, into effects: inout [KeyEffect]) {
    for (number, envelope) in untrusted.sorted(by: { $0.key < $1.key }) {
      guard let from = envelope.envelope.from, let entry = epochs[number]?.list[from], isHeard(entry),
        directory.contains(entry.fingerprint)
      else { continue }
      untrusted[number] = nil
      take(envelope, now: now, into: &effects)
    }
  }

  func context(_ epoch: Epoch) -> EnvelopeContext {
    EnvelopeContext(call: call, epoch: epoch.number, listHash: epoch.listHash)
  }
}
