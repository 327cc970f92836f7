package import Contract
package import MediaModel

/// A question about people or calls that changes nothing: by the operator, for a guest's token, or for the metrics. The owner of the state answers it, so that
/// another server can be asked.
package enum Inquiry: Hashable, Codable, Sendable {
  case calls(CallsInquiry)
  case people(PeopleInquiry)
}

package enum CallsInquiry: Hashable, Codable, Sendable {
  case counts
  case summaries
  case inspection(CallID)
  /// Whether somebody without an account may join this link's call as a guest.
  case admitsGuest(link: String, CallID)
  /// Whether the call runs.
  case runs(CallID)
}

package enum PeopleInquiry: Hashable, Codable, Sendable {
  case connectedUsers
  case isPresent(UserID)
  /// Somebody without an account holds this lasting link.
  case lastingLink(LinkID)
  /// How many lasting links there are.
  case lastingLinks
  case lastingLinksOf(UserID)
}

package enum InquiryAnswer: Codable, Sendable {
  /// Running calls, and the devices that are joined in them.
  case counts(calls: Int, participants: Int)
  /// Running calls, in no particular order.
  case summaries([CallSummary])
  /// A running call, or the end of one of the last calls; nil for an unknown id.
  case inspection(CallInspection?)
  case truth(Bool)
  case number(Int)
  /// nil if there is none.
  case lastingLink(OpenedLink?)
  /// Users with a connection, in no particular order; services are not included.
  case connectedUsers([ConnectedUser])
  /// A user's lasting links, in the order in which they were made.
  case linkSummaries([LinkSummary])
}
