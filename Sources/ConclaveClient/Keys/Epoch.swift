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

  /// The SFrame base key of each joined device on the list that `isHeard` (protocol section 5, "Sender keys"); nil without the secret.
  ///
  /// A device that was rung has no joinId on epoch 1's list: it sends with the one that it joined with, which `seats` tells. With zeros a server that
  /// rings it twice with one list could make it use a (key, nonce) twice.
  func keys(
    call: CallID, seats: [Device: SeatedDevice] = [:], where isHeard: (ListEntry) -> Bool = { _ in true }
  ) -> EpochKeys? {
    guard let secret else { return nil }
    var baseKeys: [ParticipantNumber: SymmetricKey] = [:]
    for entry in list.entries where isHeard(entry) {
      let seat = entry.participant > 0 ? nil : seats[entry.address]
      let participant = seat?.participant ?? entry.participant
      guard participant > 0, baseKeys[participant] == nil else { continue }
      var info = Transcript("conclave-sender-v1")
      info.append(number)
      info.append(list.hash)
      info.append(entry.fingerprint.bytes)
      info.append((seat?.joinId ?? entry.joinId)?.bytes ?? [UInt8](repeating: 0, count: 16))
      baseKeys[participant] = HKDF<SHA512>.deriveKey(
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
