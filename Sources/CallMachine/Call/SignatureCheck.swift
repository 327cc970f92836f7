import CallMessages
import Contract
import MediaModel
import Octets

/// Checks that words were signed by a given device. The server itself does not need this: without the check a member could let somebody in by a bad word, and
/// the others would stop sending.
struct SignatureCheck {
  private let fingerprint: Base64Bytes
  private let key: DeviceKey
  private let hashing: Hashing

  /// Algorithms that all clients verify.
  private static let algorithms: Set<String> = ["ES256", "PS256", "EdDSA"]

  init(_ keys: DeviceEntry, _ hashing: Hashing) throws(RequestError) {
    guard let key = keys.keys.first(where: { $0.use == .sign }), Self.algorithms.contains(key.alg) else {
      throw RequestError(.keysNotAllowed, "a device lets people in with a sign key for ES256, PS256 or EdDSA")
    }
    fingerprint = keys.fingerprint
    self.key = key
    self.hashing = hashing
  }

  func checkSigner(_ word: some SignedWord, field: String) throws(RequestError) {
    guard word.fingerprint == fingerprint else {
      throw RequestError(.requestInvalid, "this is not the sending device's fingerprint", field: field + ".fingerprint")
    }
    guard word.algorithm == key.alg else {
      throw RequestError(.requestInvalid, "the device's sign key is for \(key.alg)", field: field + ".sigAlg")
    }
  }

  func check(_ word: some SignedWord, of message: Transcript, field: String) throws(RequestError) {
    let isGood = hashing.verifies(word.signature.bytes, message.bytes, key.alg, key.publicKey.bytes)
    guard isGood else {
      throw RequestError(
        .requestInvalid, "the signature is not the device's over this word", field: field + ".signature")
    }
  }
}

/// A part of a request that a device signs to let people in.
protocol SignedWord {
  var fingerprint: Base64Bytes { get }
  var algorithm: String? { get }
  var signature: Base64Bytes { get }
}

extension Admission: SignedWord { var algorithm: String? { sigAlg } }
extension Countersignature: SignedWord { var algorithm: String? { sigAlg } }

extension Hashing {
  /// The beginning of an Ed25519 key's SPKI, before its 32 bytes (RFC 8410 section 4).
  private static let ed25519Prefix: [UInt8] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
  ]

  /// Whether the word was signed with the link's private key.
  func isByLink(_ word: Admission, in call: CallID) -> Bool {
    guard let user = word.user, let link = word.link, link.bytes.count == 32 else { return false }
    let message = Transcript.linkJoin(
      call: call.text, link: link.bytes, fingerprint: word.fingerprint.bytes, user: user.text)
    return verifies(word.signature.bytes, message.bytes, "EdDSA", Self.ed25519Prefix + link.bytes)
  }
}
