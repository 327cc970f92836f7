import CallMessages
import Contract
import JSON
import Listening
import Logging
import struct NIOCore.ByteBuffer

/// Makes JSON of events, and of the replies with parts that many share. The last event is kept because many may get it.
struct EventEncoder {
  /// An `Outgoing`, or the parts of one that is made on the connection's event loop.
  enum Output: Sendable {
    case ready(Outgoing)
    case reply(id: String, CallMessages.Reply)
    case close(reason: String)
  }

  /// An event's JSON under its number, and the object for the channel that got it last.
  private struct Last {
    let messageID: UInt64
    let body: ByteBuffer
    var event: EncodedEvent
  }

  let log: LimitedLog
  let texts: StateTexts
  private var last: Last?

  init(log: LimitedLog, texts: StateTexts) {
    self.log = log
    self.texts = texts
  }

  /// nil, and logged, for an event that cannot be written.
  mutating func output(_ delivery: Delivery) -> Output? {
    switch delivery {
    case .reply(_, let id, .ok(let body)):
      // Most replies become JSON on the event loop of their connection.
      return text(of: body).map { .ready(.reply(id: id, EncodedReply(ok: $0))) } ?? .reply(id: id, .ok(body))
    case .reply(_, let id, let failure): return .reply(id: id, failure)
    case .close(_, let reason): return .close(reason: reason)
    case .admission(_, _, let refusal): return .ready(.admission(refusal: refusal))
    case .event(_, let event):
      return encoded(event.message, event.messageID, for: .events).map {
        .ready(.event($0, seq: event.seq, redelivered: event.redelivered))
      }
    case .publish(_, let channel, let messageID, let message):
      return encoded(message, messageID, for: channel).map { .ready(.publish($0, newestOnly: messageID == 0)) }
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

  /// Events with the same number other than 0 are identical, and encoded once.
  private mutating func encoded(_ message: EventMessage, _ messageID: UInt64, for channel: Channel) -> EncodedEvent? {
    if messageID != 0, var last, last.messageID == messageID {
      if last.event.channel != channel {
        last.event = EncodedEvent(message.body.name, for: channel, last.body)
        self.last = last
      }
      return last.event
    }
    guard let bytes = try? text(of: message) else {
      log.log(.encoding, .error, "an event can't be written as JSON", ["event": "\(message.body.name.rawValue)"])
      return nil
    }
    let body = ByteBuffer(bytes: bytes)
    let event = EncodedEvent(message.body.name, for: channel, body)
    last = Last(messageID: messageID, body: body, event: event)
    return event
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
