import Cryptography
import JSON

/// Public keys by their ids (RFC 7517). Keys that are of no use here are ignored, as section 5 requires: other types, for encryption, or
/// malformed.
struct KeySet: Sendable {
  private let keys: [Entry]

  private struct Entry: Sendable {
    var id: String?
    var algorithm: String?
    var key: VerificationKey

    func accepts(_ used: TokenAlgorithm) -> Bool {
      key.accepts(used) && (algorithm ?? used.rawValue) == used.rawValue
    }
  }

  /// Bytes of a key set that are read.
  static let maximumBytes = 256 << 10

  /// - Throws: `ConfigurationError`, without anything of the contents, unless there is a usable key.
  init(json: [UInt8]) throws(ConfigurationError) {
    guard let list = try? JSONCoding.decode(List.self, from: json) else {
      throw ConfigurationError("this is no JWK set (RFC 7517): take an object whose member keys is an array")
    }
    keys = list.keys.compactMap { $0.jwk.flatMap(Self.entry) }
    guard !keys.isEmpty else {
      throw ConfigurationError(
        "no key of the set can check signatures: take public keys of kty RSA (2048 bits or more), EC or OKP (Ed25519)")
    }
  }

  var count: Int { keys.count }

  /// The key that a token names. A token that names none is checked only if the set has a single key. An id that is not in the set never selects another key.
  func key(for token: SignedToken) throws(TokenError) -> VerificationKey {
    let named = token.keyID.map { id in keys.filter { $0.id == id } } ?? (keys.count == 1 ? keys : [])
    guard !named.isEmpty else { throw .key }
    // Keys of different types may share an id (RFC 7517 section 4.5).
    let algorithm = token.algorithm
    guard let entry = named.first(where: { $0.accepts(algorithm) }) else { throw .algorithm }
    return entry.key
  }

  private static func entry(_ jwk: JWK) -> Entry? {
    guard jwk.use ?? "sig" == "sig", jwk.operations?.contains("verify") ?? true, let key = jwk.key else { return nil }
    return Entry(id: jwk.kid, algorithm: jwk.alg, key: key)
  }

  private struct List: Decodable { var keys: [Element] }

  /// A malformed key is skipped; the others stay usable.
  private struct Element: Decodable {
    var jwk: JWK?
    init(from decoder: any Decoder) throws { jwk = try? JWK(from: decoder) }
  }
}

/// A public key in JSON (RFC 7517 section 4, RFC 7518 section 6, RFC 8037 section 2).
private struct JWK: Decodable {
  var kty: String
  var kid, alg, use, crv: String?
  var operations: [String]?
  var n, e, x, y: Base64URLBytes?

  private enum CodingKeys: String, CodingKey {
    case kty, kid, alg, use, crv, n, e, x, y
    case operations = "key_ops"
  }

  /// nil unless it is a public key of a known type, and not a weak one. Lengths are checked before the library sees
  /// them.
  var key: VerificationKey? {
    switch (kty, crv) {
    case ("RSA", _):
      guard let n = n?.bytes, let e = e?.bytes, (256...1_024).contains(n.count), (1...4).contains(e.count) else {
        return nil
      }
      return RSAPublicKey(modulus: n, exponent: e).map(VerificationKey.rsa)
    case ("EC", "P-256"): return point(of: .p256)
    case ("EC", "P-384"): return point(of: .p384)
    case ("EC", "P-521"): return point(of: .p521)
    case ("OKP", "Ed25519"): return x.flatMap { Ed25519PublicKey($0.bytes) }.map(VerificationKey.ed25519)
    default: return nil
    }
  }

  private func point(of curve: ECPublicKey.Curve) -> VerificationKey? {
    let count = curve.byteCount
    guard let x = x?.bytes, let y = y?.bytes, x.count == count, y.count == count else { return nil }
    return ECPublicKey(curve, point: [4] + x + y).map(VerificationKey.ec)
  }

  /// Base64url.
  struct Base64URLBytes: Decodable {
    var bytes: [UInt8]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      guard let bytes = [UInt8](base64URL: try container.decode(String.self).utf8) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "base64url is wanted")
      }
      self.bytes = bytes
    }
  }
}
