package import Contract
package import MediaModel

/// A recording, as the server keeps it.
package struct StoredRecording: Hashable, Sendable {
  package var id: RecordingID
  package var kind: RecordingKind
  /// The device that began it. Its user is charged for the bytes.
  package var owner: Device
  /// The time by the server's clock.
  package var startedAt: Timestamp
  /// When it is deleted.
  package var expiresAt: Timestamp
  package var state = RecordingState.running
  /// It has no grant yet, so that nobody can open it.
  package var isDraft: Bool
  package var reels: [StoredReel]

  package init(
    id: RecordingID, kind: RecordingKind, owner: Device, startedAt: Timestamp, expiresAt: Timestamp,
    state: RecordingState = .running, isDraft: Bool = false, reels: [StoredReel]
  ) {
    self.id = id
    self.kind = kind
    self.owner = owner
    self.startedAt = startedAt
    self.expiresAt = expiresAt
    self.state = state
    self.isDraft = isDraft
    self.reels = reels
  }

  /// While a call is recorded, its readers get nothing: with the server's help they could speak under an exported key.
  package var isOfRunningCall: Bool { kind == .call && state == .running }

  package func isOpen(to user: UserID, hasGrant: Bool) -> Bool { owner.user == user || hasGrant && !isOfRunningCall }

  /// The sum of all its segments.
  package var byteCount: Int64 { reels.reduce(0) { $0 + $1.position.byteCount } }

  /// From the start of the first segment to that of the last one, of the longest reel.
  package var seconds: Int { reels.map(\.position.seconds).max() ?? 0 }
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
  /// When the newest one does.
  package var latest: Int64?

  package init() {}

  /// From the start of the first segment to that of the newest. Both are the device's word, so the difference may be anything.
  package var seconds: Int {
    guard let start, let latest else { return 0 }
    return Int(max(0, latest - start) / 1_000_000)
  }

  package func isContinued(by header: SegmentHeader) -> Bool { header.number == next && header.previous == head }

  /// - Parameter segment: the next one.
  package mutating func append(_ segment: StoredSegment) {
    next = segment.number + 1
    head = segment.hash
    byteCount += Int64(segment.byteCount)
    start = start ?? segment.start
    latest = segment.start
  }
}

/// A device's words when it began a recording.
package struct RecordingRecord: Codable, Hashable, Sendable {
  package var statement: RecordingStatement
  /// The device, with the keys that it had.
  package var author: RecordedPerson
  /// nil for a call's: each participant has keys of its own.
  package var reelKey: ReelKey?
  /// SHA-256 of the ticket of its uploads; nil for a call's.
  package var ticket: Base64Bytes?

  package init(
    statement: RecordingStatement, author: RecordedPerson, reelKey: ReelKey? = nil, ticket: Base64Bytes? = nil
  ) {
    self.statement = statement
    self.author = author
    self.reelKey = reelKey
    self.ticket = ticket
  }

  package var signKey: DeviceKey? { author.keys.first { $0.use == .sign } }
}

/// A change of what is stored about recordings. It may be written twice, and has no effect on a recording that is gone.
package enum RecordingFact: Hashable, Sendable {
  /// A recording begins, with its reels; they are empty.
  case begun(StoredRecording)
  /// Replaces the earlier record.
  case described(RecordingID, RecordingRecord)
  case segment(RecordingID, reel: UInt32, StoredSegment)
  /// Replaces the reel's earlier witness.
  case witness(RecordingID, ReelWitness)
  /// Replaces the holder's earlier grant.
  case grant(RecordingGrant)
  /// All grants to the user, and what is known of it as a reader.
  case grantsGone(RecordingID, UserID)
  /// The first one of its number stays.
  case note(RecordingID, RecordingNote)
  case ended(RecordingID, RecordingState)
  /// It is no draft any more, and expires then.
  case kept(RecordingID, until: Timestamp)
  /// A user is known as a reader. The first time of each kind stays.
  case reader(RecordingID, UserID, ReaderMark)
  /// A call's reel begins, and whose it is.
  case reel(RecordingID, StoredReel, RecordedPerson)
  /// Keys of a call's reel; the first of the same tracks and epoch stay.
  case trackKeys(RecordingID, TrackKeys)
  /// With all its reels.
  case gone(RecordingID)
  case reelGone(RecordingID, reel: UInt32)
}

/// A step of a user towards having seen a recording.
package enum ReaderMark: Hashable, Sendable {
  /// It asked for the manifest.
  case opened
  /// It told the owner so.
  case seen(Timestamp)
  /// It is alerted until one of its devices has acknowledged that.
  case alerted(Timestamp)
  case reached(Timestamp)
}

/// A user who may open a recording, or was alerted of it.
package struct StoredReader: Hashable, Sendable {
  package var user: UserID
  /// How many grants it has.
  package var grants: Int
  package var isOpened = false
  package var seenAt: Timestamp?
  package var alertedAt: Timestamp?
  package var reachedAt: Timestamp?

  package init(
    user: UserID, grants: Int, isOpened: Bool = false, seenAt: Timestamp? = nil, alertedAt: Timestamp? = nil,
    reachedAt: Timestamp? = nil
  ) {
    self.user = user
    self.grants = grants
    self.isOpened = isOpened
    self.seenAt = seenAt
    self.alertedAt = alertedAt
    self.reachedAt = reachedAt
  }
}

/// Which recordings of a user are listed.
package struct RecordingFilter: Hashable, Sendable {
  /// Only those that started earlier.
  package var before: Timestamp
  package var limit: Int
  package var kind: RecordingKind?
  package var role: RecordingRole?

  package init(before: Timestamp, limit: Int, kind: RecordingKind? = nil, role: RecordingRole? = nil) {
    self.before = before
    self.limit = limit
    self.kind = kind
    self.role = role
  }
}

/// The part that a starting server keeps in memory.
package struct StoredRecordings: Hashable, Sendable {
  package var running: [StoredRecording]
  /// Each user's recordings, those that run and others.
  package var usage: [UserID: StoredUsage]

  package init(running: [StoredRecording] = [], usage: [UserID: StoredUsage] = [:]) {
    self.running = running
    self.usage = usage
  }
}

/// The recordings of a user, as sums.
package struct StoredUsage: Hashable, Sendable {
  /// The sum of all segments.
  package var bytes: Int64
  package var recordings: Int
  /// Those among them that nobody can open yet.
  package var drafts: Int

  package init(bytes: Int64 = 0, recordings: Int = 0, drafts: Int = 0) {
    self.bytes = bytes
    self.recordings = recordings
    self.drafts = drafts
  }
}

/// An alert that has not reached a user yet.
package struct StoredAlert: Hashable, Sendable {
  package var recording: RecordingID
  package var user: UserID
  package var at: Timestamp

  package init(recording: RecordingID, user: UserID, at: Timestamp) {
    self.recording = recording
    self.user = user
    self.at = at
  }
}

extension StoredRecording: CustomStringConvertible { package var description: String { "recording" } }
extension StoredReel: CustomStringConvertible { package var description: String { "reel" } }
extension RecordingRecord: CustomStringConvertible { package var description: String { "record" } }
extension RecordingFact: CustomStringConvertible { package var description: String { "fact" } }
extension StoredReader: CustomStringConvertible { package var description: String { "reader" } }
extension StoredAlert: CustomStringConvertible { package var description: String { "alert" } }
