import COpenSSL
import Octets

/// AES-128 in counter mode under one key (RFC 3711 section 4.1.1). Encryption and decryption are the same.
///
/// The context and its key schedule live on from message to message; only the counter changes, so nothing is allocated.
struct CounterModeCipher: ~Copyable {
  private let context: OpaquePointer

  /// - Parameter key: 16 bytes.
  init(key: [UInt8]) {
    guard let context = EVP_CIPHER_CTX_new() else { fatalError("out of memory") }
    self.context = context
    let isReady = key.count == 16 && EVP_EncryptInit_ex(context, EVP_aes_128_ctr(), nil, key, nil) == 1
    precondition(isReady)
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// Starts a message at the first block of its key stream.
  func begin(_ counter: CounterModeNonce) {
    let isReady = counter.withBytes { EVP_CipherInit_ex(context, nil, nil, nil, $0, -1) } == 1
    // A key stream must not be used twice, and there is no way for this to fail but a bug.
    precondition(isReady)
  }

  /// Encrypts or decrypts the next `count` bytes; source and destination may be the same.
  func transform(_ source: UnsafeRawPointer, to destination: UnsafeMutableRawPointer, _ count: Int) {
    var length: Int32 = 0
    let isTransformed =
      EVP_CipherUpdate(
        context, destination.assumingMemoryBound(to: UInt8.self), &length,
        source.assumingMemoryBound(to: UInt8.self), Int32(count)) == 1
    precondition(isTransformed)
  }
}

/// The first counter block of RFC 3711 section 4.1.1, as two big-endian words.
struct CounterModeNonce {
  private var high: UInt64
  private var low: UInt64

  /// A session salt of 14 bytes is the counter of no packet.
  init(salt: [UInt8]) {
    precondition(salt.count == 14)
    high = UInt64(networkOrder: salt[..<8])
    low = UInt64(networkOrder: salt[8...]) << 16
  }

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The SSRC in front of the 48-bit index, or of the 31-bit one of RTCP, and 16 bits for the number of the block; all XORed with `self`.
  func nonce(ssrc: UInt32, index: UInt64) -> CounterModeNonce {
    CounterModeNonce(high: high ^ UInt64(ssrc), low: low ^ index << 16)
  }

  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    let words = (high.bigEndian, low.bigEndian)
    return withUnsafeBytes(of: words) { body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)) }
  }
}
