@testable import JanusAPI
import MediaModel
import Octets
import Seeded
import Testing

/// Every request in every state, with right and wrong members, lost sockets, late media and time that passes.
@Suite struct GatewayFuzz {
  @Test(arguments: 0..<60 as Range<UInt64>)
  func eachRequestGetsOneReplyAndNothingLeaks(seed: UInt64) throws {
    var world = try FuzzedWorld(seed: seed)
    for step in 0..<600 {
      world.step()
      world.check("seed \(seed), step \(step)")
    }
    world.end("seed \(seed)")
  }
}

private struct FuzzedWorld {
  static let plugin = [
    "create", "destroy", "edit", "exists", "list", "listparticipants", "allowed", "kick", "moderate", "join",
    "joinandconfigure", "configure", "publish", "unpublish", "start", "pause", "switch", "subscribe", "unsubscribe",
    "update", "leave",
  ]

  let stage: Stage
  private var random: SeededGenerator
  private var lastSocket: UInt64 = 3
  private var lastExchange: UInt64 = 0
  private var sockets: [UInt64] = [1, 2, 3]
  /// Transactions that were sent, with the requester that waits for the reply.
  private var waiting: [String: Requester] = [:]
  /// Those of acknowledged messages, with their handle.
  private var acknowledged: [String: UInt64] = [:]
  private var answered: Set<String> = []
  private let codes = Set(JanusError.Code.allCases.map(\.rawValue))

  init(seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    var configuration = GatewayConfiguration.anyone
    configuration.limits.sessions = 12
    configuration.limits.handlesOfSession = 6
    configuration.limits.rooms = 5
    configuration.limits.peers = 12
    configuration.limits.peersOfRoom = 8
    configuration.limits.linesOfHandle = 6
    configuration.limits.requestsOfHandle = 3
    configuration.limits.waitingEvents = 40
    configuration.rooms = [["room": 1, "publishers": 1, "secret": "s", "videocodec": "vp8,vp9"]]
    stage = try Stage(configuration, seed: seed)
  }

  // MARK: Steps

  mutating func step() {
    stage.isAnswering = random.chance(60)
    stage.connects = random.chance(80)
    switch random.below(20) {
    case 0: stage.pass(.milliseconds(random.below(20_000)))
    case 1: stage.resume()
    case 2: endSocket()
    case 3: mediaEvent()
    case 4: poll()
    default: request()
    }
    read()
  }

  private mutating func endSocket() {
    guard random.chance(40), let socket = sockets.randomElement(using: &random) else { return }
    sockets.removeAll { $0 == socket }
    lastSocket += 1
    sockets.append(lastSocket)
    stage.run(.socketEnded(socket, random.chance(50) ? .closed : .broken))
  }

  private mutating func mediaEvent() {
    let peer = stage.peers.sorted { $0.rawValue < $1.rawValue }.randomElement(using: &random) ?? PeerID(rawValue: 5)
    let events: [RoomMediaEvent] = [
      .connected(peer), .disconnected(peer, silence: .seconds(random.below(2))),
      .receiving(peer, mid: "0", random.chance(50)),
      .speakers(CallID(unchecked: "room~1"), [1, 2]),
    ]
    stage.run(.media(events[random.below(events.count)]))
    // A result that nobody waits for.
    stage.run(.result(number: UInt64(random.below(50)), .offered(.success("late"))))
  }

  private mutating func poll() {
    lastExchange += 1
    stage.run(.poll(exchange: lastExchange, session: session(), maximum: [nil, 1, 5][random.below(3)], Grant()))
    if random.chance(20) { stage.run(.exchangeEnded(lastExchange)) }
  }

  private mutating func session() -> UInt64 {
    random.chance(5) ? UInt64(random.below(9)) : stage.gateway.sessions.keys.sorted().randomElement(using: &random) ?? 1
  }

  private mutating func request() {
    let requester: Requester
    if random.chance(80) {
      requester = .socket(sockets[random.below(sockets.count)])
    } else {
      lastExchange += 1
      requester = .exchange(lastExchange)
    }
    let session = session()
    let handles = stage.gateway.sessions[session]?.handles ?? []
    let handle = random.chance(3) ? 5 : handles.randomElement(using: &random)
    var fields: [JSONObject.Member] = []
    func add(_ name: String, _ value: JSONTree?) { if let value { fields.append(.init(name: name, value: value)) } }
    let kind = [
      "create", "attach", "attach", "claim", "keepalive", "destroy", "detach", "hangup", "trickle", "nonsense",
    ]
    let isMessage = random.chance(85) && handle != nil
    let name = isMessage ? "message" : kind[random.below(kind.count)]
    add("janus", .text(name))
    if name != "create" || random.chance(5) { add("session_id", .integer(Int64(session))) }
    if let handle, isMessage || ["detach", "hangup", "trickle"].contains(name) || random.chance(5) {
      add("handle_id", random.chance(2) ? "x" : .integer(Int64(handle)))
    }
    if name == "create", random.chance(10) { add("id", random.chance(50) ? .integer(Int64(session)) : "x") }
    if name == "attach" { add("plugin", random.chance(95) ? "janus.plugin.videoroom" : wrong()) }
    if name == "trickle" { add("candidate", [["completed": true], .null, 5][random.below(3)]) }
    if isMessage {
      let (body, jsep) = message(handle)
      add("body", random.chance(98) ? body : wrong())
      if let jsep { add("jsep", jsep) }
    }
    let transaction = stage.send(requester, JSONObject(fields))
    waiting[transaction] = requester
    if isMessage, let handle { acknowledged[transaction] = handle }
  }

