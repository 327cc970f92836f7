import Contract
import MediaModel

/// Media that this device sends and wishes to receive.
extension JoinedCall {
  /// Sends an SDP offer, the first or a later one, and returns the answer.
  public func offer(_ sdp: String, tracks: [OfferedTrack]) async throws(SignalingError) -> AnsweredOffer {
    try await client.offer(callID, sdp, tracks)
  }

  /// Mutes or unmutes one of this device's tracks. `cipher` encrypts nothing of a muted track (`FrameCipherError.muted`), even if the server cannot be told,
  /// nor of the same source after a rejoin. The server informs everybody, and forwards nothing of the track.
  public func setMuted(_ muted: Bool, track: String) async throws(SignalingError) {
    guard let track = TrackID(track) else { throw .invalidIdentifier }
    try await client.setMuted(muted, track, in: callID)
  }

  /// Puts the call on hold, or resumes it. While on hold, `cipher` encrypts no frames, and nothing is forwarded to or from this device.
  public func hold(_ held: Bool) async throws(SignalingError) {
    try await client.hold(held, callID)
  }

  /// This device's preferences for a video track.
  public struct VideoWish: Sendable, Hashable {
    /// The track: `participant.n`.
    public var track: String
    /// In pixels.
    public var maxHeight: Int?
    /// Higher ones come first.
    public var priority: Int?
    /// Whether it is paused.
    public var isPaused: Bool?

    /// A nil value stays unchanged.
    public init(track: String, maxHeight: Int? = nil, priority: Int? = nil, isPaused: Bool? = nil) {
      self.track = track
      self.maxHeight = maxHeight
      self.priority = priority
      self.isPaused = isPaused
    }
  }

  /// Sets the maximum number of videos, and the preferences for each; a nil value stays unchanged.
  public func receive(lastN: Int? = nil, videos: [VideoWish]? = nil) async throws(SignalingError) {
    var wishes: [Receive.Video] = []
    for wish in videos ?? [] {
      guard let track = TrackID(wish.track) else { throw .invalidIdentifier }
      wishes.append(
        Receive.Video(track: track, maxHeight: wish.maxHeight, priority: wish.priority, paused: wish.isPaused))
    }
    try await client.perform(.inCall(callID, .receive(Receive(lastN: lastN, videos: videos == nil ? nil : wishes))))
  }

  /// Sets the participants whose sound this device does not want: the complete list, at most 64. The server sends none of it, gives the slots to others, and tells
  /// nobody. The numbers are those of `CallSnapshot`; a participant that joins again has a different one.
  public func mute(_ participants: [UInt32]) async throws(SignalingError) {
    try await client.perform(.inCall(callID, .receive(Receive(muted: participants))))
  }

  /// Reports that the PeerConnection has lost its path (`failed`, or `disconnected` for seconds): `CallUpdate.restartMedia` asks for an ICE restart, and if
  /// that does not help, the device rejoins automatically.
  public func mediaFailed() async { await client.mediaFailed(callID) }

  /// Measurements of the media, which the server adds up without identity. Times in milliseconds, loss as a fraction of
  /// 1.
  public struct Stats: Sendable, Hashable {
    /// Round-trip time.
    public var rtt: Double?
    /// Share of the packets that were lost.
    public var loss: Double?
    /// Jitter.
    public var jitter: Double?
    /// Freezes since the last report.
    public var freezes: Double?
    /// From joining to the first frame.
    public var firstFrame: Double?

    /// A value that was not measured is nil.
    public init(
      rtt: Double? = nil, loss: Double? = nil, jitter: Double? = nil, freezes: Double? = nil, firstFrame: Double? = nil
    ) {
      self.rtt = rtt
      self.loss = loss
      self.jitter = jitter
      self.freezes = freezes
      self.firstFrame = firstFrame
    }
  }

  /// Reports measurements.
  public func report(_ stats: Stats) async throws(SignalingError) {
    let numbers = QualityNumbers(
      rtt: stats.rtt, loss: stats.loss, jitter: stats.jitter, freezes: stats.freezes, firstFrameMs: stats.firstFrame)
    try await client.perform(.inCall(callID, .stats(numbers)))
  }
}
