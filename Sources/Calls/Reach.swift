import MediaModel

/// Whom a request may reach. Who is out of reach is treated as offline (protocol section 7).
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
