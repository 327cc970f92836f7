import Contract
import JSON

/// A signed token in its compact form (RFC 7515 section 7.1), split into its parts. Only the header has been read: the payload stays closed until
/// the signature is verified.
struct SignedToken {
  let algorithm: TokenAlgorithm
  let keyID: String?
  /// The bytes that the signature covers: the header and the payload as sent, with the dot between them.
  let signedBytes: ArraySlice<UInt8>
  let signature: [UInt8]
  private let payload: ArraySlice<UInt8>

  private static let maximumBytes = 8 << 10

  init(_ text: String) throws(TokenError) {
    let bytes = Array(text.utf8.prefix(Self.maximumBytes + 1))
    let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard bytes.count <= Self.maximumBytes, parts.count == 3, let json = [UInt8](base64URL: parts[0]),
      let signature = [UInt8](base64URL: parts[2]), let header = try? JSONCoding.decode(Header.self, from: json)
    else { throw .malformed }
    // No extension is understood here, and a critical one must not be ignored (RFC 7515 section 4.1.11).
    guard !header.hasCritical else { throw .critical }
    guard let algorithm = TokenAlgorithm(rawValue: header.alg) else { throw .algorithm }
    self.algorithm = algorithm
    keyID = header.kid
    signedBytes = bytes[..<parts[1].endIndex]
    payload = parts[1]
    self.signature = signature
  }

  /// The claims. Must be read only after the signature was verified.
  func claims<Claims: Decodable>(_ type: Claims.Type) throws(TokenError) -> Claims {
    guard let json = [UInt8](base64URL: payload), let claims = try? JSONCoding.decode(type, from: json) else {
      throw .malformed
    }
    return claims
  }

  private struct Header: Decodable {
    var alg: String
    var kid: String?
    var hasCritical: Bool

    private enum CodingKeys: CodingKey { case alg, kid, crit }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      alg = try container.decode(String.self, forKey: .alg)
      kid = try container.decodeIfPresent(String.self, forKey: .kid)
      hasCritical = container.contains(.crit)
    }
  }
}

/// Algorithms of signatures (RFC 7518 section 3.1, RFC 8037 section 3.1). `none` is not among them.
enum TokenAlgorithm: String {
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case edDSA = "EdDSA"
}

extension [UInt8] {
  /// nil unless `text` is canonical base64url without padding (RFC 7515 section 2).
  init?(base64URL text: some Collection<UInt8>) {
    var characters: [UInt8] = []
    characters.reserveCapacity(text.count + 3)
    for character in text {
      switch character {
      case UInt8(ascii: "-"): characters.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): characters.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      default: characters.append(character)
      }
    }
    while characters.count % 4 != 0 { characters.append(UInt8(ascii: "=")) }
    guard let decoded = Base64Bytes(base64: String(decoding: characters, as: UTF8.self)) else { return nil }
    self = decoded.bytes
  }

  /// Base64url without padding.
  var base64URL: String {
    Base64Bytes(self).base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
