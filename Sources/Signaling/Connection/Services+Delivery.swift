import Calls
import NIOCore
import STOMP

extension Services {
  /// Sorts what is for clients by event loop, one task each. A message for many is written as JSON once, and so is each change of a member in the states of a large call.
  func deliver(_ effects: [Calls.Effect]) {
    var batches: [ObjectIdentifier: [(ConnectionTable.Entry, Outgoing)]] = [:]
    var encoder = EventEncoder(log: log, texts: stateTexts)
    for effect in effects {
      guard let session = effect.session else { continue }
      guard let entry = connections.entry(session) else {
        counters.drop(.sessionGone)
        continue
      }
      if let outgoing = encoder.outgoing(effect) {
        batches[ObjectIdentifier(entry.loop), default: []].append((entry, outgoing))
      }
    }
    for batch in batches.values {
      batch[0].0.loop.execute { Self.write(batch) }
    }
  }

  private static func write(_ batch: [(ConnectionTable.Entry, Outgoing)]) {
    var last: (id: UInt64, message: SharedMessage)?
    for (entry, outgoing) in batch {
      guard case .publish(let messageID, let new) = outgoing else {
        entry.handler.value.deliver(outgoing)
        continue
      }
      // The message that was written last has the bytes that are the same for all.
      let known = exchange(&last, with: nil)
      let isKnown = messageID != 0 && known?.id == messageID && known?.message.destination == new.destination
      var message = isKnown ? known?.message ?? new : new
      entry.handler.value.publish(&message, newestOnly: messageID == 0)
      last = (messageID, message)
    }
    for (entry, _) in batch {
      entry.handler.value.flush()
      entry.handler.value.armTimer()
    }
  }
}
