import Testing

@testable import Transport

/// AES_CM_128_HMAC_SHA1_80 below the packets: RFC 3711 appendix B and RFC 2202. `SRTPOracleTests` and `SRTPComparisonTests` check the packets.
struct CounterModeVectorTests {
  /// RFC 3711 appendix B.2: key stream of SSRC 0 and index 0, at both ends of the 16 bits that number its blocks.
  @Test func keyStreamIsThatOfTheRFC() {
    let cipher = CounterModeCipher(key: hex("2b7e1516 28aed2a6 abf71588 09cf4f3c"))
    let salt = CounterModeNonce(salt: hex("f0f1f2f3 f4f5f6f7 f8f9fafb fcfd"))
    var stream = [UInt8](repeating: 0, count: 0xff02 * 16)
    cipher.begin(salt.nonce(ssrc: 0, index: 0))
    stream.withUnsafeMutableBytes {
      let base = $0.baseAddress.unsafelyUnwrapped
      // In pieces that end within a block, like prefix, payload and padding.
      cipher.transform(base, to: base, 5)
      cipher.transform(base + 5, to: base + 5, 40)
      cipher.transform(base + 45, to: base + 45, $0.count - 45)
    }
    #expect(
      Array(stream[..<48])
        == hex(
          """
          e03ead09 35c95e80 e166b16d d92b4eb4 d2351316 2b02d0f7 2a43a2fe 4a5f97ab 41e95b3b b0a2e8dd 477901e4 fca894c0
          """))
    #expect(
      Array(stream[(0xfeff * 16)...])
        == hex(
          """
          ec8cdf73 98607cb0 f2d21675 ea9ea1e4 362b7c3c 67735163 18a077d7 fc5073ae 6a2cc378 7889374f beb4c81b 17ba6c44
          """))
  }

  /// The SSRC and the index are at the positions of section 4.1.1; in the vector above both are 0.
  @Test func counterHoldsSSRCAndIndex() {
    let nonce = CounterModeNonce(salt: [UInt8](repeating: 0, count: 14)).nonce(
      ssrc: 0x0102_0304, index: 0x0506_0708_090a)
    #expect(
      nonce.withBytes { Array(UnsafeBufferPointer(start: $0, count: 16)) } == [0, 0, 0, 0] + Array(1...10) + [0, 0])
  }

  /// Appendix B.3. Its authentication key is longer; the shorter one is a prefix of it.
  @Test func sessionKeysAreThoseOfTheRFC() {
    let keys = SessionKeys(
      .aes128CMSHA1Tag80,
      SRTPMasterKey(
        key: hex("e1f97a0d 3e018be0 d64fa32c 06de4139"), salt: hex("0ec675ad 498afeeb b6960b3a abe6")))
    #expect(keys.rtpKey == hex("c61e7a93 744f39ee 10734afe 3ff7a087"))
    #expect(keys.rtpSalt == hex("30cbbc08 863d8c85 d49db34a 9ae1"))
    #expect(keys.rtpAuthentication == hex("cebe321f 6ff7716b 6fd4ab49 af256a15 6d38baa4"))
  }

  /// RFC 2202 section 3, cases 1, 4 and 2; the last four bytes of a message are given as the word.
  @Test(arguments: [
    ([UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8), "b6173186 55057264 e28b"),
    (Array(1...25), [UInt8](repeating: 0xcd, count: 50), "4c9007f4 026250c6 bc84"),
    (Array("Jefe".utf8), Array("what do ya want for nothing?".utf8), "effcdf6a e5eb2fa2 d274"),
  ])
  func tagsAreThoseOfTheRFC(key: [UInt8], message: [UInt8], tag: String) {
    let authenticator = PacketAuthenticator(key: key)
    let word = message.suffix(4).reduce(0) { $0 << 8 | UInt32($1) }
    let expected = hex(tag)
    var written = [UInt8](repeating: 0, count: 10)
    for _ in 0..<2 { authenticator.write(to: &written, of: message, message.count - 4, word) }
    #expect(written == expected)
    #expect(authenticator.accepts(expected, of: message, message.count - 4, word))
    #expect(!authenticator.accepts(expected, of: message, message.count - 4, word ^ 1))
    for i in expected.indices {
      var forged = expected
      forged[i] ^= 0x80
      #expect(!authenticator.accepts(forged, of: message, message.count - 4, word), "byte \(i) of the tag")
    }
  }
}
