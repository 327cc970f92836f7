import Listening
import NIOCore
import STOMP

/// One queue: waiting messages, and subscribers with the messages handed to them.
struct BrokerQueue {
  struct Entry: Sendable {
    /// Rising in the order of SENDs, of all queues.
    let number: UInt64
    let message: SharedMessage
    let expiresAt: UInt64
    /// How often it was handed out in vain.
    var attempts = 0
    /// The subscriber that last gave it back. It does not get the message again.
    var refusedBy: Broker.Subscriber?

    /// The memory that it occupies, in bytes.
    var size: Int { message.size + 256 }
  }

  private let limits: Broker.Limits
  /// Handed out in vain; these precede all waiting ones. Numbers rise in both lists.
  private var returned: [Entry] = []
  private var waiting = CircularBuffer<Entry>()
  /// For each subscriber, how many of `returned` it gave back last, so that messages for which only their refuser has room
  /// are not searched.
  private var refusals: [Broker.Subscriber: Int] = [:]
  private var consumers: ConsumerLine
  private var waitingBytes = 0
  private var givenBytes = 0

  init(limits: Broker.Limits) {
    self.limits = limits
    consumers = ConsumerLine(limits: limits)
  }

  var bytes: Int { waitingBytes + givenBytes }

  var isEmpty: Bool { waiting.isEmpty && returned.isEmpty && consumers.isEmpty }

  mutating func add(_ subscriber: Broker.Subscriber) { consumers.add(subscriber) }

  /// Removes the subscriber; its unacknowledged messages go to others.
  mutating func remove(_ subscriber: Broker.Subscriber, _ output: inout Broker.Output) {
    let given = consumers.remove(subscriber)
    givenBytes -= given.reduce(0) { $0 + $1.size }
    for entry in given.sorted(by: { $0.number < $1.number }) { putBack(entry, &output) }
  }

  mutating func append(_ entry: Entry) {
    waiting.append(entry)
    waitingBytes += entry.size
  }

  mutating func settle(
    _ number: UInt64, by subscriber: Broker.Subscriber, accepted: Bool, _ output: inout Broker.Output
  ) {
    guard var entry = consumers.take(number, from: subscriber) else { return }
    givenBytes -= entry.size
    guard !accepted else { return }
    entry.refusedBy = subscriber
    putBack(entry, &output)
  }

  /// Removes the next deliverable message and gives it to the subscriber with the fewest unacknowledged messages; round-robin on ties.
  mutating func next(now: UInt64, _ output: inout Broker.Output) -> (Entry, Broker.Subscriber)? {
    expire(now: now, &output)
    guard let first = consumers.first() else { return nil }
    if let index = firstReturned(for: first) {
      let entry = removeReturned(at: index)
      return consumers.first(without: entry.refusedBy).flatMap { give(entry, to: $0) }
    }
    return waiting.isEmpty ? nil : give(waiting.removeFirst(), to: first)
  }

  /// The first returned message for which somebody other than its refuser has room. If several have room it is the
  /// first of all.
  private func firstReturned(for consumer: ConsumerLine.Place) -> Int? {
    guard consumers.roomy == 1, let only = consumers.subscriber(at: consumer) else { return returned.indices.first }
    guard refusals[only, default: 0] < returned.count else { return nil }
    return returned.firstIndex { $0.refusedBy != only }
  }

  private mutating func give(_ entry: Entry, to place: ConsumerLine.Place) -> (Entry, Broker.Subscriber)? {
    guard let subscriber = consumers.subscriber(at: place) else { return nil }
    waitingBytes -= entry.size
    givenBytes += entry.size
    consumers.give(entry, to: place)
    return (entry, subscriber)
  }

  mutating func expire(now: UInt64, _ output: inout Broker.Output) {
    while let first = returned.first ?? waiting.first, first.expiresAt <= now { dropFirst(.queueExpired, &output) }
  }

  /// Drops the oldest messages beyond the limits, because the newest are the most relevant.
  mutating func trim(_ output: inout Broker.Output) {
    while returned.count + waiting.count > limits.queueMessages || waitingBytes > limits.queueBytes {
      dropFirst(.queueFull, &output)
    }
  }

  private mutating func dropFirst(_ reason: SignalingStatistics.Drop, _ output: inout Broker.Output) {
    waitingBytes -= (returned.isEmpty ? waiting.removeFirst() : removeReturned(at: 0)).size
    output.drop(reason)
  }

  private mutating func removeReturned(at index: Int) -> Entry {
    let entry = returned.remove(at: index)
    if let refuser = entry.refusedBy {
      let count = refusals[refuser, default: 0] - 1
      refusals[refuser] = count > 0 ? count : nil
    }
    return entry
  }

  private mutating func putBack(_ entry: Entry, _ output: inout Broker.Output) {
    var entry = entry
    entry.attempts += 1
    guard entry.attempts < limits.attempts else { return output.drop(.queueRefused) }
    if let refuser = entry.refusedBy { refusals[refuser, default: 0] += 1 }
    // Usually after all others: they come back in the order in which they were handed out.
    var index = returned.endIndex
    while index > 0, returned[index - 1].number > entry.number { index -= 1 }
    returned.insert(entry, at: index)
    waitingBytes += entry.size
  }
}
