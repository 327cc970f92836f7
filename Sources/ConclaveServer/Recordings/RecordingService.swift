import CallMessages
import Contract
import MediaModel
import Recording
import ReelStore
import Synchronization

/// Answers requests about recordings (protocol section 13.4), from the store, beside the control plane, and tells people what follows from them.
final class RecordingService: Sendable {
  /// The most answers under way; a further request is told to come back.
  static let maximumWaiting = 256
  /// The number of the one reel of a device's recording.
  static let reel: UInt32 = 1
  /// How long a recording is kept that nobody can open.
  static let draftTime = Duration.seconds(86_400)

  let store: RecordingStore
  let catalogue: RecordingCatalogue
  let clock: WallClock
  private let days: Configuration.Recordings.Days
  private let limits: RecordingLedger.Limits
  let tell: @Sendable (RecordingNews) -> Void
  let followers = Mutex(RecordingFollowers())
  private let waiting = Mutex(0)

  /// - Parameter tell: called once what it is about is stored, and after the reply to the request from which it follows.
  init(
    _ store: RecordingStore, configuration: Configuration.Recordings, clock: WallClock,
    tell: @escaping @Sendable (RecordingNews) -> Void
  ) {
    self.tell = tell
    self.store = store
    self.clock = clock
    catalogue = RecordingCatalogue(store: store, clock: clock)
    days = configuration.days
    limits = configuration.store(in: "").limits
  }

  // MARK: answers

  /// A reply, and what people are told then.
  typealias Outcome = (reply: CallMessages.Reply, news: [RecordingNews])

