package import Contract
package import MediaModel
import NIOCore
import STOMP

/// An event from the server, or the call state that was asked for, in the order of arrival.
package enum IncomingMessage: Sendable {
  case event(ReceivedEvent)
  /// The reply that `askState` wanted.
  case state(CallID, Result<CallState, SignalingError>)
}

/// One event as it came, to be acknowledged when it has been handled.
package struct ReceivedEvent: Sendable {
  package let message: EventMessage
  /// The event's number for this device.
  package let seq: UInt64
  /// Whether events before this one were lost for good: the client asks for `state` and `keys/list`.
  package let followsGap: Bool
  let frame: Frame
  /// The connection it came by; an ACK on another would mean nothing.
  let connection: Int
}

extension IncomingMessage {
  /// Bytes that it came in, roughly.
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
