package import MediaModel
import Recording

/// The reels of all recorded participants: packets come in, and records of segments go out. Time and bytes are arguments.
///
/// Recording never hurts a call: memory is bounded, and what does not fit is missing in the reel, with its reason. `tick` must be called every `tickTime` while there are peers.
package final class ReelTable {
  package struct Configuration: Sendable {
    /// A camera is stored in at most this height, in pixels.
    package var cameraHeight = 720
    /// A sender is asked to encode a layer of at least this height for the recording, and no higher one.
    package var cameraMinimum = 360

    package init() {}
  }

  /// Bytes that are handed out and not written, beyond which video goes first.
  package enum Limits {
    package static let reel = 8 << 20
    package static let all = 128 << 20
  }

  package static let tickTime = Duration.milliseconds(50)
  /// Video of a worker is wished again this long after the worker has time for it.
  private static let shedTime = Duration.seconds(5)
  /// How long losses of a ring explain what is missing.
  private static let lateTime = Duration.seconds(2)

  private let configuration: Configuration
  private let output = ReelSink()
  private var peers: [PeerID: ReelPeer] = [:]
  private var names: [ReelName: PeerID] = [:]
  private var shedding: [WorkerAddress: Instant?] = [:]
  private var lateUntil: [WorkerAddress: Instant] = [:]
  private var wishes: [ReelWish] = []

  package init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

  package var counts: ReelCounts { output.counts }
  /// Bytes that are handed out and not written.
  package var backlog: Int { output.backlog }
  package var isEmpty: Bool { peers.isEmpty }

  /// Takes the requests to the store, in order.
  package func takeOutputs() -> [ReelOutput] { output.take() }

  package func takeWishes() -> [ReelWish] {
    defer { wishes = [] }
    return wishes
  }

  /// - Parameter offset: microseconds since 1970 when the monotonic clock was 0. It changes when the clock is set.
  package func setWallClock(_ offset: Int64) {
    // Two clocks that are read one after the other differ a little each time.
    if (offset - output.wallOffset).magnitude > Self.wallJitter { output.wallOffset = offset }
  }

  /// In microseconds.
  private static let wallJitter: UInt64 = 5_000

  // MARK: what the calls say

  /// Which frames of a participant may be stored from now on.
  /// - Parameters:
  ///   - configuration: of the peer, with its tracks.
  ///   - worker: the one that has it.
  package func keep(
    _ kept: RecordedPeer, _ configuration: PeerConfiguration, on worker: WorkerAddress, now: Instant
  ) {
    let known = peers[kept.peer]
    let peer = known ?? ReelPeer(kept, on: worker, self.configuration, output, now: now)
    if known == nil {
      peers[kept.peer] = peer
      names[peer.reel.name] = kept.peer
      peer.describe(configuration, now: now)
    }
    peer.keep(kept, now: now)
  }

  /// The tracks of a peer changed. Ignored for one that is not recorded.
  package func describe(_ configuration: PeerConfiguration, now: Instant) {
    peers[configuration.peer]?.describe(configuration, now: now)
  }

  package func mute(_ peer: PeerID, _ track: TrackID, _ isMuted: Bool, now: Instant) {
    peers[peer]?.mute(track, isMuted, now: now)
  }

  package func hold(_ peer: PeerID, _ isHeld: Bool, now: Instant) { peers[peer]?.hold(isHeld, now: now) }

  package func removeTrack(_ peer: PeerID, _ track: TrackID, now: Instant) {
    peers[peer]?.removeTrack(track, now: now)
  }

  /// The stay is over, or the recording.
  package func end(_ id: PeerID, now: Instant) {
    guard let peer = peers.removeValue(forKey: id) else { return }
    peer.endWishes(into: &wishes)
    peer.end(now: now)
    names[peer.reel.name] = nil
  }

  /// Deletes the peer's stored reel: the next segment is the first.
  package func erase(_ id: PeerID) {
    guard let peer = peers[id] else { return }
    peer.erase()
    output.add(.erase(peer.reel.name))
  }

  /// Ends the segments, because this process ends. The calls go on.
  package func close(now: Instant) {
    for peer in peers.values { peer.reel.close(.continued, now: now) }
  }

  // MARK: what the workers say

  /// A packet that arrived for the first time, itself or by RTX.
  /// - Parameters:
  ///   - packet: header and payload.
  ///   - index: its unwrapped sequence number.
  ///   - restarts: rises when the sender continues under another SSRC, and `index` starts again.
  ///   - rank: the layer's index, 0 lowest.
  /// - Returns: false for a peer that is not recorded: its worker is told that nothing is wanted.
  @discardableResult
  package func receive(
    _ packet: RawSpan, index: UInt64, restarts: UInt32, of track: TrackID, rank: UInt8, peer id: PeerID,
    from worker: WorkerAddress, now: Instant
  ) -> Bool {
    guard let peer = peers[id] else { return false }
    peer.receive(
      packet, index: index, restarts: restarts, of: track, rank: rank, reason: reason(worker, now), now: now)
    return true
  }

  /// A sender's report.
  /// - Parameters:
  ///   - timestamp: RTP's.
  ///   - instant: the same instant on the monotonic clock, by which all reels agree.
  package func report(
    _ timestamp: UInt32, at instant: Instant, of track: TrackID, rank: UInt8, peer id: PeerID, now: Instant
  ) {
    peers[id]?.report(timestamp, at: instant, of: track, rank: rank, now: now)
  }

  /// Packets of this worker were lost on their way here.
  package func lost(from worker: WorkerAddress, now: Instant) {
    lateUntil[worker] = now.advanced(by: Self.lateTime)
  }

  /// - Parameter share: of the video for which the worker has time, 0...1.
  package func setVideoShare(_ share: Double, of worker: WorkerAddress, now: Instant) {
    if share < 1 {
      shedding[worker] = .some(nil)
    } else if case .some(nil) = shedding[worker] {
      shedding[worker] = now.advanced(by: Self.shedTime)
    }
  }

  private func isShed(_ worker: WorkerAddress, _ now: Instant) -> Bool {
    switch shedding[worker] {
    case nil: false
    case .some(nil): true
    case .some(let until?): until > now
    }
  }

  private func reason(_ worker: WorkerAddress, _ now: Instant) -> GapReason {
    lateUntil[worker].map { $0 > now } == true ? .serverLate : .network
  }

  // MARK: what the store says

  /// Bytes of `.write` are on the disk, or lost.
  package func written(_ count: Int, of name: ReelName) {
    output.backlog = max(0, output.backlog - count)
    guard let id = names[name], let reel = peers[id]?.reel else { return }
    reel.backlog = max(0, reel.backlog - count)
  }

  // MARK: time

  package func tick(now: Instant) {
    let waiting = peers.values.count { $0.reel.backlog > 0 }
    output.fairShare = output.backlog / max(1, waiting)
    for peer in peers.values {
      peer.tick(
        now: now, isShed: isShed(peer.worker, now), reason: reason(peer.worker, now), into: &wishes)
    }
  }
}
