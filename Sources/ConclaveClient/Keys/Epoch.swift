import Contract
import Crypto
import MediaModel
import SFrame

/// A media key's number, who is on its list, and the secret as soon as this device has it.
struct Epoch: Sendable {
  static let secretByteCount = 32
  static let suite = CipherSuite.aes256GCMSHA512

  let number: UInt32
  let mode: RotationMode
  let list: EpochList
  var secret: SymmetricKey?

  /// The secret that whoever holds this one can make alone (mode `ratchet`).
  var ratcheted: SymmetricKey? { secret.map { Self.suite.ratchet($0, byteCount: Self.secretByteCount) } }

  /// The SFrame base key of each joined device on the list (protocol section 5, "Sender keys"); nil without the secret.
  func keys(call: CallID) -> EpochKeys? {
    guard let secret else { return nil }
    var baseKeys: [ParticipantNumber: SymmetricKey] = [:]
    for entry in list.entries where entry.participant > 0 {
      var info = Transcript("conclave-sender-v1")
      info.append(number)
      info.append(list.hash)
      info.append(entry.fingerprint.bytes)
      info.append(entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16))
      baseKeys[entry.participant] = HKDF<SHA512>.deriveKey(
        inputKeyMaterial: secret, salt: Array(call.text.utf8), info: info.bytes, outputByteCount: 64)
    }
    return EpochKeys(epoch: number, baseKeys: baseKeys)
  }
}

/// What a `FrameCipher` needs of an epoch.
package struct EpochKeys: Sendable {
  package let epoch: UInt32
  let baseKeys: [ParticipantNumber: SymmetricKey]
}
