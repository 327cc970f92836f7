import MediaModel
import Octets
import RTP

/// Members share the epoch's secret, so each can encrypt under the key ID of another. The server knows to which track a packet belongs and withholds such frames
/// from the others. It reads the clear SFrame header of a frame (RFC 9605 section 4.3), and nothing after it.
extension SFU {
  /// Whether the packet belongs to a frame whose key ID is not the track's. The first packet is examined; the others follow it by their
  /// timestamp.
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
      let header = codec == .h264 ? try? SFrameHeader(parsingEscaped: bytes) : try? SFrameHeader(parsing: bytes)
      guard let header else { return isForeign(unreadable: codec, timestamp, reception) }
      let name = FrameKeyID(rawValue: header.keyID)
      let isOwn = name?.participant == track.track.participant && name?.track == track.track.index
      reception.pointee.foreignFrame = isOwn ? nil : timestamp
      return !isOwn
    }
  }

  /// A frame of Opus or VP8 without a header in its place is not an SFrame of this track. For other codecs the place is uncertain; the clients compare,
  /// too.
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
}
