import MediaModel

/// The rules of an upload: what to do next, and what an answer means. It has no clock, network or store.
struct UploadPlan: Sendable {
  static let firstPause: Duration = .milliseconds(500)
  static let longestPause: Duration = .seconds(30)
  /// Between attempts while the server has no room.
  static let fullPause: Duration = .seconds(30)
  static let longestRetryAfter = 300
  /// After so many failures in a row the server is asked how far it is.
  private static let asksAfter = 3
  /// Refusals in a row that contradict what the server said before.
  private static let givesUpAfter = 3
  /// Segments between two questions whether the server has them.
  private static let confirmsEvery: UInt32 = 8

  enum Step: Hashable, Sendable {
    case register
    case ask
    case put(UInt32)
    case wait(until: Instant)
    /// Until a segment is sealed; for ever if it is over.
    case rest
  }

  /// How far the server is, and whether the hash of its newest segment is that of the segment here.
  struct Position: Hashable, Sendable {
    var next: UInt32
    var isOurs: Bool
  }

  private(set) var state = SegmentUploader.State.uploading
  /// How many segments there are.
  private(set) var sealed: UInt32
  /// How many the server has said that it stored.
  private(set) var stored: UInt32
  /// How many of them it has shown to have, when it was asked.
  private(set) var confirmed: UInt32
  /// The first segment that is still here.
  var kept: UInt32
  private var hasTicket = false
  private var mustAsk = false
  private var failures = 0
  private var contradictions = 0
  private var registrations = 0
  private var until = Instant(nanoseconds: 0)

  /// - Parameter first: the first segment that is here: the server has those before it.
  init(first: UInt32 = 0) {
    sealed = first
    stored = first
    confirmed = first
    kept = first
  }

  /// The next step at `now`.
  mutating func next(now: Instant) -> Step {
    if state.isOver { return .rest }
    if now < until { return .wait(until: until) }
    if !hasTicket { return .register }
    if mustAsk || stored - confirmed >= Self.confirmsEvery || stored == sealed && confirmed < stored { return .ask }
    if stored < sealed { return .put(stored) }
    state = .stored
    return .rest
  }

  /// The next segment is sealed.
  mutating func add() {
    sealed += 1
    if state == .stored { state = .uploading }
  }

  /// The network is back, or is another one: no pause.
  mutating func hurry() { if state != .full { until = Instant(nanoseconds: 0) } }

  mutating func registered() {
    hasTicket = true
    // It may be registered for the second time.
    mustAsk = true
    succeeded()
  }

  /// There was no answer to the registration, or one that is not final.
  mutating func registrationFailed(isFull: Bool, now: Instant, using generator: inout some RandomNumberGenerator) {
    if isFull { pause(.full, Self.fullPause, now) } else { fail(retryAfter: 0, now, using: &generator) }
  }

  /// The server has refused to register it, for good.
  mutating func refuse(_ refusal: SegmentUploader.State) { state = refusal }

  /// The answer to `put`; status 0 if there was none. `position` is that of a 409.
  mutating func answered(
    put status: Int, retryAfter: Int, position: Position?, now: Instant,
    using generator: inout some RandomNumberGenerator
  ) {
    switch status {
    case 200, 201:
      stored += 1
      contradictions = 0
      succeeded()
    case 409 where position != nil:
      let before = stored
      if let position { place(position) }
      guard stored == before, !state.isOver else { return }
      contradictions += 1
      if contradictions >= Self.givesUpAfter { state = .refused } else { fail(retryAfter: 0, now, using: &generator) }
    default: refused(status, retryAfter, now, using: &generator)
    }
  }

  /// The answer to `ask`; status 0 if there was none.
  mutating func answered(
    ask status: Int, retryAfter: Int, position: Position?, now: Instant,
    using generator: inout some RandomNumberGenerator
  ) {
    guard status == 200, let position else {
      return refused(status == 200 ? 0 : status, retryAfter, now, using: &generator)
    }
    mustAsk = false
    succeeded()
    place(position)
  }

  /// A server that has lost segments gets the same bytes again; one that has others, or more than there are, cannot be helped.
  private mutating func place(_ position: Position) {
    guard position.isOurs, (kept...sealed).contains(position.next) else { return state = .lost }
    stored = position.next
    confirmed = position.next
  }

  private mutating func refused(
    _ status: Int, _ retryAfter: Int, _ now: Instant, using generator: inout some RandomNumberGenerator
  ) {
    switch status {
    case 410: state = .ended
    case 401, 403, 404:
      // A ticket that does not count, or a server that has forgotten the recording: it is registered once more.
      registrations += 1
      hasTicket = false
      fail(retryAfter: 0, now, using: &generator)
      if registrations > Self.givesUpAfter { state = .refused }
    case 507:
      let seconds = max(0, min(retryAfter, Self.longestRetryAfter))
      pause(.full, max(Self.fullPause, .seconds(seconds)), now)
    case 0, 408, 409, 429, 500...: fail(retryAfter: retryAfter, now, using: &generator)
    default: state = .refused
    }
  }

  private mutating func fail(
    retryAfter: Int, _ now: Instant, using generator: inout some RandomNumberGenerator
  ) {
    failures += 1
    if failures % Self.asksAfter == 0 { mustAsk = true }
    let whole = min(Self.longestPause, Self.firstPause * (1 << min(failures - 1, 16)))
    let share = whole * Int.random(in: 500...1_000, using: &generator) / 1_000
    pause(.waiting, max(share, .seconds(max(0, min(retryAfter, Self.longestRetryAfter)))), now)
  }

  private mutating func pause(_ state: SegmentUploader.State, _ duration: Duration, _ now: Instant) {
    self.state = state
    until = now.advanced(by: duration)
  }

  private mutating func succeeded() {
    failures = 0
    until = Instant(nanoseconds: 0)
    state = .uploading
  }
}
