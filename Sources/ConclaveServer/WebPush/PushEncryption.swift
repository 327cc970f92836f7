import Contract
import Crypto
import Foundation

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
    sender: P256.KeyAgreement.PrivateKey
  ) -> [UInt8]? {
    let receiver = subscription.p256dh.bytes
    guard content.count <= length, length + 1 + 16 + 86 <= recordSize,
      let key = try? P256.KeyAgreement.PublicKey(x963Representation: receiver),
      let secret = try? sender.sharedSecretFromKeyAgreement(with: key)
    else { return nil }
    let own = Array(sender.publicKey.x963Representation)
    // RFC 8291 section 3.4.
    let input = secret.hkdfDerivedSymmetricKey(
      using: SHA256.self, salt: subscription.auth.bytes, sharedInfo: Array("WebPush: info\0".utf8) + receiver + own,
      outputByteCount: 32)
    func derived(_ purpose: String, _ count: Int) -> SymmetricKey {
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: input, salt: salt, info: Array("Content-Encoding: \(purpose)\0".utf8), outputByteCount: count)
    }
    // 2 marks the last record; the zeros after it are padding (RFC 8188 section 2).
    let record = content + [2] + [UInt8](repeating: 0, count: length - content.count)
    let nonce = derived("nonce", 12).withUnsafeBytes { try? AES.GCM.Nonce(data: Array($0)) }
    guard let nonce, let sealed = try? AES.GCM.seal(record, using: derived("aes128gcm", 16), nonce: nonce) else {
      return nil
    }
    let size = withUnsafeBytes(of: recordSize.bigEndian) { Array($0) }
    return salt + size + [UInt8(own.count)] + own + sealed.ciphertext + sealed.tag
  }
}
