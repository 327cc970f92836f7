import CallMessages
import Listening
import MediaModel
import STOMP

/// An app's own messages (protocol section 3): a topic delivers to every subscriber, a queue to one of them. In memory only.
///
/// ## Overview
/// `perform` accepts connections' operations and returns what to write where. Time is an argument, in nanoseconds of any clock that never runs backwards.
/// Each subscriber gets its messages in the order of the calls to `perform`.
///
/// ## Invariants
/// - A message of a queue waits, or is with exactly one subscriber, until that one settles it or disconnects.
/// - Messages that wait or are with subscribers take at most `limits.bytes`.
struct Broker: Sendable {
  /// Normalised.
  enum Address: Hashable, Sendable {
    case topic(String)
    case queue(String)
    case user(UserID, String)
  }

  struct Subscriber: Hashable, Sendable {
    let session: SessionID
    /// The subscription's number on its connection.
    let key: UInt64
    /// The event loop of the connection, by number.
    let loop: Int
  }

  enum Operation: Sendable {
    case subscribe(Subscriber, Address)
    case unsubscribe(Subscriber, Address)
    case send(SharedMessage, Address)
    /// The subscriber of a queue is done with a message, or with NACK (`accepted` false) leaves it to another.
    case settle(Subscriber, Address, number: UInt64, accepted: Bool)
  }

  struct Limits: Sendable {
    var queueMessages = 1_000
    var queueBytes = 1 << 20
    /// How long a message waits for a subscriber, in nanoseconds.
    var queueTime: UInt64 = 600_000_000_000
    var queues = 10_000
    /// The bound for all queues together.
    var bytes = 64 << 20
    /// The most messages that one subscription holds unacknowledged.
    var unacknowledged = 100
    var unacknowledgedBytes = 1 << 20
    /// How often a message is handed out before it is dropped as undeliverable.
    var attempts = 16
  }

  /// One message for subscribers of one loop.
  struct Batch: Sendable {
    let message: SharedMessage
    let address: Address
    let subscribers: [Subscriber]
    /// The number that settles it; 0 when it needs no settling.
    let number: UInt64
    let redelivered: Bool
  }

  /// Batches by loop, each in order, and the dropped messages.
  struct Output: Sendable {
    var loops: [[Batch]]
    var drops: [SignalingStatistics.Drop: UInt64] = [:]
    /// Bytes that are written to subscribers of topics.
    var fannedOutBytes = 0

    mutating func drop(_ reason: SignalingStatistics.Drop, _ count: Int = 1) {
      if count > 0 { drops[reason, default: 0] += UInt64(count) }
    }
  }

  private let loopCount: Int
  private let limits: Limits
  private var audiences: [Address: Audience] = [:]
  private var queues: [Address: BrokerQueue] = [:]
  private var lastNumber: UInt64 = 0
  /// The size of all queues' messages, waiting or given out.
  private(set) var bytes = 0

  init(loops: Int, limits: Limits = Limits()) {
    loopCount = loops
    self.limits = limits
  }

  /// Queues with messages or subscribers.
  var queueCount: Int { queues.count }
  /// Topics and user queues with subscribers.
  var audienceCount: Int { audiences.count }

  /// All operations, with none of another connection in between.
  mutating func perform(_ operations: [Operation], now: UInt64) -> Output {
    var output = Output(loops: Array(repeating: [], count: loopCount))
    for operation in operations { perform(operation, now: now, &output) }
    return output
  }

  /// Throws away what has waited too long in queues that nobody touches. Call it periodically.
  mutating func expire(now: UInt64) -> Output {
    var output = Output(loops: Array(repeating: [], count: loopCount))
    // A copy of the keys, because iterating over the dictionary itself would copy all of it at the first change.
    for address in Array(queues.keys) { withQueue(address, now: now, &output) { $0.expire(now: now, &$1) } }
    return output
  }

  private mutating func perform(_ operation: Operation, now: UInt64, _ output: inout Output) {
    switch operation {
    case .subscribe(let subscriber, let address):
      if case .queue = address {
        withQueue(address, now: now, &output) { queue, _ in queue.add(subscriber) }
      } else {
        audiences[address, default: Audience(loops: loopCount)].insert(subscriber)
      }
    case .unsubscribe(let subscriber, let address):
      if case .queue = address {
        withQueue(address, now: now, &output) { $0.remove(subscriber, &$1) }
      } else {
        audiences[address]?.remove(subscriber)
        if audiences[address]?.isEmpty == true { audiences[address] = nil }
      }
    case .send(let message, let address):
      if case .queue = address {
        enqueue(message, address, now: now, &output)
      } else {
        fanOut(message, address, &output)
      }
    case .settle(let subscriber, let address, let number, let accepted):
      withQueue(address, now: now, &output) { $0.settle(number, by: subscriber, accepted: accepted, &$1) }
    }
  }

  private func fanOut(_ message: SharedMessage, _ address: Address, _ output: inout Output) {
    guard let audience = audiences[address] else { return output.drop(.nobodySubscribed) }
    for (loop, subscribers) in audience.loops.enumerated() where !subscribers.isEmpty {
      output.loops[loop].append(
        Batch(message: message, address: address, subscribers: subscribers, number: 0, redelivered: false))
      output.fannedOutBytes += message.size * subscribers.count
    }
  }

  private mutating func enqueue(
    _ message: SharedMessage, _ address: Address, now: UInt64, _ output: inout Output
  ) {
    lastNumber += 1
    let entry = BrokerQueue.Entry(number: lastNumber, message: message, expiresAt: now + limits.queueTime)
    guard bytes + entry.size <= limits.bytes, queues[address] != nil || queues.count < limits.queues else {
      return output.drop(.queuesFull)
    }
    withQueue(address, now: now, &output) { queue, _ in queue.append(entry) }
  }

  /// Changes a queue, hands out what can be handed out, and updates the totals.
  private mutating func withQueue(
    _ address: Address, now: UInt64, _ output: inout Output, _ change: (inout BrokerQueue, inout Output) -> Void
  ) {
    var queue = queues.removeValue(forKey: address) ?? BrokerQueue(limits: limits)
    let before = queue.bytes
    change(&queue, &output)
    while let (entry, subscriber) = queue.next(now: now, &output) {
      output.loops[subscriber.loop].append(
        Batch(
          message: entry.message, address: address, subscribers: [subscriber], number: entry.number,
          redelivered: entry.attempts > 0))
    }
    queue.trim(&output)
    bytes += queue.bytes - before
    if !queue.isEmpty { queues[address] = queue }
  }
}

/// The subscribers of a topic, by loop.
private struct Audience {
  private(set) var loops: [[Broker.Subscriber]]
  private var positions: [Broker.Subscriber: Int] = [:]

  init(loops: Int) { self.loops = Array(repeating: [], count: loops) }

  var isEmpty: Bool { positions.isEmpty }

  mutating func insert(_ subscriber: Broker.Subscriber) {
    guard positions[subscriber] == nil else { return }
    positions[subscriber] = loops[subscriber.loop].count
    loops[subscriber.loop].append(subscriber)
  }

  mutating func remove(_ subscriber: Broker.Subscriber) {
    guard let position = positions.removeValue(forKey: subscriber) else { return }
    guard let last = loops[subscriber.loop].popLast(), last != subscriber else { return }
    loops[subscriber.loop][position] = last
    positions[last] = position
  }
}
