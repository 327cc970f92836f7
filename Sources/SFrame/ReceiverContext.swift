package import Crypto
package import Octets

/// Decrypts frames of one KID, each counter at most once. Counters from 2^48 on are refused (protocol section 5, "Numbers").
package struct ReceiverContext: Sendable {
  package let keyID: UInt64
  private let key: FrameKey
  private var window = ReplayWindow()

  package init(suite: CipherSuite, keyID: UInt64, baseKey: SymmetricKey) {
    self.keyID = keyID
    key = FrameKey(suite: suite, keyID: keyID, baseKey: baseKey)
  }

  /// With a secret that the sender has handed out.
  package init(keyID: UInt64, secret: FrameSecret) {
    self.keyID = keyID
    key = FrameKey(secret)
  }

  /// Bytes of plaintext in `frame`; negative if it is too short for a header and a tag.
  package static func plaintextByteCount(of frame: UnsafeRawBufferPointer, header: SFrameHeader) -> Int {
    frame.count - header.byteCount - CipherSuite.tagByteCount
  }

  /// Decrypts `frame`, a whole SFrame of untrusted origin, and writes the plaintext to the start of `output`; returns its length in bytes. On an error nothing
  /// is written and the replay window has not moved. A frame that would move the window by more than `limit`, or that is more than `reach` behind the newest,
  /// counts as replayed. `output` must not overlap the inputs.
  package mutating func decrypt(
    _ frame: UnsafeRawBufferPointer, metadata: UnsafeRawBufferPointer, movingWindowAtMost limit: UInt64 = .max,
    reachingBackAtMost reach: UInt64 = ReplayWindow.size, into output: UnsafeMutableRawBufferPointer
  ) throws(SFrameError) -> Int {
    let header: SFrameHeader
    do {
      header = try SFrameHeader(parsing: frame.bytes)
    } catch {
      throw .header(error)
    }
    guard header.keyID == keyID else { throw .wrongKeyID }
    let count = Self.plaintextByteCount(of: frame, header: header)
    guard count >= 0 else { throw .truncated }
    guard output.count >= count else { throw .noSpace }
    guard header.counter < SFrameHeader.counterLimit,
      accepts(header.counter, movingAtMost: limit, reachingBackAtMost: reach)
    else { throw .replayed }
    let start = header.byteCount
    let additionalData = authenticated(UnsafeRawBufferPointer(rebasing: frame[..<start]), metadata)
    try key.open(
      UnsafeRawBufferPointer(rebasing: frame[start...]), counter: header.counter, authenticating: additionalData,
      into: output)
    window.record(header.counter)
    return count
  }

  /// False if `counter` was recorded before, is older than the window, or is more than `limit` above the highest one (0 before the first) or more than
  /// `reach` below it.
  private mutating func accepts(
    _ counter: UInt64, movingAtMost limit: UInt64, reachingBackAtMost reach: UInt64
  ) -> Bool {
    let highest = window.highest ?? 0
    guard window.arrival(of: counter) == .new else { return false }
    return counter <= highest ? highest - counter <= reach : counter - highest <= limit
  }

  /// As above, into a new array.
  package mutating func decrypt(_ frame: [UInt8], metadata: [UInt8] = []) throws(SFrameError) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: frame.count)
    var count = 0
    do {
      count = try output.withUnsafeMutableBytes { output in
        try frame.withUnsafeBytes { frame in
          try metadata.withUnsafeBytes { try decrypt(frame, metadata: $0, into: output) }
        }
      }
    } catch {
      throw error as! SFrameError
    }
    return Array(output.prefix(count))
  }
}
