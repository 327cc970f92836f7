package import Crypto
import Octets

/// Encrypts frames under one KID, each under the next counter.
///
/// Not copyable: two copies would use the same counters under the same key, which reveals AES-GCM's authentication key. For the same reason each
/// (base key, KID) must only ever have one context (RFC 9605 section 9.1).
package struct SenderContext: ~Copyable, Sendable {
  package let keyID: UInt64
  private let key: FrameKey
  /// The counter of the next frame; nil once the last has been used.
  private var next: UInt64?

  package init(suite: CipherSuite, keyID: UInt64, baseKey: SymmetricKey) {
    self.init(suite: suite, keyID: keyID, baseKey: baseKey, startingAt: 0)
  }

  /// A context that starts at another counter; for tests of long-lived ones and for the vectors.
  init(suite: CipherSuite, keyID: UInt64, baseKey: SymmetricKey, startingAt counter: UInt64) {
    self.keyID = keyID
    key = FrameKey(suite: suite, keyID: keyID, baseKey: baseKey)
    next = counter < SFrameHeader.counterLimit ? counter : nil
  }

  /// Encrypts `frame` and writes header, ciphertext and tag to the start of `output`. `metadata` is authenticated with it and not written.
  /// Returns the number of bytes written: at most `CipherSuite.maximumOverhead` more than the frame's. `output` must not overlap the
  /// inputs.
  package mutating func encrypt(
    _ frame: UnsafeRawBufferPointer, metadata: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(SFrameError) -> Int {
    guard let counter = next else { throw .counterExhausted }
    let header = SFrameHeader(keyID: keyID, counter: counter)
    let start = header.byteCount
    let (total, overflow) = frame.count.addingReportingOverflow(start + CipherSuite.tagByteCount)
    guard !overflow, output.count >= total else { throw .noSpace }
    // The counter is spent before it is used, so that no failure can bring it back.
    next = counter + 1 < SFrameHeader.counterLimit ? counter + 1 : nil
    header.write(into: output)
    let additionalData = authenticated(UnsafeRawBufferPointer(rebasing: output[..<start]), metadata)
    try key.seal(
      frame, counter: counter, authenticating: additionalData,
      into: UnsafeMutableRawBufferPointer(rebasing: output[start..<total]))
    return total
  }

  /// As above, into a new array.
  package mutating func encrypt(_ frame: [UInt8], metadata: [UInt8] = []) throws(SFrameError) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: frame.count + CipherSuite.maximumOverhead)
    var count = 0
    do {
      count = try output.withUnsafeMutableBytes { output in
        try frame.withUnsafeBytes { frame in
          try metadata.withUnsafeBytes { try encrypt(frame, metadata: $0, into: output) }
        }
      }
    } catch {
      throw error as! SFrameError
    }
    return Array(output.prefix(count))
  }
}

/// Header bytes and metadata: the additional authenticated data of a frame (RFC 9605 section 4.4.3).
func authenticated(_ header: UnsafeRawBufferPointer, _ metadata: UnsafeRawBufferPointer) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: header.count + metadata.count) { buffer, count in
    let bytes = UnsafeMutableRawBufferPointer(buffer)
    bytes.copyBytes(from: header)
    UnsafeMutableRawBufferPointer(rebasing: bytes[header.count...]).copyBytes(from: metadata)
    count = header.count + metadata.count
  }
}
