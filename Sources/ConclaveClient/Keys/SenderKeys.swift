import Contract
import Crypto
import MediaModel
import SFrame

/// Whose frames a base key is for, beside the participant number: another stay of the device, or another device, has another key.
struct SenderIdentity: Hashable, Sendable {
  var fingerprint: [UInt8]
  var joinId: [UInt8]
}

/// Makes the base keys of an epoch's senders (protocol section 5, "Sender keys"). Holds the epoch's secret.
struct SenderDerivation: Sendable {
  let call: CallID
  let epoch: UInt32
  let listHash: [UInt8]
  let secret: SymmetricKey

  func baseKey(of participant: ParticipantNumber, _ identity: SenderIdentity) -> SymmetricKey {
    var info = Transcript("conclave-sender-v2")
    info.append(epoch)
    info.append(listHash)
    info.append(participant)
    info.append(identity.fingerprint)
    info.append(identity.joinId)
    return HKDF<SHA512>.deriveKey(
      inputKeyMaterial: secret, salt: Array(call.text.utf8), info: info.bytes, outputByteCount: 64)
  }
}

/// What opens the other senders' frames of an epoch. This device is never among them: what the server reflects does not open.
package struct EpochKeys: Sendable {
  package let epoch: UInt32
  let derivation: SenderDerivation
  let senders: [ParticipantNumber: SenderIdentity]
}

/// What this device seals its own frames with in one epoch, made from its own values alone.
package struct SendingKey: Sendable {
  package let epoch: UInt32
  let participant: ParticipantNumber
  /// The stay: no other one ever has this key.
  let joinId: [UInt8]
  let baseKey: SymmetricKey
}
