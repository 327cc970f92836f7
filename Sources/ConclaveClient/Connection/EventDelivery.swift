package import Contract
import STOMP

/// One event as it came, to be acknowledged when it has been handled.
package struct EventDelivery: Sendable {
  package let message: EventMessage
  /// The event's number for this device.
  package let seq: UInt64
  /// Whether events before this one were lost for good: the client asks for `state` and `keys/list`.
  package let followsGap: Bool
  let frame: Frame
  /// The connection it came by; an ACK on another would mean nothing.
  let connection: Int
}
