import MediaModel

/// The body of a SEND, in whichever encoding the caller reads it.
package protocol RequestBody {
  /// - Throws: the caller's own errors, when the body does not fit.
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value
}

extension Request {
  /// Reads the request that a SEND to a destination of `/app/` asks for.
  /// nil when there is no such request (`request.unknown`); rethrows what `body` throws.
  /// - Parameter path: the segments of the destination behind `/app/`.
  package init?(path: ArraySlice<Substring>, body: some RequestBody) throws {
    let path = Array(path)
    guard path.count >= 2 else { return nil }
    switch (path[0], path[1], path.count) {
    case ("devices", "register", 2): self = .registerDevice(try body.decode(RegisterDevice.self))
    case ("devices", "list", 2): self = .listDevices(try body.decode(ListDevices.self))
    case ("devices", "push", 2): self = .subscribePush(try body.decode(SubscribePush.self))
    case ("devices", "remove", 2): self = .removeDevice(try body.decode(RemoveDevice.self))
    case ("devices", "vouch", 2): self = .vouchForDevice(try body.decode(DeviceStatement.self))
    case ("devices", "revoke", 2): self = .revokeDevice(try body.decode(DeviceStatement.self))
    case ("devices", "pair", 2): self = .pairDevice(try body.decode(PairDevice.self))
    case ("presence", "set", 2): self = .setPresence(try body.decode(SetPresence.self))
    case ("presence", "watch", 2): self = .watchPresence(try body.decode(WatchPresence.self))
    case ("history", "list", 2): self = .listHistory(try body.decode(ListHistory.self))
    case ("history", "delete", 2): self = .deleteHistory(try body.decode(DeleteHistory.self))
    case ("history", "totals", 2): self = .historyTotals(try body.decode(HistoryTotals.self))
    case ("calls", "start", 2): self = .start(try body.decode(StartCall.self))
    case ("calls", "list", 2):
      _ = try body.decode(NoBody.self)
      self = .listCalls
    case ("calls", let id, 3...):
      guard let call = CallID(String(id)) else { return nil }
      switch (path[2], path.count) {
      case ("accept", 3): self = .accept(call, try body.decode(Join.self))
      case ("decline", 3): self = .decline(call, try body.decode(Decline.self))
      case ("invite", 3): self = .invite(call, try body.decode(Invite.self))
      case ("cancel", 3): self = .cancel(call, try body.decode(Cancel.self))
      case ("join", 3): self = .join(call, try body.decode(Join.self))
      case ("rejoin", 3): self = .rejoin(call, try body.decode(Join.self))
      case ("transfer", 3): self = .transfer(call, try body.decode(Join.self))
      case ("link", 3): self = .link(call, try body.decode(MakeLink.self))
      case ("hold", 3): self = .hold(call, try body.decode(Hold.self))
      case ("receive", 3): self = .receive(call, try body.decode(Receive.self))
      case ("message", 3): self = .message(call, try body.decode(SendMessage.self))
      case ("stats", 3): self = .stats(call, try body.decode(QualityNumbers.self))
      case ("report", 3): self = .report(call, try body.decode(ReportAbuse.self))
      case ("leave", 3):
        _ = try body.decode(NoBody.self)
        self = .leave(call)
      case ("end", 3):
        _ = try body.decode(NoBody.self)
        self = .end(call)
      case ("state", 3):
        _ = try body.decode(NoBody.self)
        self = .state(call)
      case ("media", 3): self = .media(call, try body.decode(MediaRequest.self))
      case ("tracks", 4):
        guard let track = TrackID(String(path[3])) else { return nil }
        self = .track(call, track, try body.decode(ChangeTrack.self))
      case ("keys", 3): self = .keys(call, try body.decode(HandOutKeys.self))
      case ("keys", 4) where path[3] == "request": self = .requestKey(call, try body.decode(RequestKey.self))
      case ("keys", 4) where path[3] == "list": self = .listKeys(call, try body.decode(ListKeys.self))
      case ("keys", 4) where path[3] == "wait": self = .waitForKey(call, try body.decode(WaitForKey.self))
      case ("keys", 4) where path[3] == "confirm": self = .confirmKey(call, try body.decode(ConfirmKey.self))
      case ("keys", 4) where path[3] == "confirmations":
        self = .listConfirmations(call, try body.decode(ListConfirmations.self))
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
    case .subscribePush: "/app/devices/push"
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
    case .subscribePush(let body): body
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
