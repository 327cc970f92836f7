import MediaModel

/// The body of a SEND, in any encoding that the caller reads.
package protocol RequestBody {
  /// - Throws: the caller's own errors, if the body does not fit.
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value
}

extension Request {
  /// Reads the request of a SEND to a destination of `/app/`. nil if there is no such request (`request.unknown`);
  /// rethrows the errors of `body`.
  /// - Parameter path: the segments of the destination after `/app/`.
  package init?(path: ArraySlice<Substring>, body: some RequestBody) throws {
    let text = path.joined(separator: "/")
    if let row = PeopleRequest.paths[text] {
      self = .people(try row.read(body))
    } else if let row = HistoryRequest.paths[text] {
      self = .history(try row.read(body))
    } else if let row = RecordingsRequest.paths[text] {
      self = .recordings(try row.read(body))
    } else if let row = CallsRequest.paths[text] {
      self = .calls(try row.read(body))
    } else {
      guard path.count > 2, path.first == "calls", let call = path.dropFirst().first.flatMap({ CallID(String($0)) })
      else { return nil }
      try self.init(of: call, path: path.dropFirst(2), body)
    }
  }

  private init?(of call: CallID, path: ArraySlice<Substring>, _ body: some RequestBody) throws {
    let text = path.joined(separator: "/")
    if let row = MemberRequest.paths[text] {
      self = .call(call, try row.read(body))
    } else if let row = ParticipantRequest.paths[text] {
      self = .inCall(call, try row.read(body))
    } else {
      guard path.count == 2, path.first == "tracks", let track = path.last.flatMap({ TrackID(String($0)) }) else {
        return nil
      }
      self = .inCall(call, .track(track, try body.decode(ChangeTrack.self)))
    }
  }

  /// Where a client sends the request, and its JSON body.
  package var message: (destination: String, body: any Encodable & Sendable) {
    switch self {
    case .people(let request): PeopleRequest.paths.message(request, behind: "/app/")
    case .history(let request): HistoryRequest.paths.message(request, behind: "/app/")
    case .recordings(let request): RecordingsRequest.paths.message(request, behind: "/app/")
    case .calls(.call(let call, let request)):
      MemberRequest.paths.message(request, behind: "/app/calls/\(call.text)/")
    case .calls(.inCall(let call, .track(let track, let body))): ("/app/calls/\(call.text)/tracks/\(track)", body)
    case .calls(.inCall(let call, let request)):
      ParticipantRequest.paths.message(request, behind: "/app/calls/\(call.text)/")
    case .calls(let request): CallsRequest.paths.message(request, behind: "/app/")
    }
  }
}

// MARK: the paths

extension PeopleRequest {
  fileprivate static let paths = Paths<Self>([
    Path("devices/register", Self.registerDevice, .registered) {
      if case .registerDevice(let body) = $0 { body } else { nil }
    },
    Path("devices/list", Self.listDevices, .devices) { if case .listDevices(let body) = $0 { body } else { nil } },
    Path("devices/push", Self.subscribePush) { if case .subscribePush(let body) = $0 { body } else { nil } },
    Path("devices/remove", Self.removeDevice) { if case .removeDevice(let body) = $0 { body } else { nil } },
    Path("devices/vouch", Self.vouchForDevice) { if case .vouchForDevice(let body) = $0 { body } else { nil } },
    Path("devices/revoke", Self.revokeDevice) { if case .revokeDevice(let body) = $0 { body } else { nil } },
    Path("devices/pair", Self.pairDevice) { if case .pairDevice(let body) = $0 { body } else { nil } },
    Path("presence/set", Self.setPresence) { if case .setPresence(let body) = $0 { body } else { nil } },
    Path("presence/watch", Self.watchPresence, .presence) {
      if case .watchPresence(let body) = $0 { body } else { nil }
    },
    Path("links/make", Self.makeLink, .lastingLink) { if case .makeLink(let body) = $0 { body } else { nil } },
    Path("links/list", .listLinks, .lastingLinks) { if case .listLinks = $0 { true } else { false } },
    Path("links/delete", Self.deleteLink) { if case .deleteLink(let body) = $0 { body } else { nil } },
    Path("links/open", Self.openLink, .openedLink) { if case .openLink(let body) = $0 { body } else { nil } },
  ])
}

