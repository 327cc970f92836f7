import MediaModel
import Octets
import RTP
import SFrame

/// Members share the epoch's secret, so each can encrypt under the key ID of another. The server knows whose track a packet is and keeps such frames from the others:
/// it reads the header in clear of a frame's SFrame (RFC 9605 section 4.3), and nothing behind it.
extension SFU {
  /// Whether the packet is of a frame whose key ID is not the track's: the first packet is looked at, the others follow it by their timestamp.
  func isForeign(
    _ packet: borrowing Packet, _ codec: PayloadCodec, of track: UpTrack, _ reception: UnsafeMutablePointer<Reception>
  ) -> Bool {
    let payload = packet.payload.bytes
    let timestamp = packet.header.timestamp
    switch codec.frameStart(in: payload, vp8: packet.vp8) {
    case .none: return reception.pointee.foreignFrame == timestamp
    case .unreadable:
      return isForeign(unreadable: codec, timestamp, reception)
    case .encrypted(let range):
      let bytes = payload.extracting(range)
      guard let keyID = codec == .h264 ? Self.keyID(escaped: bytes) : Self.keyID(bytes) else {
        return isForeign(unreadable: codec, timestamp, reception)
      }
      let name = FrameKeyID(rawValue: keyID)
      let isOwn = name?.participant == track.track.participant && name?.track == track.track.index
      reception.pointee.foreignFrame = isOwn ? nil : timestamp
      return !isOwn
    }
  }

  /// A frame of Opus or VP8 without a header at its place is no SFrame of this track. For other codecs the place is uncertain, and the clients compare too.
  private func isForeign(
    unreadable codec: PayloadCodec, _ timestamp: UInt32, _ reception: UnsafeMutablePointer<Reception>
  ) -> Bool {
    guard codec.isAlwaysReadable else {
      counts.pointee.sframeUnread &+= 1
      reception.pointee.foreignFrame = nil
      return false
    }
    reception.pointee.foreignFrame = timestamp
    return true
  }

  private static func keyID(_ bytes: RawSpan) -> UInt64? { try? SFrameHeader(parsing: bytes).keyID }

  /// Behind H.264's emulation prevention: 3 after two zeros is left out (ITU-T H.264 section 7.4.1).
  private static func keyID(escaped bytes: RawSpan) -> UInt64? {
    var header = InlineArray<17, UInt8>(repeating: 0)
    var count = 0
    var zeros = 0
    for offset in bytes.byteOffsets {
      let byte = bytes[offset]
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      header[count] = byte
      count += 1
      if count == header.count { break }
    }
    return keyID(header.span.bytes.extracting(0..<count))
  }
}
