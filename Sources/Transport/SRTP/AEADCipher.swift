import COpenSSL
import Octets

/// AES-GCM under one key, sealing or opening: the one type that knows the engine, OpenSSL's EVP.
///
/// A message is `begin`, `authenticate`, `transform`, then `seal` or `opens`. The context and its key schedule live on from
/// message to message; only the nonce changes, so nothing is allocated.
struct AEADCipher: ~Copyable {
  enum Direction: Int32 { case open = 0, seal = 1 }

  static let tagLength = 16

  private let context: OpaquePointer

  /// - Parameter key: 16 or 32 bytes.
  init(key: [UInt8], direction: Direction) {
    guard let context = EVP_CIPHER_CTX_new() else { fatalError("out of memory") }
    self.context = context
    let cipher = key.count == 32 ? EVP_aes_256_gcm() : EVP_aes_128_gcm()
    let isReady = EVP_CipherInit_ex(context, cipher, nil, key, nil, direction.rawValue)
    precondition(isReady == 1 && (key.count == 16 || key.count == 32))
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// Starts a message.
  func begin(_ nonce: AEADNonce) {
    nonce.withBytes { nonce in
      let isReady = EVP_CipherInit_ex(context, nil, nil, nil, nonce, -1)
      assert(isReady == 1)
    }
  }

  /// Adds authenticated, unencrypted bytes; before any `transform`.
  func authenticate(_ bytes: UnsafeRawPointer, _ count: Int) {
    var length: Int32 = 0
    EVP_CipherUpdate(context, nil, &length, bytes.assumingMemoryBound(to: UInt8.self), Int32(count))
  }

  /// Encrypts or decrypts `count` bytes; source and destination may be the same.
  func transform(_ source: UnsafeRawPointer, to destination: UnsafeMutableRawPointer, _ count: Int) {
    var length: Int32 = 0
    EVP_CipherUpdate(
      context, destination.assumingMemoryBound(to: UInt8.self), &length,
      source.assumingMemoryBound(to: UInt8.self), Int32(count))
  }

  /// Ends a sealed message and writes its tag of 16 bytes.
  func seal(tag: UnsafeMutableRawPointer) {
    var length: Int32 = 0
    // GCM has no last block; OpenSSL takes the pointer and writes nothing.
    var nothing: UInt8 = 0
    let isSealed =
      EVP_CipherFinal_ex(context, &nothing, &length) == 1
      && copenssl_get_tag(context, Int32(Self.tagLength), tag) == 1
    // A packet without a tag must not leave, and there is no way for it to fail but a bug.
    precondition(isSealed)
  }

  /// Ends an opened message: whether its tag of 16 bytes is right.
  func opens(tag: UnsafeMutableRawPointer) -> Bool {
    var length: Int32 = 0
    var nothing: UInt8 = 0
    return copenssl_set_tag(context, Int32(Self.tagLength), tag) == 1
      && EVP_CipherFinal_ex(context, &nothing, &length) == 1
  }
}

/// The 12-byte nonce of RFC 7714 sections 8.1 and 9.1, as two big-endian words.
struct AEADNonce {
  private var high: UInt64
  private var low: UInt32

  /// A session salt is a nonce for no packet.
  init(salt: [UInt8]) {
    precondition(salt.count == 12)
    high = UInt64(networkOrder: salt[..<8])
    low = UInt32(networkOrder: salt[8...])
  }

  private init(high: UInt64, low: UInt32) {
    self.high = high
    self.low = low
  }

  /// Two zero bytes, the SSRC and the 48-bit index, or for RTCP two more zero bytes and the 31-bit index; all XORed with `self`.
  func nonce(ssrc: UInt32, index: UInt64) -> AEADNonce {
    AEADNonce(high: high ^ (UInt64(ssrc) << 16 | index >> 32), low: low ^ UInt32(truncatingIfNeeded: index))
  }

  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    let words = (high.bigEndian, low.bigEndian)
    return withUnsafeBytes(of: words) { body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)) }
  }
}
