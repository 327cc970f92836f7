import CongestionControl
import MediaModel

/// The estimate of a receiver's rate determines its layers.
extension SFU {
  /// Divides the peer's rate among its slots and continues its probe, when that is due.
  func divideRate(of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let downlink = peer.transport.downlink, let due = downlink.pointee.nextPass else { return }
    if due <= now {
      downlink.pointee.nextPass = now.advanced(by: RateDivision.relaxedInterval)
      let filler = peer.fillerSlot
      divide(downlink, of: peer, hasFiller: filler != nil, now: now)
      if let filler { probe(downlink, over: filler, now: now, into: outbox) }
    }
    peer.schedule(downlink.pointee.nextPass)
  }

  /// - Parameter hasFiller: a slot can carry probes. Otherwise the next layer is tried.
  private func divide(_ downlink: UnsafeMutablePointer<Downlink>, of peer: Peer, hasFiller: Bool, now: Instant) {
    // A running probe is checked more often than the division.
    guard downlink.pointee.probe == nil else { return }
    let wasLimited = downlink.pointee.division.isLimited
    downlink.pointee.estimator.tick(now: now.microseconds)
    // A receiver's own estimate covers video.
    let audio = downlink.pointee.reportsRateAlone ? 0 : peer.audioRate
    let fixed = audio + downlink.pointee.measureCopies(now: now)
    let sent = peer.videoSlots.reduce(fixed) { $0 + $1.sentRate }
    downlink.pointee.division.observe(&downlink.pointee.estimator, sent: sent, now: now)
    downlink.pointee.setPacing(downlink.pointee.division.isLimited, now: now)
    guard downlink.pointee.division.isLimited else { return }
    let wishes = peer.videoWishes
    counts.pointee.visits &+= UInt64(wishes.count)
    let allotments = downlink.pointee.division.divide(
      wishes, by: &downlink.pointee.estimator, fixed: fixed, now: now)
    allot(allotments, to: peer, now: now)
    downlink.pointee.nextPass = now.advanced(by: RateDivision.interval)
    guard wasLimited, let order = downlink.pointee.estimator.probe(now: now.microseconds) else { return }
    guard hasFiller else { return downlink.pointee.estimator.tryStep(now: now.microseconds) }
    counts.pointee.probes &+= 1
    downlink.pointee.probe = RunningProbe(order, now: now)
  }

  private func allot(_ allotments: [Allotment], to peer: Peer, now: Instant) {
    for (down, allotment) in zip(peer.videoSlots, allotments) {
      guard let source = down.source, !source.isSilent else { continue }
      if allotment == .nothing, down.rateAllotment != .nothing { counts.pointee.withheld &+= 1 }
      if let needed = down.setAllotment(rate: allotment) { output.requestKeyFrame(of: needed, now: now) }
    }
  }

  /// Sends the packets that have waited and for which the peer's path now has room.
  func release(to peer: Peer, now: Instant, into outbox: Outbox) {
    guard let downlink = peer.transport.downlink, let due = downlink.pointee.nextRelease else { return }
    if due <= now {
      while let packet = downlink.pointee.release(now: now) {
        let slot = Int(packet.slot)
        guard slot < peer.videoSlots.count else { continue }
        let down = peer.videoSlots[slot]
        switch down.release(packet, now: now, into: outbox) {
        case .sent: if packet.kind == .video { counts.pointee.forwarded &+= 1 }
        case .dropped(let reason):
          drop(reason)
          guard reason == .jumped, let encoding = down.encoding else { continue }
          down.noteAwaiting()
          output.requestKeyFrame(of: encoding, now: now)
        case .waits, .notOpen: break
        }
      }
    }
    peer.schedule(downlink.pointee.nextRelease)
  }

  /// Sends the packets of the probe that are due.
  private func probe(
    _ downlink: UnsafeMutablePointer<Downlink>, over slot: DownTrack, now: Instant, into outbox: Outbox
  ) {
    while let probe = downlink.pointee.probe {
      guard !probe.isOver(now) else {
        downlink.pointee.probe = nil
        downlink.pointee.nextPass = now.advanced(by: RateDivision.interval)
        return
      }
      guard probe.isDue(now) else {
        downlink.pointee.nextPass = now.advanced(by: RunningProbe.interval)
        return
      }
      guard slot.sendFiller(back: probe.packets % 8, now: now, into: outbox) else {
        downlink.pointee.probe = nil
        return
      }
      counts.pointee.fillers &+= 1
    }
  }
}

extension Peer {
  /// The allocators' view of the slots for video.
  var videoWishes: [StreamWish] {
    videoSlots.map { down in down.wish(priority: down.source.flatMap { wishes.videos[$0.track]?.priority } ?? 0) }
  }

  /// The rate of the microphones that the peer hears, in bit/s.
  fileprivate var audioRate: Int { audioSlots.reduce(0) { $0 + $1.sentRate } }

  /// The slot on which probes are sent: the one that sends most; nil if no slot has RTX.
  fileprivate var fillerSlot: DownTrack? {
    var best: DownTrack?
    for down in videoSlots where down.takesFillers {
      if best.map({ down.sentRate > $0.sentRate }) ?? true { best = down }
    }
    return best
  }
}
