import Crypto
import CryptoExtras
import Foundation

/// Signs anything, so that a test can break every rule. It shares no code with the server.
struct TokenForge: Sendable {
  static let secret = String(repeating: "s", count: 64)

  let rsa: _RSA.Signing.PrivateKey
  let p256 = P256.Signing.PrivateKey()
  let p384 = P384.Signing.PrivateKey()
  let p521 = P521.Signing.PrivateKey()
  let ed25519 = Curve25519.Signing.PrivateKey()

  init() throws { rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048) }

  static func base64URL(_ bytes: some Collection<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// A token signed with the shared secret, or with another one.
  static func hmac(
    _ claims: String, header: String = #"{"alg":"HS256"}"#, secret: String = secret
  ) -> String {
    let signed = base64URL(header.utf8) + "." + base64URL(claims.utf8)
    let key = SymmetricKey(data: Array(secret.utf8))
    let message = Data(signed.utf8)
    let code: Data =
      if header.contains("HS384") {
        Data(HMAC<SHA384>.authenticationCode(for: message, using: key))
      } else if header.contains("HS512") {
        Data(HMAC<SHA512>.authenticationCode(for: message, using: key))
      } else {
        Data(HMAC<SHA256>.authenticationCode(for: message, using: key))
      }
    return signed + "." + base64URL(code)
  }

  /// A token signed with one of the keys by `algorithm`, whatever the header says.
  func token(
    _ claims: String, _ algorithm: String, kid: String?, header: String? = nil
  ) throws -> String {
    let named = kid.map { #","kid":"\#($0)""# } ?? ""
    let header = header ?? #"{"alg":"\#(algorithm)"\#(named)}"#
    let signed = Self.base64URL(header.utf8) + "." + Self.base64URL(claims.utf8)
    return signed + "." + Self.base64URL(try signature(Data(signed.utf8), algorithm))
  }

  private func signature(_ message: Data, _ algorithm: String) throws -> Data {
    func rsa(_ digest: some Digest) throws -> Data {
      let padding: _RSA.Signing.Padding = algorithm.hasPrefix("PS") ? .PSS : .insecurePKCS1v1_5
      return try self.rsa.signature(for: digest, padding: padding).rawRepresentation
    }
    return switch algorithm {
    case "RS256", "PS256": try rsa(SHA256.hash(data: message))
    case "RS384", "PS384": try rsa(SHA384.hash(data: message))
    case "RS512", "PS512": try rsa(SHA512.hash(data: message))
    case "ES256": try p256.signature(for: message).rawRepresentation
    case "ES384": try p384.signature(for: message).rawRepresentation
    case "ES512": try p521.signature(for: message).rawRepresentation
    default: try ed25519.signature(for: message)
    }
  }

  /// The public keys as JWKs, by the ids `rsa`, `p256`, `p384`, `p521` and `ed25519`; `more` goes into each.
  func jwk(_ id: String, more: String = "") throws -> String {
    func point(_ curve: String, _ raw: Data) -> String {
      let half = raw.count / 2
      return
        #""kty":"EC","crv":"\#(curve)","x":"\#(Self.base64URL(raw.prefix(half)))","y":"\#(Self.base64URL(raw.suffix(half)))""#
    }
    let members: String
    switch id {
    case "rsa":
      let key = try rsa.publicKey.getKeyPrimitives()
      members = #""kty":"RSA","n":"\#(Self.base64URL(key.modulus))","e":"\#(Self.base64URL(key.publicExponent))""#
    case "p256": members = point("P-256", p256.publicKey.rawRepresentation)
    case "p384": members = point("P-384", p384.publicKey.rawRepresentation)
    case "p521": members = point("P-521", p521.publicKey.rawRepresentation)
    default:
      members = #""kty":"OKP","crv":"Ed25519","x":"\#(Self.base64URL(ed25519.publicKey.rawRepresentation))""#
    }
    return #"{"kid":"\#(id)",\#(members)\#(more)}"#
  }

  static let algorithms = [
    "RS256": "rsa", "RS384": "rsa", "RS512": "rsa", "PS256": "rsa", "PS384": "rsa", "PS512": "rsa", "ES256": "p256",
    "ES384": "p384", "ES512": "p521", "EdDSA": "ed25519",
  ]

  func jwks(_ ids: [String] = ["rsa", "p256", "p384", "p521", "ed25519"]) throws -> String {
    #"{"keys":[\#(try ids.map { try jwk($0) }.joined(separator: ","))]}"#
  }
}
