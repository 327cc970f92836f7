import CallMessages
import Contract
import MediaModel
import Recording
import ReelStore

/// The view that users have of recordings: their list, and the manifest of each (protocol section 13.4).
struct RecordingCatalogue: Sendable {
  /// Segments of each reel in one page.
  static let page = 1_000
  /// Notes in one page.
  static let notesOfPage = 200
  /// Without a segment for this time a running recording is silent.
  static let silence = Duration.seconds(60)

  let store: RecordingStore
  let clock: WallClock

  func list(_ body: ListRecordings, of device: Device) async throws(RecordingRefusal) -> RecordingList {
    let user = device.user
    let lag = clock.lag
    // A client's number may be anything.
    let before = body.before.map { $0.milliseconds.subtractingReportingOverflow(lag.nanoseconds / 1_000_000) }
    let filter = RecordingFilter(
      before: Timestamp(milliseconds: before.map { $0.overflow ? .max : $0.partialValue } ?? .max),
      limit: body.limit ?? 50, kind: body.kind, role: body.role)
    let found = try await store.ask { storage throws(StoreError) in
      var entries: [RecordingEntry] = []
      for recording in try storage.recordings(of: user, filter) {
        let grants = try storage.grants(of: recording.id, to: user)
        guard recording.isOpen(to: user, hasGrant: !grants.isEmpty) else { continue }
        let grant = grants.first { $0.to.device == device.device } ?? grants.first { $0.to.device == nil }
        let call = try storage.record(of: recording.id)?.statement.call
        let isOwner = recording.owner.user == user
        let readers = try storage.readers(of: recording.id)
        let seen = readers.filter { isOwner ? $0.user != user : $0.user == user }.compactMap(\.seenAt).min()
        let (state, heardAt) = self.state(of: recording)
        entries.append(
          RecordingEntry(
            id: recording.id, kind: recording.kind, role: isOwner ? .owner : .reader, by: recording.owner, call: call,
            startedAt: recording.startedAt + lag, seconds: recording.seconds, bytes: Int(recording.byteCount),
            state: state, heardAt: heardAt, expiresAt: recording.expiresAt + lag, seenAt: seen.map { $0 + lag },
            grant: grant))
      }
      return entries
    }
    return RecordingList(recordings: found)
  }

  /// - Returns: also the recording; nil if there is none that the user may open.
  func manifest(
    _ body: GetRecording, for user: UserID
  ) async throws(RecordingRefusal) -> (manifest: RecordingManifest, recording: StoredRecording)? {
    let from = body.from ?? 0
    let lag = clock.lag
    let found = try await store.ask {
      storage throws(StoreError) -> (manifest: RecordingManifest, recording: StoredRecording, isNew: Bool)? in
      guard let recording = try storage.recording(body.id), let record = try storage.record(of: body.id) else {
        return nil
      }
      let grants = try storage.grants(of: body.id, to: user)
      let isOwner = recording.owner.user == user
      guard recording.isOpen(to: user, hasGrant: !grants.isEmpty) else { return nil }
      var reels: [ReelPage] = []
      for reel in recording.reels {
        let segments = try storage.segments(of: body.id, reel: reel.number, from: from, limit: Self.page)
        reels.append(
          ReelPage(
            participant: reel.number, from: from,
            segments: segments.map {
              ReelPage.Segment(byteCount: $0.byteCount, hash: Base64Bytes($0.hash.bytes), start: $0.start)
            }))
      }
      let readers = try storage.readers(of: body.id)
      let others = readers.filter { $0.user != user }.map {
        RecordingManifest.Reader(
          user: $0.user, seenAt: $0.seenAt.map { $0 + lag }, alertedAt: $0.alertedAt.map { $0 + lag },
          reachedAt: $0.reachedAt.map { $0 + lag })
      }
      let manifest = RecordingManifest(
        statement: record.statement, state: state(of: recording).0, bytes: Int(recording.byteCount),
        people: try Self.people(record.author, storage.people(of: body.id)),
        reelKeys: record.reelKey.map { [.init(reel: RecordingService.reel, $0)] } ?? [], reels: reels, grants: grants,
        notes: try storage.notes(of: body.id, from: body.notes ?? 0, limit: Self.notesOfPage),
        witnesses: try storage.witnesses(of: body.id),
        trackKeys: try recording.kind == .call && from == 0 ? storage.trackKeys(of: body.id) : nil,
        readers: isOwner ? others : nil)
      let isNew = !isOwner && readers.contains { $0.user == user && !$0.isOpened }
      return (manifest, recording, isNew)
    }
    guard let found else { return nil }
    // Its senders may send more.
    if found.isNew { try await store.note([.reader(body.id, user, .opened)]) }
    return (found.manifest, found.recording)
  }

  /// The device that recorded is first, and its reel may be among the others.
  private static func people(_ author: RecordedPerson, _ others: [RecordedPerson]) -> [RecordedPerson] {
    [author] + others.filter { $0.participant != author.participant }
  }

  /// A recording as devices that have it open are told.
  func change(of recording: StoredRecording) -> RecordingChanged {
    RecordingChanged(
      recording: recording.id, state: state(of: recording).0,
      reels: recording.reels.map {
        RecordingChanged.Reel(
          participant: $0.number, segments: $0.position.next, head: Base64Bytes($0.position.head.bytes))
      })
  }

  /// A call's recording is never silent: it has no uploads.
  private func state(of recording: StoredRecording) -> (RecordingState, heardAt: Timestamp?) {
    guard recording.state == .running, !recording.isOfRunningCall, let silence = store.silence(of: recording.id) else {
      return (recording.state, nil)
    }
    return (silence >= Self.silence ? .silent : .running, clock.now() - silence + clock.lag)
  }
}
