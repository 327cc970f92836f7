import Calls
import Contract
import NIOCore
import STOMP

extension SharedServices {
  /// Sorts deliveries to clients by event loop, one task each. A message for many is written as JSON once, and so is each change of a member in the states
  /// of a large call.
  func deliver(_ deliveries: [Delivery]) {
    var batches: [ObjectIdentifier: [Addressed]] = [:]
    var encoder = EventEncoder(log: log, texts: stateTexts)
    var crowd = Crowd()
    for (place, delivery) in deliveries.enumerated() {
      crowd.look(at: deliveries, place)
      guard let entry = connections.entry(delivery.session) else {
        counters.drop(.sessionGone)
        continue
      }
      if let outgoing = encoder.outgoing(delivery) {
        batches[ObjectIdentifier(entry.loop), default: []].append(
          Addressed(entry: entry, outgoing: outgoing, isUrgent: !crowd.mayWait))
      }
    }
    for batch in batches.values {
      batch[0].entry.loop.execute { Self.write(batch) }
    }
  }

  private struct Addressed: Sendable {
    var entry: ConnectionTable.Entry
    var outgoing: Outgoing
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

  private static func write(_ batch: [Addressed]) {
    var last: (id: UInt64, message: SharedMessage)?
    for delivery in batch {
      let handler = delivery.entry.handler.value
      switch delivery.outgoing {
      case .event(let id, let new, let seq, let redelivered):
        var message = written(new, id, &last)
        handler.publish(&message, seq: seq, redelivered: redelivered)
        last = (id, message)
      case .publish(let id, let new):
        var message = written(new, id, &last)
        handler.publish(&message, newestOnly: id == 0)
        last = (id, message)
      case .reply(let id, let answer): handler.reply(to: id, answer)
      case .encodedReply(let id, let body): handler.reply(to: id, body, status: "ok")
      case .admission(let refusal): handler.admit(refusal: refusal)
      case .close(let reason): handler.close(reason: reason)
      }
    }
    for delivery in batch {
      let handler = delivery.entry.handler.value
      if delivery.isUrgent {
        handler.flush()
        handler.armTimer()
      } else {
        handler.flushSoon()
      }
    }
  }

  /// The message that was written last, if it is the same one: it has the bytes that are the same for all.
  private static func written(
    _ new: SharedMessage, _ id: UInt64, _ last: inout (id: UInt64, message: SharedMessage)?
  ) -> SharedMessage {
    guard let known = exchange(&last, with: nil), id != 0, known.id == id,
      known.message.destination == new.destination
    else { return new }
    return known.message
  }
}

extension EventBody {
  fileprivate var mayWait: Bool {
    // The list of a newcomer and of a leader.
    if case .rotate(let rotation) = self, rotation.list != nil || rotation.deliver != nil { return false }
    return declaration.traits.contains(.mayWait)
  }
}
