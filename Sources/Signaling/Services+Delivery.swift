import Calls
import Contract
import JSON
import Logging
import NIOCore

extension Services {
  /// Sorts deliveries by event loop, one task each. A message for many is written as JSON once.
  func deliver(_ deliveries: [Delivery]) {
    var batches: [ObjectIdentifier: [(ConnectionTable.Entry, Outgoing)]] = [:]
    var encoded: (messageID: UInt64, body: ByteBuffer)?
    for delivery in deliveries {
      guard let entry = connections.entry(delivery.session) else {
        counters.drop(.sessionGone)
        continue
      }
      let outgoing: Outgoing
      switch delivery {
      case .reply(_, let id, let reply): outgoing = .reply(id: id, reply)
      case .close(_, let reason): outgoing = .close(reason: reason)
      case .event(_, let event):
        // 0 is shared by none.
        if event.messageID == 0 || encoded?.messageID != event.messageID {
          guard let bytes = try? JSON.encode(event.message) else {
            logger.error(
              "an event can't be written as JSON", metadata: ["event": "\(event.message.body.name.rawValue)"])
            continue
          }
          encoded = (event.messageID, ByteBuffer(bytes: bytes))
        }
        guard let body = encoded?.body else { continue }
        outgoing = .event(event.message.body.name, seq: event.seq, redelivered: event.redelivered, body: body)
      }
      batches[ObjectIdentifier(entry.loop), default: []].append((entry, outgoing))
    }
    for batch in batches.values {
      batch[0].0.loop.execute {
        for (entry, outgoing) in batch { entry.handler.value.deliver(outgoing) }
        for (entry, _) in batch {
          entry.handler.value.flush()
          entry.handler.value.armTimer()
        }
      }
    }
  }
}
