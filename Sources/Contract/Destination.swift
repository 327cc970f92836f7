import MediaModel

extension Request {
  /// Reads the request that a SEND to `destination` asks for; `decode` turns the frame's body into the given type.
  /// nil when there is no such request (`request.unknown`); rethrows what `decode` throws.
  package init?(destination: String, decode: (any Decodable.Type) throws -> any Decodable) throws {
    func body<Body: Decodable>(_ type: Body.Type) throws -> Body { try decode(type) as! Body }
    let path = destination.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    guard path.first == "app", path.count >= 3 else { return nil }
    switch (path[1], path[2], path.count) {
    case ("devices", "register", 3): self = .registerDevice(try body(RegisterDevice.self))
    case ("devices", "list", 3): self = .listDevices(try body(ListDevices.self))
    case ("calls", "start", 3): self = .start(try body(StartCall.self))
    case ("calls", "list", 3):
      _ = try body(NoBody.self)
      self = .listCalls
    case ("calls", let id, 4...):
      guard let call = CallID(id) else { return nil }
      switch (path[3], path.count) {
      case ("accept", 4): self = .accept(call, try body(Join.self))
      case ("decline", 4): self = .decline(call, try body(Decline.self))
      case ("invite", 4): self = .invite(call, try body(Invite.self))
      case ("cancel", 4): self = .cancel(call, try body(Cancel.self))
      case ("join", 4): self = .join(call, try body(Join.self))
      case ("rejoin", 4): self = .rejoin(call, try body(Join.self))
      case ("leave", 4):
        _ = try body(NoBody.self)
        self = .leave(call)
      case ("end", 4):
        _ = try body(NoBody.self)
        self = .end(call)
      case ("state", 4):
        _ = try body(NoBody.self)
        self = .state(call)
      case ("media", 4): self = .media(call, try body(MediaRequest.self))
      case ("tracks", 5):
        guard let track = TrackID(path[4]) else { return nil }
        self = .track(call, track, try body(ChangeTrack.self))
      case ("keys", 4): self = .keys(call, try body(HandOutKeys.self))
      case ("keys", 5) where path[4] == "request": self = .requestKey(call, try body(RequestKey.self))
      case ("keys", 5) where path[4] == "list":
        _ = try body(NoBody.self)
        self = .listKeys(call)
      default: return nil
      }
    default: return nil
    }
  }

  /// Where a client sends the request.
  package var destination: String {
    switch self {
    case .registerDevice: "/app/devices/register"
    case .listDevices: "/app/devices/list"
    case .start: "/app/calls/start"
    case .listCalls: "/app/calls/list"
    case .accept(let call, _): "/app/calls/\(call.text)/accept"
    case .decline(let call, _): "/app/calls/\(call.text)/decline"
    case .invite(let call, _): "/app/calls/\(call.text)/invite"
    case .cancel(let call, _): "/app/calls/\(call.text)/cancel"
    case .join(let call, _): "/app/calls/\(call.text)/join"
    case .rejoin(let call, _): "/app/calls/\(call.text)/rejoin"
    case .leave(let call): "/app/calls/\(call.text)/leave"
    case .end(let call): "/app/calls/\(call.text)/end"
    case .state(let call): "/app/calls/\(call.text)/state"
    case .media(let call, _): "/app/calls/\(call.text)/media"
    case .track(let call, let track, _): "/app/calls/\(call.text)/tracks/\(track)"
    case .keys(let call, _): "/app/calls/\(call.text)/keys"
    case .requestKey(let call, _): "/app/calls/\(call.text)/keys/request"
    case .listKeys(let call): "/app/calls/\(call.text)/keys/list"
    }
  }

  /// The JSON body that belongs to the request.
  package var body: any Encodable & Sendable {
    switch self {
    case .registerDevice(let body): body
    case .listDevices(let body): body
    case .start(let body): body
    case .accept(_, let body), .join(_, let body), .rejoin(_, let body): body
    case .decline(_, let body): body
    case .invite(_, let body): body
    case .cancel(_, let body): body
    case .media(_, let body): body
    case .track(_, _, let body): body
    case .keys(_, let body): body
    case .requestKey(_, let body): body
    case .leave, .end, .state, .listCalls, .listKeys: NoBody()
    }
  }
}
