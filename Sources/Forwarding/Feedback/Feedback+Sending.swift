import MediaModel
import RTP
import Transport

/// Reports and requests to the peers, when they are due.
extension Feedback {
  /// NACKs, PLIs and transport-wide feedback for the peer's streams.
  func sendDue(to peer: Peer, now: Instant, into outbox: Outbox) {
    sendArrivals(to: peer, now: now, into: outbox)
    // The sender's own report may claim any time.
    let roundTrip = min(peer.roundTrip, .milliseconds(500))
    for encoding in peer.encodings {
      guard let ssrc = encoding.ssrc else { continue }
      var writer = RTCPWriter(scratch)
      let reception = encoding.reception
      if let due = reception.pointee.nacks.deadline, due <= now {
        var missing = InlineArray<256, UInt16>(repeating: 0)
        let span = missing.mutableSpan
        let count = reception.pointee.nacks.takeDue(now, roundTrip: roundTrip, into: span)
        if writer.nack(sender: peer.reportSSRC, media: ssrc, missing: missing.span.extracting(0..<count)) {
          output.counts.pointee.nacksSent &+= UInt64(count)
        }
        // A receiver cannot continue past a hole that stays, but it can at the next key frame.
        if let lost = reception.pointee.nacks.takeGivenUp(), lost > reception.pointee.lastKeyFrame,
          !encoding.slots.isEmpty || !encoding.relays.isEmpty
        {
          encoding.requestKeyFrame(now)
        }
      }
      let isAwaited = encoding.isAwaited && !encoding.track.isSilent
      if reception.pointee.keyFrames.takeDue(now, isAwaited: isAwaited, roundTrip: roundTrip) {
        if encoding.track.keyFrameFeedback == .fullIntraRequest {
          writer.fullIntraRequest(
            sender: peer.reportSSRC, media: ssrc, sequence: reception.pointee.keyFrames.sequence)
        } else {
          writer.pictureLoss(sender: peer.reportSSRC, media: ssrc)
        }
        output.counts.pointee.keyFrameRequestsSent &+= 1
        encoding.noteRequest(now)
      }
      send(writer, to: peer, into: outbox)
      peer.schedule(reception.pointee.nacks.deadline)
      peer.schedule(reception.pointee.keyFrames.deadline)
    }
  }

  /// Transport-wide feedback. Each report is a separate packet (RFC 5506).
  private func sendArrivals(to peer: Peer, now: Instant, into outbox: Outbox) {
    guard let arrivals = peer.arrivals else { return }
    if arrivals.pointee.isDue(now) {
      for _ in 0..<ArrivalReports.mostAtOnce {
        let length = arrivals.pointee.write(sender: peer.reportSSRC, into: scratch)
        guard length > 0 else { break }
        peer.transport.sendRTCP(UnsafeRawBufferPointer(rebasing: scratch[..<length]), in: outbox)
        output.counts.pointee.arrivalReportsSent &+= 1
      }
      arrivals.pointee.endReports(now: now)
    }
    peer.schedule(arrivals.pointee.deadline)
  }

  private func send(_ writer: RTCPWriter, to peer: Peer, into outbox: Outbox) {
    guard writer.length > 0 else { return }
    peer.transport.sendRTCP(UnsafeRawBufferPointer(rebasing: scratch[..<writer.length]), in: outbox)
  }

  /// How the peer's streams arrive here, then when and how much of each slot was sent (RFC 3550 section 6.4).
  func sendReports(to peer: Peer, now: Instant, into outbox: Outbox) {
    var writer = RTCPWriter(scratch)
    var blocks = InlineArray<16, ReportBlock>(repeating: ReportBlock.none)
    var count = 0
    let encodings = peer.encodings
    var looked = 0
    while looked < encodings.count, count < blocks.count {
      let encoding = encodings[(peer.reportedFrom + looked) % encodings.count]
      looked += 1
      guard let ssrc = encoding.ssrc,
        let block = encoding.reception.pointee.statistics.report(ssrc: ssrc, now: now)
      else { continue }
      blocks[count] = block
      count += 1
    }
    // The streams that had no room come first in the next report (RFC 3550 section 6.1: round-robin).
    if looked > 0 { peer.reportedFrom = (peer.reportedFrom + looked) % encodings.count }
    writer.receiverReport(ssrc: peer.reportSSRC, reports: blocks.span.extracting(0..<count))
    writer.sourceDescription(ssrc: peer.reportSSRC, cname: Self.cname.span)
    for down in peer.downTracks {
      // A report and its CNAME are 48 bytes.
      if writer.length + 48 > scratch.count {
        send(writer, to: peer, into: outbox)
        writer = RTCPWriter(scratch)
      }
      if down.writeSenderReport(now, into: &writer), down.description.ssrc != peer.reportSSRC {
        writer.sourceDescription(ssrc: down.description.ssrc, cname: Self.cname.span)
      }
    }
    send(writer, to: peer, into: outbox)
  }

  /// "conclave": everything that we send has one clock, ours.
  private static let cname: InlineArray<8, UInt8> = [0x63, 0x6f, 0x6e, 0x63, 0x6c, 0x61, 0x76, 0x65]
}

extension Peer {
  /// The SSRC from which reports to the peer are sent: that of its first slot.
  fileprivate var reportSSRC: UInt32 { downTracks.first?.description.ssrc ?? 1 }
}

extension ReportBlock {
  fileprivate static let none = ReportBlock(
    ssrc: 0, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0, lastSenderReport: 0,
    delaySinceLastSenderReport: 0)
}
