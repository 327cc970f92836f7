import Contract
import Foundation
import MediaModel
import Recording

/// Sends a recording's segments to the server, one at a time and in order, and goes on by itself after a lost network. A ticket is all that it needs, so it goes on
/// when the token has ended.
public actor SegmentUploader {
  /// The state of an upload.
  public enum State: String, Sendable, Hashable {
    case uploading
    /// It waits for the network or the server, and tries again.
    case waiting
    /// The server has no room, and is asked again every 30 s.
    case full
    /// Everything that is sealed is at the server, which has shown its hash.
    case stored
    /// Over: the server has other segments, or no longer those that are not here either.
    case lost
    /// Over: the recording was finished or deleted.
    case ended
    /// Over: the server refuses it.
    case refused

    /// Nothing more is sent.
    public var isOver: Bool { self == .lost || self == .ended || self == .refused }
  }

  /// How far an upload is.
  public struct Progress: Sendable, Hashable {
    /// The state.
    public var state: State
    /// How many segments were added.
    public var sealed: UInt32
    /// How many the server has said that it stored.
    public var stored: UInt32
    /// How many it has shown to have. Those need not be kept, except as long as there is room: a server that loses them gets them again.
    public var confirmed: UInt32
  }

  /// The answer to a registration.
  public enum Registration: Sendable, Hashable {
    /// The ticket with which segments are sent. Secret.
    case ticket(String)
    /// This user, or the server, has no room: try again later.
    case full
    /// The recording was finished or deleted.
    case ended
    /// The server refuses it for good.
    case refused
    /// There was no answer, or one that is not final.
    case failed
  }

  /// Each change of the progress; the newest one waits.
  public nonisolated let updates: AsyncStream<Progress>

  private let id: RecordingID
  private let transport: any SegmentTransport
  private let register: @Sendable () async -> Registration
  /// Bytes of segments that may wait here.
  private let limit: Int
  private var plan: UploadPlan
  /// From number `plan.kept` on.
  private var segments: [SealedSegment] = []
  private var bytes = 0
  /// The hash of the segment before `segments`.
  private var head = SegmentHash.zeros
  private var ticket = ""
  private var running: Task<Void, Never>?
  private var pause: Task<Void, Never>?
  private var isClosed = false
  private var generator = SystemRandomNumberGenerator()
  private let sink: AsyncStream<Progress>.Continuation
  private var told: Progress?

  /// - Parameters:
  ///   - draft: of the recording's `RecordingWriter`.
  ///   - segments: those that were stored and not sent yet, in order, after a restart of the app. The server has those before them.
  ///   - limit: how many bytes of segments are kept here: those that wait, and confirmed ones while there is room.
  ///   - register: asks the server for a ticket, for example `CallClient.registration(of:)`.
  /// nil if `segments` do not follow each other, or are not of this recording.
  public init?(
    _ draft: RecordingDraft, over transport: some SegmentTransport, resuming segments: [SealedSegment] = [],
    limit: Int = 64 << 20, register: @escaping @Sendable () async -> Registration
  ) {
    guard Self.follow(segments, in: draft.statement.id) else { return nil }
    id = draft.statement.id
    self.transport = transport
    self.register = register
    self.limit = limit
    self.segments = segments
    bytes = segments.reduce(0) { $0 + $1.file.count }
    plan = UploadPlan(first: segments.first?.number ?? draft.segments)
    for _ in segments { plan.add() }
    if let first = segments.first {
      head = first.header.previous
    } else {
      head = SegmentHash(draft.head.bytes) ?? .zeros
    }
    (updates, sink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  private static func follow(_ segments: [SealedSegment], in recording: RecordingID) -> Bool {
    segments.allSatisfy { $0.header.recording == recording }
      && zip(segments, segments.dropFirst()).allSatisfy {
        $0.number + 1 == $1.number && $0.hash == $1.header.previous
      }
  }

  deinit { sink.finish() }

  /// How far it is.
  public var progress: Progress {
    Progress(state: plan.state, sealed: plan.sealed, stored: plan.stored, confirmed: plan.confirmed)
  }

  /// Begins to send; `add` does so, too.
  public func start() { go() }

  /// Adds the next segment. False if it is not the next one, or as many bytes wait as may: keep it, and add it when `progress` has moved on.
  public func add(_ segment: SealedSegment) -> Bool {
    guard !isClosed, segment.header.recording == id, segment.number == plan.sealed,
      segment.header.previous == segments.last?.hash ?? head
    else { return false }
    makeRoom(for: segment.file.count)
    guard segments.isEmpty || bytes + segment.file.count <= limit else { return false }
    segments.append(segment)
    bytes += segment.file.count
    plan.add()
    go()
    return true
  }

  /// The network is back, or is another one: tries again at once.
  public func hurry() {
    plan.hurry()
    pause?.cancel()
    go()
  }

  /// Returns when everything that was added is at the server, or nothing more is sent.
  public func settle() async -> State {
    go()
    while let running { await running.value }
    return plan.state
  }

  /// Sends nothing more.
  public func close() {
    isClosed = true
    running?.cancel()
    pause?.cancel()
    sink.finish()
  }

  // MARK: sending

  private func go() {
    guard running == nil, !isClosed else { return }
    running = Task { await run() }
  }

  private func run() async {
    defer { running = nil }
    while !isClosed {
      let step = plan.next(now: CallClient.now)
      tell()
      switch step {
      case .rest: return
      case .wait(let until):
        let sleep = Task { _ = try? await Task.sleep(for: CallClient.now.duration(to: until)) }
        pause = sleep
        await sleep.value
      case .register: await askForTicket()
      case .ask: await askPosition()
      case .put(let number): await put(number)
      }
    }
  }

  private func tell() {
    guard told != progress else { return }
    told = progress
    sink.yield(progress)
  }

  private func askForTicket() async {
    let answer = await register()
    switch answer {
    case .ticket(let ticket) where !ticket.isEmpty && ticket.utf8.count <= 256:
      self.ticket = ticket
      plan.registered()
    case .full: plan.registrationFailed(isFull: true, now: CallClient.now, using: &generator)
    case .ended: plan.refuse(.ended)
    case .refused: plan.refuse(.refused)
    case .failed, .ticket: plan.registrationFailed(isFull: false, now: CallClient.now, using: &generator)
    }
  }

  private func askPosition() async {
    let answer = await transport.send(SegmentRequest(.get, "/recordings/\(id.text)", bearer: ticket))
    let position = answer.flatMap { $0.status == 200 ? reelPosition(inState: $0.body) : nil }
    plan.answered(
      ask: answer?.status ?? 0, retryAfter: answer?.retryAfter ?? 0, position: position, now: CallClient.now,
      using: &generator)
  }

  private func put(_ number: UInt32) async {
    guard number >= plan.kept, Int(number - plan.kept) < segments.count else { return plan.refuse(.lost) }
    let segment = segments[Int(number - plan.kept)]
    let answer = await transport.send(
      SegmentRequest(
        .put, "/recordings/\(id.text)/\(RecordingWriter.reel)/\(number)", bearer: ticket,
        witness: segment.witness, body: segment.file))
    let position = answer.flatMap { $0.status == 409 ? reelPosition(inRefusal: $0.body) : nil }
    plan.answered(
      put: answer?.status ?? 0, retryAfter: answer?.retryAfter ?? 0, position: position, now: CallClient.now,
      using: &generator)
  }

  /// Confirmed segments stay as long as there is room.
  private func makeRoom(for count: Int) {
    while bytes + count > limit, plan.kept < plan.confirmed, !segments.isEmpty {
      let first = segments.removeFirst()
      bytes -= first.file.count
      head = first.hash
      plan.kept += 1
    }
  }

  private struct ReelState: Decodable {
    var next: UInt32
    var head: Base64Bytes?
  }

  private struct UploadState: Decodable { var reels: [String: ReelState] }

  private func reelPosition(inState body: [UInt8]) -> UploadPlan.Position? {
    guard let state = try? JSONDecoder().decode(UploadState.self, from: Data(body)) else { return nil }
    return reelPosition(state.reels[String(RecordingWriter.reel)] ?? ReelState(next: 0, head: nil))
  }

  private func reelPosition(inRefusal body: [UInt8]) -> UploadPlan.Position? {
    (try? JSONDecoder().decode(ReelState.self, from: Data(body))).flatMap(reelPosition)
  }

  private func reelPosition(_ state: ReelState) -> UploadPlan.Position? {
    let theirs = state.next == 0 ? SegmentHash.zeros : state.head.flatMap { SegmentHash($0.bytes) }
    guard let theirs else { return nil }
    // Those before `kept` are not here any more: nothing of them can be sent again.
    guard state.next >= plan.kept, Int(state.next - plan.kept) <= segments.count else {
      return UploadPlan.Position(next: state.next, isOurs: false)
    }
    let own = state.next == plan.kept ? head : segments[Int(state.next - plan.kept) - 1].hash
    return UploadPlan.Position(next: state.next, isOurs: own == theirs)
  }
}
