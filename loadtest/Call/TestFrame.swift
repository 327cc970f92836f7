import Octets
import RTP

/// The plaintext of a frame of the load test, before it is padded to its size.
struct TestFrame {
  /// Whether it was sent during the measurement.
  var isMeasured: Bool
  /// The number of RTP packets in which it was sent.
  var packets: UInt16
  /// When its last packet was due to be sent, in nanoseconds of the monotonic clock that sender and receiver share.
  var sentAt: UInt64
  /// nil for a frame of a track without layers.
  var layered: LayeredFrame?

  static let byteCount = 22
  private static let noLayer: UInt8 = 0xff

  init(isMeasured: Bool, packets: UInt16, sentAt: UInt64, layered: LayeredFrame? = nil) {
    self.isMeasured = isMeasured
    self.packets = packets
    self.sentAt = sentAt
    self.layered = layered
  }

  /// nil for a frame of another program.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount, bytes[0] <= 1, bytes[1] == 0x7e else { return nil }
    isMeasured = bytes[0] == 1
    packets = bytes.bytes.uint16(at: 2)
    sentAt = bytes.bytes.uint64(at: 4)
    guard bytes[12] != Self.noLayer else { return }
    guard bytes[12] < CameraLayer.all.count else { return nil }
    // Frames are numbered from 1.
    let reference = bytes.bytes.uint32(at: 18)
    layered = LayeredFrame(
      rank: bytes[12], temporalLayer: bytes[13], number: bytes.bytes.uint32(at: 14),
      reference: reference == 0 ? nil : reference)
  }

  func write(into bytes: UnsafeMutableRawBufferPointer) {
    bytes[0] = isMeasured ? 1 : 0
    bytes[1] = 0x7e
    bytes.store(packets, at: 2)
    bytes.store(sentAt, at: 4)
    bytes[12] = layered?.rank ?? Self.noLayer
    bytes[13] = layered?.temporalLayer ?? 0
    bytes.store(layered?.number ?? 0, at: 14)
    bytes.store(layered?.reference ?? 0, at: 18)
  }
}
