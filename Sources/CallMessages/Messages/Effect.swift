package import Contract
package import MediaModel

/// The answer to one request.
package enum Reply: Sendable {
  case ok(ReplyBody)
  case failed(RequestError)
}

/// An output for one client.
package enum Delivery: Sendable {
  case reply(SessionID, id: String, Reply)
  case event(SessionID, EventDelivery)
  /// Send ERROR with this `message` and close. The session is already forgotten here.
  case close(SessionID, reason: String)
  /// The client may have the channel to which it subscribed, or gets an ERROR with this text.
  case admission(SessionID, Channel, refusal: String?)
  /// An event for one subscriber of a topic. `messageID` is as in `EventDelivery`, and 0 only for the session's newest
  /// subscription. The session's subscription is still admitted.
  case publish(SessionID, Channel, messageID: UInt64, EventMessage)

  package var session: SessionID {
    switch self {
    case .reply(let session, _, _), .event(let session, _), .close(let session, _), .admission(let session, _, _),
      .publish(let session, _, _, _):
      session
    }
  }
}

/// An instruction to the shell. Their order is the order of events for each device.
package enum Effect: Sendable {
  case client(Delivery)
  /// A `media` request of a participant: read its SDP and submit `.offer`. Later commands of the session's user wait for that.
  case read(SessionID, id: String, CallID, MediaRequest)
  case negotiate(SessionID, id: String, Negotiate)
  /// Any command except `.configure`. A peer whose configuration is under way counts, too.
  case media(MediaCommand)
  /// For webhooks and the log: the events of the service topics, in order for each call.
  case webhook(Channel, EventMessage)
  /// Web Push to a subscription of the user, of no use after `until`.
  case push(UserID, PushSubscription, PushNotice, until: Timestamp)
  /// A question to the back end or the disk. `.answer` brings the answer.
  case ask(QuestionID, Question)
  /// A history request that has been checked. The shell answers it from the disk.
  case history(SessionID, id: String, HistoryQuery)
  /// A request about recordings. The shell checks it and answers it.
  case recordings(SessionID, id: String, RecordingQuery)
  /// A call is recorded: for the store and the media plane.
  case recorded(CallRecordingChange)
  /// Written to the disk. All changes of one command are in one transaction, committed before its other effects go out. The transaction may also contain
  /// changes of other commands.
  case store(StoreChange)
  /// A client's measurements, for the metrics, without an identity.
  case measured(QualityNumbers)
  /// A participant leaves without the newest epoch's key: for the log.
  case keyless(CallID, ParticipantNumber, KeyState)
}
