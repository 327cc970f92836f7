import MediaModel
import NIOCore
import Synchronization

/// Items that wait to be sent, which of them may be sent now, and which are sent again. Pure: times and randomness are arguments.
protocol RetryQueue: Sendable {
  associatedtype Item: Sendable
  associatedtype Response: Sendable
  associatedtype Time: Equatable & Sendable

  /// The item to send now; nil if none may be sent. Each is answered by `finished`.
  mutating func next(now: Time) -> Item?

  /// When `next` may have an item without anything else happening; nil if nothing waits for a time.
  func deadline(now: Time) -> Time?

  /// - Parameter jitter: 0 to 1, random: spreads the retries of those that failed together.
  mutating func finished(_ item: Item, _ response: Response, now: Time, jitter: Double)

  static func pause(from now: Time, to deadline: Time) -> Duration
}

extension RetryQueue where Time == Instant {
  static func pause(from now: Instant, to deadline: Instant) -> Duration { now.duration(to: deadline) }
}

/// Sends what waits in a `RetryQueue`, as much at once as it allows, and wakes for the next retry.
final class RetrySender<Queue: RetryQueue>: Sendable {
  private struct State {
    var queue: Queue
    var timer: (deadline: Queue.Time, task: Scheduled<Void>)?
  }

  private let state: Mutex<State>
  private let clock: @Sendable () -> Queue.Time
  private let loop: any EventLoop
  private let send: @Sendable (Queue.Item) async -> Queue.Response

  /// - Parameters:
  ///   - loop: for the timer.
  ///   - send: makes one attempt.
  init(
    _ queue: Queue, clock: @escaping @Sendable () -> Queue.Time, on loop: any EventLoop,
    send: @escaping @Sendable (Queue.Item) async -> Queue.Response
  ) {
    state = Mutex(State(queue: queue))
    self.clock = clock
    self.loop = loop
    self.send = send
  }

  var queue: Queue { state.withLock { $0.queue } }

  /// Changes the queue, and sends what may be sent then. Returns immediately.
  func update(_ change: (inout Queue, Queue.Time) -> Void) {
    let now = clock()
    state.withLock { change(&$0.queue, now) }
    pump()
  }

  /// It no longer wakes. Items that are being sent are answered to the queue that `last` leaves.
  func stop<Rest: Sendable>(_ last: (inout Queue) -> Rest) -> Rest {
    state.withLock { state in
      state.timer?.task.cancel()
      state.timer = nil
      return last(&state.queue)
    }
  }

  private func pump() {
    let now = clock()
    let items = state.withLock { state -> [Queue.Item] in
      var items: [Queue.Item] = []
      while let item = state.queue.next(now: now) { items.append(item) }
      schedule(&state, now: now)
      return items
    }
    for item in items { Task { await deliver(item) } }
  }

  private func schedule(_ state: inout State, now: Queue.Time) {
    guard let deadline = state.queue.deadline(now: now), deadline != state.timer?.deadline else { return }
    state.timer?.task.cancel()
    let pause = TimeAmount.nanoseconds(max(0, Queue.pause(from: now, to: deadline).nanoseconds))
    state.timer = (deadline, loop.scheduleTask(in: pause) { [weak self] in self?.wake() })
  }

  private func wake() {
    state.withLock { $0.timer = nil }
    pump()
  }

  private func deliver(_ item: Queue.Item) async {
    let response = await send(item)
    update { $0.finished(item, response, now: $1, jitter: .random(in: 0...1)) }
  }
}
