import Calls
import Contract
import Listening
import Logging
import MediaModel
import Recording
import ReelStore
import Synchronization

/// Answers requests about recordings (protocol section 13.4), from the store, beside the control plane.
final class RecordingService: Sendable {
  /// The most answers under way; a further request is told to come back.
  static let maximumWaiting = 256
  /// Segments of each reel in one page.
  static let page = 1_000

  let store: RecordingStore
  private let clock: WallClock
  private let days: Configuration.Recordings.Days
  private let limits: RecordingLedger.Limits
  private let tell: @Sendable ([RecordingShared]) -> Void
  private let waiting = Mutex(0)

  /// - Parameter tell: called with grants once they are stored.
  init(
    _ store: RecordingStore, configuration: Configuration.Recordings, clock: WallClock,
    tell: @escaping @Sendable ([RecordingShared]) -> Void
  ) {
    self.tell = tell
    self.store = store
    self.clock = clock
    days = configuration.days
    limits = configuration.store(in: "").limits
  }

  /// Deletes expired recordings now and each hour, until it is cancelled.
  func expire(log: LimitedLog) -> Task<Void, Never> {
    Task { [store, clock] in
      while !Task.isCancelled {
        do {
          while try await store.expire(now: clock.now()) {}
        } catch {
          log.log(.recordings, .error, "expired recordings were not deleted; the next try is in an hour", [:])
        }
        try? await Task.sleep(for: .seconds(3_600))
      }
    }
  }

  /// - Parameter done: called once, on any thread.
  func answer(_ query: RecordingQuery, done: @escaping @Sendable (Calls.Reply) -> Void) {
    let hasRoom = waiting.withLock { waiting in
      guard waiting < Self.maximumWaiting else { return false }
      waiting += 1
      return true
    }
    guard hasRoom else {
      return done(
        .failed(RequestError(.serverBusy, "too many ask for recordings: try again in a moment", retryAfterMs: 1_000)))
    }
    Task {
      done(await reply(to: query))
      waiting.withLock { $0 -= 1 }
    }
  }

  func reply(to query: RecordingQuery) async -> Calls.Reply {
    do throws(RequestError) {
      switch query.request {
      case .start(let body): return .ok(.startedRecording(try await start(body, query)))
      case .finish(let body): try await finish(body, by: query.device)
      case .list(let body): return .ok(.recordings(try await list(body, of: query.device)))
      case .get(let body): return .ok(.recording(try await manifest(body, for: query.device.user)))
      case .share(let body): try await share(body, query)
      case .note(let body): try await add(body, by: query.device)
      case .delete(let body): for id in body.ids { try await delete(id, for: query.device.user) }
      }
      return .ok(.nothing)
    } catch {
      return .failed(error)
    }
  }

  private func start(_ body: StartRecording, _ query: RecordingQuery) async throws(RequestError) -> StartedRecording {
    let checks = try checks(query)
    let (statement, id) = (body.statement, body.statement.id)
    try checks.check(statement)
    let hash = checks.hash(of: statement)
    try checks.check(body.reelKey, reel: Self.reel, statement: hash)
    try checks.check(body.grants ?? [], of: id, statement: hash)
    for note in body.notes ?? [] { try checks.check(note, statement: hash, field: "notes") }
    try await checkAcquaintance(of: query.device.user, with: body.grants ?? [])
    if let earlier = try await ask({ store throws(StoreError) in try store.record(of: id) }),
      earlier.statement != statement
    {
      throw RequestError(
        .recordingNotAllowed, "another recording has this id: take a random one", field: "statement.id")
    }
    let ticket = UploadTicket.fresh()
    let author = RecordedPerson(
      participant: Self.reel, user: query.device.user, device: query.device.device, name: query.name,
      fingerprint: Base64Bytes(checks.fingerprint), keys: query.entry?.keys ?? [])
    let record = RecordingRecord(
      statement: statement, author: author, reelKey: body.reelKey, ticket: ticket.hash)
    let now = clock.now()
    let recording = StoredRecording(
      id: id, kind: statement.kind, owner: query.device, startedAt: now,
      expiresAt: now + .seconds(86_400 * (statement.kind == .message ? days.message : days.own)),
      reels: [StoredReel(number: Self.reel, user: query.device.user)])
    let facts = [.described(id, record)] + Self.facts(of: id, grants: body.grants, notes: body.notes)
    try await refusing { () async throws(RecordingRefusal) in try await store.begin(recording, with: facts) }
    announce(body.grants ?? [], of: statement)
    return StartedRecording(
      recording: id, ticket: ticket.text,
      limits: .init(
        segmentBytes: SegmentHeader.maximumSegmentBytes, bytes: Int(store.room(of: query.device.user)),
        seconds: statement.kind == .message ? limits.messageSeconds : 3_600 * limits.hours))
  }

