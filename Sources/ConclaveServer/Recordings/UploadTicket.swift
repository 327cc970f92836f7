import Contract
import Cryptography

/// Lets its holder upload to one recording, and see how far that is. A phone that cannot sign in any more goes on with it.
struct UploadTicket {
  static let prefix = "upload~"
  private static let byteCount = 32

  let text: String
  /// Only this is stored.
  var hash: Base64Bytes { Self.hash(of: text) }

  /// - Parameter random: 32 random bytes.
  init(random: [UInt8]) {
    precondition(random.count == Self.byteCount)
    // As in a URL, so that it needs no quotes in any shell or header.
    text =
      Self.prefix
      + Base64Bytes(random).base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  static func fresh() -> UploadTicket {
    UploadTicket(random: (0..<byteCount).map { _ in UInt8.random(in: .min ... .max) })
  }

  /// Two texts with one hash do not exist, so comparing hashes tells nothing about the text.
  static func hash(of text: String) -> Base64Bytes {
    Base64Bytes(HashAlgorithm.sha256.digest(of: Array(text.utf8)))
  }
}
