import MediaModel
import Octets
import RTP

@testable import Forwarding

/// A track sent by a test peer: opaque payloads with a serial number, and VP8 descriptors in front of video.
class TestTrack {
  let description: UpTrackDescription
  let ssrc: UInt32
  let rtxSSRC: UInt32
  var sequenceNumber: UInt16
  var timestamp: UInt32
  var pictureID: UInt16 = 300
  var isSending = true
  var wantsKeyFrame = true
  var packetsPerFrame = 3
  var payloadLength = 1100
  /// RFC 6464: 127 is silence.
  var level: UInt8 = 127
  var isMidSent = true
  /// The first byte after the descriptor: of VP8's payload header here.
  var firstByte: (keyFrame: UInt8, other: UInt8) = (0, 1)
  /// When each PLI arrived.
  var keyFrameRequests: [Instant] = []
  /// When each FIR with a new number arrived.
  var fullIntraRequests: [Instant] = []
  var lastFIR: UInt8?
  /// All payloads after the descriptor, by serial number.
  var sent: [UInt64: [UInt8]] = [:]
  var keyFrames: [UInt64] = []
  /// Plain packets for retransmission.
  var history: [UInt16: [UInt8]] = [:]
  /// The datagrams of a track without RTX, for unchanged retransmission.
  var datagrams: [UInt16: [UInt8]] = [:]
  var rtxSequenceNumber: UInt16 = 1
  /// How far the NTP times of its sender reports are ahead of the test's clock, in nanoseconds.
  var clockOffset: UInt64 = 7_000_000_000
  var packetCount: UInt32 = 0
  var serial: UInt64
  private var random: SplitMix64

  init(_ description: UpTrackDescription, ssrc: UInt32, rtxSSRC: UInt32) {
    self.description = description
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    random = SplitMix64(seed: UInt64(ssrc))
    sequenceNumber = UInt16(truncatingIfNeeded: random.next())
    timestamp = UInt32(truncatingIfNeeded: random.next())
    serial = UInt64(description.track.participant) << 40 | UInt64(description.track.index) << 32
  }

  var isVideo: Bool { description.source.kind == .video }
  var interval: Int { isVideo ? 33 : 20 }

  /// The plain RTP packets of the next frame.
  func nextFrame(extensions: HeaderExtensionIDs) -> [[UInt8]] {
    let isKeyFrame = wantsKeyFrame
    wantsKeyFrame = false
    timestamp &+= description.formats[0].clockRate / 1000 * UInt32(interval)
    pictureID = (pictureID + 1) & 0x7fff
    let count = isVideo ? packetsPerFrame * (isKeyFrame ? 2 : 1) : 1
    return (0..<count).map { i in
      packet(extensions, isFirst: i == 0, isLast: i == count - 1, isKeyFrame: isKeyFrame)
    }
  }

  private func packet(_ extensions: HeaderExtensionIDs, isFirst: Bool, isLast: Bool, isKeyFrame: Bool) -> [UInt8] {
    sequenceNumber &+= 1
    serial += 1
    packetCount += 1
    if isFirst, isKeyFrame { keyFrames.append(serial) }
    var payload = isVideo ? descriptor(isFirst: isFirst) : []
    let body = body(isKeyFrame: isKeyFrame)
    sent[serial] = body
    payload += body
    let bytes = packet(extensions, marker: isVideo && isLast, payload)
    history[sequenceNumber] = bytes
    return bytes
  }

  /// X with I (15 bits), L and K.
  private func descriptor(isFirst: Bool) -> [UInt8] {
    guard description.formats[0].codec == "VP8" else { return [] }
    return [
      isFirst ? 0x90 : 0x80, 0xd0, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff),
      UInt8(truncatingIfNeeded: pictureID), 0x05,
    ]
  }

  func body(isKeyFrame: Bool) -> [UInt8] {
    var body: [UInt8] = [isKeyFrame ? firstByte.keyFrame : firstByte.other]
    for shift in stride(from: 56, through: 0, by: -8) {
      body.append(UInt8(truncatingIfNeeded: serial >> UInt64(shift)))
    }
    let length = payloadLength
    body.reserveCapacity(length + 8)
    while body.count < length { withUnsafeBytes(of: random.next()) { body.append(contentsOf: $0) } }
    if body.count > max(length, 9) { body.removeLast(body.count - max(length, 9)) }
    return body
  }

  private func packet(_ extensions: HeaderExtensionIDs, marker: Bool, _ payload: [UInt8]) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 64)
    let length = bytes.withUnsafeMutableBytes { buffer in
      RTPHeader.write(
        marker: marker, payloadType: description.formats[0].payloadType, sequenceNumber: sequenceNumber,
        timestamp: timestamp, ssrc: ssrc, into: buffer)
      var writer = HeaderExtensionWriter(buffer)
      if isMidSent { writer.append(extensions.mid, Array(description.mid.utf8).span) }
      if extensions.transportSequence != 0 { writer.append(extensions.transportSequence, ([0, 0] as [UInt8]).span) }
      if !isVideo { writer.append(extensions.audioLevel, [0x80 | level].span) }
      return writer.finish()
    }
    return bytes[..<length] + payload
  }

  /// Skips a frame.
  func skip() {}

  /// The same, in the form in which its peer sends it.
  func retransmission(of sequenceNumber: UInt16, _ extensions: HeaderExtensionIDs) -> [UInt8]? {
    retransmission(of: sequenceNumber)
  }

  /// The RTX packet (RFC 4588) for an earlier packet.
  func retransmission(of sequenceNumber: UInt16) -> [UInt8]? {
    guard let plain = history[sequenceNumber], let type = description.formats[0].rtxPayloadType else { return nil }
    let header = plain.withUnsafeBytes { RTPHeader(parsing: $0.bytes)! }
    var bytes = Array(plain[..<header.headerLength])
    bytes.withUnsafeMutableBytes {
      RTPHeader.rewrite(
        payloadType: type, sequenceNumber: rtxSequenceNumber, timestamp: header.timestamp, ssrc: rtxSSRC, in: $0)
    }
    rtxSequenceNumber &+= 1
    return bytes + [UInt8(sequenceNumber >> 8), UInt8(sequenceNumber & 0xff)] + plain[header.headerLength...]
  }
}
