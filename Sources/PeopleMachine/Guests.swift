import CallMessages
import Contract
import MediaModel

/// Guests: users without an account who came by a link, and have one call (protocol section 4, "Guests").
extension Request {
  /// Whether a guest of this call may make it.
  func isOpen(toGuestOf call: CallID) -> Bool {
    switch self {
    case .people(.registerDevice), .people(.listDevices): true
    case .people, .history, .recordings, .calls(.start), .calls(.list): false
    case .calls(.inCall(let id, let request)): id == call && request.isOpenToGuests
    case .calls(.call(let id, let request)): id == call && request.isOpenToGuests
    }
  }
}

extension MemberRequest {
  fileprivate var isOpenToGuests: Bool {
    switch self {
    case .join, .rejoin, .knock, .leave, .state, .report: true
    case .accept, .decline, .invite, .cancel, .transfer, .end, .link, .admitGuest, .refuseGuest, .removeGuest, .hold:
      false
    }
  }
}

extension ParticipantRequest {
  /// Guests are recorded if they agree, and record nobody.
  fileprivate var isOpenToGuests: Bool {
    switch self {
    case .startRecording, .stopRecording: false
    case .media, .track, .receive, .message, .stats, .keys, .requestKey, .listKeys, .waitForKey, .confirmKey,
      .listConfirmations, .consentToRecording, .exportTrackKeys:
      true
    }
  }
}

extension People {
  /// A guest may list the devices of the members of its call once it is a member. The app's back end is not asked, because it does not
  /// know guests.
  func reach(of identity: Identity, _ request: PeopleRequest) -> Reach {
    guard let call = identity.guestOf, case .listDevices(let body) = request else { return .everybody }
    guard part(of: identity.device.user, in: call) != nil else { return .only([identity.device.user]) }
    return .only(Set(body.users.filter { part(of: $0, in: call) != nil }))
  }

  /// Deletes guests whose call is over.
  mutating func forgetGuests(among users: [UserID]) {
    for user in users where user.isGuest { dismiss(.user(user)) }
  }

  /// A guest that is neither connected nor in a call.
  func isForgettable(_ device: Device) -> Bool {
    device.user.isGuest && directory[device]?.connection == nil && memberships[device.user] == nil
  }
}
