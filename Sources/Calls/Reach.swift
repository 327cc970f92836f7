import MediaModel

/// The users that a request may reach. A user out of reach is treated as offline (protocol section 7).
enum Reach {
  case everybody
  case only(Set<UserID>)

  func includes(_ user: UserID) -> Bool {
    switch self {
    case .everybody: true
    case .only(let users): users.contains(user)
    }
  }
}
