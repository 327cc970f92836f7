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

  /// Bytes of messages in queues.
  var queuedBytes: Int { broker.withLock { $0.bytes } }

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
    var touched: [ConnectionHandler] = []
    var settled: [Broker.Operation] = []
    var written = 0
    for delivery in lane.take() {
      var message = delivery.message
      for subscriber in delivery.subscribers {
        // Who is gone has taken back its subscriptions, so the broker knows.
        guard let handler = lane.connection(subscriber.session) else { continue }
        if !handler.hasOutput { touched.append(handler) }
        guard let isSettled = handler.deliver(&message, delivery, key: subscriber.key) else { continue }
        written += 1
        if isSettled, delivery.number != 0 {
          settled.append(.settle(subscriber, delivery.address, number: delivery.number, accepted: true))
        }
      }
    }
    for handler in touched { handler.flush() }
    if written > 0 {
      counters.update { [written] in
        $0.deliveries += UInt64(written)
        $0.framesOut += UInt64(written)
      }
    }
    if !settled.isEmpty { perform(settled, now: NIODeadline.now().uptimeNanoseconds) }
  }
}

/// One event loop, and what it has to write of an app's messages.
final class Lane: Sendable {
  let number: Int
  let loop: any EventLoop
  private let inbox = Mutex<[Broker.Delivery]>([])
  /// The connections that use the broker; the loop's own.
  private let connections: NIOLoopBoundBox<[SessionID: ConnectionHandler]>

  init(number: Int, loop: any EventLoop) {
    self.number = number
    self.loop = loop
    connections = .makeBoxSendingValue([:], eventLoop: loop)
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

  fileprivate func connection(_ session: SessionID) -> ConnectionHandler? { connections.value[session] }

  func insert(_ handler: ConnectionHandler) { connections.value[handler.id] = handler }

  func remove(_ session: SessionID) { connections.value[session] = nil }
}
