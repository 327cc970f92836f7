import COpenSSL
import Octets

/// AES-GCM under one key, sealing or opening: the only type that knows the engine, OpenSSL's provider.
///
/// A message is `begin`, `authenticate`, `transform`, then `seal` or `opens`. The context and its key schedule are reused for all
/// messages; only the nonce changes, so nothing is allocated. A step can fail only because of a bug, after which no packet may
/// leave.
struct AEADCipher: ~Copyable {
  enum Direction: Int32 { case open = 0, seal = 1 }

  static let tagLength = 16

  private let engine: UnsafeMutablePointer<copenssl_cipher>

  /// - Parameter key: 16 or 32 bytes.
  init(key: [UInt8], direction: Direction) {
    precondition(key.count == 16 || key.count == 32)
    let name = key.count == 32 ? "AES-256-GCM" : "AES-128-GCM"
    guard let engine = copenssl_cipher_new(name, key, key.count, direction.rawValue) else {
      fatalError("OpenSSL has no \(name)")
    }
    self.engine = engine
  }

  deinit { copenssl_cipher_free(engine) }

  /// Starts a message.
  func begin(_ nonce: AEADNonce) {
    let isReady = nonce.withBytes { copenssl_cipher_begin(engine, $0, 12) } == 1
    precondition(isReady)
  }

  /// Adds authenticated, unencrypted bytes; before any `transform`.
  func authenticate(_ bytes: UnsafeRawPointer, _ count: Int) {
    let isAdded = copenssl_cipher_add(engine, bytes, nil, count) == 1
    precondition(isAdded)
  }

  /// Encrypts or decrypts `count` bytes; source and destination may be the same.
  func transform(_ source: UnsafeRawPointer, to destination: UnsafeMutableRawPointer, _ count: Int) {
    let isTransformed = copenssl_cipher_add(engine, source, destination, count) == 1
    precondition(isTransformed)
  }

  /// Ends a sealed message and writes its tag of 16 bytes.
  func seal(tag: UnsafeMutableRawPointer) {
    let isSealed = copenssl_cipher_seal(engine, tag, Self.tagLength) == 1
    precondition(isSealed)
  }

  /// Ends an opened message: whether its tag of 16 bytes is right.
  func opens(tag: UnsafeMutableRawPointer) -> Bool { copenssl_cipher_opens(engine, tag, Self.tagLength) == 1 }
}

/// The 12-byte nonce of RFC 7714 sections 8.1 and 9.1, as two big-endian words.
struct AEADNonce {
  private var high: UInt64
  private var low: UInt32

  /// A session salt is a nonce that no packet has.
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
