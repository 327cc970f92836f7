import CallMessages
import Contract
import Connections

extension EventCharge {
  /// The events among the effects. Replies are charged when they are written.
  init(_ effects: [CallMessages.Effect]) {
    self.init(count: 0, bytes: 0)
    // Deliveries of one event are adjacent.
    var last: (id: UInt64, cost: Int)?
    for case .client(let delivery) in effects {
      let (id, body): (UInt64, EventBody)
      switch delivery {
      case .event(_, let event): (id, body) = (event.messageID, event.message.body)
      case .publish(_, _, let messageID, let message): (id, body) = (messageID, message.body)
      case .reply, .close, .admission: continue
      }
      let cost = last.flatMap { $0.id == id && id != 0 ? $0.cost : nil } ?? body.cost
      last = (id, cost)
      count += 1
      bytes += cost
    }
  }
}
