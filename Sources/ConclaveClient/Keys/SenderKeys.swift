import Contract
import Crypto
import MediaModel
import SFrame

/// The sender that a base key is for, beside the participant number: another stay of the device, or another device, has another key.
struct SenderIdentity: Hashable, Sendable {
  var fingerprint: [UInt8]
  var joinId: [UInt8]
}

/// Makes the base keys of an epoch's senders (protocol section 5, "Sender keys"). As good as the epoch's secret for that.
///
/// A large call has a thousand senders in each epoch: what HKDF computes alike for all of them is computed once.
struct SenderDerivation: Sendable {
  /// HKDF's expansion (RFC 5869 section 2.3), begun with the common start of all senders' `info`. 64 bytes are one block of SHA-512: T(1).
  private let expansion: HMAC<SHA512>

  init(call: CallID, epoch: UInt32, listHash: [UInt8], secret: SymmetricKey) {
    let pseudoRandomKey = HKDF<SHA512>.extract(inputKeyMaterial: secret, salt: Array(call.text.utf8))
    var info = Transcript("conclave-sender-v2")
    info.append(epoch)
    info.append(listHash)
    var expansion = HMAC<SHA512>(key: SymmetricKey(data: pseudoRandomKey))
    expansion.update(data: info.bytes)
    self.expansion = expansion
  }

  func baseKey(of participant: ParticipantNumber, _ identity: SenderIdentity) -> SymmetricKey {
    var info = Transcript("")
    info.append(participant)
    info.append(identity.fingerprint)
    info.append(identity.joinId)
    info.append([1] as [UInt8])
    var expansion = expansion
    expansion.update(data: info.bytes)
    return SymmetricKey(data: expansion.finalize())
  }
}

/// The keys for the other senders' frames of an epoch. This device is never among them: frames that the server reflects do not open.
package struct EpochKeys: Sendable {
  package let epoch: UInt32
  let derivation: SenderDerivation
  let senders: [ParticipantNumber: SenderIdentity]
}

/// The key that seals this device's own frames in one epoch, made from its own values alone.
package struct SendingKey: Sendable {
  package let epoch: UInt32
  let participant: ParticipantNumber
  /// The stay: no other one ever has this key.
  let joinId: [UInt8]
  let baseKey: SymmetricKey
}
