package import Contract
package import MediaModel
import NIOCore
import STOMP

/// An event from the server, or a requested call state, in the order of arrival.
package enum IncomingMessage: Sendable {
  case event(ReceivedEvent)
  /// The reply that `askState` wanted.
  case state(CallID, Result<CallState, SignalingError>)
}

/// One event as received, to be acknowledged once it has been handled.
package struct ReceivedEvent: Sendable {
  package let message: EventMessage
  /// The event's number for this device.
  package let seq: UInt64
  /// Whether earlier events were permanently lost: the client then requests `state` and `keys/list`.
  package let followsGap: Bool
  let frame: Frame
  /// The connection on which it arrived; an ACK on another would be meaningless.
  let connection: Int
}

extension IncomingMessage {
  /// The approximate number of bytes in which it arrived.
  var size: Int {
    switch self {
    case .event(let delivery): delivery.size
    case .state(_, .success(let state)): 256 * state.members.count
    case .state(_, .failure): 0
    }
  }
}

extension ReceivedEvent {
  /// The body's bytes.
  var size: Int { frame.body.readableBytes }
}
