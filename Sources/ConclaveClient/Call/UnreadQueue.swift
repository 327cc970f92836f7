import Synchronization

/// An element of an `UnreadQueue`.
protocol Unread: Sendable {
  associatedtype Subject: Hashable, Sendable
  /// Only the newest element of a subject waits; elements without a subject all wait.
  var subject: Subject? { get }
  /// The approximate number of bytes that it holds. nil: it must not be lost, so it does not count towards the bounds.
  var size: Int? { get }
}

/// Elements that an app has not read yet. An app that reads slowly, or not at all, costs no more than this: only the newest element of each subject waits, and of
/// elements that may be lost the newest `limit`, or `byteLimit` bytes.
final class UnreadQueue<Element: Unread>: Sendable {
  static var limit: Int { 1_024 }
  static var byteLimit: Int { 4 << 20 }

  private struct State {
    /// The key is the number under which an element arrived. A replaced element leaves a gap.
    var elements: [UInt64: Element] = [:]
    var newest: [Element.Subject: UInt64] = [:]
    /// No element has a lower number, and no element that may be lost has one below `oldest`.
    var first: UInt64 = 0
    var oldest: UInt64 = 0
    var next: UInt64 = 0
    /// The elements that may be lost, and their sizes.
    var count = 0
    var bytes = 0
    var isFinished = false

    mutating func append(_ element: Element) {
      if let subject = element.subject, let old = newest.updateValue(next, forKey: subject) { remove(old) }
      elements[next] = element
      next += 1
      guard let size = element.size else { return }
      count += 1
      bytes += size
      while count > UnreadQueue.limit || bytes > UnreadQueue.byteLimit, count > 1 { dropOldest() }
    }

    mutating func takeFirst() -> Element? {
      while first < next {
        defer { first += 1 }
        if let element = remove(first) { return element }
      }
      return nil
    }

    private mutating func dropOldest() {
      while elements[oldest]?.size == nil { oldest += 1 }
      remove(oldest)
    }

    @discardableResult
    private mutating func remove(_ number: UInt64) -> Element? {
      guard let element = elements.removeValue(forKey: number) else { return nil }
      if let subject = element.subject, newest[subject] == number { newest[subject] = nil }
      if let size = element.size {
        count -= 1
        bytes -= size
      }
      return element
    }
  }

  private let state = Mutex(State())
  private let arrivals: AsyncStream<Void>
  private let arrival: AsyncStream<Void>.Continuation

  init() { (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

  /// For one reader.
  var stream: AsyncStream<Element> { AsyncStream { await self.next() } }

  /// The number of waiting elements that must not be lost.
  @discardableResult
  func yield(_ element: Element) -> Int {
    defer { arrival.yield() }
    return state.withLock { state in
      if !state.isFinished { state.append(element) }
      return state.elements.count - state.count
    }
  }

  /// Ends the stream; pending elements are still delivered.
  func finish() {
    state.withLock { $0.isFinished = true }
    arrival.finish()
  }

  private func next() async -> Element? {
    while true {
      let (element, isFinished) = state.withLock { ($0.takeFirst(), $0.isFinished) }
      if element != nil || isFinished { return element }
      var iterator = arrivals.makeAsyncIterator()
      // nil at the end, which is also in the state, and when the reader is cancelled.
      guard await iterator.next() != nil || state.withLock({ $0.isFinished }) else { return nil }
    }
  }
}

extension CallUpdate: Unread {
  /// The state that an update reports, or a warning, which is the same each time.
  enum Subject: Hashable {
    case call, slots, need, code, key, silence, confirmation, service, guests, quality, recording
    /// `restartMedia`, and whether the participant is there.
    case media, participant
    case end
    case layers(track: String)
    case waiting(participant: UInt32)
    case refusal(KeyRefusal)
    case warning(KeyWarning)
    case recordingProblem(RecordingProblem)
  }

  var subject: Subject? {
    switch self {
    case .changed: .call
    case .slots: .slots
    case .need: .need
    case .code: .code
    case .keyChanged: .key
    case .silence: .silence
    case .confirmation: .confirmation
    case .letInByService: .service
    case .guestsWaiting: .guests
    case .quality: .quality
    case .restartMedia: .media
    case .rejoining, .rejoined: .participant
    case .ended: .end
    case .wanted(let track, _): .layers(track: track)
    case .keyWaiting(let participant): .waiting(participant: participant)
    case .warning(let refusal): .refusal(refusal)
    case .keyWarning(let warning): .warning(warning)
    case .recording: .recording
    case .recordingRefused(let problem): .recordingProblem(problem)
    case .message: nil
    }
  }

  var size: Int? {
    switch self {
    case .keyWarning, .warning, .silence, .letInByService, .recordingRefused, .ended: nil
    case .recording(let recording): 512 + 64 * (recording?.consents.count ?? 0) + 128 * (recording?.readers.count ?? 0)
    case .message(_, let body, _): 64 + body.count
    case .guestsWaiting(let guests): 64 + guests.reduce(0) { $0 + 256 + ($1.name?.utf8.count ?? 0) }
    default: 64
    }
  }
}

extension ClientEvent: Unread {
  /// Events about the same subject, of which the newest is sufficient.
  enum Subject: Hashable {
    case connection
    case end
    case ring(String)
    case interrupted(String)
    case waiting(String)
    case start(String)
    case awaited(String)
    case pin(user: String, device: String)
    /// No other statement replaces it: a server could send a false one after a true one.
    case statement(TrustStatement)
    case usedRing(String)
    case warning(KeyWarning)
    case presence(String)
    case recording(RecordingEvent.Subject)
  }

  var subject: Subject? {
    switch self {
    case .connected, .disconnected: .connection
    case .ended: .end
    case .ring(let ring): .ring(ring.id)
    case .ringStopped(let call, _): .ring(call)
    case .interrupted(let call): .interrupted(call.id)
    case .waitingForAdmission(let call): .waiting(call)
    case .waitingForStart(let link, _): .start(link)
    case .somebodyWaits(let link): .awaited(link)
    case .pinned(let device): .pin(user: device.user, device: device.device)
    case .statement(let statement): .statement(statement)
    case .ringUsed(let ring): .usedRing(ring.call)
    case .keyWarning(let warning): .warning(warning)
    case .presence(let presence): .presence(presence.user)
    case .recording(let news): .recording(news.subject)
    case .pairing: nil
    }
  }

  var size: Int? {
    switch self {
    case .pinned, .statement, .ringUsed, .keyWarning, .ended: nil
    case .ring(let ring): 256 + (ring.metadata?.count ?? 0) + Self.memberSize * ring.members.count
    case .interrupted(let call): 256 + Self.memberSize * call.members.count
    case .connected, .disconnected, .ringStopped, .waitingForAdmission, .waitingForStart, .somebodyWaits, .presence,
      .recording, .pairing:
      256
    }
  }

  private static let memberSize = 256
}
