import Contract
import Crypto
import MediaModel

/// Received envelopes: which of them bring an epoch's secret, and those that wait for a list, for public keys or for the person's trust (protocol section 5.6).
struct ReceivedEnvelopes: Sendable {
  /// Envelopes that wait for a list, for public keys or for the answer to this device's own.
  static let limit = 64

  struct Received: Sendable {
    var envelope: Envelope
    var delivery: UInt64
  }

  private var waiting: [Received] = []
  /// The newest envelope of an epoch whose sender is not trusted: it opens once the person trusts that key.
  private(set) var untrusted: [UInt32: Received] = [:]

  /// Whether an envelope of the epoch waits for the person's trust.
  func isHeld(of epoch: UInt32) -> Bool { untrusted[epoch] != nil }

  /// Keeps an envelope until more is known; false when there is no room.
  mutating func keep(_ received: Received) -> Bool {
    guard waiting.count < Self.limit else { return false }
    waiting.append(received)
    return true
  }

  /// The envelopes that waited, which must be examined again.
  mutating func takeWaiting() -> [Received] {
    defer { waiting = [] }
    return waiting
  }

  /// Envelopes whose sender is trusted now, or has become known.
  mutating func takeTrusted(_ epochs: HeldEpochs, _ known: KnownDevices) -> [Received] {
    var trusted: [Received] = []
    for (number, received) in untrusted.sorted(by: { $0.key < $1.key }) {
      guard let from = received.envelope.from, let entry = epochs[number]?.list[from], known.isTrustedWithKeys(entry),
        known.directory.contains(entry.fingerprint)
      else { continue }
      untrusted[number] = nil
      trusted.append(received)
    }
    return trusted
  }

  /// The epoch and its envelopes are of no use any longer.
  mutating func forget(_ epoch: UInt32, into effects: inout [KeyEffect]) {
    if let received = untrusted.removeValue(forKey: epoch) { effects.append(.drop(delivery: received.delivery)) }
  }

  /// Opens an envelope of an epoch whose secret is wanted, or keeps it until its sender's keys or the person's trust is there. Returns the secret that it brings:
  /// it must then be acknowledged.
  mutating func take(
    _ received: Received, _ epoch: Epoch, own: inout OwnStay, known: KnownDevices, lookUps: inout LookUps,
    into effects: inout [KeyEffect]
  ) -> SymmetricKey? {
    let envelope = received.envelope
    do throws(KeyRefusal) {
      guard let from = envelope.from, let entry = epoch.list[from], from != own.address,
        !known.pins.isRevoked(entry.user, entry.fingerprint.bytes)
      else { throw .envelopeNotAuthentic }
      guard known.isTrustedWithKeys(entry), let sender = known.directory[entry.fingerprint] else {
        wait(received, from: entry, own.call, known, &lookUps, into: &effects)
        return nil
      }
      guard envelope.isAuthentic(for: own.address, from: sender, in: own.context(epoch)) else {
        throw .envelopeNotAuthentic
      }
      return try Self.open(envelope, epoch, &own)
    } catch {
      effects.append(.acknowledge(delivery: received.delivery, opened: false))
      effects.append(.refused(error))
      return nil
    }
  }

  /// Only the stay's own keys count, of the generation that was published when the epoch was announced, or of a later
  /// one.
  private static func open(
    _ envelope: Envelope, _ epoch: Epoch, _ own: inout OwnStay
  ) throws(KeyRefusal) -> SymmetricKey {
    guard let key = own.join.opener(envelope.key.bytes), key.generation >= epoch.minimumGeneration else {
      throw .envelopeForOldKey
    }
    let secret = try envelope.opened(with: key.privateKey)
    own.join.opened(key.generation)
    return secret
  }

  /// The sender's public keys are being looked up, or the person has to trust them: no ACK, which would be a lie, and no NACK, which would bring the same
  /// envelope again.
  private mutating func wait(
    _ new: Received, from entry: ListEntry, _ call: CallID, _ known: KnownDevices, _ lookUps: inout LookUps,
    into effects: inout [KeyEffect]
  ) {
    if !known.directory.contains(entry.fingerprint) {
      lookUps.hurry(known, into: &effects)
      if lookUps.awaited > 0, keep(new) { return }
    }
    if let old = untrusted.updateValue(new, forKey: new.envelope.epoch) {
      effects.append(.drop(delivery: old.delivery))
    } else {
      effects.append(
        .request(.inCall(call, .waitForKey(WaitForKey(epoch: new.envelope.epoch, reason: .trust)))))
    }
  }
}
