import Octets
import RTP

/// The plaintext of a frame of the load test, before it is padded to its size.
struct TestFrame {
  /// Whether it counts: it was sent while the test measured.
  var isMeasured: Bool
  /// RTP packets that it was sent in.
  var packets: UInt16
  /// When its last packet was due to leave, in nanoseconds of the monotonic clock that sender and receiver share.
  var sentAt: UInt64

  static let byteCount = 12

  init(isMeasured: Bool, packets: UInt16, sentAt: UInt64) {
    self.isMeasured = isMeasured
    self.packets = packets
    self.sentAt = sentAt
  }

  /// nil for a frame of another program.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount, bytes[0] <= 1, bytes[1] == 0x7e else { return nil }
    isMeasured = bytes[0] == 1
    packets = bytes.bytes.uint16(at: 2)
    sentAt = bytes.bytes.uint64(at: 4)
  }

  func write(into bytes: UnsafeMutableRawBufferPointer) {
    bytes[0] = isMeasured ? 1 : 0
    bytes[1] = 0x7e
    bytes.store(packets, at: 2)
    bytes.store(sentAt, at: 4)
  }
}
