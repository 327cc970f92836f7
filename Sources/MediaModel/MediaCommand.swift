/// A participant's track as the SFU receives it.
package struct UpTrackDescription: Sendable, Hashable {
  package var track: TrackID
  package var source: TrackSource
  package var mid: String
  package var muted: Bool
  package var formats: [PayloadFormat]
  /// Announced primary SSRCs; empty if the stream is identified by its MID extension.
  package var ssrcs: [UInt32]
  package var rtx: [UInt32: UInt32]
  /// The restriction ids of its simulcast layers (RFC 8853), lowest first; empty for a track with one stream.
  package var rids: [String]

  package init(
    track: TrackID, source: TrackSource, mid: String, muted: Bool, formats: [PayloadFormat], ssrcs: [UInt32],
    rtx: [UInt32: UInt32], rids: [String] = []
  ) {
    self.track = track
    self.source = source
    self.mid = mid
    self.muted = muted
    self.formats = formats
    self.ssrcs = ssrcs
    self.rtx = rtx
    self.rids = rids
  }
}

/// An m-line in which the server sends: a place that the SFU fills with one track at a time, under one SSRC for its whole life (protocol
/// section 6).
package struct SlotDescription: Sendable, Hashable {
  package var mid: String
  package var kind: MediaKind
  package var ssrc: UInt32
  package var rtxSSRC: UInt32
  package var formats: [PayloadFormat]
  package var feedback: RateFeedback

  package init(
    mid: String, kind: MediaKind, ssrc: UInt32, rtxSSRC: UInt32, formats: [PayloadFormat],
    feedback: RateFeedback = .none
  ) {
    self.mid = mid
    self.kind = kind
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    self.formats = formats
    self.feedback = feedback
  }
}

/// Everything that the SFU knows about one participant's connection; a later one for the same peer replaces it.
package struct PeerConfiguration: Sendable, Hashable {
  package var peer: PeerID
  package var call: CallID
  package var participant: ParticipantNumber
  /// Its device has keys and so is on the key lists: its frames are SFrames whose KIDs must name its own tracks (protocol section 6).
  package var isOnKeyList: Bool
  /// It joined by a link. If places are scarce, members who speak come first.
  package var isGuest: Bool
  /// Identifies the user in the call across its participants, of which there are several if it leaves and joins again. It changes
  /// when a member's data is deleted.
  package var member: Int
  /// The first configuration of a peer decides.
  package var filling: SlotFilling
  package var local: ICECredentials
  package var remote: ICECredentials
  package var fingerprint: CertificateFingerprint
  package var extensions: HeaderExtensionIDs
  package var tracks: [UpTrackDescription]
  package var slots: [SlotDescription]
  /// The SSRCs of slots whose m-lines are inactive. A slot that comes back continues its stream.
  package var restingSlots: [UInt32]

  package init(
    peer: PeerID, call: CallID, participant: ParticipantNumber, isOnKeyList: Bool, isGuest: Bool = false,
    member: Int? = nil, filling: SlotFilling = .ranked, local: ICECredentials, remote: ICECredentials,
    fingerprint: CertificateFingerprint,
    extensions: HeaderExtensionIDs,
    tracks: [UpTrackDescription],
    slots: [SlotDescription], restingSlots: [UInt32] = []
  ) {
    self.peer = peer
    self.call = call
    self.participant = participant
    self.isOnKeyList = isOnKeyList
    self.isGuest = isGuest
    self.member = member ?? Int(participant)
    self.filling = filling
    self.local = local
    self.remote = remote
    self.fingerprint = fingerprint
    self.extensions = extensions
    self.tracks = tracks
    self.slots = slots
    self.restingSlots = restingSlots
  }
}

extension PeerConfiguration {
  /// The most informative of the peer's reports; nil for none.
  package var feedback: RateFeedback? {
    [.packets, .rate].first { feedback in slots.contains { $0.feedback == feedback } }
  }
}

