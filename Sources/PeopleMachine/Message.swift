import CallMessages
import Contract
import MediaModel

/// One event, for any number of devices.
struct Message {
  /// The id of messages that are delivered only once.
  static let unshared: UInt64 = 0

  /// `EventDelivery.messageID`.
  var id: UInt64
  var event: EventMessage

  func isOf(_ call: CallID) -> Bool { event.call == call }
}
