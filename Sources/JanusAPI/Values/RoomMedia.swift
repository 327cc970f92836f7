package import MediaModel

/// The track that a line of a subscriber shows, and how much of it at most.
package struct LinePin: Sendable, Hashable {
  /// The peer that publishes the track.
  package var publisher: PeerID
  package var track: TrackID
  /// The highest layer of simulcast, 0 for the lowest; nil for no limit.
  package var highestLayer: Int?
  package var highestTemporal: Int?
  package var isPaused: Bool

  package init(
    publisher: PeerID, track: TrackID, highestLayer: Int? = nil, highestTemporal: Int? = nil, isPaused: Bool = false
  ) {
    self.publisher = publisher
    self.track = track
    self.highestLayer = highestLayer
    self.highestTemporal = highestTemporal
    self.isPaused = isPaused
  }
}

/// An offer of a publisher that passed the room's rules.
package struct PublisherNegotiation: Sendable, Hashable {
  /// The number that the answer repeats.
  package var number: UInt64
  package var peer: PeerID
  package var call: CallID
  package var participant: ParticipantNumber
  package var offer: MediaOffer
  package var tracks: [NamedTrack]
  /// The video codecs of the room, best first.
  package var codecs: [String]
  /// In bit/s; nil for no limit.
  package var bitrate: Int?
}

/// The lines of a subscriber, to be offered to it.
package struct SubscriberOffer: Sendable, Hashable {
  package struct Line: Sendable, Hashable {
    package var mid: String
    package var kind: MediaKind
    /// The format of the first stream that it had.
    package var format: PayloadFormat
    /// nil for an inactive line.
    package var pin: LinePin?
    /// The words of a=msid.
    package var label: String
  }
  package var number: UInt64
  package var peer: PeerID
  package var call: CallID
  /// All lines that the peer ever had, in their order.
  package var lines: [Line]
  package var restartsICE: Bool
}

/// From the rooms to the media plane. Each `read`, `negotiate`, `offer` and `answer` comes back once as a `RoomMediaResult`, unless the peer is hung up before.
package enum RoomMedia: Sendable, Hashable {
  /// Read a publisher's offer.
  case read(number: UInt64, sdp: String)
  case negotiate(PublisherNegotiation)
  case offer(SubscriberOffer)
  /// Apply a subscriber's answer to the last offer.
  case answer(number: UInt64, PeerID, sdp: String)
  /// The lines of a subscriber show these tracks from now on, by mid; lines that are missing show nothing. Changes no offer.
  case pin(PeerID, [String: LinePin])
  case mute(PeerID, TrackID, Bool)
  /// A publisher's whole rate, in bit/s; nil for no limit.
  case limit(PeerID, bitrate: Int?)
  /// A key frame of a publisher's track is wanted.
  case requestKeyFrame(PeerID, TrackID)
  case hangUp(PeerID)
}

/// Why a description was refused, in words for its sender.
package struct DescriptionRefusal: Error, Sendable, Hashable {
  package var reason: String
  package init(_ reason: String) { self.reason = reason }
}

/// A publisher's answer, and its tracks that have a format.
package struct PublisherAnswer: Sendable, Hashable {
  package var sdp: String
  package var tracks: [UpTrackDescription]
  package init(sdp: String, tracks: [UpTrackDescription]) {
    self.sdp = sdp
    self.tracks = tracks
  }
}

package enum RoomMediaResult: Sendable {
  case read(Result<MediaOffer, DescriptionRefusal>)
  case negotiated(Result<PublisherAnswer, DescriptionRefusal>)
  case offered(Result<String, DescriptionRefusal>)
  /// The mids of the lines that the subscriber refused.
  case answered(Result<Set<String>, DescriptionRefusal>)
}

/// Something that happened to a peer or in a room.
package enum RoomMediaEvent: Sendable, Hashable {
  /// ICE and DTLS are up.
  case connected(PeerID)
  /// Nothing authentic was heard for `silence`; zero: the peer closed DTLS.
  case disconnected(PeerID, silence: Duration)
  case receiving(PeerID, mid: String, Bool)
  case speakers(CallID, [ParticipantNumber])
}