/// From the control plane to a worker.
package enum MediaCommand: Sendable {
  /// Add a peer, or change it. Answered by `.configured` with the same request number.
  case configure(PeerConfiguration, request: UInt64)
  case remove(PeerID)
  case mute(PeerID, TrackID, Bool)
  /// The server itself ended this track of the peer (a screen that another replaced): it is no longer received or forwarded, until a configuration names it
  /// again.
  case removeTrack(PeerID, TrackID)
  /// While held, nothing is forwarded to or from the peer: its slots are empty, and its tracks are in nobody's slots. Its path stays.
  /// Ignored before the peer is configured; later configurations do not change it.
  case hold(PeerID, Bool)
  /// The peer's wishes, which replace its earlier ones. Ignored or kept like `hold`.
  case receive(PeerID, Wishes)
  /// The pins of a pinned peer, which replace its earlier ones; slots that are not named are empty. A slot is filled as soon as its call has
  /// the track, and emptied when the track ends. Ignored or kept like `hold`.
  case pin(PeerID, [SlotPin])
  /// Add or change a peer that is on another worker, which relays its tracks to this one. Its tracks and extensions count, its slots and credentials do not.
  case mirror(PeerConfiguration, worker: WorkerAddress)
  /// The workers that have peers of the call, in the order in which they came. The first of them reports who speaks. Ignored by a worker without a peer of the
  /// call.
  case share(CallID, workers: [WorkerAddress])

  /// The peer that the event is about; nil if it is about a call.
  package var peer: PeerID? {
    switch self {
    case .share: nil
    case .configure(let configuration, _), .mirror(let configuration, _): configuration.peer
    case .remove(let peer), .mute(let peer, _, _), .removeTrack(let peer, _), .hold(let peer, _),
      .receive(let peer, _), .pin(let peer, _):
      peer
    }
  }
}

/// A receiver's wishes (protocol section 6, `receive`). Tracks that are not named are wished in full, with priority 0.
package struct Wishes: Sendable, Hashable {
  package struct Video: Sendable, Hashable {
    /// In pixels: the lowest layer that is at least as high suffices. nil for the highest.
    package var maxHeight: Int?
    /// Higher ones come first, after screens.
    package var priority: Int
    /// It takes no slot.
    package var isPaused: Bool
    package init(maxHeight: Int? = nil, priority: Int = 0, isPaused: Bool = false) {
      self.maxHeight = maxHeight
      self.priority = priority
      self.isPaused = isPaused
    }
  }
  /// The most videos.
  package var lastN: Int
  package var videos: [TrackID: Video]
  /// Participants whose sound takes no slot.
  package var muted: Set<ParticipantNumber>
  package init(lastN: Int = 25, videos: [TrackID: Video] = [:], muted: Set<ParticipantNumber> = []) {
    self.lastN = lastN
    self.videos = videos
    self.muted = muted
  }
}

/// The contents of one slot.
package struct SlotAssignment: Sendable, Hashable {
  package var mid: String
  package var track: TrackID
  package var source: TrackSource
  /// nil for audio, and for a video that the receiver gets as wished.
  package var picture: LimitedPicture?
  package init(mid: String, track: TrackID, source: TrackSource, picture: LimitedPicture? = nil) {
    self.mid = mid
    self.track = track
    self.source = source
    self.picture = picture
  }
}

/// How much a receiver gets of a video for which its path, or the server, has too little room.
package enum LimitedPicture: String, Sendable, Hashable, Codable, CaseIterable {
  /// With a lower resolution or frame rate than it wishes.
  case lower
  /// Nothing for now.
  case paused
}

/// A peer's whole slot map; `revision` rises with each change.
package struct SlotMap: Sendable, Hashable {
  package var revision: UInt64
  package var slots: [SlotAssignment]
  /// Tracks that no slot of this peer can carry, because it lacks their codec.
  package var unsupported: [TrackID]
  package init(revision: UInt64, slots: [SlotAssignment], unsupported: [TrackID]) {
    self.revision = revision
    self.slots = slots
    self.unsupported = unsupported
  }
}

/// Whether a simulcast layer is worth encoding.
package struct WantedLayer: Sendable, Hashable, Codable {
  package var rid: String
  package var active: Bool
  package init(rid: String, active: Bool) {
    self.rid = rid
    self.active = active
  }
}

/// From a worker to the control plane.
package enum MediaEvent: Sendable {
  /// `.configure` has been carried out.
  case configured(PeerID, request: UInt64, SlotMap)
  /// The slots changed by themselves (a track was added or removed, or somebody else spoke).
  case slots(PeerID, SlotMap)
  /// ICE and DTLS are up: media can flow.
  case connected(PeerID)
  /// Nothing authentic was heard for `silence`, or the peer closed DTLS (`silence` is then zero).
  case disconnected(PeerID, silence: Duration)
  /// The peer needs this many slots in total, which is more than it has.
  case need(PeerID, audio: Int, video: Int)
  /// The dominant speaker, then the loudest first; at most every 300 ms per call, and only on change.
  case speakers(CallID, [ParticipantNumber])
  /// The layers of the peer's track that its receivers want, lowest first; only on change.
  case wanted(PeerID, TrackID, [WantedLayer])
  /// The peer's quality level, 0 to 4, and the rate sent to it in bit/s: on a change of the level, at most every 2 s.
  case quality(PeerID, level: Int, bitrate: Int)
  /// Peers exceed their limits: at most every 10 s per worker. For the operator.
  case tooMuch
}
