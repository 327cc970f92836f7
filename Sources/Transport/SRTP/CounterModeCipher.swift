import COpenSSL
import Octets

/// AES-128 in counter mode under one key (RFC 3711 section 4.1.1). Encryption and decryption are the same.
///
/// The context and its key schedule are reused for all messages; only the counter changes, so nothing is allocated. A step can fail
/// only because of a bug, after which no packet may leave.
struct CounterModeCipher: ~Copyable {
  private let engine: UnsafeMutablePointer<copenssl_cipher>

  /// - Parameter key: 16 bytes.
  init(key: [UInt8]) {
    precondition(key.count == 16)
    guard let engine = copenssl_cipher_new("AES-128-CTR", key, key.count, 1) else {
      fatalError("OpenSSL has no AES-128-CTR")
    }
    self.engine = engine
  }

  deinit { copenssl_cipher_free(engine) }

  /// Starts a message at the first block of its key stream.
  func begin(_ nonce: CounterModeNonce) {
    let isReady = nonce.withBytes { copenssl_cipher_begin(engine, $0, 16) } == 1
    precondition(isReady)
  }

  /// Encrypts or decrypts the next `count` bytes; source and destination may be the same.
  func transform(_ source: UnsafeRawPointer, to destination: UnsafeMutableRawPointer, _ count: Int) {
    let isTransformed = copenssl_cipher_add(engine, source, destination, count) == 1
    precondition(isTransformed)
  }
}

/// The first counter block of RFC 3711 section 4.1.1, as two big-endian words.
struct CounterModeNonce {
  private var high: UInt64
  private var low: UInt64

  /// A session salt of 14 bytes is a counter that no packet has.
  init(salt: [UInt8]) {
    precondition(salt.count == 14)
    high = UInt64(networkOrder: salt[..<8])
    low = UInt64(networkOrder: salt[8...]) << 16
  }

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The SSRC before the 48-bit index, or the 31-bit index of RTCP, and 16 bits for the number of the block; all XORed with `self`.
  func nonce(ssrc: UInt32, index: UInt64) -> CounterModeNonce {
    CounterModeNonce(high: high ^ UInt64(ssrc), low: low ^ index << 16)
  }

  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    let words = (high.bigEndian, low.bigEndian)
    return withUnsafeBytes(of: words) { body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)) }
  }
}
