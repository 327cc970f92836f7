import Contract
import Crypto
import Foundation
import MediaModel

/// The part of a call link, or of a lasting link, that is never sent to a server: 16 random bytes, and the fingerprint of the device that made the link (protocol
/// section 5.13).
package struct LinkSecret: Sendable, Hashable {
  static let seedByteCount = 16

  let seed: [UInt8]
  /// The fingerprint of the device that made the link.
  let maker: [UInt8]

  init(maker: [UInt8], using generator: inout some RandomNumberGenerator) {
    seed = (0..<Self.seedByteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
    self.maker = maker
  }

  /// Reads `text`; nil for anything that `text` does not produce.
  init?(_ text: String) {
    let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
    guard let bytes = Base64Bytes(base64: String(base64))?.bytes, bytes.count == Self.seedByteCount + 32 else {
      return nil
    }
    seed = Array(bytes.prefix(Self.seedByteCount))
    maker = Array(bytes.dropFirst(Self.seedByteCount))
    guard self.text == text else { return nil }
  }

  /// base64url, 64 characters.
  var text: String {
    Data(seed + maker).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
  }

  /// The id of a lasting link with this secret: all that a server gets of it.
  var id: LinkID {
    let bytes = HKDF<SHA512>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: seed), salt: maker, info: Array("conclave-lasting-link-v1".utf8),
      outputByteCount: 16)
    let text = bytes.withUnsafeBytes { Data($0) }.base64EncodedString()
    return LinkID(
      unchecked: text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))
  }

  /// The link's key pair, whose public half represents the link in the call.
  func key(of call: CallID) -> Curve25519.Signing.PrivateKey {
    let bytes = HKDF<SHA512>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: seed), salt: Array(call.text.utf8),
      info: Array("conclave-link-secret-v1".utf8),
      outputByteCount: 32)
    // Any 32 bytes are a seed of Ed25519.
    return bytes.withUnsafeBytes { try! Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
  }

  /// The link's public key.
  func link(of call: CallID) -> [UInt8] { Array(key(of: call).publicKey.rawRepresentation) }
}

extension LinkSecret: CustomStringConvertible {
  /// Contains nothing of the secret.
  package var description: String { "link secret" }
}
