/// The cipher suites of RFC 9605 section 4.5 that Conclave speaks: the two with AES-GCM.
package enum CipherSuite: UInt16, Sendable, Hashable, CaseIterable {
  case aes128GCMSHA256 = 4
  case aes256GCMSHA512 = 5

  /// Bytes of the hash's output (Nh of RFC 9605 section 4.5).
  package var hashByteCount: Int { self == .aes128GCMSHA256 ? 32 : 64 }

  /// Bytes of the AEAD key (Nk).
  package var keyByteCount: Int { self == .aes128GCMSHA256 ? 16 : 32 }

  /// Bytes of the AEAD nonce (Nn).
  package static let nonceByteCount = 12

  /// Bytes of the authentication tag (Nt).
  package static let tagByteCount = 16

  /// The most bytes that encryption adds to a frame: header and tag.
  package static let maximumOverhead = SFrameHeader.maximumByteCount + tagByteCount
}