  /// - Parameter done: called once, on any thread.
  func answer(_ query: RecordingQuery, done: @escaping @Sendable (CallMessages.Reply) -> Void) {
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
      let outcome = await outcome(of: query)
      done(outcome.reply)
      for news in outcome.news { tell(news) }
      waiting.withLock { $0 -= 1 }
    }
  }

  func outcome(of query: RecordingQuery) async -> Outcome {
    let device = query.device
    do throws(RequestError) {
      switch query.request {
      case .start(let body):
        let (started, news) = try await start(body, query)
        return (.ok(.startedRecording(started)), news)
      case .list(let body):
        let list = try await refusing { () async throws(RecordingRefusal) in
          try await catalogue.list(body, of: device)
        }
        return (.ok(.recordings(list)), [])
      case .get(let body): return (.ok(.recording(try await manifest(body, for: device))), [])
      case .finish(let body):
        try await finish(body, by: device)
        return (.ok(.nothing), [])
      case .note(let body):
        try await add(body, by: device)
        return (.ok(.nothing), [])
      case .share(let body): return (.ok(.nothing), try await share(body, query))
      case .seen(let body): return (.ok(.nothing), try await see(body.id, by: device))
      case .erase(let body): return (.ok(.nothing), try await erase(body, by: device))
      case .delete(let body): return (.ok(.nothing), try await delete(body.ids, by: device))
      }
    } catch {
      return (.failed(error), [])
    }
  }

  // MARK: the recording device

  private func start(
    _ body: StartRecording, _ query: RecordingQuery
  ) async throws(RequestError) -> (StartedRecording, [RecordingNews]) {
    let checks = try checks(query)
    let (statement, id, user) = (body.statement, body.statement.id, query.device.user)
    try checks.check(statement)
    let hash = checks.hash(of: statement)
    try checks.check(body.reelKey, reel: Self.reel, statement: hash)
    try checks.check(body.grants ?? [], of: id, statement: hash)
    for note in body.notes ?? [] { try checks.check(note, statement: hash, field: "notes") }
    let others = query.request.recipients(besides: user)
    let reached = try await reached(others, query)
    let now = clock.now()
    var granting = Granting(
      grants: (body.grants ?? []).filter { $0.to.user == user || reached.contains($0.to.user) },
      notes: body.notes ?? [], author: user, expiresAt: now + keeping(statement.kind), at: now)
    // One reader who cannot be reached keeps nobody from recording.
    granting.leavesOut = true
    if body.alert == true { granting.alerts = others.filter(reached.contains) }
    let ticket = UploadTicket.fresh()
    let author = RecordedPerson(
      participant: Self.reel, user: user, device: query.device.device, name: query.name,
      fingerprint: Base64Bytes(checks.fingerprint), keys: query.entry?.keys ?? [])
    let record = RecordingRecord(
      statement: statement, author: author, reelKey: body.reelKey, ticket: ticket.hash)
    let recording = StoredRecording(
      id: id, kind: statement.kind, owner: query.device, startedAt: now,
      expiresAt: now + min(Self.draftTime, keeping(statement.kind)), isDraft: true,
      reels: [StoredReel(number: Self.reel, user: user)])
    let wanted = granting
    let granted = try await refusing { () async throws(RecordingRefusal) in
      try await store.begin(recording, as: statement, with: [.described(id, record)], wanted)
    }
    noteFollowers(of: id, body.notes)
    let holders = Set(granting.grants.map(\.to.user)).subtracting(granted.leftOut)
    var results: [UserID: ReaderResult] = [:]
    for other in others {
      if !reached.contains(other) || granted.leftOut.contains(other) {
        results[other] = .unavailable
      } else if query.keyless.contains(other) {
        results[other] = .noKeys
      } else if holders.contains(other) {
        results[other] = .shared
      }
    }
    let started = StartedRecording(
      recording: id, ticket: ticket.text,
      limits: .init(
        segmentBytes: SegmentHeader.maximumSegmentBytes, bytes: Int(store.room(of: user)),
        seconds: statement.kind == .message ? limits.messageSeconds : 3_600 * limits.hours),
      results: results)
    return (started, news(of: granted, statement, at: now))
  }

  private func keeping(_ kind: RecordingKind) -> Duration {
    let days =
      switch kind {
      case .call: days.call
      case .message: days.message
      case .own: days.own
      }
    return .seconds(86_400 * days)
  }

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

  private func add(_ body: AddNote, by device: Device) async throws(RequestError) {
    let (record, checks) = try await authored(body.id, by: device)
    try checks.check(body.note, statement: checks.hash(of: record.statement), field: "ciphertext")
    try await refusing { () async throws(RecordingRefusal) in try await store.note([.note(body.id, body.note)]) }
    noteFollowers(of: body.id, [body.note])
  }

  private func noteFollowers(of id: RecordingID, _ notes: [RecordingNote]?) {
    for note in notes ?? [] { followers.withLock { $0.note(note.number, of: id) } }
  }

  // MARK: owners and readers

  private func manifest(_ body: GetRecording, for device: Device) async throws(RequestError) -> RecordingManifest {
    let found = try await refusing { () async throws(RecordingRefusal) in
      try await catalogue.manifest(body, for: device.user)
    }
    guard let found else { throw .recordingNotFound }
    // Readers of a call's recording get it when it has ended, and its owner is in the call.
    if found.recording.state == .running, !found.recording.isOfRunningCall {
      let state = catalogue.change(of: found.recording)
      followers.withLock { $0.follow(device, state, owner: found.recording.owner.user, now: clock.now()) }
    }
    return found.manifest
  }

  private func share(_ body: ShareRecording, _ query: RecordingQuery) async throws(RequestError) -> [RecordingNews] {
    let user = query.device.user
    let checks = try checks(query)
    let found = try await ask { storage throws(StoreError) -> RecordingRecord? in
      guard let recording = try storage.recording(body.id) else { return nil }
      let hasGrant = try !storage.grants(of: body.id, to: user).isEmpty
      guard recording.isOpen(to: user, hasGrant: hasGrant), !recording.isOfRunningCall else { return nil }
      return try storage.record(of: body.id)
    }
    guard let record = found else { throw .recordingNotFound }
    let hash = RecordingChecks.hash(of: record.statement, fingerprint: record.author.fingerprint.bytes)
    try checks.check(body.grants, of: body.id, statement: hash)
    for note in body.notes ?? [] {
      guard record.statement.by == query.device else { throw .notTheRecordingsDevice }
      try checks.check(note, statement: hash, field: "notes")
    }
    let others = query.request.recipients(besides: user)
    guard try await reached(others, query).isSuperset(of: others) else {
      throw RequestError(
        .recordingNotAllowed, "one of these users takes no recordings of this one: there was no call with it",
        field: "grants")
    }
    let now = clock.now()
    let granting = Granting(
      grants: body.grants, notes: body.notes ?? [], author: user, expiresAt: now + keeping(record.statement.kind),
      at: now)
    let granted = try await refusing { () async throws(RecordingRefusal) in
      try await store.grant(granting, of: body.id)
    }
    noteFollowers(of: body.id, body.notes)
    return news(of: granted, record.statement, at: now)
  }

  private func news(of granted: NewGrants, _ statement: RecordingStatement, at now: Timestamp) -> [RecordingNews] {
    var news: [RecordingNews] = []
    let shared = granted.grants.filter { !granted.alerted.contains($0.to.user) }.map {
      RecordingShared(recording: statement.id, kind: statement.kind, by: statement.by, grant: $0)
    }
    if !shared.isEmpty { news.append(.shared(shared, newcomers: granted.newcomers.subtracting(granted.alerted))) }
    guard !granted.alerted.isEmpty else { return news }
    let grants = Dictionary(grouping: granted.grants, by: \.to.user)
    let users = Dictionary(uniqueKeysWithValues: granted.alerted.map { ($0, grants[$0] ?? []) })
    news.append(
      .alert(RecordingAlert(recording: statement.id, kind: statement.kind, by: statement.by, at: now, users: users)))
    return news
  }

  /// Once for each reader: the owner is told.
  private func see(_ id: RecordingID, by device: Device) async throws(RequestError) -> [RecordingNews] {
    let found = try await ask { storage throws(StoreError) -> (owner: UserID, reader: StoredReader)? in
      guard let recording = try storage.recording(id), recording.owner.user != device.user,
        let reader = try storage.readers(of: id).first(where: { $0.user == device.user }),
        recording.isOpen(to: device.user, hasGrant: reader.grants > 0)
      else { return nil }
      return (recording.owner.user, reader)
    }
    guard let found else { throw .recordingNotFound }
    guard found.reader.seenAt == nil else { return [] }
    let now = clock.now()
    try await refusing { () async throws(RecordingRefusal) in
      try await store.note([.reader(id, device.user, .seen(now)), .reader(id, device.user, .opened)])
    }
    return [.seen(RecordingMention(recording: id, by: device), owner: found.owner)]
  }

  /// Nothing is deleted if one of them is the user's recording of a running call.
  private func delete(_ ids: [RecordingID], by device: Device) async throws(RequestError) -> [RecordingNews] {
    let user = device.user
    let isRecording = try await ask { storage throws(StoreError) in
      for id in ids {
        if let recording = try storage.recording(id), recording.owner.user == user, recording.isOfRunningCall {
          return true
        }
      }
      return false
    }
    guard !isRecording else {
      throw RequestError(.recordingNotAllowed, "the call is recorded now: stop the recording first", field: "ids")
    }
    var news: [RecordingNews] = []
    for id in ids { news += try await delete(id, by: device) }
    return news
  }

  /// The owner deletes it for everybody, a reader only for itself. Others' recordings are ignored.
  private func delete(_ id: RecordingID, by device: Device) async throws(RequestError) -> [RecordingNews] {
    let user = device.user
    if let gone = try await remove(id, of: user, by: device) { return [gone] }
    let isReader = try await ask { storage throws(StoreError) in try !storage.grants(of: id, to: user).isEmpty }
    guard isReader else { return [] }
    try await refusing { () async throws(RecordingRefusal) in try await store.note([.grantsGone(id, user)]) }
    return [.removed(RecordingRemoved(recording: id, by: device), users: [user])]
  }

  func remove(
    _ id: RecordingID, of owner: UserID?, by device: Device?
  ) async throws(RequestError) -> RecordingNews? {
    let deleted = try await refusing { () async throws(RecordingRefusal) in try await store.delete(id, of: owner) }
    guard let (recording, readers) = deleted else { return nil }
    let users = Set(readers.map(\.user)).union([recording.owner.user])
    return .removed(RecordingRemoved(recording: id, by: device), users: users)
  }

  /// A recorded user erases its own reels, the owner any one that it names. A recording without reels is deleted.
  private func erase(_ body: EraseReel, by device: Device) async throws(RequestError) -> [RecordingNews] {
    let user = device.user
    let found = try await ask { storage throws(StoreError) in try storage.recording(body.id) }
    guard let recording = found else { throw .recordingNotFound }
    let isOwner = recording.owner.user == user
    guard !recording.isOfRunningCall else {
      guard isOwner || recording.reels.contains(where: { $0.user == user }) else { throw .recordingNotFound }
      throw RequestError(
        .recordingNotAllowed, "the call is recorded now: take record/consent with erase, or wait for its end",
        field: "id")
    }
    let erased = recording.reels.filter {
      (body.participant == nil ? $0.user == user : $0.number == body.participant) && ($0.user == user || isOwner)
    }
    guard !erased.isEmpty else {
      let isReader = try await ask { storage throws(StoreError) in try !storage.grants(of: body.id, to: user).isEmpty }
      guard isOwner || isReader else { throw .recordingNotFound }
      throw RequestError(.recordingNotAllowed, "there is no such reel, or another user is in it", field: "participant")
    }
    guard erased.count < recording.reels.count else {
      return try await remove(body.id, of: nil, by: device).map { [$0] } ?? []
    }
    for reel in erased {
      _ = try await refusing { () async throws(RecordingRefusal) in try await store.erase(body.id, reel: reel.number) }
    }
    return []
  }

  // MARK: of calls

  /// The recording of a call begins. Grants to guests, and to others than the statement's readers, are left out.
  func begin(
    _ body: StartCallRecording, _ author: RecordedPerson, expiresAt: Timestamp, now: Timestamp
  ) async throws(RecordingRefusal) {
    let statement = body.statement
    let grants = (body.grants ?? []).filter { statement.readers.contains($0.to.user) && !$0.to.user.isGuest }
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
    let recording = StoredRecording(
      id: statement.id, kind: .call, owner: statement.by, startedAt: now, expiresAt: expiresAt, reels: [])
    let record = RecordingRecord(statement: statement, author: author)
    try await store.begin(
      recording, as: statement, with: [.described(statement.id, record)],
      Granting(grants: grants, notes: body.notes ?? [], author: statement.by.user, expiresAt: expiresAt, at: now))
  }

  /// A call's recording has ended: its readers may open it now.
  func announceGrants(of id: RecordingID) async {
    let found = try? await store.ask { storage throws(StoreError) -> (RecordingStatement, NewGrants)? in
      guard let record = try storage.record(of: id) else { return nil }
      var granted = NewGrants()
      for reader in record.statement.readers { granted.grants += try storage.grants(of: id, to: reader) }
      return (record.statement, granted)
    }
    guard let (statement, granted) = found else { return }
    for news in news(of: granted, statement, at: clock.now()) { tell(news) }
  }

  /// Readers who were in the call have it in common with its starter, and are told of no others.
  private func checkAcquaintance(of user: UserID, with grants: [RecordingGrant]) async throws(RequestError) {
    let others = Set(grants.map(\.to.user)).subtracting([user])
    guard !others.isEmpty else { return }
    let known = try await ask { storage throws(StoreError) in try storage.acquainted(user, with: others.sorted()) }
    guard known.isSuperset(of: others) else {
      throw RequestError(
        .recordingNotAllowed, "a recording is for people with whom one had a call, or rang", field: "grants")
    }
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
    guard let record = try await ask({ storage throws(StoreError) in try storage.record(of: id) }),
      let checks = RecordingChecks(author: record)
    else { throw .recordingNotFound }
    guard record.statement.by == device else { throw .notTheRecordingsDevice }
    return (record, checks)
  }

  /// The users to whom recordings may go. A guest is none of them, and goes with its call; a stranger may not fill anybody's list.
  private func reached(_ others: [UserID], _ query: RecordingQuery) async throws(RequestError) -> Set<UserID> {
    let users = others.filter { !$0.isGuest }
    if let allowed = query.allowed { return allowed.intersection(users) }
    guard !users.isEmpty else { return [] }
    let user = query.device.user
    return try await ask { storage throws(StoreError) in try storage.acquainted(user, with: users) }
  }

  func ask<Value: Sendable>(
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
