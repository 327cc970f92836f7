package import CallMessages
import Contract
import Listening
import NIOCore

extension ConnectedClients {
  /// Writes replies and events to clients, in this order for each, and closes connections. Callable from any thread; overlapping calls have no order.
  /// Deliveries to a session that is gone are dropped and counted.
  ///
  /// Sorts deliveries to clients by event loop, one task each. A message for many is written as JSON once, and so is each change of a member in the states
  /// of a large call.
  package func deliver(_ deliveries: [Delivery]) {
    var batches: [ObjectIdentifier: [Addressed]] = [:]
    var encoder = EventEncoder(log: log, texts: stateTexts)
    var crowd = Crowd()
    for (place, delivery) in deliveries.enumerated() {
      crowd.look(at: deliveries, place)
      guard let entry = connections.entry(delivery.session) else {
        counters.drop(.sessionGone)
        continue
      }
      if let output = encoder.output(delivery) {
        batches[ObjectIdentifier(entry.loop), default: []].append(
          Addressed(session: delivery.session, entry: entry, output: output, isUrgent: !crowd.mayWait))
      }
    }
    for batch in batches.values {
      batch[0].entry.loop.execute { [log] in Self.write(batch, log) }
    }
  }

  private struct Addressed: Sendable {
    var session: SessionID
    var entry: ConnectionTable.Entry
    var output: EventEncoder.Output
    var isUrgent: Bool
  }

  /// Finds the events that may wait for others: those of a large call on which nobody acts at once. At 1,000 participants 50 such events a second reach each
  /// of them while people join, and a separate write for each costs server and client more than the event.
  private struct Crowd {
    /// The number of receivers of an event from which on a call is large.
    private static let size = 64

    private var messageID: UInt64 = 0
    private(set) var mayWait = false

    /// The receivers of an event are adjacent.
    mutating func look(at deliveries: [Delivery], _ place: Int) {
      guard case .event(_, let event) = deliveries[place], event.messageID != 0 else {
        messageID = 0
        return mayWait = false
      }
      guard event.messageID != messageID else { return }
      messageID = event.messageID
      mayWait = false
      guard event.message.body.mayWait, place + Self.size <= deliveries.count,
        case .event(_, let last) = deliveries[place + Self.size - 1]
      else { return }
      mayWait = last.messageID == messageID
    }
  }

  private static func write(_ batch: [Addressed], _ log: LimitedLog) {
    for delivery in batch {
      let connection = delivery.entry.connection.value
      switch delivery.output {
      case .ready(let outgoing): connection.deliver(outgoing)
      case .reply(let id, let reply):
        connection.deliver(.reply(id: id, EncodedReply(reply, to: delivery.session, log)))
      case .close(let reason): connection.close(reason: reason)
      }
    }
    for delivery in batch {
      let connection = delivery.entry.connection.value
      if delivery.isUrgent { connection.send() } else { connection.sendSoon() }
    }
  }
}

extension EventBody {
  fileprivate var mayWait: Bool {
    // The list of a newcomer and of a leader.
    if case .rotate(let rotation) = self, rotation.list != nil || rotation.deliver != nil { return false }
    return declaration.traits.contains(.mayWait)
  }
}