  private mutating func wrong() -> JSONTree {
    let values: [JSONTree] = [
      .null, true, -1, 0, 5, .integer(.max), .number(1.5), "x", .text(String(repeating: "é", count: 200)), [], [5],
      [[:]], [:], ["a": 1],
    ]
    return values[random.below(values.count)]
  }

  private typealias Person = (room: PluginID, id: PluginID)

  /// Those whose streams can be subscribed to, or all participants.
  private func people(publish: Bool, in room: PluginID? = nil) -> [Person] {
    stage.gateway.rooms.values.filter { room == nil || $0.id == room }.flatMap { room in
      room.participants.values.filter { !publish || $0.isPublic }.map { (room.id, $0.id) }
    }.sorted { ($0.room, $0.id) < ($1.room, $1.id) }
  }

  private mutating func feed(in room: PluginID? = nil) -> JSONTree {
    let found = people(publish: random.chance(80), in: room).randomElement(using: &random)
    return random.chance(90) ? found?.id.tree ?? 7 : .integer(Int64(random.below(9)))
  }

  private mutating func stream(in room: PluginID?) -> JSONTree {
    var members: [JSONObject.Member] = []
    func add(_ name: String, _ value: JSONTree) { members.append(.init(name: name, value: value)) }
    if random.chance(95) { add("feed", feed(in: room)) }
    if random.chance(40) { add("mid", .text("\(random.below(2))")) }
    if random.chance(40) { add("sub_mid", .text("\(random.below(3))")) }
    if random.chance(10) { add("send", random.chance(80) ? false : wrong()) }
    if random.chance(10) { add("substream", random.chance(80) ? 1 : wrong()) }
    return random.chance(98) ? .object(JSONObject(members)) : wrong()
  }

  private mutating func message(_ handle: UInt64?) -> (body: JSONTree, jsep: JSONTree?) {
    // Requests that fit the handle's state are about as frequent as all others.
    var names = Self.plugin
    var wantsOffer = 10
    switch handle.flatMap({ stage.gateway.handles[$0]?.role }) {
    case .fresh: if random.chance(60) { names = ["join", "joinandconfigure"] }
    case .participant:
      if random.chance(50) { names = ["configure", "publish", "unpublish", "leave"] }
      wantsOffer = 60
    case .subscriber:
      if random.chance(60) { names = ["start", "subscribe", "unsubscribe", "update", "switch", "configure", "pause"] }
    case .left, nil: break
    }
    let name = names[random.below(names.count)]
    var members: [JSONObject.Member] = []
    func add(_ name: String, _ value: JSONTree) { members.append(.init(name: name, value: value)) }
    add("request", random.chance(98) ? .text(name) : wrong())
    let isSubscriber = name == "join" && random.chance(50)
    var place: PluginID? = handle.flatMap { stage.gateway.handles[$0]?.room }
    if name == "kick" || name == "moderate" || isSubscriber, random.chance(85),
      let person = people(publish: name != "kick").randomElement(using: &random)
    {
      place = person.room
      add("room", person.room.tree)
      if !isSubscriber { add("id", person.id.tree) }
    } else if random.chance(92) {
      add("room", .integer(Int64(1 + random.below(4))))
    }
    if name == "join" || name == "joinandconfigure" { add("ptype", isSubscriber ? "subscriber" : "publisher") }
    if random.chance(70) { add("streams", .list([stream(in: place)])) }
    if random.chance(30) { add("feed", feed(in: place)) }
    if random.chance(70) { add("subscribe", .list([stream(in: place)])) }
    if random.chance(30) { add("unsubscribe", .list([stream(in: place)])) }
    if random.chance(15), name == "join" { add("id", random.chance(50) ? feed() : .integer(Int64(random.below(9)))) }
    if name == "create" { add("publishers", 1) }
    if name == "moderate" { add("mid", "0") }
    if name == "moderate" { add("mute", .boolean(random.chance(50))) }
    if random.chance(50) { add("secret", random.chance(80) ? "s" : "t") }
    if name == "allowed" { add("action", [.text("enable"), "disable", "add", "remove", "x"][random.below(5)]) }
    if name == "list", random.chance(30) { add("admin_key", wrong()) }
    if random.chance(10) { add("display", random.chance(80) ? "Ana" : wrong()) }
    if random.chance(10) {
      add(["bitrate", "publishers", "keyframe", "autoupdate", "restart", "audio"][random.below(6)], wrong())
    }
    var jsep: JSONTree?
    if random.chance(wantsOffer) {
      let sdp = ["audio 0, video 1", "audio 0", "video 1 VP9, audio 2", "audio 0, cert two", "bad", "data 0"][
        random.below(6)]
      jsep = ["type": "offer", "sdp": .text(sdp)]
    } else if name == "start" || random.chance(8) {
      jsep = ["type": "answer", "sdp": .text(["answer", "answer 1", "bad"][random.below(3)])]
    }
    return (.object(JSONObject(members)), random.chance(99) ? jsep : wrong())
  }

