package import Contract
package import MediaModel

extension RecordingsRequest {
  /// The users whom the request gives a recording, or names as readers, each once and in order.
  package func recipients(besides user: UserID) -> [UserID] {
    let users: [UserID] =
      switch self {
      case .start(let body): body.statement.readers + (body.grants ?? []).map(\.to.user)
      case .share(let body): body.grants.map(\.to.user)
      case .finish, .list, .get, .note, .seen, .delete, .erase: []
      }
    return Set(users).subtracting([user]).sorted()
  }
}
