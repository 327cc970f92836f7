package import Contract
import MediaModel

/// One event on its way to one device.
package struct EventDelivery: Sendable {
  /// The header `seq`.
  package var seq: UInt64
  /// The header `redelivered`: it was written to an earlier connection and not acknowledged.
  package var redelivered: Bool
  /// The same for all deliveries of one message, so that the shell may encode it once for a thousand devices; 0 if it is not
  /// shared.
  package var messageID: UInt64
  package var message: EventMessage

  package init(seq: UInt64, redelivered: Bool, messageID: UInt64, message: EventMessage) {
    self.seq = seq
    self.redelivered = redelivered
    self.messageID = messageID
    self.message = message
  }
}
