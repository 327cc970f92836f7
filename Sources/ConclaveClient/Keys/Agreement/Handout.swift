import Contract
import Crypto
import MediaModel

/// Handing out an epoch's secret: to the devices in a leader's `deliver`, and to those that request it later (protocol sections 5.3
/// and 5.5).
struct Handout: Sendable {
  /// The secret that this device made as leader of an epoch: only one, however often it is asked and whatever becomes of its
  /// answers.
  struct Proposal: Sendable {
    var epoch: UInt32
    var secret: SymmetricKey
    /// The server has not said yet whether it counts. Until then no other secret of the epoch is accepted.
    var isAwaited = false
  }

  private(set) var proposal: Proposal?
  /// The newest generation of each stay's join key that this device, as a leader, has seen.
  private var generations: [[UInt8]: (generation: UInt32, keyHash: [UInt8])] = [:]

  /// Whether the server has not answered this device's proposal. Until then the device must not accept another's secret, because it has
  /// signed its own.
  func isOffering(_ epoch: UInt32) -> Bool { proposal?.epoch == epoch && proposal?.isAwaited == true }

  /// These devices are no longer on any list.
  mutating func forget(_ gone: [ListEntry]) {
    for entry in gone where entry.participant > 0 { generations[entry.joinId?.bytes ?? []] = nil }
  }

  /// The epoch has its secret, or is superseded.
  mutating func forgetProposal(of epoch: UInt32) { if proposal?.epoch == epoch { proposal = nil } }

  /// Hands out the epoch's secret as its leader. A fresh one counts only once the server has accepted it.
  mutating func lead(
    _ epoch: Epoch, _ deliver: [ListEntry], own: OwnStay, known: inout KnownDevices, warnings: inout KeyWarnings,
    using generator: inout some RandomNumberGenerator, into effects: inout [KeyEffect]
  ) {
    let secret: SymmetricKey
    if let there = epoch.secret {
      secret = there
    } else if epoch.mode == .fresh {
      var made =
        proposal.flatMap { $0.epoch == epoch.number ? $0 : nil }
        ?? Proposal(epoch: epoch.number, secret: Epoch.secret(using: &generator))
      made.isAwaited = true
      proposal = made
      secret = made.secret
    } else {
      // A leader that cannot follow the ratchet reports that, and a fresh epoch follows.
      effects.append(.request(.inCall(own.call, .requestKey(RequestKey(epoch: epoch.number)))))
      return
    }
    var envelopes: [Envelope] = []
    for entry in deliver {
      let made = envelope(
        secret, for: entry, in: epoch, own: own, known: &known, warnings: &warnings, into: &effects)
      if let made { envelopes.append(made) }
    }
    effects.append(.request(.inCall(own.call, .keys(HandOutKeys(epoch: epoch.number, envelopes: envelopes)))))
  }

  /// The server has answered this device's proposal. Returns the secret if it counts; nil also if nothing was proposed.
  mutating func answered(_ epoch: UInt32, taken: Bool?) -> SymmetricKey? {
    guard let proposal, proposal.epoch == epoch else { return nil }
    self.proposal?.isAwaited = false
    return taken == true ? proposal.secret : nil
  }

  /// Sends the newest epoch's secret to one device that lacks it.
  mutating func answer(
    _ request: KeyRequest, in epoch: Epoch, own: OwnStay, known: inout KnownDevices, warnings: inout KeyWarnings,
    into effects: inout [KeyEffect]
  ) {
    guard let secret = epoch.secret,
      let envelope = envelope(
        secret, for: request.to, in: epoch, own: own, known: &known, warnings: &warnings, into: &effects)
    else { return }
    effects.append(.request(.inCall(own.call, .keys(HandOutKeys(epoch: epoch.number, envelopes: [envelope])))))
  }

  /// The secret for one device, if it is on the list, trusted, and signed the key to which the secret will be sealed.
  private mutating func envelope(
    _ secret: SymmetricKey, for wanted: ListEntry, in epoch: Epoch, own: OwnStay, known: inout KnownDevices,
    warnings: inout KeyWarnings, into effects: inout [KeyEffect]
  ) -> Envelope? {
    guard let entry = epoch.list[wanted.address], epoch.list.holds(wanted) else {
      effects.append(.refused(.strangerOnDelivery))
      return nil
    }
    known.directory.learn(wanted)
    guard known.problem(of: entry) == nil,
      let key = sealingKey(
        of: entry, refresh: wanted.refresh, call: own.call, known: &known, warnings: &warnings, into: &effects)
    else { return nil }
    return .sealing(
      secret, for: entry.address, alg: key.alg, publicKey: key.publicKey.bytes, in: own.context(epoch),
      from: own.identity)
  }

  /// The newest join key of a stay; nil if it is older than the newest that this device has seen, or not signed.
  private mutating func sealingKey(
    of entry: ListEntry, refresh: JoinKey?, call: CallID, known: inout KnownDevices, warnings: inout KeyWarnings,
    into effects: inout [KeyEffect]
  ) -> JoinKey? {
    guard let joinId = entry.joinId?.bytes, let key = refresh ?? entry.joinKey,
      refresh == nil || key.generation > 0
    else { return nil }
    let keyHash = JoinCredentials.hash(key)
    if let seen = generations[joinId],
      key.generation < seen.generation || key.generation == seen.generation && keyHash != seen.keyHash
    {
      warnings.warn(.oldJoinKey, entry, into: &effects)
      return nil
    }
    guard known.isSigned(key, of: entry, call: call) else {
      warnings.warn(.joinKeyNotSigned, entry, into: &effects)
      return nil
    }
    generations[joinId] = (key.generation, keyHash)
    return key
  }
}
