package import Contract
package import MediaModel

extension Calls {
  /// What the world tells the state machine.
  package enum Command: Sendable {
    /// A connection is authenticated. It replaces an older one of the same device.
    case connect(SessionID, Identity)
    case disconnect(SessionID)
    case subscribe(SessionID, UserQueue, AckMode)
    case unsubscribe(SessionID, UserQueue)
    /// ACK or NACK of the event `seq`. With `AckMode.client` it counts for all events before it, too, here: the shell need not spread it.
    case acknowledge(SessionID, seq: UInt64, accepted: Bool)
    /// Every request but `media`, which comes as `offer`.
    case request(SessionID, id: String, Request)
    /// A `media` request whose SDP the shell has read.
    case offer(SessionID, id: String, CallID, MediaOffer, [MediaRequest.Track])
    /// `.configured` is the shell's own matter and is ignored here.
    case media(MediaEvent)
    /// `nextDeadline` has come.
    case timeout
  }
}
