package import CallMessages
package import Contract
import JSON
package import Listening
import Logging
import MediaModel
package import struct NIOCore.ByteBuffer

/// Something for one client. Bodies are JSON already, and a front puts its own lines around them.
package enum Outgoing: Sendable {
  case reply(id: String, EncodedReply)
  /// For the client's queue of events.
  case event(EncodedEvent, seq: UInt64, redelivered: Bool)
  /// An event of a topic.
  /// - newestOnly: only for the session's newest subscription, as the answer to a SUBSCRIBE to a call that has ended.
  case publish(EncodedEvent, newestOnly: Bool)
  /// The client may have the channel to which it subscribed, or is told why not.
  case admission(refusal: String?)
}

/// An event as JSON. It is one object for all its receivers, so a front that writes the same object again can use again what it made of it.
package final class EncodedEvent: Sendable {
  package let name: EventName
  package let channel: Channel
  package let body: ByteBuffer

  init(_ name: EventName, for channel: Channel, _ body: ByteBuffer) {
    self.name = name
    self.channel = channel
    self.body = body
  }
}

/// A reply as JSON.
package struct EncodedReply: Sendable {
  /// Whether the request was carried out.
  package let isOK: Bool
  package let body: [UInt8]

  init(ok body: [UInt8]) {
    isOK = true
    self.body = body
  }

  /// A reply that cannot be encoded is logged, and becomes an error.
  package init(_ reply: CallMessages.Reply, to session: SessionID, _ log: LimitedLog) {
    do {
      switch reply {
      case .ok(let body): self.init(ok: try JSONCoding.encode(body))
      case .failed(let error): self.init(error: try JSONCoding.encode(ErrorReply(error: error)))
      }
    } catch {
      log.log(.encoding, .error, "a reply can't be written as JSON", ["session": "\(session.number)"])
      let failure = RequestError(.internal, "the server failed; it has been logged")
      self.init(error: (try? JSONCoding.encode(ErrorReply(error: failure))) ?? [])
    }
  }

  private init(error body: [UInt8]) {
    isOK = false
    self.body = body
  }
}
