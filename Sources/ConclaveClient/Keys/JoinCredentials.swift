package import Contract
import Crypto
import MediaModel

/// What a device makes anew for each join: 16 random bytes, and a wrap key that is deleted with the join, so that a device lost later opens no past call
/// (protocol section 5, "Join").
package struct JoinCredentials: Sendable {
  package let joinId: Base64Bytes
  /// The public half, signed by the device.
  package let joinKey: JoinKey
  let privateKey: P256.KeyAgreement.PrivateKey

  package init(_ identity: DeviceIdentity, using generator: inout some RandomNumberGenerator) {
    let joinId = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    privateKey = P256.KeyAgreement.PrivateKey()
    let alg = WrapAlgorithm.hpke.rawValue
    let publicKey = Array(privateKey.publicKey.derRepresentation)
    let signature = identity.sign(
      Self.transcript(fingerprint: identity.fingerprint, joinId: joinId, alg: alg, publicKey: publicKey))
    self.joinId = Base64Bytes(joinId)
    joinKey = JoinKey(
      alg: alg, publicKey: Base64Bytes(publicKey), at: Timestamp(milliseconds: 0), signature: Base64Bytes(signature))
  }

  /// Credentials of a vector.
  init(joinId: Base64Bytes, joinKey: JoinKey, privateKey: P256.KeyAgreement.PrivateKey) {
    self.joinId = joinId
    self.joinKey = joinKey
    self.privateKey = privateKey
  }

  /// The body of `accept`, `join` and `rejoin`.
  package var body: Join { Join(joinId: joinId, joinKey: joinKey) }

  static func transcript(fingerprint: [UInt8], joinId: [UInt8], alg: String, publicKey: [UInt8]) -> [UInt8] {
    var transcript = Transcript("conclave-join-v1")
    transcript.append(fingerprint)
    transcript.append(joinId)
    transcript.appendPrefixed(alg)
    transcript.appendPrefixed(publicKey)
    return transcript.bytes
  }
}
