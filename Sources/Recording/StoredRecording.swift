package import Contract
package import MediaModel

/// A recording, as the server keeps it.
package struct StoredRecording: Hashable, Sendable {
  package enum State: String, Sendable, CaseIterable {
    case running, finished
    /// Its time was over before its device finished it.
    case cutOff = "cut-off"
  }

  package var id: RecordingID
  package var kind: RecordingKind
  /// The device that began it. Its user is charged for the bytes.
  package var owner: Device
  /// The time by the server's clock.
  package var startedAt: Timestamp
  /// When it is deleted.
  package var expiresAt: Timestamp
  package var state = State.running
  package var reels: [StoredReel]

  package init(
    id: RecordingID, kind: RecordingKind, owner: Device, startedAt: Timestamp, expiresAt: Timestamp,
    state: State = .running, reels: [StoredReel]
  ) {
    self.id = id
    self.kind = kind
    self.owner = owner
    self.startedAt = startedAt
    self.expiresAt = expiresAt
    self.state = state
    self.reels = reels
  }

  /// The sum of all its segments.
  package var byteCount: Int64 { reels.reduce(0) { $0 + $1.position.byteCount } }
}

/// A reel, and how far it is stored.
package struct StoredReel: Hashable, Sendable {
  package var number: UInt32
  /// The person who is seen and heard in it.
  package var user: UserID
  package var position: ReelPosition

  package init(number: UInt32, user: UserID, position: ReelPosition = ReelPosition()) {
    self.number = number
    self.user = user
    self.position = position
  }
}

/// A segment whose file is on the disk.
package struct StoredSegment: Hashable, Sendable {
  package var number: UInt32
  package var byteCount: Int
  package var hash: SegmentHash
  /// Microseconds since 1970, as in its header.
  package var start: Int64

  package init(number: UInt32, byteCount: Int, hash: SegmentHash, start: Int64) {
    self.number = number
    self.byteCount = byteCount
    self.hash = hash
    self.start = start
  }
}

/// Where a reel continues.
package struct ReelPosition: Hashable, Sendable {
  /// The number of the next segment.
  package var next: UInt32 = 0
  /// The hash of the segment before it.
  package var head = SegmentHash.zeros
  /// The sum of all segments.
  package var byteCount: Int64 = 0
  /// When the first segment begins, in microseconds since 1970; nil without one.
  package var start: Int64?

  package init() {}

  package func isContinued(by header: SegmentHeader) -> Bool { header.number == next && header.previous == head }

  /// - Parameter segment: the next one.
  package mutating func append(_ segment: StoredSegment) {
    next = segment.number + 1
    head = segment.hash
    byteCount += Int64(segment.byteCount)
    start = start ?? segment.start
  }
}

/// A change of what is stored about recordings. It may be written twice.
package enum RecordingFact: Hashable, Sendable {
  /// A recording begins, with its reels; they are empty.
  case begun(StoredRecording)
  /// Has no effect if the recording or the reel is gone.
  case segment(RecordingID, reel: UInt32, StoredSegment)
  case ended(RecordingID, StoredRecording.State)
  /// With all its reels.
  case gone(RecordingID)
  case reelGone(RecordingID, reel: UInt32)
}

/// The part that a starting server keeps in memory.
package struct StoredRecordings: Hashable, Sendable {
  package var running: [StoredRecording]
  /// The bytes of all recordings of each user, also of those that do not run.
  package var bytes: [UserID: Int64]

  package init(running: [StoredRecording] = [], bytes: [UserID: Int64] = [:]) {
    self.running = running
    self.bytes = bytes
  }
}

extension StoredRecording: CustomStringConvertible { package var description: String { "recording" } }
extension StoredReel: CustomStringConvertible { package var description: String { "reel" } }
extension RecordingFact: CustomStringConvertible { package var description: String { "fact" } }
