package import JanusAPI

extension Configuration {
  /// Rooms for clients of Janus. Without it there are none.
  package struct Janus: Sendable {
    /// A port of its own, where Janus's clients look for it; nil: only `/janus` on the HTTP port.
    package var listen: ListenAddress?
    /// Files with the secrets.
    package var apiSecretFile: String?
    package var tokenSecretFile: String?
    package var adminKeyFile: String?
    /// The users' own tokens are accepted in `token`.
    package var tokens = false
    /// Requests need no secret.
    package var open = false
    package var create = Creators.key
    package var ids = PluginIDKind.numbers
    package var sessionSeconds = 60
    package var reclaimSeconds = 20
    package var emptySeconds = 600
    package var peers = 20_000
    package var peersOfRoom = 5_000
    package var rooms: [String: Room] = [:]

    package init() {}

    package enum Creators: String, Sendable, CaseIterable { case key, anyone }

    /// A room that lasts as long as the server.
    package struct Room: Sendable {
      package var description: String?
      package var secret: String?
      package var pin: String?
      package var publishers = 3
      package var bitrate = 0
      package var videocodec = "vp8,h264"
      package var isPrivate = false
      package var notifyJoining = false
      package var requireE2EE = false

      package init() {}
    }
  }
}

extension Configuration.Janus: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .value(
        "listen", \.listen,
        "A port of its own, such as 8188, where clients of Janus look; null: only /janus of the HTTP port.",
        [.init("anyOf", .array(ListenAddress.schema + [["type": "null"]]))], json: { $0?.json ?? .null }),
      .text("apiSecretFile", \.apiSecretFile, "The file with the secret that every request names as apisecret."),
      .text("tokenSecretFile", \.tokenSecretFile, "The file with the secret of signed tokens (HMAC-SHA1)."),
      .text("adminKeyFile", \.adminKeyFile, "The file with the key that create names as admin_key."),
      .flag("tokens", \.tokens, "Requests may name a user's token of auth as token."),
      .flag(
        "open", \.open, "Requests need no secret: everybody who reaches the port may send media through the server."),
      .choice("create", \.create, "The people who create rooms: those with the key of adminKeyFile, or anyone."),
      .choice("ids", \.ids, "The kind of ids of rooms and participants."),
      .integer(
        "sessionSeconds", \.sessionSeconds, 5...86_400, "A session without a request ends after so many seconds."),
      .integer(
        "reclaimSeconds", \.reclaimSeconds, 0...3_600,
        "Seconds in which a session whose WebSocket broke can be claimed."),
      .integer(
        "emptySeconds", \.emptySeconds, 0...604_800, "An empty room of a client ends after so many seconds; 0: never."),
      .integer("peers", \.peers, 1...1_000_000, "The most PeerConnections of all rooms."),
      .integer("peersOfRoom", \.peersOfRoom, 1...1_000_000, "The most PeerConnections of a room."),
      .map("rooms", \.rooms, "Rooms that last as long as the server, by their ids."),
    ]
  }
}

extension Configuration.Janus.Room: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .text("description", \.description, "The room's name."),
      .text("secret", \.secret, "For destroy, edit, kick and moderate."),
      .text("pin", \.pin, "For join."),
      .integer("publishers", \.publishers, 1...10_000, "The most publishers."),
      .integer("bitrate", \.bitrate, 0...100_000_000, "The most bits per second of a publisher; 0: no limit."),
      .text("videocodec", \.videocodec, "The video codecs, best first: vp8, vp9, av1, h264, h265."),
      .flag("isPrivate", \.isPrivate, "It is not listed."),
      .flag("notifyJoining", \.notifyJoining, "Participants are told who joins, also before it publishes."),
      .flag("requireE2EE", \.requireE2EE, "Publishers have to say that they encrypt; the server cannot verify it."),
    ]
  }
}

extension Configuration.Janus {
  /// - Throws: `ConfigurationError` in words for the operator.
  func gateway(version: String, hasTCP: Bool) throws(ConfigurationError) -> GatewayConfiguration {
    guard open || apiSecretFile != nil || tokenSecretFile != nil || tokens else {
      throw ConfigurationError(
        "janus: it has no secret, so everybody could send media through the server; set apiSecretFile, tokenSecretFile or tokens, or say \"open\": true"
      )
    }
    var gateway = GatewayConfiguration(
      isOpen: open, adminKey: try bytes(of: adminKeyFile, "adminKeyFile").map { String(decoding: $0, as: UTF8.self) },
      anyoneCreates: create == .anyone, ids: ids,
      sessionTimeout: .seconds(sessionSeconds), reclaimTimeout: .seconds(reclaimSeconds),
      emptyTimeout: emptySeconds == 0 ? nil : .seconds(emptySeconds), version: version, hasTCP: hasTCP)
    gateway.limits.peers = peers
    gateway.limits.peersOfRoom = peersOfRoom
    for (id, room) in rooms.sorted(by: { $0.key < $1.key }) { gateway.rooms.append(try room.members(id, ids)) }
    return gateway
  }

  private func bytes(of file: String?, _ name: String) throws(ConfigurationError) -> [UInt8]? {
    guard let file else { return nil }
    return try Secret.file(file).bytes("janus.\(name)", minimum: 16)
  }

  /// - Throws: `ConfigurationError` if a start would refuse it.
  func check() throws(ConfigurationError) {
    let gateway = try gateway(version: "", hasTCP: true)
    do throws(JanusError) {
      _ = try JanusGateway(gateway, using: SystemRandomNumberGenerator())
    } catch {
      throw ConfigurationError("janus.rooms: \(error.reason)")
    }
    _ = try secrets()
  }

  /// The secrets of requests.
  func secrets() throws(ConfigurationError) -> (api: [UInt8]?, token: [UInt8]?) {
    (try bytes(of: apiSecretFile, "apiSecretFile"), try bytes(of: tokenSecretFile, "tokenSecretFile"))
  }
}

extension Configuration.Janus.Room {
  /// The room as `create` would name it.
  fileprivate func members(_ id: String, _ kind: PluginIDKind) throws(ConfigurationError) -> JSONObject {
    let number = Int64(id).flatMap { PluginID(number: $0) == nil ? nil : JSONTree.integer($0) }
    guard let room = kind == .strings ? JSONTree.text(id) : number else {
      throw ConfigurationError(
        "janus.rooms: \"\(id)\" is no number from 1 on; rename the room, or set janus.ids to strings")
    }
    var object: [JSONObject.Member] = []
    func add(_ name: String, _ value: JSONTree?) {
      if let value { object.append(JSONObject.Member(name: name, value: value)) }
    }
    add("room", room)
    add("description", description.map { .text($0) })
    add("secret", secret.map { .text($0) })
    add("pin", pin.map { .text($0) })
    add("publishers", .integer(Int64(publishers)))
    add("bitrate", .integer(Int64(bitrate)))
    add("videocodec", .text(videocodec))
    add("is_private", .boolean(isPrivate))
    add("notify_joining", .boolean(notifyJoining))
    add("require_e2ee", .boolean(requireE2EE))
    return JSONObject(object)
  }
}
