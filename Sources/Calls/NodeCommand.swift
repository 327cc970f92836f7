package import Contract
package import MediaModel

/// An input of the state machine.
package enum NodeCommand: Sendable {
  /// A connection is authenticated. It replaces an older one of the same device.
  case connect(SessionID, Identity)
  case disconnect(SessionID)
  /// Answered by `.admission` unless the channel is one of the client's own two. The shell refuses a second subscription of a session to a channel.
  case subscribe(SessionID, Channel, AcknowledgementMode)
  case unsubscribe(SessionID, Channel)
  /// ACKs or NACKs of the events `seqs`, in their order. With `AcknowledgementMode.client` each counts for all events before it, too, here: the shell need not spread it.
  case acknowledge(SessionID, seqs: [UInt64], accepted: Bool)
  case request(SessionID, id: String, Request)
  /// The answer to the effect `.read`: the SDP as parsed, or the parse error; `call.not-joined` takes precedence.
  case offer(SessionID, id: String, CallID, Result<MediaOffer, RequestError>, [MediaRequest.Track])
  /// `.configured` releases an answer in the shell; here it says what the slots show.
  case media(MediaEvent)
  /// The answer to the effect `.ask` of this number; a question whose answer comes too late was given up.
  case answer(QuestionID, allowed: Set<UserID>)
  /// The push service has dropped this endpoint of the user.
  case pushGone(UserID, endpoint: String)
  /// All that is kept of the user goes: `conclave forget`.
  case forget(UserID)
  /// The operator ends the call: `conclave end`.
  case end(CallID)
  /// The operator takes the user out of its calls and closes its connections: `conclave disconnect`. It may come back.
  case disconnectUser(UserID)
  /// The log counted failures in the call, whose number outlives a restart.
  case failures(CallID, Int)
  /// The server is about to stop: no new calls.
  case drain
  /// `nextDeadline` has come.
  case timeout
}

/// STOMP's `ack` header of a subscription.
package enum AcknowledgementMode: Hashable, Sendable { case auto, client, individual }
