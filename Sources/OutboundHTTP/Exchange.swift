import LinuxIO
import MediaModel
import Synchronization

/// A request and its outcome: the first one that is set counts.
final class Exchange: Sendable {
  typealias Outcome = Result<HTTPClient.Response, HTTPClient.Failure>

  private enum State {
    case new
    case waiting(CheckedContinuation<Outcome, Never>)
    /// Before `begin`: the task was cancelled.
    case over(Outcome)
    case told
  }

  let request: HTTPClient.Request
  let deadline: Instant
  private let state = Mutex(State.new)

  init(_ request: HTTPClient.Request, deadline: Instant) {
    self.request = request
    self.deadline = deadline
  }

  var isOver: Bool {
    state.withLock {
      switch $0 {
      case .new, .waiting: false
      case .over, .told: true
      }
    }
  }

  /// Resumes the continuation with the outcome, once.
  /// - Returns: whether the request is still to be sent.
  func begin(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
    let early = state.withLock { state -> Outcome? in
      if case .over(let outcome) = state {
        state = .told
        return outcome
      }
      state = .waiting(continuation)
      return nil
    }
    guard let early else { return true }
    continuation.resume(returning: early)
    return false
  }

  /// Any thread; without effect after the first call.
  func finish(_ outcome: Outcome) {
    let waiting = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      switch state {
      case .new: state = .over(outcome)
      case .waiting(let continuation):
        state = .told
        return continuation
      case .over, .told: break
      }
      return nil
    }
    waiting?.resume(returning: outcome)
  }
}

/// The way of exchanges from any thread to the one that drives the transfers.
final class ExchangeQueue: Sendable {
  struct News {
    var added: [Exchange] = []
    /// Cancelled ones, whether they were added or not.
    var ended: [Exchange] = []
    var isStopped = false
  }

  private struct State {
    var news = News()
    /// Exchanges in `news.added` and on the thread.
    var count = 0
  }

  private let limit: Int
  private let wake: EventFD
  private let state = Mutex(State())

  /// Readable when there is news.
  var descriptor: Int32 { wake.descriptor }

  init(limit: Int) throws(SystemError) {
    self.limit = limit
    wake = try EventFD()
  }

  func add(_ exchange: Exchange) throws(HTTPClient.Failure) {
    try state.withLock { state throws(HTTPClient.Failure) in
      guard !state.news.isStopped else { throw .stopped }
      guard state.count < limit else { throw .full }
      state.count += 1
      state.news.added.append(exchange)
    }
    wake.signal()
  }

  func end(_ exchange: Exchange) {
    state.withLock { if !$0.news.isStopped { $0.news.ended.append(exchange) } }
    wake.signal()
  }

  func stop() {
    state.withLock { $0.news.isStopped = true }
    wake.signal()
  }

  /// The news since the last call.
  func take() -> News {
    wake.drain()
    return state.withLock { state in
      defer { state.news = News(isStopped: state.news.isStopped) }
      return state.news
    }
  }

  /// An exchange that was added is off the thread.
  func left() { state.withLock { $0.count -= 1 } }
}
