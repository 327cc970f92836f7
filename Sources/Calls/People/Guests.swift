import Contract
import MediaModel

/// Guests: users without an account who came by a link, and have one call (protocol section 4, "Guests").
extension Request {
  /// Whether a guest of this call may make it. All that is not listed here is refused.
  func isOpen(toGuestOf call: CallID) -> Bool {
    switch self {
    case .registerDevice, .listDevices: true
    case .join(let id, _), .rejoin(let id, _), .leave(let id), .state(let id),
      .media(let id, _), .track(let id, _, _), .receive(let id, _), .stats(let id, _), .message(let id, _),
      .report(let id, _), .keys(let id, _), .requestKey(let id, _), .listKeys(let id, _), .waitForKey(let id, _),
      .confirmKey(let id, _),
      .listConfirmations(let id, _):
      id == call
    default: false
    }
  }
}

extension RequestError {
  static let notForGuests = RequestError(.authForbidden, "a guest may join its call, take part in it and leave it")
}

extension People {
  /// A guest may list the devices of its call's members, once it is one of them. The app's back end is not asked: it does not know guests.
  func reach(of identity: Identity, _ request: Request) -> Reach {
    guard let call = identity.guestOf, case .listDevices(let body) = request else { return .everybody }
    guard part(of: identity.device.user, in: call) != nil else { return .only([identity.device.user]) }
    return .only(Set(body.users.filter { part(of: $0, in: call) != nil }))
  }

  /// Nothing is left of a guest whose call is over.
  mutating func forgetGuests(among users: [UserID]) {
    for user in users where user.isGuest { dismiss(.user(user)) }
  }

  /// A guest that is neither connected nor in a call.
  func isForgettable(_ device: Device) -> Bool {
    device.user.isGuest && directory[device]?.connection == nil && memberships[device.user] == nil
  }
}