  /// A device's recording has one reel.
  private static let reel: UInt32 = 1

  private func finish(_ body: FinishRecording, by device: Device) async throws(RequestError) {
    let (record, checks) = try await authored(body.id, by: device)
    guard record.statement.kind != .call else {
      throw RequestError(.recordingNotAllowed, "a call's recording ends by record/stop, or with the call", field: "id")
    }
    let hash = checks.hash(of: record.statement)
    var heads: [UInt32: ReelHead] = [:]
    var facts: [RecordingFact] = []
    for reel in body.reels {
      let witness = ReelWitness(
        reel: reel.reel, segments: reel.segments, head: reel.head, at: reel.at, isEnd: true, by: device,
        sigAlg: reel.sigAlg, signature: reel.signature)
      guard let head = SegmentHash(reel.head.bytes), heads[reel.reel] == nil,
        checks.isSigned(witness, statement: hash)
      else {
        throw RequestError(
          .requestInvalid, "name each reel once, with a witness with isEnd that this device signed", field: "reels")
      }
      heads[reel.reel] = ReelHead(segments: reel.segments, hash: head, isEnd: true)
      facts.append(.witness(body.id, witness))
    }
    let ends = heads
    let witnesses = facts
    try await refusing { () async throws(RecordingRefusal) in
      try await store.finish(body.id, heads: ends, with: witnesses)
    }
  }

  private func list(_ body: ListRecordings, of device: Device) async throws(RequestError) -> RecordingList {
    let user = device.user
    let filter = RecordingFilter(
      before: body.before ?? Timestamp(milliseconds: .max), limit: body.limit ?? 50, kind: body.kind, role: body.role)
    let found = try await ask { store throws(StoreError) in
      var entries: [RecordingEntry] = []
      for recording in try store.recordings(of: user, filter) {
        let grants = try store.grants(of: recording.id, to: user)
        guard recording.isOpen(to: user, hasGrant: !grants.isEmpty) else { continue }
        let grant = grants.first { $0.to.device == device.device } ?? grants.first { $0.to.device == nil }
        let call = try store.record(of: recording.id)?.statement.call
        entries.append(RecordingEntry(recording, for: user, call: call, grant: grant))
      }
      return entries
    }
    return RecordingList(recordings: found)
  }

  private func manifest(
    _ body: GetRecording, for user: UserID
  ) async throws(RequestError) -> RecordingManifest {
    let from = body.from ?? 0
    let manifest = try await ask { store throws(StoreError) -> RecordingManifest? in
      guard let recording = try store.recording(body.id), let record = try store.record(of: body.id) else { return nil }
      let grants = try store.grants(of: body.id, to: user)
      guard recording.isOpen(to: user, hasGrant: !grants.isEmpty) else { return nil }
      var reels: [ReelPage] = []
      for reel in recording.reels {
        let segments = try store.segments(of: body.id, reel: reel.number, from: from, limit: Self.page)
        reels.append(
          ReelPage(
            participant: reel.number, from: from,
            segments: segments.map {
              ReelPage.Segment(byteCount: $0.byteCount, hash: Base64Bytes($0.hash.bytes), start: $0.start)
            }))
      }
      return RecordingManifest(
        statement: record.statement, state: recording.state, bytes: Int(recording.byteCount),
        people: try Self.people(record.author, store.people(of: body.id)),
        reelKeys: record.reelKey.map { [.init(reel: Self.reel, $0)] } ?? [], reels: reels, grants: grants,
        notes: try store.notes(of: body.id), witnesses: try store.witnesses(of: body.id),
        trackKeys: try recording.kind == .call && from == 0 ? store.trackKeys(of: body.id) : nil)
    }
    guard let manifest else { throw .recordingNotFound }
    return manifest
  }

  /// The device that recorded is first, and its reel may be among the others.
  private static func people(_ author: RecordedPerson, _ others: [RecordedPerson]) -> [RecordedPerson] {
    [author] + others.filter { $0.participant != author.participant }
  }

