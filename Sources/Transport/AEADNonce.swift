/// The 12-byte nonce of RFC 7714 sections 8.1 and 9.1, as two big-endian words.
struct AEADNonce {
  private var high: UInt64
  private var low: UInt32

  /// A session salt is a nonce for no packet.
  init(salt: [UInt8]) {
    precondition(salt.count == 12)
    high = salt[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = salt[8...].reduce(0) { $0 << 8 | UInt32($1) }
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
