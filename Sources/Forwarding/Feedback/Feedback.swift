import MediaModel
import Octets
import RTP
import Transport

/// RTCP between the SFU and its peers. Their reports on the streams that they get go to the estimates of their rates; packets that they miss are sent again, and
/// requests for key frames go to the senders. `Feedback+Sending` reports to them.
final class Feedback {
  let output: SFUOutput
  private let relays: RelaySender
  /// Buffer in which packets are assembled.
  let scratch: UnsafeMutableRawBufferPointer

  init(relays: RelaySender, output: SFUOutput) {
    self.relays = relays
    self.output = output
    scratch = .allocate(byteCount: 1200, alignment: 8)
  }

  deinit { scratch.deallocate() }

  /// A decrypted compound of the peer: reports, and requests for the streams that it receives.
  func handle(_ bytes: UnsafeRawBufferPointer, of peer: Peer, now: Instant, into outbox: Outbox) {
    var compound = RTCPCompound(bytes)
    while let packet = compound.next() { handle(packet, of: peer, now: now, into: outbox) }
    if compound.isBroken { output.drop(.malformed) }
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
      output.counts.pointee.feedbackReceived &+= 1
      downlink.pointee.received(rate: rate, now: now)
      output.schedule(peer, downlink.pointee.nextPass)
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
    relays.sendReport(of: stream.encoding)
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
    output.counts.pointee.feedbackReceived &+= 1
    if !downlink.pointee.received(report, now: now) { output.drop(.feedback) }
    output.schedule(peer, downlink.pointee.nextPass)
  }

  private func handle(_ nack: NACK, of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let down = peer.downTrack(nack.media) else { return }
    let counts = output.counts
    for sequenceNumber in nack.missing {
      counts.pointee.nacksReceived &+= 1
      let before = outbox.state.pointee.bytes
      guard peer.retransmissions.take(now: now.nanoseconds) == nil, permitsCopy(of: sequenceNumber, in: down, now: now),
        down.retransmit(sequenceNumber, now: now, into: outbox)
      else {
        output.drop(.notRetransmitted)
        continue
      }
      let length = Int(truncatingIfNeeded: outbox.state.pointee.bytes &- before)
      down.sentCopy(length)
      peer.call.load.meter.pointee.addCopy(length, now: now)
      counts.pointee.retransmitted &+= 1
    }
    output.scheduleRelease(to: peer)
  }

  private func permitsCopy(of number: UInt16, in down: DownTrack, now: Instant) -> Bool {
    guard let downlink = down.transport.downlink, downlink.pointee.boundsCopies else {
      return down.permitsCopy(of: number, now: now)
    }
    return downlink.pointee.permitsCopy(of: number, ssrc: down.description.ssrc, now: now)
  }

  private func wantKeyFrame(_ media: UInt32, of peer: Peer, now: Instant) {
    guard let encoding = peer.downTrack(media)?.encoding else { return }
    output.counts.pointee.keyFrameRequestsReceived &+= 1
    output.requestKeyFrame(of: encoding, now: now)
  }

  /// Reports the peer's quality to the control plane if its level changed. Called with each report to the peer.
  func judgeQuality(of peer: Peer, now: Instant) {
    // Payloads without retransmissions: what the peer was meant to get.
    for down in peer.downTracks { peer.octetsSent &+= down.takeOctets() }
    output.report(peer.quality.judge(roundTrip: peer.roundTrip, octets: peer.octetsSent, now: now), of: peer)
  }
}
