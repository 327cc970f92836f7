import Calls
import STOMP

/// An event of a topic; equal ones are the same message, and written once for all subscribers.
struct SharedEvent: Sendable {
  /// 0 is equal to none, and for the session's newest subscription alone: what a SUBSCRIBE to a call that ended brings.
  let messageID: UInt64
  let channel: Channel
  var message: SharedMessage

  var isForTheNewest: Bool { messageID == 0 }

  func isSame(as other: SharedEvent) -> Bool {
    messageID != 0 && messageID == other.messageID && channel == other.channel
  }
}
