import Calls
import Contract
import JSON
import Logging
import NIOCore
import STOMP

/// Converts deliveries to the form that connections write. Events become JSON here; the last one is kept because many
/// may get it.
struct EventEncoder {
  let log: LimitedLog
  let texts: StateTexts
  /// The last event's JSON, and what its receivers' queues get.
  private var last: (messageID: UInt64, body: ByteBuffer, event: SharedMessage?)?

  init(log: LimitedLog, texts: StateTexts) {
    self.log = log
    self.texts = texts
  }

  /// nil, and logged, for an event that cannot be written.
  mutating func outgoing(_ delivery: Delivery) -> Outgoing? {
    switch delivery {
    case .reply(_, let id, .ok(let body)):
      // A reply that cannot be encoded is refused and logged by the connection.
      return text(of: body).map { .encodedReply(id: id, $0) } ?? .reply(id: id, .ok(body))
    case .reply(_, let id, let failure): return .reply(id: id, failure)
    case .close(_, let reason): return .close(reason: reason)
    case .admission(_, _, let refusal): return .admission(refusal: refusal)
    case .event(_, let event):
      guard let message = message(event) else { return nil }
      return .event(messageID: event.messageID, message, seq: event.seq, redelivered: event.redelivered)
    case .publish(_, let channel, let messageID, let message):
      guard let body = body(message, messageID) else { return nil }
      return .publish(messageID: messageID, shared(message, body, channel.destination))
    }
  }

  /// A reply with a call's state, or with a list of its devices, becomes JSON here, where its parts are known; nil for all others, which the connection encodes.
  private func text(of reply: ReplyBody) -> [UInt8]? {
    switch reply {
    case .joined(let joined): try? texts.encode(joined, of: joined.call.id, members: joined.call.members.count)
    case .state(let state): try? texts.encode(state, of: state.id, members: state.members.count)
    case .keyList(let list): try? texts.encode(list, entries: list.list.count)
    case .devices(let devices): try? texts.encode(devices)
    default: nil
    }
  }

  private func shared(_ message: EventMessage, _ body: ByteBuffer, _ destination: String) -> SharedMessage {
    let headers: Headers = ["content-type": "application/json", "event": message.body.name.rawValue]
    return SharedMessage(destination: destination, headers: headers, body: body)
  }

  /// The event for the queue of one receiver or, under the same `messageID`, of many.
  private mutating func message(_ event: EventDelivery) -> SharedMessage? {
    guard let body = body(event.message, event.messageID) else { return nil }
    if let known = last?.event { return known }
    let message = shared(event.message, body, Destination.events)
    last?.event = message
    return message
  }

  /// 0 is never shared.
  private mutating func body(_ message: EventMessage, _ messageID: UInt64) -> ByteBuffer? {
    if messageID != 0, let last, last.messageID == messageID { return last.body }
    guard let bytes = try? text(of: message) else {
      log.log(.encoding, .error, "an event can't be written as JSON", ["event": "\(message.body.name.rawValue)"])
      return nil
    }
    last = (messageID, ByteBuffer(bytes: bytes), nil)
    return last?.body
  }

  private func text(of message: EventMessage) throws(JSONError) -> [UInt8] {
    switch (message.call, message.body) {
    case (let call?, .state(let state)): try texts.encode(message, of: call, members: state.members.count)
    case (_, .ring): try texts.encode(ring: message)
    case (_, .rotate(let rotation)): try texts.encode(message, entries: rotation.list?.count ?? 0)
    default: try JSONCoding.encode(message)
    }
  }
}

/// Something on its way to its connection's event loop. Events are already JSON, because one body may go to a thousand connections: messages with the same
/// destination and the same number other than 0 are identical, and written once for all receivers.
enum Outgoing: Sendable {
  case reply(id: String, Calls.Reply)
  /// A reply with `status: ok` that is already JSON.
  case encodedReply(id: String, [UInt8])
  /// For the client's queue of events.
  case event(messageID: UInt64, SharedMessage, seq: UInt64, redelivered: Bool)
  case admission(refusal: String?)
  /// An event of a topic. 0 is only for the session's newest subscription: the answer to a SUBSCRIBE to a call that has ended.
  case publish(messageID: UInt64, SharedMessage)
  case close(reason: String)
}
