package import MediaModel

/// A worker that cannot keep up forwards a part of the video, and all audio.
extension SFU {
  /// Gives each receiver a part of the video that it wishes.
  /// - Parameter share: of its rate, 0...1.
  package func setVideoShare(_ share: Double, now: Instant) {
    guard share != videoShare else { return }
    videoShare = share
    for peer in peers where !peer.videoSlots.isEmpty {
      peer.load?.nextPass = now
      schedule(peer, now)
    }
  }

  /// Divides the peer's share among its slots when that is due.
  func divideLoad(of peer: Peer, now: Instant) {
    guard videoShare < 1 || peer.load != nil else { return }
    var division = peer.load ?? LoadDivision(phase: random.nextShare(), now: now)
    if division.nextPass <= now {
      let wishes = peer.videoWishes
      counts.pointee.visits &+= UInt64(wishes.count)
      let allotments = division.divide(wishes, of: peer.videoSlots.map { $0.source?.track }, share: videoShare)
      for (down, allotment) in zip(peer.videoSlots, allotments) {
        if allotment == .nothing, down.loadAllotment != .nothing { counts.pointee.shed &+= 1 }
        if let needed = down.setAllotment(load: allotment) { requestKeyFrame(of: needed, now: now) }
      }
      division.nextPass = now.advanced(by: LoadDivision.interval)
    }
    peer.load = videoShare < 1 ? division : nil
    peer.schedule(peer.load?.nextPass)
  }
}
