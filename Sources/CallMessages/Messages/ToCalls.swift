package import Contract
package import MediaModel

/// A message from the people's side to a call. Messages of one user to one call arrive in the order in which they were sent.
///
/// The facts about people in it may be out of date when it arrives. Only `CallControl` decides about a call, and none of its decisions is unsafe with old
/// facts: they say how a ring looks (busy, unavailable, connected) and how much load a user causes. If they matter for longer, the other side learns of the
/// result and corrects it: see `People.follow`.
package enum ToCalls: Codable, Sendable {
  case request(BriefedRequest)
  /// A `media` request whose SDP has been read.
  case offer(SessionID, id: String, Identity, CallID, ReadOffer, [MediaRequest.Track])
  /// A `history/list` of a user who is or was in these calls: answered by `ToPeople.history`, which says what may be rejoined.
  case history(SessionID, id: String, Device, calls: [CallID], ListHistory)
  /// The device reads its events from now on: answered by `ToPeople.greeting`.
  case greet(SessionID, Device, in: CallID)
  /// A user who is not known to be a listener wants to read the call's topic: answered by `ToPeople.topic`.
  case readTopic(SessionID, UserID, of: CallID)
  /// The device's STOMP connection began or ended. Repeating it changes nothing.
  case signaling(Device, isUp: Bool, in: CallID)
  /// The device has been speaking in another call since the request with that turn.
  case hold(Device, since: UInt64, in: CallID)
  /// The device opened its envelope, or could not open it.
  case acknowledged(Device, epoch: UInt32, accepted: Bool, in: CallID)
  case ringAcknowledged(Device, in: CallID)
  /// The app's back end was told to wake devices of the ringing user.
  case pushed(UserID, in: CallID)
  /// The user's devices or keys changed (rule 15).
  case devicesChanged(UserID, in: CallID)
  /// The user's lasting link that the call is for is over, so nobody comes by a link of the call any more.
  case voidLinks(of: UserID, in: CallID)
  /// Answered by `ToPeople.removed`.
  case remove(Leaver, from: CallID)
  /// Deletes everything about the user in calls that have ended.
  case forget(UserID)
}

/// The offer that was read from an SDP, or why it could not be read.
package enum ReadOffer: Codable, Sendable {
  case offer(MediaOffer)
  case refused(RequestError)

  package init(_ result: Result<MediaOffer, RequestError>) {
    switch result {
    case .success(let offer): self = .offer(offer)
    case .failure(let error): self = .refused(error)
    }
  }

  package var result: Result<MediaOffer, RequestError> {
    switch self {
    case .offer(let offer): .success(offer)
    case .refused(let error): .failure(error)
    }
  }
}

/// A device or user that loses its place in all calls: the user removed the device, or the user's data is deleted.
package enum Leaver: Hashable, Codable, Sendable {
  case device(Device)
  case user(UserID)

  package var user: UserID {
    switch self {
    case .device(let device): device.user
    case .user(let user): user
    }
  }
}

/// A request about calls, with the facts about people that it needs.
package struct BriefedRequest: Codable, Sendable {
  package var session: SessionID
  /// As in the client's header, for the reply.
  package var id: String
  package var request: CallsRequest
  /// Rises with each request that the people's side passes on.
  package var turn: UInt64
  package var caller: Caller
  /// The users that a `start` or an `invite` names, each once; those who cannot be reached are marked.
  package var callees: [Callee] = []
  /// The keys of the devices to which a `start` brings envelopes.
  package var keys: [Device: DeviceEntry] = [:]
  /// Whether the app's back end must be asked which users the request may reach. It is asked after the call has checked the request
  /// (`ToPeople.checked`).
  package var asks = false
  /// For `link` with a lasting link: the sending device has made it.
  package var grant: LinkGrant?

  package init(
    session: SessionID, id: String, request: CallsRequest, turn: UInt64, caller: Caller, callees: [Callee] = [],
    keys: [Device: DeviceEntry] = [:], asks: Bool = false, grant: LinkGrant? = nil
  ) {
    self.session = session
    self.id = id
    self.request = request
    self.turn = turn
    self.caller = caller
    self.callees = callees
    self.keys = keys
    self.asks = asks
    self.grant = grant
  }
}

/// The right of a device to let people into a call by a lasting link.
package struct LinkGrant: Codable, Sendable {
  package var link: LinkID
  /// The device's fingerprint, which the holders of the link know.
  package var fingerprint: Base64Bytes
  package var expiresAt: Timestamp

  package init(link: LinkID, fingerprint: Base64Bytes, expiresAt: Timestamp) {
    self.link = link
    self.fingerprint = fingerprint
    self.expiresAt = expiresAt
  }
}

/// The client that makes a request, as far as it concerns calls.
package struct Caller: Codable, Sendable {
  package var identity: Identity
  /// As others see the user.
  package var name: String?
  /// The registered keys of the device, without vouches.
  package var keys: DeviceEntry?
  /// The user's role may start calls and invite (protocol section 7).
  package var mayStart = true
  /// The calls in which the user is present. This limits load only: two simultaneous joins may exceed it.
  package var presentCalls = 0
  /// The calls that the user is a member of, for requests that concern more than one.
  package var calls: [CallID] = []

  package init(
    identity: Identity, name: String? = nil, keys: DeviceEntry? = nil, mayStart: Bool = true, presentCalls: Int = 0,
    calls: [CallID] = []
  ) {
    self.identity = identity
    self.name = name
    self.keys = keys
    self.mayStart = mayStart
    self.presentCalls = presentCalls
    self.calls = calls
  }

  package var device: Device { identity.device }
}
