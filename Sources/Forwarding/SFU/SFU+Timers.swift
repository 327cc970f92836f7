package import MediaModel
import RTP
import Transport

extension SFU {
  /// Does one pass of the work that is due at `now`: speakers and slots of one call, or NACKs, key-frame requests, reports, DTLS repetitions, checks
  /// and consent of a bounded number of peers. The rest is due immediately: see `nextTimeout`.
  /// - Returns: the kind of the pass; nil if nothing was due.
  @discardableResult
  package func handleTimeout(now: Instant, into outbox: Outbox) -> Pass? {
    let before = outbox.state.pointee
    defer { count(outbox, since: before) }
    if let due = histories.deadline, due <= now {
      counts.pointee.visits &+= UInt64(histories.sweep(now))
      return .timers
    }
    if let call = output.takeDueCall(now) {
      handleTimeout(of: call, now: now, into: outbox)
      return .slots
    }
    var pass: Pass?
    for _ in 0..<SlotFiller.peersPerPass {
      guard let peer = output.takeDuePeer(now) else { break }
      counts.pointee.visits &+= 1
      let hasReported = handleTimeout(of: peer, now: now, into: outbox)
      pass = hasReported || pass == .reports ? .reports : .timers
      output.setDeadline(of: peer)
    }
    return pass
  }

  private func handleTimeout(of call: ForwardedCall, now: Instant, into outbox: Outbox) {
    if let due = call.speakers.deadline, due <= now {
      slots.updateSpeakers(of: call, now: now)
    } else if let due = call.allocationDue, due <= now {
      slots.enqueueAffected(in: call, now: now)
    } else {
      fillSlots(in: call, now: now, into: outbox)
    }
  }

  /// Returns whether the peer was sent reports.
  private func handleTimeout(of peer: Peer, now: Instant, into outbox: Outbox) -> Bool {
    var hasReported = false
    peer.clearDeadline()
    if let home = peer.home {
      relays.handleTimeout(of: peer, on: home, now: now)
      return false
    }
    handleSessionTimeout(of: peer, now: now, into: outbox)
    peer.schedule(peer.association?.timeout)
    paths.sendChecks(of: peer, now: now, into: outbox)
    paths.checkConsent(of: peer, now: now)
    if let need = peer.need.takeDue(now) { output.events.append(.need(peer.id, audio: need.audio, video: need.video)) }
    peer.schedule(peer.need.deadline)
    for track in peer.upTracks where track.isLayered {
      if let due = track.demand.deadline, due <= now { updateDemand(of: track, now: now) }
      peer.schedule(track.demand.deadline)
    }
    if peer.transport.isOpen {
      feedback.sendDue(to: peer, now: now, into: outbox)
      divideRate(of: peer, now: now, into: outbox)
      release(to: peer, now: now, into: outbox)
      divideLoad(of: peer, now: now)
      if let due = peer.nextReport, due <= now {
        feedback.sendReports(to: peer, now: now, into: outbox)
        feedback.judgeQuality(of: peer, now: now)
        slots.judgePictures(of: peer)
        if let downlink = peer.transport.downlink { counts.pointee.estimates.add(downlink.pointee.rate) }
        peer.nextReport = now.advanced(by: configuration.reportInterval)
        hasReported = true
      }
      peer.schedule(peer.nextReport)
    }
    return hasReported
  }
}

/// The purpose of one stretch of a worker's time, other than packets.
package enum Pass: Int, CaseIterable, Sendable {
  /// Commands of the control plane, and the slots that they fill.
  case commands
  /// Speakers and slots of one call.
  case slots
  /// Peers, some of which were sent reports.
  case reports
  /// Peers with other timers: NACKs, key-frame requests, DTLS, checks, consent.
  case timers
  /// A DTLS datagram, or the result of a step that `HandshakeRunner` ran.
  case handshakes
}
