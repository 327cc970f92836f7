import MediaModel
import RTP
import Transport
import Octets

extension SFU {
  /// An SRTP packet of a known peer: opened in place, unwrapped if it is RTX, numbered, kept, sent on.
  func handleRTP(
    _ datagram: UnsafeMutableRawBufferPointer, on pair: CandidatePair, now: Instant, into outbox: Outbox
  ) {
    let peer = pair.peer
    guard let inbound = peer.inbound else { return drop(.notConnected) }
    let length: Int
    switch inbound.unprotectRTP(datagram) {
    case .packet(let plain): length = plain
    case .dropped(let reason): return drop(reason)
    }
    heard(pair, now: now, into: outbox)
    var bytes = UnsafeMutableRawBufferPointer(rebasing: datagram[..<length])
    guard var header = RTPHeader(parsing: bytes.bytes) else { return drop(.malformed) }
    guard let stream = peer.stream(of: header, in: UnsafeRawBufferPointer(bytes), now: now, configuration) else {
      return drop(.unknownStream)
    }
    let track = stream.track
    guard let payload = track.payload(header.payloadType), payload.isRetransmission == stream.isRetransmission
    else { return drop(.payloadType) }
    if payload.isRetransmission {
      guard let ssrc = track.ssrc,
        let original = header.unwrapRetransmission(&bytes, ssrc: ssrc, payloadType: payload.primaryType)
      else { return drop(.emptyRetransmission) }
      header = original
    }
    let reception = track.reception
    let highest = reception.pointee.unwrapper.highest
    let index = reception.pointee.unwrapper.unwrap(header.sequenceNumber)
    switch reception.pointee.window.arrival(of: index) {
    case .new: reception.pointee.window.record(index)
    case .seen: return drop(.duplicate)
    case .late: return drop(.late)
    }
    if reception.pointee.lastPacket == nil, track.isAwaited {
      requestKeyFrame(of: track, now: now, isNewSource: true)
    }
    reception.pointee.lastPacket = now
    if !payload.isRetransmission {
      reception.pointee.statistics.received(
        index, timestamp: header.timestamp, arrival: now.ticks(track.clockRate))
    }
    guard !track.isSilent else { return drop(.muted) }
    if let highest { mendHoles(of: track, highest: highest, index: index, now: now) }
    var packet = Packet(
      base: bytes.baseAddress!, length: header.headerLength + header.payloadLength,
      header: header, index: index)
    if payload.codec == .vp8 { packet.readVP8() }
    if peer.configuration.isOnKeyList, isForeign(packet, payload.codec, of: track) { return drop(.sframeForeign) }
    if packet.isKeyFrame { reception.pointee.keyFrames.keyFrameArrived() }
    if track.isMicrophone { hear(packet, of: peer, now: now) }
    // A packet that went to no receiver is never asked for.
    if !track.downStreams.isEmpty { track.history?.insert(packet) }
    forward(packet, of: track, now: now, into: outbox)
  }

  private func forward(_ packet: borrowing Packet, of track: UpTrack, now: Instant, into outbox: Outbox) {
    var sent: UInt64 = 0
    for stream in track.downStreams {
      switch stream.pointee.forward(packet, now: now, into: outbox) {
      case .sent: sent &+= 1
      case .notOpen: break
      case .dropped(let reason): drop(reason)
      }
    }
    counts.pointee.forwarded &+= sent
    if packet.isKeyFrame { track.keyFrameSent() }
  }

  /// Notes the holes that a packet opens or closes.
  private func mendHoles(of track: UpTrack, highest: UInt64, index: UInt64, now: Instant) {
    guard track.takesNack, index != highest + 1 else { return }
    let reception = track.reception
    guard index > highest else { return reception.pointee.nacks.arrived(index) }
    let due = now.advanced(by: configuration.reorderTolerance)
    if !reception.pointee.nacks.jumped(from: highest, to: index, due: due) {
      requestKeyFrame(of: track, now: now, isNewSource: false)
    }
    schedule(track.peer, reception.pointee.nacks.deadline)
  }

  func requestKeyFrame(of track: UpTrack, now: Instant, isNewSource: Bool) {
    track.requestKeyFrame(now, isNewSource: isNewSource)
    schedule(track.peer, track.reception.pointee.keyFrames.deadline)
  }
}

extension RTPHeader {
  /// Turns an RTX packet into the packet that it carries (RFC 4588 section 4), in place: the header moves up over the original sequence number.
  /// nil when it carries none.
  fileprivate func unwrapRetransmission(
    _ bytes: inout UnsafeMutableRawBufferPointer, ssrc: UInt32, payloadType: UInt8
  ) -> RTPHeader? {
    guard payloadLength > 2 else { return nil }
    let sequenceNumber = bytes.bytes.uint16(at: headerLength)
    let base = bytes.baseAddress!
    (base + 2).copyMemory(from: base, byteCount: headerLength)
    bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[2...])
    RTPHeader.rewrite(
      payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc, in: bytes)
    return RTPHeader(parsing: bytes.bytes)
  }
}
