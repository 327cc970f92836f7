import Contract
import MediaModel

/// One event, for however many devices.
struct Message {
  /// The id of messages that no two deliveries share.
  static let unshared: UInt64 = 0

  /// `EventDelivery.messageID`.
  var id: UInt64
  var event: EventMessage

  func isOf(_ call: CallID) -> Bool { event.call == call }
}