  private func share(_ body: ShareRecording, _ query: RecordingQuery) async throws(RequestError) {
    let user = query.device.user
    let checks = try checks(query)
    let record = try await ask { store throws(StoreError) -> RecordingRecord? in
      guard let recording = try store.recording(body.id) else { return nil }
      let hasGrant = try !store.grants(of: body.id, to: user).isEmpty
      guard recording.isOpen(to: user, hasGrant: hasGrant), !recording.isOfRunningCall else { return nil }
      return try store.record(of: body.id)
    }
    guard let record else { throw .recordingNotFound }
    let hash = RecordingChecks.hash(of: record.statement, fingerprint: record.author.fingerprint.bytes)
    try checks.check(body.grants, of: body.id, statement: hash)
    for note in body.notes ?? [] {
      guard record.statement.by == query.device else { throw .notTheRecordingsDevice }
      try checks.check(note, statement: hash, field: "notes")
    }
    try await checkAcquaintance(of: user, with: body.grants)
    let facts = Self.facts(of: body.id, grants: body.grants, notes: body.notes)
    try await refusing { () async throws(RecordingRefusal) in try await store.note(facts) }
    announce(body.grants, of: record.statement)
  }

  private func announce(_ grants: [RecordingGrant], of statement: RecordingStatement) {
    guard !grants.isEmpty else { return }
    tell(
      grants.map { RecordingShared(recording: statement.id, kind: statement.kind, by: statement.by, grant: $0) })
  }

  private func add(_ body: AddNote, by device: Device) async throws(RequestError) {
    let (record, checks) = try await authored(body.id, by: device)
    try checks.check(body.note, statement: checks.hash(of: record.statement), field: "ciphertext")
    try await refusing { () async throws(RecordingRefusal) in try await store.note([.note(body.id, body.note)]) }
  }

  /// The owner deletes it for everybody, a reader only for itself.
  private func delete(_ id: RecordingID, for user: UserID) async throws(RequestError) {
    let recording = try await ask { store throws(StoreError) in try store.recording(id) }
    guard recording?.owner.user != user || recording?.isOfRunningCall != true else {
      throw RequestError(.recordingNotAllowed, "the call is recorded now: stop the recording first", field: "ids")
    }
    try await refusing { () async throws(RecordingRefusal) in
      if recording?.owner.user == user {
        _ = try await store.delete(id)
      } else if recording != nil {
        try await store.note([.grantsGone(id, user)])
      }
    }
  }

  private static func facts(
    of id: RecordingID, grants: [RecordingGrant]?, notes: [RecordingNote]?
  ) -> [RecordingFact] {
    var facts = (grants ?? []).map { RecordingFact.grant($0) }
    facts += (notes ?? []).map { RecordingFact.note(id, $0) }
    return facts
  }

  // MARK: of calls

  /// The recording of a call begins. Grants to others than the statement's readers are left out.
  func begin(
    _ body: StartCallRecording, _ author: RecordedPerson, expiresAt: Timestamp, now: Timestamp
  ) async throws(RecordingRefusal) {
    let statement = body.statement
    let grants = (body.grants ?? []).filter { statement.readers.contains($0.to.user) }
    do throws(RequestError) {
      guard let checks = RecordingChecks(statement.by, fingerprint: author.fingerprint, keys: author.keys) else {
        throw .recordingNotFound
      }
      let hash = checks.hash(of: statement)
      try checks.check(grants, of: statement.id, statement: hash)
      for note in body.notes ?? [] { try checks.check(note, statement: hash, field: "notes") }
      try await checkAcquaintance(of: statement.by.user, with: grants)
    } catch {
      throw .invalid
    }
    let earlier = try await store.ask { store throws(StoreError) in try store.record(of: statement.id) }
    guard earlier == nil || earlier?.statement == statement else { throw .taken }
    let recording = StoredRecording(
      id: statement.id, kind: .call, owner: statement.by, startedAt: now, expiresAt: expiresAt, reels: [])
    let record = RecordingRecord(statement: statement, author: author)
    try await store.begin(
      recording,
      with: [.described(statement.id, record)] + Self.facts(of: statement.id, grants: grants, notes: body.notes))
  }

