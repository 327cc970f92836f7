package import MediaModel

/// A reel that is being written: what one stay of a participant adds to a recording.
package struct ReelName: Hashable, Sendable {
  package var recording: RecordingID
  /// Its number: the participant's.
  package var reel: UInt32
  /// The stay. A reel that was deleted may begin again.
  package var peer: PeerID

  package init(recording: RecordingID, reel: UInt32, peer: PeerID) {
    self.recording = recording
    self.reel = reel
    self.peer = peer
  }
}

/// A request of the reels to the store, in order for each reel.
package enum ReelOutput: Hashable, Sendable {
  /// The next segment begins. The store writes its header.
  /// - Parameter start: microseconds since 1970.
  case begin(ReelName, start: Int64)
  /// Whole records of the segment that has begun. `ReelTable.written` is owed for their bytes.
  case write(ReelName, [UInt8])
  /// The segment is complete.
  case close(ReelName)
  /// Nothing more comes of this reel.
  case end(ReelName)
  /// All of the reel is deleted. It may begin again with its first segment.
  case erase(ReelName)
}

/// A request of the reels to the worker that has a recorded peer.
package struct ReelWish: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case nothing
    /// The packets of a layer, if it is encoded.
    case packets
    /// They are encoded for the recording.
    case wanted
    case keyFrame
  }

  package var peer: PeerID
  package var track: TrackID
  /// The layer's index, 0 lowest.
  package var rank: UInt8
  package var worker: WorkerAddress
  package var kind: Kind

  package init(peer: PeerID, track: TrackID, rank: UInt8, worker: WorkerAddress, kind: Kind) {
    self.peer = peer
    self.track = track
    self.rank = rank
    self.worker = worker
    self.kind = kind
  }
}

/// Why a part of a reel is missing (protocol section 13.2).
package enum GapReason: UInt8, CaseIterable, Sendable {
  case network = 1
  /// Packets were lost on the way from the worker, or video was shed.
  case serverLate
  case disk
  case restart
  /// The key of the frames was not exported.
  case noKey
}

/// Counts since the start, for the metrics.
package struct ReelCounts: Hashable, Sendable {
  package enum Drop: String, CaseIterable, Sendable {
    /// Under a key to which its sender did not agree.
    case notAdmitted
    /// The key was not exported in time.
    case expired
    /// It has no SFrame header in its place.
    case unreadable
    /// A picture that refers to one that is missing.
    case awaitingKeyFrame
    /// Another layer of its track is stored.
    case otherLayer
    /// The disk is slow.
    case backlog
  }

  package var frames: UInt64 = 0
  package var bytes: UInt64 = 0
  package var drops: [Drop: UInt64] = [:]
  package var gaps: [GapReason: UInt64] = [:]
  package var keyFrameRequests: UInt64 = 0

  package init() {}
}
