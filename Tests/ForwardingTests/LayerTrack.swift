import MediaModel
import RTP

@testable import Forwarding

/// One simulcast layer of a test peer's camera: VP8 with temporal layers T0 T2 T1 T2, with a dependency descriptor where the peer negotiated it.
final class LayerTrack: TestTrack {
  /// The state shared by the layers of one camera.
  final class Camera {
    var frameNumber: UInt16 = 0
  }

  /// A sent frame: its packets' serials, and the frames of the same layer to which it refers.
  struct SentFrame {
    var layer: Int
    var temporalLayer: Int
    var isKeyFrame: Bool
    var serials: ClosedRange<UInt64>
    /// Their first serials.
    var references: [UInt64]
    /// When it was captured, in frames of the camera.
    var tick: Int
  }

  let rid: String
  let rank: Int
  private let camera: Camera
  private(set) var frames: [UInt64: SentFrame] = [:]
  /// The packets of a key frame, as a multiple of those of other frames.
  var keyFrameSize = 3
  private var position = 0
  private var tick = 0
  private var tl0PictureIndex: UInt8 = 0
  /// First serial and frame number of the last frame of T0 and T1.
  private var last: [(serial: UInt64, number: UInt16)] = []

  init(_ description: UpTrackDescription, ssrc: UInt32, rtxSSRC: UInt32, rank: Int, camera: Camera) {
    rid = description.rids[rank]
    self.rank = rank
    self.camera = camera
    super.init(description, ssrc: ssrc, rtxSSRC: rtxSSRC)
    serial |= UInt64(rank) << 28
    packetsPerFrame = 1 << rank
    payloadLength = 300
  }

  /// The camera keeps running while the layer is off.
  override func skip() {
    tick += 1
    timestamp &+= 90 * UInt32(interval)
  }

  override func nextFrame(extensions: HeaderExtensionIDs) -> [[UInt8]] {
    let isKeyFrame = wantsKeyFrame || last.isEmpty
    wantsKeyFrame = false
    position = isKeyFrame ? 0 : (position + 1) % 4
    let temporal = [0, 2, 1, 2][position]
    tick += 1
    timestamp &+= 90 * UInt32(interval)
    camera.frameNumber &+= 1
    pictureID = (pictureID + 1) & 0x7fff
    if temporal == 0 { tl0PictureIndex &+= 1 }
    let reference = isKeyFrame ? nil : last[position == 3 ? 1 : 0]
    let number = camera.frameNumber
    let count = packetsPerFrame * (isKeyFrame ? keyFrameSize : 1)
    let first = serial + 1
    if isKeyFrame {
      keyFrames.append(first)
      last = [(first, number), (first, number)]
    } else if temporal < 2 {
      last[temporal] = (first, number)
    }
    frames[first] = SentFrame(
      layer: rank, temporalLayer: temporal, isKeyFrame: isKeyFrame, serials: first...first + UInt64(count) - 1,
      references: reference.map { [$0.serial] } ?? [], tick: tick)
    return (0..<count).map { i in
      let element = descriptor(
        isFirst: i == 0, isLast: i == count - 1, isKeyFrame: isKeyFrame, temporal, number,
        difference: reference.map { number &- $0.number })
      return packet(extensions, element, isFirst: i == 0, isLast: i == count - 1, isKeyFrame: isKeyFrame, temporal)
    }
  }

  private func packet(
    _ extensions: HeaderExtensionIDs, _ element: [UInt8], isFirst: Bool, isLast: Bool, isKeyFrame: Bool, _ temporal: Int
  ) -> [UInt8] {
    sequenceNumber &+= 1
    serial += 1
    packetCount += 1
    let body = body(isKeyFrame: isKeyFrame)
    sent[serial] = body
    let hasDescriptor = extensions.dependencyDescriptor != 0
    var bytes = [UInt8](repeating: 0, count: 80)
    let length = bytes.withUnsafeMutableBytes { buffer in
      RTPHeader.write(
        marker: isLast, payloadType: description.formats[0].payloadType, sequenceNumber: sequenceNumber,
        timestamp: timestamp, ssrc: ssrc, into: buffer)
      var writer = HeaderExtensionWriter(buffer)
      writer.append(extensions.mid, Array(description.mid.utf8).span)
      writer.append(extensions.rid, Array(rid.utf8).span)
      if extensions.transportSequence != 0 { writer.append(extensions.transportSequence, ([0, 0] as [UInt8]).span) }
      if hasDescriptor { writer.append(extensions.dependencyDescriptor, element.span) }
      return writer.finish()
    }
    // Chromium sends the short form beside a dependency descriptor.
    let start: UInt8 = isFirst ? 0x10 : 0
    let long: [UInt8] = [
      start | 0x80, 0xf0, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), tl0PictureIndex,
      UInt8(temporal) << 6 | (position < 3 ? 0x20 : 0) | 0x05,
    ]
    history[sequenceNumber] = bytes[..<length] + (hasDescriptor ? [start] : long) + body
    return history[sequenceNumber] ?? []
  }

  /// Three targets, T0 to T2; the references are custom ones.
  private func descriptor(
    isFirst: Bool, isLast: Bool, isKeyFrame: Bool, _ temporal: Int, _ number: UInt16, difference: UInt16?
  ) -> [UInt8] {
    var bits: [UInt8] = []
    func put(_ value: Int, _ count: Int) {
      for shift in stride(from: count - 1, through: 0, by: -1) { bits.append(UInt8(value >> shift & 1)) }
    }
    put(isFirst ? 1 : 0, 1)
    put(isLast ? 1 : 0, 1)
    put(temporal, 6)
    put(Int(number), 16)
    let hasStructure = isKeyFrame && isFirst
    put(hasStructure ? 0b10010 : 0b00010, 5)
    if hasStructure {
      put(0, 6)
      put(2, 5)
      put(0b010111, 6)
      put(0b101010_001010_000010, 18)
      put(0, 3)
      put(0, 2)
      put(1, 1)
      put((320 << rank) - 1, 16)
      put((180 << rank) - 1, 16)
    }
    if let difference {
      put(3, 2)
      put(Int(difference) - 1, 12)
    }
    put(0, 2)
    return stride(from: 0, to: bits.count, by: 8).map { start in
      (0..<8).reduce(0) { $0 << 1 | (start + $1 < bits.count ? bits[start + $1] : 0) }
    }
  }

  /// With the repaired RID instead of the RID, since its SSRC is not announced.
  override func retransmission(of sequenceNumber: UInt16, _ extensions: HeaderExtensionIDs) -> [UInt8]? {
    guard var packet = retransmission(of: sequenceNumber) else { return nil }
    var map = HeaderExtensionMap()
    for id in UInt8(1)...14 { map[id] = id }
    map[extensions.rid] = extensions.repairedRID
    let plain = packet
    packet.withUnsafeMutableBytes { bytes in
      plain.withUnsafeBytes { plain in
        guard let header = RTPHeader(parsing: plain.bytes), let elements = HeaderExtensions(header) else { return }
        // All elements stay, so the new header has the same length.
        var writer = HeaderExtensionWriter(bytes, at: header.extensionOffset - 4)
        _ = writer.append(elements, of: plain, by: map, noting: 0)
        _ = writer.finish()
      }
    }
    return packet
  }
}
