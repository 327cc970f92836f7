import Crypto

/// Apple's ECIES in the form `kSecKeyAlgorithmECIESEncryptionCofactorVariableIVX963SHA256AESGCM` for P-256: ephemeral point (65) ‖ ciphertext ‖ tag (16).
///
/// One block of the X9.63 KDF over SHA-256 with the ephemeral point as shared info gives an AES-128 key and a 16-byte IV; there is no additional data.
enum ECIES {
  static func seal(_ plaintext: [UInt8], to publicKey: P256.KeyAgreement.PublicKey) throws -> [UInt8] {
    let ephemeral = P256.KeyAgreement.PrivateKey()
    let point = Array(ephemeral.publicKey.x963Representation)
    let (key, nonce) = try derive(ephemeral.sharedSecretFromKeyAgreement(with: publicKey), point: point)
    let box = try AES.GCM.seal(plaintext, using: key, nonce: nonce)
    return point + box.ciphertext + box.tag
  }

  static func open(_ message: [UInt8], with privateKey: P256.KeyAgreement.PrivateKey) throws -> [UInt8] {
    let pointCount = SingleShotHPKE.encapsulatedByteCount
    guard message.count >= pointCount + 16 else { throw KeyRefusal.envelopeNotReadable }
    let point = Array(message[..<pointCount])
    let publicKey = try P256.KeyAgreement.PublicKey(x963Representation: point)
    let (key, nonce) = try derive(privateKey.sharedSecretFromKeyAgreement(with: publicKey), point: point)
    let box = try AES.GCM.SealedBox(
      nonce: nonce, ciphertext: message[pointCount...].dropLast(16), tag: message.suffix(16))
    return Array(try AES.GCM.open(box, using: key))
  }

  private static func derive(_ secret: SharedSecret, point: [UInt8]) throws -> (SymmetricKey, AES.GCM.Nonce) {
    let block = secret.x963DerivedSymmetricKey(using: SHA256.self, sharedInfo: point, outputByteCount: 32)
    return try block.withUnsafeBytes { bytes in
      (SymmetricKey(data: Array(bytes[..<16])), try AES.GCM.Nonce(data: Array(bytes[16...])))
    }
  }
}
