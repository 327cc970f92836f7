import COpenSSL

/// HMAC-SHA1 (RFC 2104) under one key, truncated to the 80 bits of RFC 3711 section 5.2.
///
/// The states after the two blocks of the key are kept, so that a message costs two compressions less and nothing is allocated.
struct PacketAuthenticator {
  static let tagLength = 10

  private let inner: SHA_CTX
  private let outer: SHA_CTX

  /// - Parameter key: at most 64 bytes.
  init(key: [UInt8]) {
    precondition(key.count <= 64)
    inner = Self.state(behind: key, with: 0x36)
    outer = Self.state(behind: key, with: 0x5c)
  }

  private static func state(behind key: [UInt8], with pad: UInt8) -> SHA_CTX {
    let block = key.map { $0 ^ pad } + [UInt8](repeating: pad, count: 64 - key.count)
    var state = SHA_CTX()
    copenssl_sha1_begin(&state)
    copenssl_sha1_add(&state, block, block.count)
    return state
  }

  /// - Parameter word: the last word of the authenticated message: the rollover counter of RTP, E flag and index of RTCP (RFC 3711 section 4.2).
  func write(to tag: UnsafeMutableRawPointer, of message: UnsafeRawPointer, _ count: Int, _ word: UInt32) {
    withCode(of: message, count, word) { tag.copyMemory(from: $0, byteCount: Self.tagLength) }
  }

  /// Whether a tag of 10 bytes belongs to the message; the time does not depend on the bytes in which it differs.
  func accepts(_ tag: UnsafeRawPointer, of message: UnsafeRawPointer, _ count: Int, _ word: UInt32) -> Bool {
    withCode(of: message, count, word) { CRYPTO_memcmp($0, tag, Self.tagLength) == 0 }
  }

  private func withCode<Result>(
    of message: UnsafeRawPointer, _ count: Int, _ word: UInt32, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var code: (UInt64, UInt64, UInt32) = (0, 0, 0)
    return withUnsafeMutableBytes(of: &code) { code in
      let digest = code.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
      var word = word.bigEndian
      var state = inner
      copenssl_sha1_add(&state, message, count)
      copenssl_sha1_add(&state, &word, 4)
      copenssl_sha1_end(&state, digest)
      state = outer
      copenssl_sha1_add(&state, digest, 20)
      copenssl_sha1_end(&state, digest)
      return body(digest)
    }
  }
}
