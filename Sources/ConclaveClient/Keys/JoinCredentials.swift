package import Contract
import Crypto
package import MediaModel
import Octets

/// A device's fresh values for each join: 16 random bytes, and wrap keys that are deleted with the join, so that a device lost later opens no past call
/// (protocol section 5, "Join").
///
/// The key of generation 0 is on the list. Later generations replace it for envelopes, so that a leaked key opens no later epoch.
package struct JoinCredentials: Sendable {
  static let refreshInterval: Duration = .seconds(240)
  static let algorithms: Set<String> = Set([WrapAlgorithm.hpke, .rsa, .ecies].map(\.rawValue))

  package let call: CallID
  package let joinId: Base64Bytes
  /// The public half of generation 0, signed by the device.
  package let joinKey: JoinKey
  /// Signs private messages and opens them, and opens envelopes until a later generation has opened one.
  let privateKey: P256.KeyAgreement.PrivateKey
  /// The newest generation that the server is known to have stored.
  private(set) var published: UInt32 = 0
  /// The keys that open envelopes; those below a generation that has opened one are gone.
  private var openers: [Opener]
  /// A later generation that the server may not have yet.
  private var pending: JoinKey?

  private struct Opener {
    var generation: UInt32
    var keyHash: [UInt8]
    var privateKey: P256.KeyAgreement.PrivateKey
  }

  package init(
    _ identity: DeviceIdentity, call: CallID, at: Timestamp, using generator: inout some RandomNumberGenerator
  ) {
    let joinId = Base64Bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    let privateKey = P256.KeyAgreement.PrivateKey()
    self.init(
      call: call, joinId: joinId,
      joinKey: Self.signed(privateKey, 0, at: at, call: call, joinId: joinId, by: identity), privateKey: privateKey)
  }

  /// Credentials of a vector.
  init(call: CallID, joinId: Base64Bytes, joinKey: JoinKey, privateKey: P256.KeyAgreement.PrivateKey) {
    self.call = call
    self.joinId = joinId
    self.joinKey = joinKey
    self.privateKey = privateKey
    openers = [Opener(generation: 0, keyHash: Self.hash(joinKey), privateKey: privateKey)]
  }

  /// The body of `accept`, `join` and `rejoin`.
  package var body: Join { Join(joinId: joinId, joinKey: joinKey) }

  /// The generation of a key to which envelopes may still be sealed, and its private half.
  func opener(_ keyHash: [UInt8]) -> (generation: UInt32, privateKey: P256.KeyAgreement.PrivateKey)? {
    openers.first { $0.keyHash == keyHash }.map { ($0.generation, $0.privateKey) }
  }

  /// The next generation's key. A key that may not have reached the server is returned again.
  mutating func refresh(_ identity: DeviceIdentity, at: Timestamp) -> JoinKey {
    if let pending { return pending }
    let privateKey = P256.KeyAgreement.PrivateKey()
    let key = Self.signed(privateKey, published + 1, at: at, call: call, joinId: joinId, by: identity)
    openers.append(Opener(generation: key.generation, keyHash: Self.hash(key), privateKey: privateKey))
    pending = key
    return key
  }

  /// The server has stored the pending key.
  mutating func publish() {
    guard let pending else { return }
    published = pending.generation
    self.pending = nil
  }

  /// An envelope to this generation has opened: earlier ones no longer open any.
  mutating func opened(_ generation: UInt32) { openers.removeAll { $0.generation < generation } }

  static func hash(_ key: JoinKey) -> [UInt8] { Array(SHA256.hash(data: key.publicKey.bytes)) }

  private static func signed(
    _ privateKey: P256.KeyAgreement.PrivateKey, _ generation: UInt32, at: Timestamp, call: CallID, joinId: Base64Bytes,
    by identity: DeviceIdentity
  ) -> JoinKey {
    var key = JoinKey(
      alg: WrapAlgorithm.hpke.rawValue, publicKey: Base64Bytes(Array(privateKey.publicKey.derRepresentation)),
      generation: generation, at: at, signature: Base64Bytes([]))
    key.signature = Base64Bytes(
      identity.sign(transcript(key, call: call, fingerprint: identity.fingerprint, joinId: joinId.bytes)))
    return key
  }

  /// The bytes that a device signs for its join key.
  static func transcript(_ key: JoinKey, call: CallID, fingerprint: [UInt8], joinId: [UInt8]) -> [UInt8] {
    var transcript = Transcript("conclave-join-v2")
    transcript.appendPrefixed(call.text)
    transcript.append(fingerprint)
    transcript.append(joinId)
    transcript.append(key.generation)
    transcript.append(UInt64(bitPattern: key.at.milliseconds))
    transcript.appendPrefixed(key.alg)
    transcript.appendPrefixed(key.publicKey.bytes)
    return transcript.bytes
  }
}
