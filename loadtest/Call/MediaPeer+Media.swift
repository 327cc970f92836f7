import MediaModel
import Octets
import RTP
import Transport

/// RTP and RTCP, in and out.
extension MediaPeer {
  func handle(_ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, now: Instant) {
    statistics.tally.bytesReceived += UInt64(datagram.count)
    switch DatagramKind.classify(datagram.bytes) {
    case .rtp: handleRTP(datagram, now: now)
    case .rtcp: handleRTCP(datagram, now: now)
    case .stun: handleSTUN(UnsafeRawBufferPointer(datagram), from: source, now: now)
    case .dtls: handleDTLS(UnsafeRawBufferPointer(datagram), now: now)
    case .unknown: statistics.tally.refused += 1
    }
  }

  private func handleRTP(_ datagram: UnsafeMutableRawBufferPointer, now: Instant) {
    guard let inbound, case .packet(let length) = inbound.unprotectRTP(datagram) else {
      return statistics.tally.refused += 1
    }
    let packet = UnsafeRawBufferPointer(rebasing: datagram[..<length])
    guard let header = RTPHeader(parsing: packet.bytes) else { return statistics.tally.refused += 1 }
    statistics.tally.packetsReceived += 1
    noteArrival(of: header, in: packet.bytes, now: now)
    let payload = packet.part(header.payloadRange)
    if let slot = slots[header.ssrc] {
      slot.receive(payload, sequence: header.sequenceNumber, marker: header.marker, now: now, surroundings)
      watch(slot)
    } else if let slot = repairs[header.ssrc] {
      // The original's number precedes its payload (RFC 4588 section 4); a packet without it is padding.
      guard payload.count > 2 else { return }
      statistics.tally.retransmitted += 1
      slot.receive(
        payload.part(2..<payload.count), sequence: payload.bytes.uint16(at: 0), marker: header.marker, now: now,
        surroundings)
      watch(slot)
    } else {
      statistics.tally.refused += 1
    }
  }

  private func noteArrival(of header: RTPHeader, in packet: RawSpan, now: Instant) {
    guard arrivals != nil, let extensions = HeaderExtensions(header),
      let element = extensions.element(LocalMedia.ExtensionID.transportSequence, in: packet), element.length == 2
    else { return }
    _ = arrivals?.received(packet.uint16(at: element.offset), now: Int64(clamping: now.nanoseconds / 1_000))
    lastMedia = header.ssrc
  }

  private func handleRTCP(_ datagram: UnsafeMutableRawBufferPointer, now: Instant) {
    guard let inbound, case .packet(let length) = inbound.unprotectRTCP(datagram) else {
      return statistics.tally.refused += 1
    }
    var compound = RTCPCompound(UnsafeRawBufferPointer(rebasing: datagram[..<length]))
    while let packet = compound.next() {
      switch packet {
      case .senderReport(let report): slots[report.ssrc]?.note(report, now: now)
      case .nack(let nack):
        guard let stream = streams.first(where: { $0.encoding.ssrc == nack.media }) else { continue }
        for number in nack.missing { retransmit(number, of: stream) }
      case .pictureLoss(_, let media): wantKeyFrame(media)
      case .fullIntraRequest(let request): for entry in request { wantKeyFrame(entry.ssrc) }
      case .receiverReport, .bye, .transportFeedback, .receiverRate, .other: break
      }
    }
  }

  private func wantKeyFrame(_ ssrc: UInt32) {
    statistics.tally.keyFrameRequests += 1
    streams.first { $0.encoding.ssrc == ssrc }?.wantsKeyFrame = true
  }

  /// Encrypts a packet into the output.
  func send(_ packet: UnsafeRawBufferPointer, headerLength: Int) {
    guard let outbound, let room = output.room else { return }
    room.copyMemory(from: packet.part(0..<headerLength))
    let length = outbound.protectRTP(
      room, headerLength: headerLength, payload: packet.part(headerLength..<packet.count))
    guard let length else { return }
    output.append(length)
    statistics.tally.packetsSent += 1
  }

