import Calls
import Contract
import JSON
import Logging
import NIOCore
import STOMP

extension Services {
  /// Sorts deliveries by event loop, one task each. A message for many is written as JSON once.
  func deliver(_ deliveries: [Delivery]) {
    var batches: [ObjectIdentifier: [(ConnectionTable.Entry, Outgoing)]] = [:]
    var encoder = EventEncoder(log: log)
    for delivery in deliveries {
      guard let entry = connections.entry(delivery.session) else {
        counters.drop(.sessionGone)
        continue
      }
      if let outgoing = encoder.outgoing(delivery) {
        batches[ObjectIdentifier(entry.loop), default: []].append((entry, outgoing))
      }
    }
    for batch in batches.values {
      batch[0].0.loop.execute { Self.write(batch) }
    }
  }

  private static func write(_ batch: [(ConnectionTable.Entry, Outgoing)]) {
    var shared: SharedEvent?
    for (entry, outgoing) in batch {
      guard case .publish(let event) = outgoing else {
        entry.handler.value.deliver(outgoing)
        continue
      }
      var same = Swift.exchange(&shared, with: nil).flatMap { $0.isSame(as: event) ? $0 : nil } ?? event
      entry.handler.value.publish(&same.message, newestOnly: event.isForTheNewest)
      shared = same
    }
    for (entry, _) in batch {
      entry.handler.value.flush()
      entry.handler.value.armTimer()
    }
  }
}

/// Events as JSON, the last one kept since many may get it.
private struct EventEncoder {
  let log: LimitedLog
  private var last: (messageID: UInt64, body: ByteBuffer)?

  init(log: LimitedLog) { self.log = log }

  /// nil, and logged, for an event that can't be written.
  mutating func outgoing(_ delivery: Delivery) -> Outgoing? {
    switch delivery {
    case .reply(_, let id, let reply): return .reply(id: id, reply)
    case .close(_, let reason): return .close(reason: reason)
    case .admission(_, let refusal): return .admission(refusal: refusal)
    case .event(_, let event):
      guard let body = body(event.message, event.messageID) else { return nil }
      return .event(event.message.body.name, seq: event.seq, redelivered: event.redelivered, body: body)
    case .publish(_, let channel, let messageID, let message):
      guard let body = body(message, messageID) else { return nil }
      let headers: Headers = ["content-type": "application/json", "event": message.body.name.rawValue]
      return .publish(
        SharedEvent(
          messageID: messageID, channel: channel,
          message: SharedMessage(destination: channel.destination, headers: headers, body: body)))
    }
  }

  /// 0 is shared by none.
  private mutating func body(_ message: EventMessage, _ messageID: UInt64) -> ByteBuffer? {
    if messageID != 0, let last, last.messageID == messageID { return last.body }
    guard let bytes = try? JSON.encode(message) else {
      log.log(.encoding, .error, "an event can't be written as JSON", ["event": "\(message.body.name.rawValue)"])
      return nil
    }
    last = (messageID, ByteBuffer(bytes: bytes))
    return last?.body
  }
}
