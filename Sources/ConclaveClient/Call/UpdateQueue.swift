import Synchronization

/// A call's updates until the app reads them. An app that reads slowly, or not at all, costs no more than this: of updates that say how something stands, only
/// the newest waits, and of the others the newest `limit`.
final class UpdateQueue: Sendable {
  static let limit = 1_024

  private struct State {
    var updates: [CallUpdate] = []
    var isFinished = false
  }

  private let state = Mutex(State())
  private let arrivals: AsyncStream<Void>
  private let arrival: AsyncStream<Void>.Continuation

  init() { (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

  /// For one reader.
  var stream: AsyncStream<CallUpdate> { AsyncStream { await self.next() } }

  func yield(_ update: CallUpdate) {
    state.withLock { state in
      guard !state.isFinished else { return }
      if let subject = update.subject { state.updates.removeAll { $0.subject == subject } }
      if state.updates.count == Self.limit { state.updates.removeFirst() }
      state.updates.append(update)
    }
    arrival.yield()
  }

  /// Ends the stream; pending updates are still delivered.
  func finish() {
    state.withLock { $0.isFinished = true }
    arrival.finish()
  }

  private func next() async -> CallUpdate? {
    while true {
      let (update, isFinished) = state.withLock { state in
        (state.updates.isEmpty ? nil : state.updates.removeFirst(), state.isFinished)
      }
      if update != nil || isFinished { return update }
      var iterator = arrivals.makeAsyncIterator()
      // nil at the end, which the state says too, and when the reader is cancelled.
      guard await iterator.next() != nil || state.withLock({ $0.isFinished }) else { return nil }
    }
  }
}

extension CallUpdate {
  /// The state that an update reports; nil for one that reports an event.
  fileprivate enum Subject { case call, slots, need, code, key, silence, confirmation, quality }

  fileprivate var subject: Subject? {
    switch self {
    case .changed: .call
    case .slots: .slots
    case .need: .need
    case .code: .code
    case .keyChanged: .key
    case .silence: .silence
    case .confirmation: .confirmation
    case .quality: .quality
    case .wanted, .warning, .keyWaiting, .keyWarning, .restartMedia, .rejoining, .rejoined, .message, .ended: nil
    }
  }
}