  /// A call's recording has ended: its readers may open it now.
  func announceGrants(of id: RecordingID) async {
    let found = try? await store.ask { store throws(StoreError) -> (RecordingStatement, [RecordingGrant])? in
      guard let record = try store.record(of: id) else { return nil }
      var grants: [RecordingGrant] = []
      for reader in record.statement.readers { grants += try store.grants(of: id, to: reader) }
      return (record.statement, grants)
    }
    guard let (statement, grants) = found else { return }
    announce(grants, of: statement)
  }

  // MARK: what requests need

  private func checks(_ query: RecordingQuery) throws(RequestError) -> RecordingChecks {
    guard let entry = query.entry,
      let checks = RecordingChecks(query.device, fingerprint: entry.fingerprint, keys: entry.keys)
    else { throw RequestError(.keysNotAllowed, "only a device with keys records and shares: register them first") }
    return checks
  }

  /// The record of a recording that this device began, and the keys that it had then.
  private func authored(
    _ id: RecordingID, by device: Device
  ) async throws(RequestError) -> (RecordingRecord, RecordingChecks) {
    guard let record = try await ask({ store throws(StoreError) in try store.record(of: id) }),
      let checks = RecordingChecks(author: record)
    else { throw .recordingNotFound }
    guard record.statement.by == device else { throw .notTheRecordingsDevice }
    return (record, checks)
  }

  /// A stranger may not send recordings to anyone: there is a call, or history, in common.
  private func checkAcquaintance(of user: UserID, with grants: [RecordingGrant]) async throws(RequestError) {
    let others = Set(grants.map(\.to.user)).subtracting([user]).sorted()
    guard !others.isEmpty else { return }
    let known = try await ask { store throws(StoreError) in try store.acquainted(user, with: others) }
    guard known.isSuperset(of: others) else {
      throw RequestError(
        .recordingNotAllowed, "a recording is for people with whom one had a call, or rang", field: "grants")
    }
  }

  private func ask<Value: Sendable>(
    _ question: @escaping @Sendable (any Storage) throws(StoreError) -> Value
  ) async throws(RequestError) -> Value {
    try await refusing { () async throws(RecordingRefusal) in try await store.ask(question) }
  }

  private func refusing<Value: Sendable>(
    _ body: () async throws(RecordingRefusal) -> Value
  ) async throws(RequestError) -> Value {
    do throws(RecordingRefusal) {
      return try await body()
    } catch {
      throw RequestError(error)
    }
  }
}

extension StoredRecording {
  /// While a call is recorded, its readers get nothing: with the server's help they could speak under an exported key.
  var isOfRunningCall: Bool { kind == .call && state == .running }

  func isOpen(to user: UserID, hasGrant: Bool) -> Bool { owner.user == user || hasGrant && !isOfRunningCall }
}

extension RecordingEntry {
  init(_ recording: StoredRecording, for user: UserID, call: CallID?, grant: RecordingGrant?) {
    self.init(
      id: recording.id, kind: recording.kind, role: recording.owner.user == user ? .owner : .reader,
      by: recording.owner, call: call, startedAt: recording.startedAt, bytes: Int(recording.byteCount),
      state: recording.state, expiresAt: recording.expiresAt, grant: grant)
  }
}

extension RequestError {
  /// Also for a recording that the user may not open.
  static let recordingNotFound = RequestError(
    .recordingNotFound, "there is no such recording, or this user may not open it")
  static let notTheRecordingsDevice = RequestError(.recordingNotAllowed, "only the device that records may do that")

  init(_ refusal: RecordingRefusal) {
    self =
      switch refusal {
      case .notFound: RequestError(.recordingEnded, "the recording has ended or is gone: begin another one")
      case .taken:
        RequestError(.recordingNotAllowed, "another recording has this id: take a random one", field: "statement.id")
      case .conflict(let position):
        RequestError(
          .recordingIncomplete, "upload the segments from `next` on, then finish again", next: position.next)
      case .quota: RequestError(.recordingFull, "there is no room left: delete recordings")
      case .diskFull: RequestError(.recordingFull, "the server's disk is full: try again later", retryAfterMs: 60_000)
      case .busy: RequestError(.serverBusy, "too much is uploaded: try again in a moment", retryAfterMs: 1_000)
      case .unavailable:
        RequestError(.recordingUnavailable, "the store of recordings does not answer: try again", retryAfterMs: 5_000)
      case .invalid, .unsigned: RequestError(.requestInvalid, "name each reel of the recording", field: "reels")
      case .tooLarge, .tooLong: RequestError(.requestTooLarge, "the recording is as long as it may be")
      }
  }
}
