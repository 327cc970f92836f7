import Contract
import MediaModel

/// This device's place in a call, for one join: its own values on each list, in each envelope and in each key.
struct OwnStay: Sendable {
  let identity: DeviceIdentity
  let call: CallID
  var join: JoinCredentials
  /// The number in the reply to the own join; 0 before.
  var participant: ParticipantNumber = 0
  /// When the join was made: times in later signatures are computed from it.
  let began: Instant

  init(_ identity: DeviceIdentity, _ join: JoinCredentials, now: Instant) {
    self.identity = identity
    self.join = join
    call = join.call
    began = now
  }

  var address: Device { identity.address }
  var sender: SenderIdentity { SenderIdentity(fingerprint: identity.fingerprint, joinId: join.joinId.bytes) }

  func context(_ epoch: Epoch) -> EnvelopeContext {
    EnvelopeContext(call: call, epoch: epoch.number, listHash: epoch.listHash)
  }

  /// This device's own key in an epoch, made only from its own values.
  func sendingKey(_ epoch: Epoch) -> SendingKey? {
    guard participant > 0, let derivation = epoch.derivation(call) else { return nil }
    return SendingKey(
      epoch: epoch.number, participant: participant, joinId: join.joinId.bytes,
      baseKey: derivation.baseKey(of: participant, sender))
  }
}
