import MediaModel
import Octets
import RTP

/// An SSRC of one peer, and the stream that it belongs to.
struct Stream {
  var ssrc: UInt32
  var track: UpTrack
  var encoding: Encoding
  var isRetransmission: Bool
}

extension Peer {
  /// After this much silence a stream may continue under another SSRC.
  private static let restartAfter = Duration.milliseconds(500)

  /// The stream of a packet (RFC 8843 section 9.2): known by its SSRC, or identified by its MID or payload type and known from
  /// then on.
  func stream(
    of header: RTPHeader, in packet: UnsafeRawBufferPointer, now: Instant
  ) -> Stream? {
    for i in streams.indices where streams[i].ssrc == header.ssrc { return streams[i] }
    return latch(header, packet, now)
  }

  /// Registers the announced SSRCs, and keeps the latched ones of encodings that still exist.
  func announceStreams() {
    streams.removeAll { old in
      guard upTracks.contains(where: { $0 === old.track }) else { return true }
      let announced = old.isRetransmission ? old.encoding.rtxSSRC : old.encoding.ssrc
      return announced.map { $0 != old.ssrc } ?? false
    }
    for track in upTracks {
      for encoding in track.encodings {
        if let ssrc = encoding.ssrc {
          add(Stream(ssrc: ssrc, track: track, encoding: encoding, isRetransmission: false))
        }
        if let ssrc = encoding.rtxSSRC {
          add(Stream(ssrc: ssrc, track: track, encoding: encoding, isRetransmission: true))
        }
      }
    }
  }

  private func latch(
    _ header: RTPHeader, _ packet: UnsafeRawBufferPointer, _ now: Instant
  ) -> Stream? {
    guard let track = track(of: header, in: packet), let payload = track.payload(header.payloadType),
      let encoding = encoding(of: track, isRetransmission: payload.isRetransmission, header, packet)
    else { return nil }
    let stream = Stream(
      ssrc: header.ssrc, track: track, encoding: encoding, isRetransmission: payload.isRetransmission)
    if payload.isRetransmission {
      streams.removeAll { $0.encoding === encoding && $0.isRetransmission }
    } else if encoding.ssrc != nil {
      if let last = encoding.reception.pointee.lastPacket, last.duration(to: now) < Self.restartAfter { return nil }
      streams.removeAll { $0.encoding === encoding }
      encoding.restart(ssrc: header.ssrc)
    } else {
      encoding.latch(header.ssrc)
    }
    return add(stream) ? stream : nil
  }

  /// The track that a packet names by its MID. A packet without one belongs to the only track that has its payload type.
  private func track(of header: RTPHeader, in packet: UnsafeRawBufferPointer) -> UpTrack? {
    let id = configuration.extensions.mid
    if id != 0, let mid = HeaderExtensions(header)?.element(id, in: packet.bytes) {
      let text = packet.part(mid.range)
      return upTracks.first { $0.description.mid.utf8.elementsEqual(text) }
    }
    var found: UpTrack?
    for track in upTracks where track.payload(header.payloadType) != nil {
      guard found == nil else { return nil }
      found = track
    }
    return found
  }

  /// The encodings of a track with several are told apart by RID, and their retransmissions by repaired RID (RFC 8852 section
  /// 3).
  private func encoding(
    of track: UpTrack, isRetransmission: Bool, _ header: RTPHeader, _ packet: UnsafeRawBufferPointer
  ) -> Encoding? {
    guard track.isLayered else { return track.encodings.first }
    let id = isRetransmission ? configuration.extensions.repairedRID : configuration.extensions.rid
    guard id != 0, let rid = HeaderExtensions(header)?.element(id, in: packet.bytes) else { return nil }
    let text = packet.part(rid.range)
    return track.encodings.first { $0.rid?.utf8.elementsEqual(text) ?? false }
  }

  @discardableResult
  private func add(_ stream: Stream) -> Bool {
    guard streams.count < Self.maximumStreams, !streams.contains(where: { $0.ssrc == stream.ssrc }) else {
      return false
    }
    streams.append(stream)
    return true
  }
}
