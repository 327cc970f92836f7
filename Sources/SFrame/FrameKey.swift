package import Crypto
import Octets

/// The AEAD key and salt of one KID (RFC 9605 section 4.4.2), as a sender hands them out to the readers of a recording. They open the frames of that KID and of no
/// other.
package struct FrameSecret: Sendable {
  package let key: SymmetricKey
  package let salt: SymmetricKey

  package init(suite: CipherSuite, keyID: UInt64, baseKey: SymmetricKey) {
    let context = keyID.networkOrderBytes + suite.rawValue.networkOrderBytes
    key = expand(baseKey, "SFrame 1.0 Secret key ", context, count: suite.keyByteCount, suite: suite)
    salt = expand(baseKey, "SFrame 1.0 Secret salt ", context, count: CipherSuite.nonceByteCount, suite: suite)
  }

  /// nil unless there are as many bytes as `suite` has.
  package init?(suite: CipherSuite, key: SymmetricKey, salt: SymmetricKey) {
    guard key.bitCount == 8 * suite.keyByteCount, salt.bitCount == 8 * CipherSuite.nonceByteCount else { return nil }
    self.key = key
    self.salt = salt
  }
}

/// A `FrameSecret`, ready for use.
struct FrameKey: Sendable {
  private let key: SymmetricKey
  /// The salt's first 4 bytes, and its last 8 as a big-endian number: the counter is XORed into the latter.
  private let saltHead: UInt32
  private let saltTail: UInt64

  init(_ secret: FrameSecret) {
    key = secret.key
    (saltHead, saltTail) = secret.salt.withUnsafeBytes { bytes in
      (
        bytes.bytes.uint32(at: 0), bytes.bytes.uint64(at: 4)
      )
    }
  }

  init(suite: CipherSuite, keyID: UInt64, baseKey: SymmetricKey) {
    self.init(FrameSecret(suite: suite, keyID: keyID, baseKey: baseKey))
  }

  /// Encrypts and writes ciphertext and tag to the start of `output`, which has room for them.
  func seal(
    _ plaintext: UnsafeRawBufferPointer, counter: UInt64, authenticating additionalData: [UInt8],
    into output: UnsafeMutableRawBufferPointer
  ) throws(SFrameError) {
    do {
      let box = try AES.GCM.seal(
        plaintext.bindMemory(to: UInt8.self), using: key, nonce: try nonce(counter), authenticating: additionalData)
      output.copyBytes(from: box.ciphertext)
      UnsafeMutableRawBufferPointer(rebasing: output[plaintext.count...]).copyBytes(from: box.tag)
    } catch {
      // AES-GCM fails only for a message of more than 2^36 bytes.
      throw .noSpace
    }
  }

  /// Opens ciphertext and tag, and writes the plaintext to the start of `output`, which has room for it; nothing is written unless the tag fits.
  func open(
    _ sealed: UnsafeRawBufferPointer, counter: UInt64, authenticating additionalData: [UInt8],
    into output: UnsafeMutableRawBufferPointer
  ) throws(SFrameError) {
    do {
      // Contiguous: combining a box costs the library several times as much as AES for a packet of audio.
      let start = CipherSuite.nonceByteCount
      let box = try withUnsafeTemporaryAllocation(byteCount: start + sealed.count, alignment: 1) { bytes in
        writeNonce(counter, to: bytes)
        UnsafeMutableRawBufferPointer(rebasing: bytes[start...]).copyMemory(from: sealed)
        return try AES.GCM.SealedBox(combined: UnsafeRawBufferPointer(bytes))
      }
      output.copyBytes(from: try AES.GCM.open(box, using: key, authenticating: additionalData))
    } catch {
      throw .authenticationFailed
    }
  }

  /// The salt XOR the counter as 12 big-endian bytes (RFC 9605 section 4.4.3).
  func nonce(_ counter: UInt64) throws -> AES.GCM.Nonce {
    try withUnsafeTemporaryAllocation(byteCount: CipherSuite.nonceByteCount, alignment: 1) { bytes in
      writeNonce(counter, to: bytes)
      return try AES.GCM.Nonce(data: UnsafeRawBufferPointer(bytes).bindMemory(to: UInt8.self))
    }
  }

  private func writeNonce(_ counter: UInt64, to bytes: UnsafeMutableRawBufferPointer) {
    bytes.store(saltHead, at: 0)
    bytes.store(saltTail ^ counter, at: 4)
  }
}

/// HKDF with an empty salt: extract, then expand with `label` and `context` (RFC 9605 section 4.4.2).
private func expand(
  _ inputKey: SymmetricKey, _ label: String, _ context: [UInt8], count: Int, suite: CipherSuite
) -> SymmetricKey {
  let info = Array(label.utf8) + context
  switch suite {
  case .aes128GCMSHA256:
    return HKDF<SHA256>.deriveKey(inputKeyMaterial: inputKey, info: info, outputByteCount: count)
  case .aes256GCMSHA512:
    return HKDF<SHA512>.deriveKey(inputKeyMaterial: inputKey, info: info, outputByteCount: count)
  }
}

/// The cipher suites of RFC 9605 section 4.5 that Conclave speaks: the two with AES-GCM.
package enum CipherSuite: UInt16, Sendable, Hashable, CaseIterable {
  case aes128GCMSHA256 = 4
  case aes256GCMSHA512 = 5

  /// Bytes of the AEAD key (Nk).
  package var keyByteCount: Int { self == .aes128GCMSHA256 ? 16 : 32 }

  /// Bytes of the AEAD nonce (Nn).
  package static let nonceByteCount = 12

  /// Bytes of the authentication tag (Nt).
  package static let tagByteCount = 16

  /// The most bytes that encryption adds to a frame: header and tag.
  package static let maximumOverhead = SFrameHeader.maximumByteCount + tagByteCount
}
