import Contract
import Crypto
import MediaModel

/// Envelopes: made by the leader, opened by the others.
extension KeyAgreement {
  /// Hands out the epoch's secret as its leader; a fresh one counts only when the server has taken it.
  mutating func lead(
    _ number: UInt32, _ deliver: [ListEntry], using generator: inout some RandomNumberGenerator,
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
      secret = own.secret
    } else {
      // A leader that can't follow the ratchet says so, and a fresh epoch follows.
      effects.append(.request(.requestKey(call, RequestKey(epoch: number))))
      return
    }
    let envelopes = deliver.compactMap { envelope(secret, for: $0, in: epoch) }
    effects.append(.request(.keys(call, HandOutKeys(epoch: number, envelopes: envelopes))))
  }

  mutating func handedOut(_ number: UInt32, taken: Bool?, now: Instant, into effects: inout [KeyEffect]) {
    guard let own = proposal, own.epoch == number else { return }
    // Asked again as the epoch's leader, it answers with the same secret.
    if taken != nil { proposal = nil }
    if taken == true {
      adopt(own.secret, for: number, into: &effects)
    } else if missing?.epoch == number {
      askForMissingKey(now: now, into: &effects)
    }
  }

  /// Sends the newest epoch's secret to one device that lacks it.
  mutating func answer(_ request: KeyRequest, into effects: inout [KeyEffect]) {
    guard request.epoch == newest, let epoch = epochs[newest] else { return }
    guard epoch.list.holds(request.to) else {
      effects.append(.refused(.strangerOnDelivery))
      return
    }
    directory.learn(request.to)
    guard let secret = epoch.secret, let envelope = envelope(secret, for: request.to, in: epoch) else { return }
    effects.append(.request(.keys(call, HandOutKeys(epoch: newest, envelopes: [envelope]))))
  }

  mutating func envelope(_ secret: SymmetricKey, for entry: ListEntry, in epoch: Epoch) -> Envelope? {
    guard problem(of: entry) == nil, let keys = directory[entry.fingerprint] else { return nil }
    return .sealing(secret, for: entry, keys: keys, in: context(epoch), from: identity)
  }

  /// Opens an envelope, or keeps it until its sender's keys are known.
  mutating func take(_ envelope: Envelope, _ delivery: UInt64, into effects: inout [KeyEffect]) {
    if lookUps > 0, waiting.count < 64, let from = envelope.from, let entry = epochs[envelope.epoch]?.list[from],
      directory[entry.fingerprint] == nil
    {
      waiting.append((envelope, delivery))
    } else {
      effects.append(.acknowledge(delivery: delivery, opened: open(envelope, into: &effects)))
    }
  }

  /// Takes up an envelope's secret; false when it was refused, or belongs to an epoch that this device has not heard of.
  private mutating func open(_ envelope: Envelope, into effects: inout [KeyEffect]) -> Bool {
    guard let epoch = epochs[envelope.epoch] else {
      effects.append(envelope.epoch > newest ? .request(.listKeys(call, ListKeys())) : .refused(.lowerEpoch))
      return false
    }
    if epoch.secret != nil { return true }
    do throws(KeyRefusal) {
      guard let from = envelope.from, let entry = epoch.list[from], problem(of: entry) == nil,
        let sender = directory[entry.fingerprint]
      else { throw .envelopeNotAuthentic }
      // Epoch 1 is made before there are join keys; every later one is wrapped to ours.
      let secret = try envelope.opened(
        by: identity.address, with: epoch.number >= 2 ? join.privateKey : identity.wrapKey, from: sender,
        in: context(epoch))
      adopt(secret, for: epoch.number, into: &effects)
      return true
    } catch {
      effects.append(.refused(error))
      return false
    }
  }

  private func context(_ epoch: Epoch) -> EnvelopeContext {
    EnvelopeContext(call: call, epoch: epoch.number, listHash: epoch.list.hash)
  }
}
