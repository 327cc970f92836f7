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
    case ("devices", "remove", 3): self = .removeDevice(try body(RemoveDevice.self))
    case ("devices", "vouch", 3): self = .vouchForDevice(try body(DeviceStatement.self))
    case ("devices", "revoke", 3): self = .revokeDevice(try body(DeviceStatement.self))
    case ("devices", "pair", 3): self = .pairDevice(try body(PairDevice.self))
    case ("presence", "set", 3): self = .setPresence(try body(SetPresence.self))
    case ("presence", "watch", 3): self = .watchPresence(try body(WatchPresence.self))
    case ("history", "list", 3): self = .listHistory(try body(ListHistory.self))
    case ("history", "delete", 3): self = .deleteHistory(try body(DeleteHistory.self))
    case ("history", "totals", 3): self = .historyTotals(try body(HistoryTotals.self))
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
      case ("transfer", 4): self = .transfer(call, try body(Join.self))
      case ("link", 4): self = .link(call, try body(MakeLink.self))
      case ("hold", 4): self = .hold(call, try body(Hold.self))
      case ("receive", 4): self = .receive(call, try body(Receive.self))
      case ("message", 4): self = .message(call, try body(SendMessage.self))
      case ("stats", 4): self = .stats(call, try body(QualityNumbers.self))
      case ("report", 4): self = .report(call, try body(ReportAbuse.self))
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
      case ("keys", 5) where path[4] == "list": self = .listKeys(call, try body(ListKeys.self))
      case ("keys", 5) where path[4] == "wait": self = .waitForKey(call, try body(WaitForKey.self))
      case ("keys", 5) where path[4] == "confirm": self = .confirmKey(call, try body(ConfirmKey.self))
      case ("keys", 5) where path[4] == "confirmations":
        self = .listConfirmations(call, try body(ListConfirmations.self))
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
    case .removeDevice: "/app/devices/remove"
    case .vouchForDevice: "/app/devices/vouch"
    case .revokeDevice: "/app/devices/revoke"
    case .pairDevice: "/app/devices/pair"
    case .setPresence: "/app/presence/set"
    case .watchPresence: "/app/presence/watch"
    case .listHistory: "/app/history/list"
    case .deleteHistory: "/app/history/delete"
    case .historyTotals: "/app/history/totals"
    case .start: "/app/calls/start"
    case .listCalls: "/app/calls/list"
    case .accept(let call, _): "/app/calls/\(call.text)/accept"
    case .decline(let call, _): "/app/calls/\(call.text)/decline"
    case .invite(let call, _): "/app/calls/\(call.text)/invite"
    case .cancel(let call, _): "/app/calls/\(call.text)/cancel"
    case .join(let call, _): "/app/calls/\(call.text)/join"
    case .rejoin(let call, _): "/app/calls/\(call.text)/rejoin"
    case .transfer(let call, _): "/app/calls/\(call.text)/transfer"
    case .link(let call, _): "/app/calls/\(call.text)/link"
    case .hold(let call, _): "/app/calls/\(call.text)/hold"
    case .receive(let call, _): "/app/calls/\(call.text)/receive"
    case .message(let call, _): "/app/calls/\(call.text)/message"
    case .stats(let call, _): "/app/calls/\(call.text)/stats"
    case .report(let call, _): "/app/calls/\(call.text)/report"
    case .leave(let call): "/app/calls/\(call.text)/leave"
    case .end(let call): "/app/calls/\(call.text)/end"
    case .state(let call): "/app/calls/\(call.text)/state"
    case .media(let call, _): "/app/calls/\(call.text)/media"
    case .track(let call, let track, _): "/app/calls/\(call.text)/tracks/\(track)"
    case .keys(let call, _): "/app/calls/\(call.text)/keys"
    case .requestKey(let call, _): "/app/calls/\(call.text)/keys/request"
    case .listKeys(let call, _): "/app/calls/\(call.text)/keys/list"
    case .waitForKey(let call, _): "/app/calls/\(call.text)/keys/wait"
    case .confirmKey(let call, _): "/app/calls/\(call.text)/keys/confirm"
    case .listConfirmations(let call, _): "/app/calls/\(call.text)/keys/confirmations"
    }
  }

  /// The JSON body that belongs to the request.
  package var body: any Encodable & Sendable {
    switch self {
    case .registerDevice(let body): body
    case .listDevices(let body): body
    case .start(let body): body
    case .accept(_, let body), .join(_, let body), .rejoin(_, let body), .transfer(_, let body): body
    case .removeDevice(let body): body
    case .vouchForDevice(let body), .revokeDevice(let body): body
    case .pairDevice(let body): body
    case .setPresence(let body): body
    case .watchPresence(let body): body
    case .listHistory(let body): body
    case .deleteHistory(let body): body
    case .historyTotals(let body): body
    case .link(_, let body): body
    case .hold(_, let body): body
    case .receive(_, let body): body
    case .message(_, let body): body
    case .stats(_, let body): body
    case .report(_, let body): body
    case .decline(_, let body): body
    case .invite(_, let body): body
    case .cancel(_, let body): body
    case .media(_, let body): body
    case .track(_, _, let body): body
    case .keys(_, let body): body
    case .requestKey(_, let body): body
    case .listKeys(_, let body): body
    case .waitForKey(_, let body): body
    case .confirmKey(_, let body): body
    case .listConfirmations(_, let body): body
    case .leave, .end, .state, .listCalls: NoBody()
    }
  }
}
