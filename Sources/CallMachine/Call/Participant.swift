import CallMessages
import Contract
import MediaModel

/// A device in a call, from its join until it goes.
struct Participant {
  enum SignalingState {
    case up
    case gone(since: Timestamp)
  }

  enum MediaState {
    /// Not since joining.
    case never
    case up(since: Timestamp)
    /// Last heard at that time.
    case gone(since: Timestamp)
  }

  let number: ParticipantNumber
  let device: Device
  let joinId: Base64Bytes
  let peer: PeerID
  let joinedAt: Timestamp
  var signaling = SignalingState.up
  var media = MediaState.never
  /// Nothing is forwarded to or from it.
  var isHeld = false
  /// The turn of the device's last request to speak here (`BriefedRequest.turn`); 0 after a restart.
  var turn: UInt64 = 0
  /// The video that it wishes to receive; nil: not specified.
  var wishes: Wishes?
  /// The latest figures on the quality of its media, in both directions.
  var quality = ParticipantQuality()
  var messages = MessageBudget()
  var tracks: TrackTable
  /// The fingerprint in its first offer. A different one is another PeerConnection (protocol section 6).
  var fingerprint: CertificateFingerprint?

  init(number: ParticipantNumber, joiner: Joiner, now: Timestamp) {
    self.number = number
    device = joiner.device
    joinId = joiner.joinId
    peer = joiner.peer
    joinedAt = now
    tracks = TrackTable(participant: number)
  }

  var isSignaling: Bool { if case .up = signaling { true } else { false } }
  /// Its media is connected.
  var isConnected: Bool { if case .up = media { true } else { false } }

  /// The media plane knows it, because it has made an offer.
  var isNegotiated: Bool { fingerprint != nil }

  /// Since when both signaling and media are gone; nil while either is up (rule 10).
  var goneSince: Timestamp? {
    switch (signaling, media) {
    case (.up, _), (_, .up): nil
    case (.gone(let signaling), .never): max(signaling, joinedAt)
    case (.gone(let signaling), .gone(let media)): max(signaling, media)
    }
  }

  var state: ParticipantState {
    ParticipantState(
      participant: number, device: device.device, joinId: joinId, connected: isConnected, held: isHeld,
      tracks: tracks.live.map(\.state))
  }
}