  // MARK: Checks

  private mutating func read() {
    for (requester, message) in stage.takeAll() {
      if case .list(let events) = message {
        for event in events { note(event, requester) }
      } else {
        note(message, requester)
      }
    }
  }

  private mutating func note(_ message: JSONTree, _ requester: Requester) {
    let kind = message["janus"].string ?? ""
    if let code = message["plugindata"]["data"].code ?? message.code { #expect(codes.contains(code), "\(code)") }
    guard let transaction = message["transaction"].string else { return }
    guard kind == "event" else {
      #expect(
        waiting.removeValue(forKey: transaction) == requester, "a reply to nothing, or the second one: \(message)")
      if kind != "ack" { acknowledged[transaction] = nil }
      return
    }
    #expect(waiting[transaction] == nil, "an event before its reply: \(message)")
    #expect(acknowledged[transaction] != nil && answered.insert(transaction).inserted, "an event too much: \(message)")
  }

  func check(_ place: String) {
    let gateway = stage.gateway
    #expect(waiting.isEmpty, "\(place): no reply to \(waiting)")
    #expect(Set(gateway.peers.keys) == stage.peers, "\(place): peers")
    #expect(gateway.sessions.count <= 12 && gateway.rooms.count <= 5 && gateway.peers.count <= 12, "\(place)")
    #expect(gateway.sessions.isEmpty || gateway.nextDeadline != nil, "\(place): a session without a timer")
    for (id, handle) in gateway.handles {
      #expect(gateway.sessions[handle.session]?.handles.contains(id) == true, "\(place)")
      #expect(handle.waiting.count <= 3 && (handle.waiting.isEmpty || handle.pending != nil), "\(place)")
      switch handle.role {
      case .participant(let room, let participant): #expect(gateway.rooms[room]?[participant]?.handle == id, "\(place)")
      case .subscriber(let subscription):
        #expect(
          gateway.rooms[subscription.room]?.subscribers.contains(id) == true && subscription.lines.count <= 6,
          "\(place)")
      case .fresh, .left: break
      }
    }
    for room in gateway.rooms.values {
      #expect(
        room.peers == gateway.peers.values.count { gateway.handles[$0]?.room == room.id }, "\(place): peers of a room")
      #expect(room.publisherCount <= max(1, room.settings.publishers), "\(place)")
      #expect(room.isEmpty == (room.emptySince != nil), "\(place)")
    }
  }

  /// All media answers, then each acknowledged message of a handle that is there has had its event; and nothing is left when all sockets are gone.
  mutating func end(_ place: String) {
    stage.isAnswering = true
    for _ in 0..<50 {
      stage.resume()
      read()
    }
    // Events wait for sessions that poll.
    for session in stage.gateway.sessions.keys where stage.gateway.sessions[session]?.socket == nil {
      lastExchange += 1
      stage.run(.poll(exchange: lastExchange, session: session, maximum: 1_000, Grant()))
    }
    read()
    for (transaction, handle) in acknowledged where stage.gateway.handles[handle] != nil {
      #expect(answered.contains(transaction), "\(place): no event for \(transaction)")
    }
    for socket in sockets { stage.run(.socketEnded(socket, .closed)) }
    stage.pass(.seconds(1_000))
    #expect(
      stage.peers.isEmpty && stage.gateway.peerCount == 0 && stage.gateway.sessionCount == 0
        && stage.gateway.handleCount == 0)
    #expect(stage.gateway.summaries.map(\.id) == [.number(1)] || stage.gateway.summaries.isEmpty, "\(place)")
    #expect(stage.gateway.waiters.isEmpty && stage.gateway.pollers.isEmpty && stage.gateway.sockets.isEmpty, "\(place)")
  }
}

extension PluginHandle {
  fileprivate var room: PluginID? {
    switch role {
    case .participant(let room, _): room
    case .subscriber(let subscription): subscription.room
    case .fresh, .left: nil
    }
  }
}
