package import Contract
package import MediaModel

/// A message from a call to the people's side. Messages of one call arrive in the order in which they were sent, which is the order of its events for
/// each device.
package enum ToPeople: Codable, Sendable {
  /// Precedes all events that follow from the request.
  case reply(SessionID, id: String, Reply)
  /// The request is valid so far: the app's back end may be asked.
  case checked(BriefedRequest)
  /// A valid report: `People` counts the connection's reports, replies, informs the services, and has it stored under this id.
  case report(SessionID, id: String, Report, of: CallID, stored: ReportID)
  /// The query of a `history/list`.
  case history(SessionID, id: String, HistoryQuery)
  /// The device speaks only in this one of all its calls.
  case speaks(Device, in: CallID, turn: UInt64)
  /// `state`: of a call that the device is in. `ring`: the call rings on the device.
  case greeting(SessionID, CallID, state: CallState?, ring: Ring?)
  case topic(SessionID, CallID, TopicAnswer)
  case removed(Leaver, from: CallID)
  /// `rev`: the revision of the call after this event, if it changes the state.
  case news(CallNews, of: CallID, rev: UInt64?)

  package enum TopicAnswer: Codable, Sendable {
    case listener
    /// The user was a member until the call ended.
    case over(Ended, at: Timestamp)
    case stranger
  }
}

/// An occurrence in a call, for those who must be told.
package enum CallNews: Codable, Sendable {
  package enum Audience: Codable, Sendable {
    case devices([Device])
    /// Every device of these users.
    case users([UserID])
    /// The user's devices that were rung, except the one that acted; their ring is over.
    case rung(UserID, but: DeviceID?)
    /// Every device of this user, whose part of an event this is: all others, and the topics, get the event itself.
    case alone(UserID)
  }

  /// The call was created.
  case made(CallState)
  case event(Audience, EventBody)
  /// Rings all devices of these members. Each envelope is for one device, and comes with `list`.
  case ring([MemberRing], envelopes: [Device: Envelope], list: [ListEntry], topic: Ring?)
  /// These devices' rings continue without their envelopes.
  case ringEnvelopesSuperseded([Device])
  /// Envelopes kept for these devices that are not of this epoch are superseded.
  case envelopesSuperseded([Device], by: UInt32)
  /// Events kept for this device as a participant are void.
  case participantGone(Device)
  /// The user is a member from now on, or its part changed.
  case member(UserID, Membership.Part)
  /// A ring that `push.ring` announced is over.
  case pushOver(UserID)
  /// A member has removed the guest, of whom nothing is kept.
  case guestRemoved(UserID)
  /// The call lets people in by this lasting link of the user, with the token of its own link.
  case linkOpened(LinkID, of: UserID, CallLink)
  /// No link of the call lets anybody in any more.
  case linksVoid
  /// The call is over for these users, who are all of its members.
  case over([UserID])
}

/// One user's ring, without an envelope.
package struct MemberRing: Codable, Sendable {
  package var user: UserID
  package var ring: Ring

  package init(user: UserID, ring: Ring) {
    self.user = user
    self.ring = ring
  }
}