extension HistoryRequest {
  fileprivate static let paths = Paths<Self>([
    Path("history/list", Self.list, .history) { if case .list(let body) = $0 { body } else { nil } },
    Path("history/delete", Self.delete) { if case .delete(let body) = $0 { body } else { nil } },
    Path("history/totals", Self.totals, .totals) { if case .totals(let body) = $0 { body } else { nil } },
  ])
}

extension RecordingsRequest {
  fileprivate static let paths = Paths<Self>([
    Path("recordings/start", Self.start, .startedRecording) { if case .start(let body) = $0 { body } else { nil } },
    Path("recordings/finish", Self.finish) { if case .finish(let body) = $0 { body } else { nil } },
    Path("recordings/list", Self.list, .recordings) { if case .list(let body) = $0 { body } else { nil } },
    Path("recordings/get", Self.get, .recording) { if case .get(let body) = $0 { body } else { nil } },
    Path("recordings/share", Self.share) { if case .share(let body) = $0 { body } else { nil } },
    Path("recordings/note", Self.note) { if case .note(let body) = $0 { body } else { nil } },
    Path("recordings/seen", Self.seen) { if case .seen(let body) = $0 { body } else { nil } },
    Path("recordings/delete", Self.delete) { if case .delete(let body) = $0 { body } else { nil } },
    Path("recordings/erase", Self.erase) { if case .erase(let body) = $0 { body } else { nil } },
  ])
}

extension CallsRequest {
  fileprivate static let paths = Paths<Self>([
    Path("calls/start", Self.start, .joined, .started) { if case .start(let body) = $0 { body } else { nil } },
    Path("calls/list", .list, .calls) { if case .list = $0 { true } else { false } },
  ])
}

/// After `/app/calls/{id}/`.
extension MemberRequest {
  fileprivate static let paths = Paths<Self>([
    Path("accept", Self.accept, .joined) { if case .accept(let body) = $0 { body } else { nil } },
    Path("decline", Self.decline) { if case .decline(let body) = $0 { body } else { nil } },
    Path("invite", Self.invite, .results) { if case .invite(let body) = $0 { body } else { nil } },
    Path("cancel", Self.cancel) { if case .cancel(let body) = $0 { body } else { nil } },
    Path("join", Self.join, .joined) { if case .join(let body) = $0 { body } else { nil } },
    Path("rejoin", Self.rejoin, .joined, .rejoined) { if case .rejoin(let body) = $0 { body } else { nil } },
    Path("transfer", Self.transfer, .joined) { if case .transfer(let body) = $0 { body } else { nil } },
    Path("link", Self.link, .link, .nothing) { if case .link(let body) = $0 { body } else { nil } },
    Path("knock", Self.knock, .knocking) { if case .knock(let body) = $0 { body } else { nil } },
    Path("admit-guest", Self.admitGuest) { if case .admitGuest(let body) = $0 { body } else { nil } },
    Path("refuse-guest", Self.refuseGuest) { if case .refuseGuest(let body) = $0 { body } else { nil } },
    Path("remove-guest", Self.removeGuest) { if case .removeGuest(let body) = $0 { body } else { nil } },
    Path("hold", Self.hold) { if case .hold(let body) = $0 { body } else { nil } },
    Path("report", Self.report) { if case .report(let body) = $0 { body } else { nil } },
    Path("leave", .leave) { if case .leave = $0 { true } else { false } },
    Path("end", .end) { if case .end = $0 { true } else { false } },
    Path("state", .state, .state) { if case .state = $0 { true } else { false } },
  ])
}

