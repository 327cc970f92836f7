package import MediaModel

// Bodies of the events about tracks, slots and speakers (protocol sections 4 and 6).

/// The track as in the state, `participant` beside its members, and on removal possibly a `cause`.
package struct TrackChange: Codable, Sendable, Hashable {
  package enum Cause: String, Codable, Sendable, CaseIterable { case replaced }
  package var track: TrackID
  package var source: TrackSource
  package var kind: MediaKind
  package var muted: Bool
  package var participant: ParticipantNumber
  package var cause: Cause?
  package init(_ state: TrackState, cause: Cause? = nil) {
    track = state.track
    source = state.source
    kind = state.kind
    muted = state.muted
    participant = state.track.participant
    self.cause = cause
  }
}

package struct Speakers: Codable, Sendable, Hashable {
  package var participants: [ParticipantNumber]
  package init(participants: [ParticipantNumber]) { self.participants = participants }
}

package struct Slots: Codable, Sendable, Hashable {
  package var rev: UInt64
  package var receive: [Slot]
  package var unsupported: [TrackID]
  package init(rev: UInt64, receive: [Slot], unsupported: [TrackID]) {
    self.rev = rev
    self.receive = receive
    self.unsupported = unsupported
  }
}

package struct Need: Codable, Sendable, Hashable {
  package var audio: Int
  package var video: Int
  package init(audio: Int, video: Int) {
    self.audio = audio
    self.video = video
  }
}

/// The layers of the device's own track that somebody gets or waits for, lowest first.
package struct Wanted: Codable, Sendable, Hashable {
  package var track: TrackID
  package var layers: [WantedLayer]
  package init(track: TrackID, layers: [WantedLayer]) {
    self.track = track
    self.layers = layers
  }
}

/// How well a receiver is served: `level` 0 (bad) to 4, `bitrate` in bit/s.
package struct Quality: Codable, Sendable, Hashable {
  package var participant: ParticipantNumber
  package var level: Int
  package var bitrate: Int
  package init(participant: ParticipantNumber, level: Int, bitrate: Int) {
    self.participant = participant
    self.level = level
    self.bitrate = bitrate
  }
}

/// An opaque message of a participant to others.
package struct CallMessage: Codable, Sendable, Hashable {
  package var from: ParticipantNumber
  package var body: Base64Bytes
  package init(from: ParticipantNumber, body: Base64Bytes) {
    self.from = from
    self.body = body
  }
}
