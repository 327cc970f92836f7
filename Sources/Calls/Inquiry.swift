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
}

package enum InquiryAnswer: Codable, Sendable {
  /// Running calls, and the devices that are joined in them.
  case counts(calls: Int, participants: Int)
  /// Running calls, in no particular order.
  case summaries([CallSummary])
  /// A running call, or the end of one of the last calls; nil for an unknown id.
  case inspection(CallInspection?)
  case truth(Bool)
  /// Users with a connection, in no particular order; services are not included.
  case connectedUsers([ConnectedUser])
}

extension Node {
  package func answer(_ inquiry: Inquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .calls(let inquiry): control.answer(inquiry, now: now)
    case .people(let inquiry): people.answer(inquiry)
    }
  }
}

extension CallControl {
  func answer(_ inquiry: CallsInquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .counts: .counts(calls: calls.count, participants: calls.values.reduce(0) { $0 + $1.joinedCount })
    case .summaries: .summaries(calls.values.map(\.summary))
    case .inspection(let id): .inspection(inspection(of: id))
    case .admitsGuest(let link, let id): .truth(admitsGuest(by: link, to: id, now: now))
    case .runs(let id): .truth(calls[id] != nil)
    }
  }
}

extension People {
  func answer(_ inquiry: PeopleInquiry) -> InquiryAnswer {
    switch inquiry {
    case .connectedUsers: .connectedUsers(connectedUsers)
    case .isPresent(let user): .truth(isPresent(user))
    }
  }
}