/// After `/app/calls/{id}/`. `tracks/{id}` is the only path with its own variable.
extension ParticipantRequest {
  fileprivate static let paths = Paths<Self>([
    Path("media", Self.media, .media) { if case .media(let body) = $0 { body } else { nil } },
    Path("receive", Self.receive) { if case .receive(let body) = $0 { body } else { nil } },
    Path("message", Self.message) { if case .message(let body) = $0 { body } else { nil } },
    Path("stats", Self.stats) { if case .stats(let body) = $0 { body } else { nil } },
    Path("keys", Self.keys, .keys) { if case .keys(let body) = $0 { body } else { nil } },
    Path("keys/request", Self.requestKey) { if case .requestKey(let body) = $0 { body } else { nil } },
    Path("keys/list", Self.listKeys, .keyList) { if case .listKeys(let body) = $0 { body } else { nil } },
    Path("keys/wait", Self.waitForKey) { if case .waitForKey(let body) = $0 { body } else { nil } },
    Path("keys/confirm", Self.confirmKey) { if case .confirmKey(let body) = $0 { body } else { nil } },
    Path("keys/confirmations", Self.listConfirmations, .confirmations) {
      if case .listConfirmations(let body) = $0 { body } else { nil }
    },
    Path("record/start", Self.startRecording) { if case .startRecording(let body) = $0 { body } else { nil } },
    Path("record/consent", Self.consentToRecording, .consented) {
      if case .consentToRecording(let body) = $0 { body } else { nil }
    },
    Path("record/keys", Self.exportTrackKeys) { if case .exportTrackKeys(let body) = $0 { body } else { nil } },
    Path("record/stop", Self.stopRecording) { if case .stopRecording(let body) = $0 { body } else { nil } },
  ])
}

/// A request's declaration: where it is sent, and the types of its body and of its replies.
package struct RequestDeclaration: Sendable {
  /// As in docs/protocol.md: `{id}` is a call, `{track}` a track of it.
  package let path: String
  package let body: any (Codable & Sendable).Type
  /// With `status: ok`.
  package let replies: [ReplyName]

  /// All requests.
  package static var all: [RequestDeclaration] {
    let track = RequestDeclaration(
      path: "/app/calls/{id}/tracks/{track}", body: ChangeTrack.self, replies: [.nothing])
    return PeopleRequest.paths.declarations("/app/") + HistoryRequest.paths.declarations("/app/")
      + RecordingsRequest.paths.declarations("/app/") + CallsRequest.paths.declarations("/app/")
      + MemberRequest.paths.declarations("/app/calls/{id}/")
      + ParticipantRequest.paths.declarations("/app/calls/{id}/") + [track]
  }
}

/// A row of the table: how a request's body is read, and found again.
private struct Path<Family: Sendable>: Sendable {
  let text: String
  let type: any (Codable & Sendable).Type
  let replies: [ReplyName]
  let read: @Sendable (any RequestBody) throws -> Family
  /// nil for a request of another row.
  let body: @Sendable (Family) -> (any Encodable & Sendable)?

  init<Body: Codable & Sendable>(
    _ text: String, _ make: @escaping @Sendable (Body) -> Family, _ replies: ReplyName...,
    body: @escaping @Sendable (Family) -> Body?
  ) {
    self.text = text
    type = Body.self
    self.replies = replies.isEmpty ? [.nothing] : replies
    read = { make(try $0.decode(Body.self)) }
    self.body = { body($0) }
  }

  /// A request whose body has no members.
  init(_ text: String, _ request: Family, _ replies: ReplyName..., is matches: @escaping @Sendable (Family) -> Bool) {
    self.text = text
    type = NoBody.self
    self.replies = replies.isEmpty ? [.nothing] : replies
    read = {
      _ = try $0.decode(NoBody.self)
      return request
    }
    body = { matches($0) ? NoBody() : nil }
  }
}

private struct Paths<Family: Sendable>: Sendable {
  private let rows: [Path<Family>]
  private let places: [String: Int]

  init(_ rows: [Path<Family>]) {
    self.rows = rows
    places = Dictionary(uniqueKeysWithValues: rows.enumerated().map { ($1.text, $0) })
  }

  func declarations(_ prefix: String) -> [RequestDeclaration] {
    rows.map { RequestDeclaration(path: prefix + $0.text, body: $0.type, replies: $0.replies) }
  }

  subscript(text: String) -> Path<Family>? { places[text].map { rows[$0] } }

  func message(_ request: Family, behind prefix: String) -> (destination: String, body: any Encodable & Sendable) {
    for row in rows { if let body = row.body(request) { return (prefix + row.text, body) } }
    preconditionFailure("the request has no path: add its row to the table")
  }
}
