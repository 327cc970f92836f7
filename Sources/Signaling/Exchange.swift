import Calls
import NIOCore
import Synchronization

/// The broker for connections of several event loops: whoever has something for it takes its lock, and what is to be written goes to the loops'
/// lanes while the lock is held, so that each lane has it in the broker's order.
final class Exchange: Sendable {
  private let broker: Mutex<Broker>
  private let lanes: [Lane]
  private let counters: Counters

  init(loops: [any EventLoop], counters: Counters, limits: Broker.Limits = Broker.Limits()) {
    broker = Mutex(Broker(lanes: loops.count, limits: limits))
    lanes = loops.enumerated().map { Lane(number: $0, loop: $1) }
    self.counters = counters
  }

  /// The lane of a loop of the server's group.
  func lane(of loop: any EventLoop) -> Lane? { lanes.first { $0.loop === loop } }

  func perform(_ operations: [Broker.Operation], now: UInt64) { withBroker { $0.perform(operations, now: now) } }

  /// To be called now and then.
  func expire(now: UInt64) { withBroker { $0.expire(now: now) } }

  private func withBroker(_ change: (inout sending Broker) -> Broker.Output) {
    let drops = broker.withLock { broker in
      let output = change(&broker)
      for (lane, deliveries) in zip(lanes, output.lanes) where !deliveries.isEmpty { lane.post(deliveries, self) }
      return output.drops
    }
    counters.drop(drops)
  }

  /// On the lane's loop: writes what has come together, and flushes each connection once.
  fileprivate func drain(_ lane: Lane) {
    let now = NIODeadline.now().uptimeNanoseconds
    var touched: [ConnectionHandler] = []
    var settled: [Broker.Operation] = []
    var written = 0
    let deliveries = lane.take()
    let connections = lane.connections
    for (index, delivery) in deliveries.enumerated() {
      var message = delivery.message
      let isLast = index + 1 == deliveries.count
      for subscriber in delivery.subscribers {
        // A connection that is gone has removed its subscriptions, so the broker knows.
        guard let handler = connections[subscriber.session] else { continue }
        if !isLast, !handler.output.needsFlush { touched.append(handler) }
        let isSettled = handler.deliver(&message, delivery, key: subscriber.key)
        // Nothing more comes: its memory is at hand now, and the next one's can be the same.
        if isLast { handler.flush(now: now) }
        guard let isSettled else { continue }
        written += 1
        if isSettled, delivery.number != 0 {
          settled.append(.settle(subscriber, delivery.address, number: delivery.number, accepted: true))
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

/// One event loop, and what it has to write of an app's messages.
final class Lane: Sendable {
  let number: Int
  let loop: any EventLoop
  private let inbox = Mutex<[Broker.Delivery]>([])
  /// The loop's own.
  private let bound: NIOLoopBoundBox<[SessionID: ConnectionHandler]>

  init(number: Int, loop: any EventLoop) {
    self.number = number
    self.loop = loop
    bound = .makeBoxSendingValue([:], eventLoop: loop)
  }

  /// From any thread.
  fileprivate func post(_ deliveries: [Broker.Delivery], _ exchange: Exchange) {
    let isFirst = inbox.withLock { inbox in
      defer { inbox += deliveries }
      return inbox.isEmpty
    }
    if isFirst { loop.execute { exchange.drain(self) } }
  }

  fileprivate func take() -> [Broker.Delivery] { inbox.withLock { exchange(&$0, with: []) } }

  /// The connections that use the broker.
  fileprivate var connections: [SessionID: ConnectionHandler] { bound.value }

  func insert(_ handler: ConnectionHandler) { bound.value[handler.id] = handler }

  func remove(_ session: SessionID) { bound.value[session] = nil }
}
