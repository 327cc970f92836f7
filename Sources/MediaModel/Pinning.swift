/// The way in which a peer's slots are filled, for its whole life.
package enum SlotFilling: Sendable, Hashable {
  /// The ranking of its call's tracks fills them. Its own tracks are ranked, too.
  case ranked
  /// `MediaCommand.pin` says which tracks they show. Its own tracks are in no ranking: they are shown where they are pinned.
  case pinned
}

/// A track together with the peer that publishes it. A person may have several peers.
package struct TrackPin: Sendable, Hashable {
  package var peer: PeerID
  package var track: TrackID

  package init(peer: PeerID, track: TrackID) {
    self.peer = peer
    self.track = track
  }
}

/// The contents of one pinned slot.
package struct SlotPin: Sendable, Hashable {
  /// The slot's m-line.
  package var mid: String
  package var source: TrackPin
  /// Nothing is sent, and nothing is asked of the publisher. The slot resumes with a key frame.
  package var isPaused: Bool
  package var ceiling: LayerCeiling

  package init(mid: String, source: TrackPin, isPaused: Bool = false, ceiling: LayerCeiling = LayerCeiling()) {
    self.mid = mid
    self.source = source
    self.isPaused = isPaused
    self.ceiling = ceiling
  }
}

/// The most that a slot gets of its track. The receiver's path may have room for less.
package struct LayerCeiling: Sendable, Hashable {
  /// The highest simulcast or spatial layer, from 0 for the lowest; nil for all of them. A track whose layers all lie above it is sent in its lowest one.
  package var spatial: Int?
  /// The highest temporal layer of a track with dependency descriptors; nil for all of them.
  package var temporal: Int?

  package init(spatial: Int? = nil, temporal: Int? = nil) {
    self.spatial = spatial.map { max(0, $0) }
    self.temporal = temporal.map { max(0, $0) }
  }
}

/// A publisher's track as subscribers are offered it.
package struct OfferedStream: Sendable, Hashable {
  /// The words of a=msid (RFC 8830), by which clients recognize a stream and its track.
  package struct Label: Sendable, Hashable {
    package var stream: String
    package var track: String

    /// - Parameters: 1 to 64 token characters each. The m-line's mid stands for others.
    package init(stream: String, track: String) {
      self.stream = stream
      self.track = track
    }
  }

  package var source: TrackPin
  package var kind: MediaKind
  /// As negotiated with the publisher, which sends the first one: `UpTrackDescription.formats`.
  package var formats: [PayloadFormat]
  package var label: Label

  package init(source: TrackPin, kind: MediaKind, formats: [PayloadFormat], label: Label) {
    self.source = source
    self.kind = kind
    self.formats = formats
    self.label = label
  }
}

/// The parts of an answer to the server's offer that the server needs. Created by `SDP`, applied to the peer's `Offering`.
package struct SubscriberAnswer: Sendable, Hashable {
  package var credentials: ICECredentials
  package var fingerprint: CertificateFingerprint
  package var allowsMixedExtensions: Bool
  /// In the order of the m-lines.
  package var sections: [MediaOffer.Section]

  package init(
    credentials: ICECredentials, fingerprint: CertificateFingerprint, allowsMixedExtensions: Bool,
    sections: [MediaOffer.Section]
  ) {
    self.credentials = credentials
    self.fingerprint = fingerprint
    self.allowsMixedExtensions = allowsMixedExtensions
    self.sections = sections
  }
}
