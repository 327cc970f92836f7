import MediaModel

/// Answers to the operator.
extension People {
  func answer(_ inquiry: PeopleInquiry) -> InquiryAnswer {
    switch inquiry {
    case .connectedUsers: .connectedUsers(connectedUsers)
    case .isPresent(let user): .truth(isPresent(user))
    }
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
