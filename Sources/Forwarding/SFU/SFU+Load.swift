package import MediaModel
import Octets

/// A worker that cannot keep up forwards a part of the video, and all audio. The most expensive calls are reduced
/// first.
extension SFU {
  /// Interval between two divisions among the calls.
  private static let sharesInterval = Duration.milliseconds(500)
  /// A call's share that differs by less than this is kept, so that pictures do not come and go with the measurements.
  private static let leastChange = 0.05

  /// Forwards a part of the video that receivers wish, and all of it to receivers of inexpensive calls. Call it again while the share is below 1, because the calls'
  /// costs change.
  /// - Parameter share: of the rate of all calls together, 0...1.
  package func setVideoShare(_ share: Double, now: Instant) {
    guard share != videoShare || share < 1 && nextShares <= now else { return }
    videoShare = share
    nextShares = now.advanced(by: Self.sharesInterval)
    let needs = calls.values.sorted { $0.number < $1.number }.map { (call: $0, need: $0.measureNeed(now: now)) }
    let shares = FairShares(of: needs.map(\.need), share: share)
    counts.pointee.visits &+= UInt64(needs.count)
    for (call, need) in needs { set(shares[need], of: call, now: now) }
  }

  private func set(_ share: Double, of call: ForwardedCall, now: Instant) {
    let isEnd = share == 0 || share == 1
    guard share != call.videoShare, isEnd || abs(share - call.videoShare) >= Self.leastChange else { return }
    call.videoShare = share
    for peer in call.allPeers where !peer.videoSlots.isEmpty {
      peer.load?.nextPass = now
      output.schedule(peer, now)
    }
  }

  /// Divides the peer's share among its slots when that is due.
  func divideLoad(of peer: Peer, now: Instant) {
    let share = peer.call.videoShare
    guard share < 1 || peer.load != nil else { return }
    var division = peer.load ?? LoadDivision(phase: random.uniform(), now: now)
    if division.nextPass <= now {
      let wishes = peer.videoWishes
      counts.pointee.visits &+= UInt64(wishes.count)
      let allotments = division.divide(wishes, of: peer.videoSlots.map { $0.source?.track }, share: share)
      for (down, allotment) in zip(peer.videoSlots, allotments) {
        if allotment == .nothing, down.loadAllotment != .nothing { counts.pointee.shed &+= 1 }
        if let needed = down.setAllotment(load: allotment) { output.requestKeyFrame(of: needed, now: now) }
      }
      division.nextPass = now.advanced(by: LoadDivision.interval)
    }
    peer.load = share < 1 ? division : nil
    peer.schedule(peer.load?.nextPass)
  }
}

extension ForwardedCall {
  /// From this share on, the wished rate can be derived from what is sent.
  private static let measurableShare = 0.2

  /// The cost of the call with all its video.
  fileprivate func measureNeed(now: Instant) -> FairShares.Need {
    let rates = load.meter.pointee.rates(now: now)
    let video =
      videoShare >= 1
      ? Double(rates.video)
      : videoShare >= Self.measurableShare ? Double(rates.video) / videoShare : Double(rates.offered)
    // Layers follow a share within half a second or so; the need is not lower meanwhile.
    videoNeed = videoShare >= 1 ? video : max(video, videoNeed * 0.7)
    return FairShares.Need(fixed: Double(rates.fixed), video: videoNeed)
  }
}
