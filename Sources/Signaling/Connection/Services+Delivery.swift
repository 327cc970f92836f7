import Calls
import NIOCore
import STOMP

extension Services {
  /// Sorts deliveries by event loop, one task each. A message for many is written as JSON once, and so is each change of a member in the states of a large call.
  func deliver(_ deliveries: [Delivery]) {
    var batches: [ObjectIdentifier: [(ConnectionTable.Entry, Outgoing)]] = [:]
    var encoder = EventEncoder(log: log, texts: stateTexts)
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
