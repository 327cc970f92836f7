import Contract
import Crypto
import MediaModel
import Octets
import Recording

/// The key from which a reel's segment gets its own, and from which the next chain key follows. The one before does not follow from it, so whoever takes the device
/// cannot open the segments that it has sealed.
struct ReelChain: Sendable {
  static let keyBytes = 32
  static let info = "conclave-reel-key-v1"

  let recording: RecordingID
  let reel: UInt32
  /// The number of the segment whose key it makes.
  private(set) var number: UInt32
  private var key: SymmetricKey

  /// nil unless there are 32 bytes.
  init?(_ bytes: [UInt8], of recording: RecordingID, reel: UInt32, number: UInt32 = 0) {
    guard bytes.count == Self.keyBytes else { return nil }
    self.recording = recording
    self.reel = reel
    self.number = number
    key = SymmetricKey(data: bytes)
  }

  /// The bytes to store. Secret.
  var bytes: [UInt8] { key.withUnsafeBytes { Array($0) } }

  /// The AES key of segment `number`.
  var segmentKey: SymmetricKey { derived("conclave-segment-v1") }

  mutating func advance() {
    key = derived("conclave-next-segment-v1")
    number += 1
  }

  private func derived(_ label: String) -> SymmetricKey {
    var info = Transcript(label)
    info.append(reel)
    info.append(number)
    return HKDF<SHA512>.deriveKey(
      inputKeyMaterial: key, salt: recording.bytes, info: info.bytes, outputByteCount: Self.keyBytes)
  }

  // MARK: in the manifest

  /// This chain key, sealed to the recording's key and signed.
  func sealed(for statement: SignedStatement, by identity: DeviceIdentity) -> ReelKey? {
    let context = Transcript.reelKeyContext(
      statement: statement.hash, reel: reel, fingerprint: identity.fingerprint)
    guard
      let ciphertext = RecordingKey.seal(bytes, to: statement.publicKey, info: Self.info, authenticating: context)
    else { return nil }
    let sealed = Base64Bytes(ciphertext)
    let transcript = Transcript.reelKey(
      statement: statement.hash, reel: reel, fingerprint: identity.fingerprint, ciphertextHash: sealed.sha256)
    return ReelKey(
      ciphertext: sealed, sigAlg: SignAlgorithm.es256.rawValue,
      signature: Base64Bytes(identity.sign(transcript.bytes)))
  }

  /// The chain key of segment 0 of a reel, which `signer` writes; nil if it is not signed, or does not open.
  init?(
    opening sealed: RecordingManifest.Key, of statement: SignedStatement, with key: RecordingKey,
    from signer: RecordingSigner
  ) {
    let context = Transcript.reelKeyContext(
      statement: statement.hash, reel: sealed.reel, fingerprint: signer.fingerprint)
    let transcript = Transcript.reelKey(
      statement: statement.hash, reel: sealed.reel, fingerprint: signer.fingerprint,
      ciphertextHash: sealed.ciphertext.sha256)
    guard signer.signed(transcript.bytes, sealed.sigAlg, sealed.signature),
      let bytes = key.open(sealed.ciphertext.bytes, info: Self.info, authenticating: context)
    else { return nil }
    self.init(bytes, of: statement.id, reel: sealed.reel)
  }
}

extension ReelChain: CustomStringConvertible { var description: String { "chain key" } }
