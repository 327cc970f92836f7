import MediaModel
import RTP
import Transport
import Octets

extension SFU {
  /// An SRTCP packet of a known peer: reports, and requests for the streams that it receives.
  func handleRTCP(
    _ datagram: UnsafeMutableRawBufferPointer, age: UInt64, on pair: CandidatePair, now: Instant, into outbox: Outbox
  ) {
    let peer = pair.peer
    guard let inbound = peer.inbound else { return drop(.notConnected) }
    let length: Int
    switch inbound.unprotectRTCP(datagram) {
    case .packet(let plain): length = plain
    case .dropped(let reason): return drop(reason)
    }
    heard(pair, now: now, into: outbox)
    // Round trips and losses from long ago would be taken for current ones, and every report is repeated anyway.
    guard age <= longestAge else { return drop(.stale) }
    // A compound has room for 100 requests for key frames, or for 5,000 for packets.
    guard peer.controlled.takes(length, now: now) else { return dropFlood(now: now) }
    var compound = RTCPCompound(UnsafeRawBufferPointer(datagram.part(0..<length)))
    while let packet = compound.next() { handle(packet, of: peer, now: now, into: outbox) }
    if compound.isBroken { drop(.malformed) }
  }

  private func handle(_ packet: RTCPPacket, of peer: Peer, now: Instant, into outbox: Outbox) {
    switch packet {
    case .senderReport(let report):
      handle(report, of: peer, now: now)
      for block in report.reports { handle(block, of: peer, now: now) }
    case .receiverReport(_, let blocks):
      for block in blocks { handle(block, of: peer, now: now) }
    case .nack(let nack): handle(nack, of: peer, now: now, into: outbox)
    case .pictureLoss(_, let media): wantKeyFrame(media, of: peer, now: now)
    case .fullIntraRequest(let request):
      for entry in request { wantKeyFrame(entry.ssrc, of: peer, now: now) }
    case .transportFeedback(let report): handle(report, of: peer, now: now)
    case .receiverRate(let rate):
      guard let downlink = peer.transport.downlink else { return }
      counts.pointee.feedbackReceived &+= 1
      downlink.pointee.received(rate: rate, now: now)
      schedule(peer, downlink.pointee.nextPass)
    // A track ends by signaling; after BYE a stream may continue under another SSRC.
    case .bye, .other: break
    }
  }

  private func handle(_ report: SenderReport, of peer: Peer, now: Instant) {
    guard let stream = peer.streams.first(where: { $0.ssrc == report.ssrc }), !stream.isRetransmission else { return }
    stream.encoding.reception.pointee.statistics.received(
      (ntp: report.ntp, rtp: report.rtpTimestamp, at: now))
    let offset = now.nanoseconds &- report.ntp.nanoseconds
    // The peer set its clock: 2 s is more than any delay that matters here.
    let isClockKnown = peer.clockOffset.map { Int64(bitPattern: offset &- $0).magnitude < 2_000_000_000 } ?? false
    if !isClockKnown { peer.clockOffset = offset }
    for target in stream.encoding.relays { relayReport(of: stream.encoding, to: target.end) }
  }

  private func handle(_ block: ReportBlock, of peer: Peer, now: Instant) {
    guard let down = peer.downTrack(block.ssrc) else { return }
    if let time = down.received(block, now: now) { peer.roundTrip = time }
    if down.description.kind == .video, let downlink = peer.transport.downlink {
      downlink.pointee.received(lost: Double(block.fractionLost) / 256, now: now)
    }
    // In range: 32 bits and 30.
    let jitter = UInt64(block.jitter) * 1_000_000_000 / UInt64(max(1, down.slot.pointee.source.clockRate))
    peer.quality.reported(
      fractionLost: block.fractionLost, of: down.takePackets(), jitter: .nanoseconds(Int64(clamping: jitter)))
  }

  private func handle(_ report: TransportFeedback, of peer: Peer, now: Instant) {
    guard let downlink = peer.transport.downlink else { return }
    counts.pointee.feedbackReceived &+= 1
    if !downlink.pointee.received(report, now: now) { drop(.feedback) }
    schedule(peer, downlink.pointee.nextPass)
  }

  private func handle(_ nack: NACK, of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let down = peer.downTrack(nack.media) else { return }
    for sequenceNumber in nack.missing {
      counts.pointee.nacksReceived &+= 1
      let before = outbox.state.pointee.bytes
      guard peer.retransmissions.take(now: now.nanoseconds) == nil, permitsCopy(of: sequenceNumber, in: down, now: now),
        down.retransmit(sequenceNumber, now: now, into: outbox)
      else {
        drop(.notRetransmitted)
        continue
      }
      let length = Int(truncatingIfNeeded: outbox.state.pointee.bytes &- before)
      down.sentCopy(length)
      peer.call.load.meter.pointee.addCopy(length, now: now)
      counts.pointee.retransmitted &+= 1
    }
    scheduleRelease(to: peer)
  }

  private func permitsCopy(of number: UInt16, in down: DownTrack, now: Instant) -> Bool {
    guard let downlink = down.transport.downlink, downlink.pointee.boundsCopies else {
      return down.permitsCopy(of: number, now: now)
    }
    return downlink.pointee.permitsCopy(of: number, ssrc: down.description.ssrc, now: now)
  }

  private func wantKeyFrame(_ media: UInt32, of peer: Peer, now: Instant) {
    guard let encoding = peer.downTrack(media)?.encoding else { return }
    counts.pointee.keyFrameRequestsReceived &+= 1
    requestKeyFrame(of: encoding, now: now)
  }
}

extension SFU {
  /// Reports the peer's quality if its level changed. Called with each report to it.
  func judgeQuality(of peer: Peer, now: Instant) {
    // Payloads without retransmissions: what the peer was meant to get.
    for down in peer.downTracks { peer.octetsSent &+= down.takeOctets() }
    tell(peer.quality.judge(roundTrip: peer.roundTrip, octets: peer.octetsSent, now: now), of: peer)
  }

  func tell(_ quality: (level: Int, bitrate: Int)?, of peer: Peer) {
    guard let quality else { return }
    events.append(.quality(peer.id, level: quality.level, bitrate: quality.bitrate))
  }
}
