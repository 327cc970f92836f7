import Contract
import Cryptography

/// Encrypts the content of a push so that only the browser can read it (RFC 8291), as one record of `aes128gcm` (RFC
/// 8188).
enum PushEncryption {
  /// All content is padded to this many bytes: a push service learns nothing from its length.
  static let contentBytes = 1_024
  private static let recordSize: UInt32 = 4_096

  /// The body of the POST; nil if the content is too long for `length` or the browser's key is not a point of the
  /// curve.
  /// - Parameters:
  ///   - length: of the content with its padding.
  ///   - salt: 16 random bytes, new for each message.
  ///   - sender: a key that is new for each message.
  static func body(
    of content: [UInt8], for subscription: PushSubscription, length: Int = contentBytes, salt: [UInt8],
    sender: P256PrivateKey
  ) -> [UInt8]? {
    let receiver = subscription.p256dh.bytes
    guard content.count <= length, length + 1 + 16 + 86 <= recordSize,
      let key = ECPublicKey(.p256, point: receiver), let secret = sender.sharedSecret(with: key)
    else { return nil }
    let own = sender.publicKey
    // RFC 8291 section 3.4.
    let input = secret.derived(
      by: .sha256, salt: subscription.auth.bytes, info: Array("WebPush: info\0".utf8) + receiver + own, byteCount: 32)
    func derived(_ purpose: String, _ count: Int) -> SecretKey {
      input.derived(
        by: .sha256, salt: salt, info: Array("Content-Encoding: \(purpose)\0".utf8), byteCount: count)
    }
    // 2 marks the last record; the zeros after it are padding (RFC 8188 section 2).
    let record = content + [2] + [UInt8](repeating: 0, count: length - content.count)
    let sealed = derived("aes128gcm", 16).seal(record, nonce: derived("nonce", 12))
    let size = withUnsafeBytes(of: recordSize.bigEndian) { Array($0) }
    return salt + size + [UInt8(own.count)] + own + sealed
  }
}
