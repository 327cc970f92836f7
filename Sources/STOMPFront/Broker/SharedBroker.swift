import CallMessages
import Listening
import NIOCore
import Synchronization

/// The broker for connections of several event loops. Its callers take its lock, and while they hold it the batches go into the loops' inboxes, so
/// each loop has them in the broker's order.
final class SharedBroker: Sendable {
  private let broker: Mutex<Broker>
  private let loops: [Loop]
  private let counters: SignalingCounters

  init(loops: [any EventLoop], counters: SignalingCounters, limits: Broker.Limits = Broker.Limits()) {
    broker = Mutex(Broker(loops: loops.count, limits: limits))
    self.loops = loops.enumerated().map { Loop(number: $0, eventLoop: $1) }
    self.counters = counters
  }

  /// nil for an event loop that is not of the server's group.
  func loop(of eventLoop: any EventLoop) -> Loop? { loops.first { $0.eventLoop === eventLoop } }

  /// - Returns: bytes that are written to subscribers of topics.
  @discardableResult func perform(_ operations: [Broker.Operation], now: UInt64) -> Int {
    withBroker { $0.perform(operations, now: now) }
  }

  /// Call it periodically.
  func expire(now: UInt64) { _ = withBroker { $0.expire(now: now) } }

  private func withBroker(_ change: (inout sending Broker) -> Broker.Output) -> Int {
    let (drops, bytes) = broker.withLock { broker in
      let output = change(&broker)
      for (loop, batches) in zip(loops, output.loops) where !batches.isEmpty { loop.post(batches, of: self) }
      return (output.drops, output.fannedOutBytes)
    }
    counters.drop(drops)
    return bytes
  }

  /// Writes what has accumulated, and flushes each connection once. Called on the event loop.
  fileprivate func drain(_ loop: Loop) {
    let now = NIODeadline.now().uptimeNanoseconds
    var touched: [ConnectionHandler] = []
    var settled: [Broker.Operation] = []
    var written = 0
    let batches = loop.take()
    let connections = loop.connections
    for (index, batch) in batches.enumerated() {
      var message = batch.message
      let isLast = index + 1 == batches.count
      for subscriber in batch.subscribers {
        // A connection that is gone has removed its subscriptions, so the broker knows.
        guard let handler = connections[subscriber.session] else { continue }
        if !isLast, !handler.output.needsFlush { touched.append(handler) }
        let isSettled = handler.deliver(&message, batch, key: subscriber.key)
        // Nothing more follows: its memory is free now, and the next one can use the same.
        if isLast { handler.flush(now: now) }
        guard let isSettled else { continue }
        written += 1
        if isSettled, batch.number != 0 {
          settled.append(.settle(subscriber, batch.address, number: batch.number, accepted: true))
        }
      }
    }
    for handler in touched { handler.flush(now: now) }
    if written > 0 {
      counters.update { [written] in
        $0.deliveries += UInt64(written)
        $0.framesOut += UInt64(written)
      }
    }
    if !settled.isEmpty { perform(settled, now: now) }
  }
}

/// One event loop: the app's messages that it must write, and the connections whose output may wait.
final class Loop: Sendable {
  let number: Int
  let eventLoop: any EventLoop
  private let inbox = Mutex<[Broker.Batch]>([])
  /// Used only by the loop.
  private let bound: NIOLoopBoundBox<[SessionID: ConnectionHandler]>
  private let writtenEvent: NIOLoopBoundBox<WrittenEvent>
  /// Connections whose output waits for more.
  private let unflushed: NIOLoopBoundBox<[ConnectionHandler]>

  init(number: Int, eventLoop: any EventLoop) {
    self.number = number
    self.eventLoop = eventLoop
    bound = .makeBoxSendingValue([:], eventLoop: eventLoop)
    unflushed = .makeBoxSendingValue([], eventLoop: eventLoop)
    writtenEvent = .makeBoxSendingValue(WrittenEvent(), eventLoop: eventLoop)
  }

  /// The event that was last written on the loop. Used only by the loop.
  var written: WrittenEvent { writtenEvent.value }

  /// Any thread.
  fileprivate func post(_ batches: [Broker.Batch], of broker: SharedBroker) {
    let isFirst = inbox.withLock { inbox in
      defer { inbox += batches }
      return inbox.isEmpty
    }
    if isFirst { eventLoop.execute { broker.drain(self) } }
  }

  fileprivate func take() -> [Broker.Batch] { inbox.withLock { exchange(&$0, with: []) } }

  /// The connections that use the broker.
  fileprivate var connections: [SessionID: ConnectionHandler] { bound.value }

  func insert(_ handler: ConnectionHandler) { bound.value[handler.id] = handler }

  func remove(_ session: SessionID) { bound.value[session] = nil }

  /// Flushes the connection when `ConnectionHandler.patience` of the first waiting one is over: one timer for all.
  func flushSoon(_ handler: ConnectionHandler) {
    unflushed.value.append(handler)
    guard unflushed.value.count == 1 else { return }
    eventLoop.scheduleTask(in: ConnectionHandler.patience) { self.flushAll() }
  }

  private func flushAll() {
    let now = NIODeadline.now().uptimeNanoseconds
    for handler in exchange(&unflushed.value, with: []) { handler.flushNow(now: now) }
  }
}
