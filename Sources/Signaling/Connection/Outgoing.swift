import Calls
import Contract
import NIOCore

/// A delivery on its way to the connection's event loop. Events come as JSON already, since one body may go to a thousand connections.
enum Outgoing: Sendable {
  case reply(id: String, Calls.Reply)
  case event(EventName, seq: UInt64, redelivered: Bool, body: ByteBuffer)
  case admission(refusal: String?)
  case publish(SharedEvent)
  case close(reason: String)
}
