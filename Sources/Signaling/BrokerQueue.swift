import NIOCore
import STOMP

/// One queue: messages that wait, and subscribers with what they were given.
struct BrokerQueue {
  struct Entry: Sendable {
    /// Rising in the order of SENDs, of all queues.
    let number: UInt64
    let message: SharedMessage
    let expiresAt: UInt64
    /// How often it was given out in vain.
    var attempts = 0
    /// Who gave it back last, and so does not get it again.
    var refusedBy: Broker.Subscriber?

    /// What it costs to keep.
    var size: Int { message.size + 256 }
  }

  private struct Consumer {
    let subscriber: Broker.Subscriber
    var given: [UInt64: Entry] = [:]
    var bytes = 0
  }

  private let limits: Broker.Limits
  /// Given out in vain; before all that wait. In both numbers rise.
  private var returned: [Entry] = []
  private var waiting = CircularBuffer<Entry>()
  private var consumers: [Consumer] = []
  private var waitingBytes = 0
  private var givenBytes = 0
  /// Whose turn it is among equals.
  private var turn = 0

  init(limits: Broker.Limits) { self.limits = limits }

  var bytes: Int { waitingBytes + givenBytes }

  var isEmpty: Bool { waiting.isEmpty && returned.isEmpty && consumers.isEmpty }

  mutating func add(_ subscriber: Broker.Subscriber) { consumers.append(Consumer(subscriber: subscriber)) }

  /// The subscriber goes; what it had not acknowledged is for another.
  mutating func remove(_ subscriber: Broker.Subscriber, _ output: inout Broker.Output) {
    guard let index = consumers.firstIndex(where: { $0.subscriber == subscriber }) else { return }
    let consumer = consumers.remove(at: index)
    givenBytes -= consumer.bytes
    putBack(Array(consumer.given.values), &output)
  }

  mutating func append(_ entry: Entry) {
    waiting.append(entry)
    waitingBytes += entry.size
  }

  mutating func settle(
    _ number: UInt64, by subscriber: Broker.Subscriber, accepted: Bool, _ output: inout Broker.Output
  ) {
    guard let index = consumers.firstIndex(where: { $0.subscriber == subscriber }),
      var entry = consumers[index].given.removeValue(forKey: number)
    else { return }
    consumers[index].bytes -= entry.size
    givenBytes -= entry.size
    guard !accepted else { return }
    entry.refusedBy = subscriber
    putBack([entry], &output)
  }

  /// Takes out the next message that can be given to somebody.
  mutating func next(now: UInt64, _ output: inout Broker.Output) -> (Entry, Broker.Subscriber)? {
    expire(now: now, &output)
    for index in returned.indices {
      switch choose(without: returned[index].refusedBy) {
      case .consumer(let chosen): return give(returned.remove(at: index), to: chosen)
      case .onlyRefuser: continue
      case .nobody: return nil
      }
    }
    guard !waiting.isEmpty, case .consumer(let chosen) = choose(without: nil) else { return nil }
    return give(waiting.removeFirst(), to: chosen)
  }

  private mutating func give(_ entry: Entry, to consumer: Int) -> (Entry, Broker.Subscriber) {
    waitingBytes -= entry.size
    givenBytes += entry.size
    consumers[consumer].given[entry.number] = entry
    consumers[consumer].bytes += entry.size
    turn = consumer + 1
    return (entry, consumers[consumer].subscriber)
  }

  private enum Choice {
    case consumer(Int)
    /// Nobody but who gave the message back has room.
    case onlyRefuser
    case nobody
  }

  /// Of those who have room the one with the least to do, in turn among equals.
  private func choose(without refuser: Broker.Subscriber?) -> Choice {
    var best: Int?
    var refuserHasRoom = false
    for step in consumers.indices {
      let index = (turn + step) % consumers.count
      let consumer = consumers[index]
      guard consumer.given.count < limits.unacknowledged, consumer.bytes < limits.unacknowledgedBytes else { continue }
      if consumer.subscriber == refuser {
        refuserHasRoom = true
      } else if best.map({ consumer.given.count < consumers[$0].given.count }) ?? true {
        best = index
        if consumer.given.isEmpty { break }
      }
    }
    return best.map { .consumer($0) } ?? (refuserHasRoom ? .onlyRefuser : .nobody)
  }

  mutating func expire(now: UInt64, _ output: inout Broker.Output) {
    while let first = returned.first ?? waiting.first, first.expiresAt <= now { dropFirst(.queueExpired, &output) }
  }

  /// Throws away the oldest beyond the limits: of what an app says about itself the newest counts.
  mutating func trim(_ output: inout Broker.Output) {
    while returned.count + waiting.count > limits.queueMessages || waitingBytes > limits.queueBytes {
      dropFirst(.queueFull, &output)
    }
  }

  private mutating func dropFirst(_ reason: SignalingStatistics.Drop, _ output: inout Broker.Output) {
    waitingBytes -= (returned.isEmpty ? waiting.removeFirst() : returned.removeFirst()).size
    output.drop(reason)
  }

  private mutating func putBack(_ entries: [Entry], _ output: inout Broker.Output) {
    for var entry in entries {
      entry.attempts += 1
      guard entry.attempts < limits.attempts else {
        output.drop(.queueRefused)
        continue
      }
      returned.append(entry)
      waitingBytes += entry.size
    }
    returned.sort { $0.number < $1.number }
  }
}
