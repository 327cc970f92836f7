package import Contract
package import MediaModel

/// An input of the state machine.
package enum NodeCommand: Sendable {
  /// A connection was authenticated. It replaces an older one of the same device.
  case connect(SessionID, Identity)
  case disconnect(SessionID)
  /// Answered by `.admission` unless the channel is one of the client's own two. The shell refuses a session's second subscription to a channel.
  case subscribe(SessionID, Channel, AcknowledgementMode)
  case unsubscribe(SessionID, Channel)
  /// ACKs or NACKs of the events `seqs`, in their order. With `AcknowledgementMode.client` each also covers all earlier events. That is handled here: the shell need
  /// not expand it.
  case acknowledge(SessionID, seqs: [UInt64], accepted: Bool)
  case request(SessionID, id: String, Request)
  /// The answer to the effect `.read`: the parsed SDP, or the parse error; `call.not-joined` takes precedence.
  case offer(SessionID, id: String, CallID, Result<MediaOffer, RequestError>, [MediaRequest.Track])
  /// `.configured` releases an answer in the shell; here it says what the slots show.
  case media(MediaEvent)
  /// The answer to the effect `.ask` with this number. A question whose answer is too late has been abandoned.
  case answer(QuestionID, allowed: Set<UserID>)
  /// The store of recordings has news for people.
  case recording(RecordingNews)
  /// The store does not take the recording of the call, or no more of it.
  case recordingFailed(CallID, RecordingID, RecordingStopped.Reason)
  /// The push service has dropped this endpoint of the user.
  case pushGone(UserID, endpoint: String)
  /// Somebody without an account waits at the link.
  case waitsAtLink(LinkID)
  /// Deletes everything about the user: `conclave forget`.
  case forget(UserID)
  /// The operator ends the call: `conclave end`.
  case end(CallID)
  /// The operator removes the user from its calls and closes its connections: `conclave disconnect`. The user may
  /// return.
  case disconnectUser(UserID)
  /// The operator ends the user's lasting links: all, or those of this short name: `conclave links delete`.
  case endLinks(of: UserID, named: String?)
  /// The log counted failures in the call. The number outlives a restart.
  case failures(CallID, Int)
  /// The server is about to stop: no new calls.
  case drain
  /// `nextDeadline` has come.
  case timeout
}

/// STOMP's `ack` header of a subscription.
package enum AcknowledgementMode: Hashable, Sendable { case auto, client, individual }
