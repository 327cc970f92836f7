/// Which frames of a participant may be stored: its person's consent, as a set of keys. Frames under any other key are not stored.
package struct RecordedPeer: Hashable, Sendable {
  /// A key of one track in one epoch. A frame's KID names it with the epoch's low byte.
  package struct Key: Hashable, Sendable {
    package var epoch: UInt32
    /// n of the track `participant.n`.
    package var track: UInt8

    package init(epoch: UInt32, track: UInt8) {
      self.epoch = epoch
      self.track = track
    }
  }

  /// The most epochs whose keys are named.
  package static let epochs = 3

  package var recording: RecordingID
  package var call: CallID
  package var peer: PeerID
  /// The number of its reel.
  package var participant: ParticipantNumber
  /// The device has sealed these keys for the recording's readers.
  package var keys: Set<Key>
  /// The device may still do so: frames wait for a moment.
  package var awaited: Set<Key>

  package init(
    recording: RecordingID, call: CallID, peer: PeerID, participant: ParticipantNumber, keys: Set<Key> = [],
    awaited: Set<Key> = []
  ) {
    self.recording = recording
    self.call = call
    self.peer = peer
    self.participant = participant
    self.keys = keys
    self.awaited = awaited
  }
}
