package import CallMessages
package import MediaModel

/// Answers to the operator, and to guests.
extension People {
  package func answer(_ inquiry: PeopleInquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .connectedUsers: .connectedUsers(connectedUsers)
    case .isPresent(let user): .truth(isPresent(user))
    case .lastingLink(let link): .lastingLink(opened(link, now: now))
    case .lastingLinks: .number(links.count)
    case .lastingLinksOf(let user): .linkSummaries(links.links(of: user).map { LinkSummary($0) })
    }
  }

  /// For the metrics.
  package var alertCounts: AlertCounts { alerts.counts }

  /// The user on the connection.
  package func user(on session: SessionID) -> UserID? { directory.device(of: session)?.user }

  /// The user whose request waits for the answer to the question.
  package func asker(of question: QuestionID) -> UserID? {
    questions.session(of: question).flatMap { user(on: $0) }
  }

  /// The user has a connection, or a place in a call.
  func isPresent(_ user: UserID) -> Bool {
    directory.isConnected(user) || memberships[user]?.contains { !$0.part.devices.isEmpty } == true
  }

  var connectedUsers: [ConnectedUser] {
    directory.connected.map { user, devices in
      let calls = (memberships[user] ?? []).filter(\.part.isListening).map(\.call)
      return ConnectedUser(user: user, devices: devices, calls: calls)
    }
  }
}
