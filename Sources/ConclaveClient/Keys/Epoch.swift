import Contract
import Crypto
import MediaModel
import Octets
import SFrame

/// A media key's number, its list of devices, and the secret as soon as this device has it.
struct Epoch: Sendable {
  static let secretByteCount = 32
  static let suite = CipherSuite.aes256GCMSHA512

  /// Whether these bytes can be an epoch's secret. Zeros are left of a secret that was wiped: a key that everybody knows.
  static func isSecret(_ bytes: [UInt8]) -> Bool { bytes.count == secretByteCount && bytes.contains { $0 != 0 } }

  static func secret(using generator: inout some RandomNumberGenerator) -> SymmetricKey {
    SymmetricKey(data: (0..<secretByteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  let number: UInt32
  let mode: RotationMode
  let list: EpochList
  /// The list's hash in the chain of all announced lists.
  let listHash: [UInt8]
  /// Envelopes of this epoch must be sealed to this generation of the own join key, or a later one, because it was published before the epoch was
  /// announced.
  var minimumGeneration: UInt32 = 0
  var secret: SymmetricKey?
  /// Numbers on the list whose devices are not heard.
  var unheard: Set<ParticipantNumber> = []

  /// The secret of the next epoch, derived from this one's (mode `ratchet`). It is bound to the next list, so that devices that were shown different lists
  /// have different secrets.
  func ratcheted(to number: UInt32, listHash: [UInt8], of call: CallID) -> SymmetricKey? {
    derived("conclave-ratchet-v2", number: number, listHash: listHash, call)
  }

  /// The key of the epoch's confirmation tags.
  func confirmationKey(_ call: CallID) -> SymmetricKey? {
    derived("conclave-confirm-v2", number: number, listHash: listHash, call)
  }

  private func derived(_ label: String, number: UInt32, listHash: [UInt8], _ call: CallID) -> SymmetricKey? {
    guard let secret else { return nil }
    var info = Transcript(label)
    info.append(number)
    info.append(listHash)
    return HKDF<SHA512>.deriveKey(
      inputKeyMaterial: secret, salt: Array(call.text.utf8), info: info.bytes, outputByteCount: Self.secretByteCount)
  }

  func derivation(_ call: CallID) -> SenderDerivation? {
    secret.map { SenderDerivation(call: call, epoch: number, listHash: listHash, secret: $0) }
  }
}