  /// Sends a packet again in the RTX stream, with that stream's SSRC, payload type and sequence number, and the
  /// original's number before the payload (RFC 4588 section 4).
  private func retransmit(_ number: UInt16, of stream: SendingStream) {
    guard stream.track.isVideo, let (packet, headerLength) = stream.ring.packet(number), let outbound,
      let room = output.room, let header = RTPHeader(parsing: packet.bytes)
    else { return }
    room.copyMemory(from: packet.part(0..<headerLength))
    RTPHeader.rewrite(
      payloadType: LocalMedia.PayloadType.rtx, sequenceNumber: stream.rtxSequence, timestamp: header.timestamp,
      ssrc: stream.encoding.rtxSSRC, in: room)
    if stream.track.isLayered { Self.nameRepaired(header, in: room) }
    room.store(number, at: headerLength)
    stream.rtxSequence &+= 1
    let length = outbound.protectRTP(
      room, headerLength: headerLength, prefixLength: 2, payload: packet.part(headerLength..<packet.count))
    if let length { output.append(length) }
  }

  /// The RID becomes the RID of the repaired stream (RFC 8852 section 3.3). Its extensions have one-byte headers.
  private static func nameRepaired(_ header: RTPHeader, in packet: UnsafeMutableRawBufferPointer) {
    guard let element = HeaderExtensions(header)?.element(LocalMedia.ExtensionID.rid, in: packet.bytes) else { return }
    packet[element.offset - 1] = LocalMedia.ExtensionID.repairedRID << 4 | UInt8(element.length - 1)
  }

  // MARK: - RTCP

  /// Asks the server to send packets again.
  func ask(for missing: [UInt16], of slot: ReceivingSlot) {
    sendRTCP { writer in
      _ = writer.nack(sender: ownSSRC, media: slot.slot.ssrc, missing: missing.span)
    }
  }

  /// Sends sender and receiver reports, once a second.
  func report(_ now: Instant) {
    nextReport = now.advanced(by: .seconds(1))
    let ntp = NTPTimestamp(nanoseconds: now.nanoseconds)
    sendRTCP { writer in
      for stream in streams {
        writer.senderReport(
          ssrc: stream.encoding.ssrc, ntp: ntp, rtpTimestamp: stream.timestamp, packetCount: stream.packetCount,
          octetCount: stream.octetCount)
      }
      if streams.isEmpty { writer.receiverReport(ssrc: ownSSRC) }
      writer.sourceDescription(ssrc: ownSSRC, cname: Array("loadtest".utf8).span)
    }
    let blocks = receiving.compactMap { $0.reportBlock(now) }
    for start in stride(from: 0, to: blocks.count, by: 31) {
      let part = Array(blocks[start..<min(start + 31, blocks.count)])
      sendRTCP { writer in writer.receiverReport(ssrc: ownSSRC, reports: part.span) }
    }
  }

  /// Transport-wide feedback: each report is a packet of its own (RFC 5506).
  func reportArrivals(_ now: Instant) {
    nextFeedback = now.advanced(by: .milliseconds(100))
    while let outbound, let room = output.room {
      let report = UnsafeMutableRawBufferPointer(rebasing: room[..<1_000])
      let length = arrivals?.write(sender: ownSSRC, media: lastMedia, into: report) ?? 0
      guard length > 0, let sealed = outbound.protectRTCP(room, length: length) else { return }
      output.append(sealed)
    }
  }

  private var ownSSRC: UInt32 { streams.first?.encoding.ssrc ?? 1 }

  private func sendRTCP(_ write: (inout RTCPWriter) -> Void) {
    guard let outbound, let room = output.room else { return }
    var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: room[..<1_400]))
    write(&writer)
    if writer.length > 0, let length = outbound.protectRTCP(room, length: writer.length) { output.append(length) }
  }
}
