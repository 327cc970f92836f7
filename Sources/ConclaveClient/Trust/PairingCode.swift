import Contract
import Crypto
import Foundation
import MediaModel
import Octets

/// The proof by six digits between two devices of a user (protocol section 5, "Pairing"). The new device commits to its key and nonce before it sees
/// the other's nonce, so that nobody between them can search for equal digits.
struct PairingCode: Sendable {
  var user: UserID
  var session: [UInt8]
  var newFingerprint: [UInt8]
  var existingFingerprint: [UInt8]
  var newNonce: [UInt8]
  var existingNonce: [UInt8]

  static func commitment(session: [UInt8], fingerprint: [UInt8], nonce: [UInt8]) -> [UInt8] {
    var transcript = Transcript("conclave-pair-commit-v1")
    transcript.append(session)
    transcript.append(fingerprint)
    transcript.append(nonce)
    return transcript.sha256
  }

  var commitment: [UInt8] { Self.commitment(session: session, fingerprint: newFingerprint, nonce: newNonce) }

  var digits: String {
    var transcript = Transcript("conclave-pair-code-v1")
    transcript.appendPrefixed(user.text)
    transcript.append(session)
    transcript.append(newFingerprint)
    transcript.append(existingFingerprint)
    transcript.append(newNonce)
    transcript.append(existingNonce)
    return CallCode.digits(of: Array(transcript.sha256.prefix(8)), count: 6)
  }

  private static let scheme = "conclave-device:"

  /// The text that a new device shows as a picture to be scanned.
  static func scanned(_ fingerprint: [UInt8]) -> String {
    scheme
      + Data(fingerprint).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  /// The fingerprint in a scanned text; nil if it contains none.
  static func fingerprint(scanned text: String) -> [UInt8]? {
    guard text.hasPrefix(scheme) else { return nil }
    let base64 = text.dropFirst(scheme.count).replacing("-", with: "+").replacing("_", with: "/") + "="
    guard let bytes = Base64Bytes(base64: String(base64))?.bytes, bytes.count == 32, scanned(bytes) == text else {
      return nil
    }
    return bytes
  }
}
