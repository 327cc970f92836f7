import Contract
package import MediaModel

/// Which recordings run, how far their reels are, and how much room is left.
///
/// An upload is admitted by its length, before a byte of it has come (`admit`). Its header decides where it belongs (`place`), and once file and row are on the
/// disk it counts (`commit`). `release` ends it, whatever came of it.
package struct RecordingLedger: Sendable {
  package struct Limits: Hashable, Sendable {
    /// The most bytes of all recordings that a user owns.
    package var userBytes: Int64 = 10 << 30
    /// The most bytes of all recordings.
    package var totalBytes: Int64 = .max
    /// The most uploads of a user at one time.
    package var uploadsOfUser = 4
    /// The most bytes of a user's uploads that are under way: a few users cannot take all of the memory for uploads.
    package var uploadBytesOfUser = 16 << 20
    /// The most bytes of all uploads that are under way.
    package var uploadBytes = 64 << 20
    /// The most recordings that a user owns.
    package var recordingsOfUser = 10_000
    /// The most drafts among them: nobody can open them yet.
    package var draftsOfUser = 100
    /// How long a message may be.
    package var messageSeconds = 180
    /// How long a recording takes uploads after it was begun.
    package var hours = 12

    package init() {}
  }

  /// A segment that is on its way.
  package struct Upload: Hashable, Sendable {
    package let recording: RecordingID
    package let reel: UInt32
    package let byteCount: Int
    fileprivate let owner: UserID
    fileprivate let number: UInt64
  }

  package enum Place: Hashable, Sendable {
    /// It continues the reel, and no other upload does until this one is released.
    case next
    /// The reel has a segment of this number already.
    case earlier(ReelPosition)
  }

  struct Running {
    var recording: StoredRecording
    /// The uploads that continue reels.
    var writing: [UInt32: UInt64] = [:]

    func place(of reel: UInt32) throws(RecordingRefusal) -> Int {
      guard let place = recording.reels.firstIndex(where: { $0.number == reel }) else { throw .notFound }
      return place
    }
  }

  struct Usage {
    var stored = StoredUsage()
    var uploads = 0
    /// The bytes of the uploads.
    var reserved: Int64 = 0
  }

  package var limits: Limits
  var running: [RecordingID: Running] = [:]
  var usage: [UserID: Usage] = [:]
  private var uploads: Set<UInt64> = []
  private var lastUpload: UInt64 = 0
  /// The sum of all recordings.
  package internal(set) var bytes: Int64 = 0
  /// The sum of all uploads.
  package private(set) var reserved: Int64 = 0

  package init(limits: Limits = Limits(), restoring stored: StoredRecordings = StoredRecordings()) {
    self.limits = limits
    for (user, stored) in stored.usage {
      usage[user] = Usage(stored: stored)
      bytes += stored.bytes
    }
    for recording in stored.running { running[recording.id] = Running(recording: recording) }
  }

  package var runningCount: Int { running.count }
  package var recordings: [StoredRecording] { running.values.map(\.recording) }
  package subscript(_ id: RecordingID) -> StoredRecording? { running[id]?.recording }
  package func bytes(of user: UserID) -> Int64 { usage[user]?.stored.bytes ?? 0 }
  /// Recordings that nobody can open yet.
  package var draftCount: Int { usage.values.reduce(0) { $0 + $1.stored.drafts } }
  package var recordingCount: Int { usage.values.reduce(0) { $0 + $1.stored.recordings } }

  // MARK: recordings

  /// Whether a further recording of this user may begin.
  package func checkRoom(for user: UserID, isDraft: Bool = false) throws(RecordingRefusal) {
    let used = usage[user]?.stored ?? StoredUsage()
    guard used.bytes < limits.userBytes, bytes < limits.totalBytes, used.recordings < limits.recordingsOfUser else {
      throw .quota
    }
    guard !isDraft || used.drafts < limits.draftsOfUser else { throw .drafts }
  }

  /// A recording that did not exist before.
  package mutating func begin(_ recording: StoredRecording) {
    guard running[recording.id] == nil else { return }
    running[recording.id] = Running(recording: recording)
    usage[recording.owner.user, default: Usage()].stored.count(recordings: 1, drafts: recording.isDraft ? 1 : 0)
  }

  /// A recording that is known, with its bytes, takes uploads (again).
  package mutating func resume(_ recording: StoredRecording) {
    guard running[recording.id] == nil else { return }
    running[recording.id] = Running(recording: recording)
  }

  /// Somebody can open the recording from now on.
  /// - Parameter stored: as it was on the disk.
  package mutating func keep(_ stored: StoredRecording, until expiry: Timestamp) {
    guard stored.isDraft else { return }
    running[stored.id]?.recording.isDraft = false
    running[stored.id]?.recording.expiresAt = expiry
    usage[stored.owner.user]?.stored.count(drafts: -1)
  }

  /// Whether the recording may finish: each reel is as long as its device says.
  package func checkEnd(of id: RecordingID, heads: [UInt32: ReelHead]) throws(RecordingRefusal) {
    guard let recording = running[id] else { throw .notFound }
    guard recording.writing.isEmpty else { throw .busy }
    guard heads.count == recording.recording.reels.count else { throw .invalid }
    for (reel, head) in heads {
      let position = recording.recording.reels[try recording.place(of: reel)].position
      guard head.segments == position.next, head.hash == position.head else { throw .conflict(position) }
    }
  }

  /// It takes no uploads any more.
  /// - Returns: the recording as it was, with which `resume` takes that back; nil if it did not run.
  @discardableResult package mutating func end(_ id: RecordingID) -> StoredRecording? {
    running.removeValue(forKey: id)?.recording
  }

  /// The recordings that devices began too long ago. A segment that is being written counts first. A call's recording ends with the call.
  package func overdue(now: Timestamp) -> [RecordingID] {
    running.values.filter {
      $0.recording.kind != .call && $0.writing.isEmpty
        && $0.recording.startedAt + .seconds(3_600 * limits.hours) <= now
    }.map(\.recording.id)
  }

  /// The recording is gone, and its owner has the room again.
  /// - Parameter stored: as it was on the disk. Segments that have been added since are known here.
  package mutating func remove(_ stored: StoredRecording) {
    let recording = running.removeValue(forKey: stored.id)?.recording ?? stored
    let owner = recording.owner.user
    usage[owner]?.stored.count(recordings: -1, drafts: recording.isDraft ? -1 : 0)
    free(recording.byteCount, of: owner)
  }

  /// One reel is gone.
  /// - Parameter stored: as it was on the disk.
  package mutating func remove(reel number: UInt32, of stored: StoredRecording) {
    let recording = running[stored.id]?.recording ?? stored
    guard let reel = recording.reels.first(where: { $0.number == number }) else { return }
    running[stored.id]?.recording.reels.removeAll { $0.number == number }
    running[stored.id]?.writing[number] = nil
    free(reel.position.byteCount, of: recording.owner.user)
  }

  /// The user's recordings are gone, and the reels of others' with the user in them.
  package mutating func forget(_ user: UserID) {
    for (id, entry) in running {
      if entry.recording.owner.user == user {
        running[id] = nil
      } else {
        for reel in entry.recording.reels where reel.user == user { remove(reel: reel.number, of: entry.recording) }
      }
    }
    bytes -= bytes(of: user)
    usage[user]?.stored = StoredUsage()
    dropIfEmpty(user)
  }

  private mutating func free(_ count: Int64, of user: UserID) {
    let freed = min(count, bytes(of: user))
    usage[user]?.stored.bytes -= freed
    bytes -= freed
    dropIfEmpty(user)
  }

  private mutating func dropIfEmpty(_ user: UserID) {
    if let entry = usage[user], entry.stored == StoredUsage(), entry.uploads == 0 { usage[user] = nil }
  }

  /// The bytes that the user may still store.
  package func room(of user: UserID) -> Int64 {
    max(0, min(limits.userBytes - bytes(of: user), limits.totalBytes - bytes))
  }

  // MARK: uploads

  /// - Parameter byteCount: of the segment's whole file, as the client announces it.
  package mutating func admit(
    _ id: RecordingID, reel: UInt32, byteCount: Int
  ) throws(RecordingRefusal) -> Upload {
    // The server itself writes the reels of calls.
    guard let entry = running[id], entry.recording.kind != .call else { throw .notFound }
    _ = try entry.place(of: reel)
    guard byteCount >= SegmentHeader.byteCount + SegmentHeader.tagBytes else { throw .invalid }
    guard byteCount <= SegmentHeader.maximumSegmentBytes else { throw .tooLarge }
    let owner = entry.recording.owner.user
    let count = Int64(byteCount)
    var used = usage[owner] ?? Usage()
    guard used.uploads < limits.uploadsOfUser, used.reserved + count <= limits.uploadBytesOfUser,
      reserved + count <= limits.uploadBytes
    else { throw .busy }
    guard used.stored.bytes + used.reserved + count <= limits.userBytes,
      bytes + reserved + count <= limits.totalBytes
    else { throw .quota }
    used.uploads += 1
    used.reserved += count
    usage[owner] = used
    reserved += count
    lastUpload += 1
    uploads.insert(lastUpload)
    return Upload(recording: id, reel: reel, byteCount: byteCount, owner: owner, number: lastUpload)
  }

  package mutating func place(_ header: SegmentHeader, of upload: Upload) throws(RecordingRefusal) -> Place {
    guard let entry = running[upload.recording] else { throw .notFound }
    let position = entry.recording.reels[try entry.place(of: upload.reel)].position
    guard header.isSealed, header.recording == upload.recording, header.reel == upload.reel else { throw .invalid }
    if header.number < position.next { return .earlier(position) }
    guard position.isContinued(by: header) else { throw .conflict(position) }
    guard entry.writing[upload.reel] == nil else { throw .busy }
    if entry.recording.kind == .message, let start = position.start {
      // In range: starts are below 2^53.
      guard header.start - start < Int64(limits.messageSeconds) * 1_000_000 else { throw .tooLong }
    }
    running[upload.recording]?.writing[upload.reel] = upload.number
    return .next
  }

  /// The segment's file and its row are on the disk.
  /// - Returns: false if recording or reel went meanwhile; then its file goes, too.
  package mutating func commit(_ segment: StoredSegment, of upload: Upload) -> Bool {
    guard let entry = running[upload.recording], entry.writing[upload.reel] == upload.number,
      let place = try? entry.place(of: upload.reel)
    else { return false }
    running[upload.recording]?.recording.reels[place].position.append(segment)
    usage[upload.owner, default: Usage()].stored.bytes += Int64(segment.byteCount)
    bytes += Int64(segment.byteCount)
    return true
  }

  /// The upload is over. May be called twice.
  package mutating func release(_ upload: Upload) {
    guard uploads.remove(upload.number) != nil else { return }
    reserved -= Int64(upload.byteCount)
    usage[upload.owner]?.uploads -= 1
    usage[upload.owner]?.reserved -= Int64(upload.byteCount)
    dropIfEmpty(upload.owner)
    if running[upload.recording]?.writing[upload.reel] == upload.number {
      running[upload.recording]?.writing[upload.reel] = nil
    }
  }
}

extension StoredUsage {
  /// A user may have been forgotten meanwhile, who has nothing then.
  fileprivate mutating func count(recordings: Int = 0, drafts: Int = 0) {
    self.recordings = max(0, self.recordings + recordings)
    self.drafts = max(0, self.drafts + drafts)
  }
}

/// Why a recording does not begin, or a segment is not stored.
package enum RecordingRefusal: Error, Hashable, Sendable {
  /// The signature is not the device's.
  case unsigned
  /// There is no such recording or reel, or it has ended.
  case notFound
  /// Another recording has the id.
  case taken
  /// The bytes are no sealed segment of this reel.
  case invalid
  /// The reel goes on elsewhere.
  case conflict(ReelPosition)
  case tooLarge
  /// A message has its length.
  case tooLong
  /// The user has no room left, or nobody has.
  case quota
  /// The user has as many recordings that nobody can open as it may.
  case drafts
  /// More users, or grants of one user, than a recording may have.
  case grants
  /// A user has not opened the last recordings of this sender.
  case unopened
  case diskFull
  /// Too much is under way: again in a moment.
  case busy
  /// The disk or the database does not answer.
  case unavailable
}
