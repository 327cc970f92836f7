import JanusAPI
import MediaModel
import Octets
import Testing

/// A gateway in virtual time, with a media plane that answers at once unless it is told to wait.
///
/// Its SDP is a list of m-lines like `audio 0, video 1 VP8`, with `cert NAME` for another certificate; `bad` cannot be read.
final class Stage {
  typealias Gateway = JanusGateway<SplitMix64>

  var gateway: Gateway
  var now = Instant(nanoseconds: 1_000_000_000)
  /// Whether the media plane answers.
  var isAnswering = true
  /// Commands that the media plane got, and did not answer.
  var media: [RoomMedia] = []
  /// The peers that are not hung up.
  var peers: Set<PeerID> = []
  var connects = true
  private var arrivals: [(requester: Requester, value: JSONTree)] = []
  private var inboxes: [Requester: [JSONTree]] = [:]
  private var lastTransaction = 0
  private(set) var transactions: [Requester: [String]] = [:]

  init(_ configuration: GatewayConfiguration = .anyone, seed: UInt64 = 1) throws {
    gateway = try Gateway(configuration, using: SplitMix64(seed: seed))
  }

  func run(_ command: JanusCommand) {
    var commands = [command]
    while !commands.isEmpty {
      for effect in gateway.handle(commands.removeFirst(), now: now) {
        switch effect {
        case .send(let requester, let value):
          inboxes[requester, default: []].append(value)
          arrivals.append((requester, value))
        case .media(let command):
          note(command)
          if isAnswering, let answer = answer(to: command) { commands += answer } else { media.append(command) }
        }
      }
    }
  }

  private func note(_ command: RoomMedia) {
    switch command {
    case .negotiate(let negotiation): peers.insert(negotiation.peer)
    case .offer(let offer): peers.insert(offer.peer)
    case .hangUp(let peer): peers.remove(peer)
    default: break
    }
  }

  /// The media plane's answers to a command; nil for one that has none.
  func answer(to command: RoomMedia) -> [JanusCommand]? {
    switch command {
    case .read(let number, let sdp): return [.result(number: number, .read(Self.offer(sdp)))]
    case .negotiate(let negotiation):
      let tracks = negotiation.tracks.compactMap { track -> UpTrackDescription? in
        guard let section = negotiation.offer.sections.first(where: { $0.mid == track.mid }) else { return nil }
        let formats = section.formats.filter { format in
          format.codec == "opus" || negotiation.codecs.contains(format.codec.lowercased())
        }
        guard !formats.isEmpty else { return nil }
        return UpTrackDescription(
          track: track.track, source: track.source, mid: track.mid, muted: track.muted, formats: formats, ssrcs: [],
          rtx: [:], rids: section.rids)
      }
      let answer = PublisherAnswer(sdp: "answer", tracks: tracks)
      let result = JanusCommand.result(number: negotiation.number, .negotiated(.success(answer)))
      return connects ? [result, .media(.connected(negotiation.peer))] : [result]
    case .offer(let offer):
      let text = offer.lines.map { "\($0.kind) \($0.mid) \($0.pin.map { $0.track.description } ?? "idle") \($0.label)" }
      return [.result(number: offer.number, .offered(.success(text.joined(separator: ", "))))]
    case .answer(let number, let peer, let sdp):
      guard sdp != "bad" else { return [.result(number: number, .answered(.failure(DescriptionRefusal("bad"))))] }
      let refused = Set(sdp.split(separator: " ").dropFirst().map(String.init))
      let result = JanusCommand.result(number: number, .answered(.success(refused)))
      return connects ? [result, .media(.connected(peer))] : [result]
    case .pin, .mute, .limit, .requestKeyFrame, .hangUp: return nil
    }
  }

  static func offer(_ sdp: String) -> Result<MediaOffer, DescriptionRefusal> {
    guard sdp != "bad" else { return .failure(DescriptionRefusal("line 1: not a description")) }
    var sections: [MediaOffer.Section] = []
    var certificate = "one"
    for line in sdp.split(separator: ",") {
      let words = line.split(separator: " ").map(String.init)
      guard words.count > 1 else { continue }
      switch words[0] {
      case "audio":
        let format = PayloadFormat(payloadType: 111, codec: "opus", clockRate: 48_000, channels: 2)
        sections.append(
          MediaOffer.Section(mid: words[1], kind: .media(.audio), direction: .sendonly, formats: [format]))
      case "video":
        let codec = words.count > 2 ? words[2] : "VP8"
        let format = PayloadFormat(
          payloadType: 96, codec: codec, clockRate: 90_000,
          parameters: codec == "H264" ? "packetization-mode=1; profile-level-id=42e01f" : "")
        sections.append(
          MediaOffer.Section(
            mid: words[1], kind: .media(.video), direction: .sendonly, formats: [format],
            rids: words.contains("layers") ? ["l", "m", "h"] : []))
      case "data":
        sections.append(MediaOffer.Section(mid: words[1], kind: .application, direction: .sendrecv, formats: []))
      case "cert": certificate = words[1]
      default: break
      }
    }
    return .success(
      MediaOffer(
        credentials: ICECredentials(fragment: "u", password: "p"),
        fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(certificate.utf8)),
        extensions: HeaderExtensionIDs(), allowsMixedExtensions: true, sections: sections))
  }

  // MARK: Time

  func pass(_ duration: Duration) {
    let end = now.advanced(by: duration)
    while let next = gateway.nextDeadline, next <= end {
      now = max(now, next)
      run(.timeout)
    }
    now = end
  }

  // MARK: Clients

  /// The messages that arrived since the last look, in order.
  func received(_ requester: Requester) -> [JSONTree] { inboxes.removeValue(forKey: requester) ?? [] }

  /// The messages that arrived anywhere since the last look, in their order.
  func takeAll() -> [(requester: Requester, value: JSONTree)] {
    defer {
      arrivals = []
      inboxes = [:]
    }
    return arrivals
  }

  /// Lets messages be read again.
  func putBack(_ messages: [JSONTree], _ requester: Requester) { inboxes[requester, default: []] += messages }

  /// Sends a request.
  /// - Returns: its transaction.
  @discardableResult
  func send(_ requester: Requester, _ fields: JSONObject, path: JanusRequest.Path? = nil, grant: Grant = Grant())
    -> String
  {
    lastTransaction += 1
    let transaction = "t\(lastTransaction)"
    transactions[requester, default: []].append(transaction)
    let value = JSONTree.object(JSONObject(fields.members + [.init(name: "transaction", value: .text(transaction))]))
    run(.request(JanusRequest(from: requester, path: path, value: value, grant: grant)))
    return transaction
  }

  /// Sends a request whose reply is the first thing to arrive.
  func ask(_ requester: Requester, _ fields: JSONObject, grant: Grant = Grant()) -> JSONTree {
    _ = received(requester)
    send(requester, fields, grant: grant)
    return inboxes[requester]?.first ?? .null
  }

  func client(_ socket: UInt64, grant: Grant = Grant()) -> Client {
    let session = ask(.socket(socket), ["janus": "create"], grant: grant)["data"]["id"].number ?? 0
    return Client(stage: self, requester: .socket(socket), session: session, grant: grant)
  }

  /// A room, a client for each display name, and their first handles, which have joined.
  func room(_ id: Int64 = 1, _ fields: JSONObject = [:], _ names: String...) -> [Handle] {
    let host = client(1_000).handle()
    let all = JSONObject(
      [.init(name: "request", value: "create"), .init(name: "room", value: .integer(id))] + fields.members)
    #expect(host.ask(all)["videoroom"] == "created")
    return names.enumerated().map { index, name in
      let handle = client(UInt64(index) + 1).handle()
      let joined = handle.request([
        "request": "join", "room": .integer(id), "ptype": "publisher", "display": .text(name),
      ])
      #expect(joined["videoroom"] == "joined")
      return handle
    }
  }
}

struct Client {
  let stage: Stage
  let requester: Requester
  let session: UInt64
  let grant: Grant

  func ask(_ name: String, _ fields: JSONObject = [:]) -> JSONTree {
    stage.ask(requester, with(fields, name), grant: grant)
  }

  private func with(_ fields: JSONObject, _ name: String) -> JSONObject {
    JSONObject(
      [.init(name: "janus", value: .text(name)), .init(name: "session_id", value: .integer(Int64(session)))]
        + fields.members)
  }

  func handle() -> Handle {
    let id = ask("attach", ["plugin": "janus.plugin.videoroom"])["data"]["id"].number ?? 0
    _ = stage.received(requester)
    return Handle(client: self, id: id)
  }

  func received() -> [JSONTree] { stage.received(requester) }
}

struct Handle {
  let client: Client
  let id: UInt64
  var stage: Stage { client.stage }

  private var place: JSONObject {
    ["session_id": .integer(Int64(client.session)), "handle_id": .integer(Int64(id))]
  }

  func core(_ name: String, _ fields: JSONObject = [:]) -> JSONTree {
    let members = [JSONObject.Member(name: "janus", value: .text(name))] + place.members + fields.members
    return stage.ask(client.requester, JSONObject(members), grant: client.grant)
  }

  @discardableResult
  func send(_ body: JSONObject, jsep: JSONTree? = nil, grant: Grant? = nil) -> String {
    var members = [JSONObject.Member(name: "janus", value: "message")] + place.members
    members.append(.init(name: "body", value: .object(body)))
    if let jsep { members.append(.init(name: "jsep", value: jsep)) }
    return stage.send(client.requester, JSONObject(members), grant: grant ?? client.grant)
  }

  /// The data of a request that is answered at once.
  func ask(_ body: JSONObject, grant: Grant? = nil) -> JSONTree {
    _ = client.received()
    send(body, grant: grant)
    return client.received().first { $0["janus"] == "success" }?["plugindata"]["data"] ?? .null
  }

  /// The data of the event that answers a request, after its `ack`; with `jsep`, where the event has one.
  func request(_ body: JSONObject, jsep: JSONTree? = nil, grant: Grant? = nil) -> JSONTree {
    _ = client.received()
    let transaction = send(body, jsep: jsep, grant: grant)
    let messages = client.received()
    let own = messages.filter { $0["transaction"] == .text(transaction) }
    guard own.first?["janus"] == "ack" else { return own.first ?? .null }
    guard own.count == 2, case .object(let data) = own[1]["plugindata"]["data"] else { return .null }
    stage.putBack(messages.filter { !own.contains($0) }, client.requester)
    guard own[1]["jsep"] != .null else { return .object(data) }
    return .object(JSONObject(data.members + [.init(name: "jsep", value: own[1]["jsep"])]))
  }

  func publish(_ sdp: String = "audio 0, video 1") -> JSONTree {
    request(["request": "configure"], jsep: ["type": "offer", "sdp": .text(sdp)])
  }

  /// The data of this handle's events, and the kinds of those of the core, since the last look.
  func events() -> [JSONTree] {
    client.received().filter { $0["sender"] == .integer(Int64(id)) && $0["transaction"] == .null }.map { message in
      message["janus"] == "event" ? message["plugindata"]["data"] : message["janus"]
    }
  }
}

extension GatewayConfiguration {
  /// Requests need no secret, and everybody creates rooms.
  static var anyone: Self { GatewayConfiguration(isOpen: true, anyoneCreates: true) }
}

extension JSONTree {
  subscript(name: String) -> JSONTree {
    guard case .object(let object) = self else { return .null }
    return object[name] ?? .null
  }
  subscript(index: Int) -> JSONTree {
    guard case .list(let values) = self, values.indices.contains(index) else { return .null }
    return values[index]
  }
  var number: UInt64? {
    guard case .integer(let number) = self else { return nil }
    return UInt64(exactly: number)
  }
  var string: String? {
    guard case .text(let text) = self else { return nil }
    return text
  }
  var count: Int {
    guard case .list(let values) = self else { return 0 }
    return values.count
  }
  /// The code of a core error or of a videoroom's.
  var code: Int? { (self["error"]["code"].number ?? self["error_code"].number).map { Int($0) } }
}

extension Handle {
  /// The id of a participant by its name.
  func feed(named name: String, in room: Int64 = 1) -> JSONTree {
    let other = stage.client(2_000).handle()
    guard case .list(let entries) = other.ask(["request": "listparticipants", "room": .integer(room)])["participants"]
    else { return .null }
    return entries.first { $0["display"] == .text(name) }?["id"] ?? .null
  }
}

extension Stage {
  func keepAlive(_ handles: [Handle], for duration: Duration) {
    let end = now.advanced(by: duration)
    while now < end {
      pass(min(.seconds(25), now.duration(to: end)))
      for handle in handles { _ = handle.core("keepalive") }
    }
  }
}

struct Mute: Hashable {
  var index: UInt8
  var isMuted: Bool
}

extension Stage {
  var mutes: [Mute] {
    media.compactMap { command in
      guard case .mute(_, let track, let isMuted) = command else { return nil }
      return Mute(index: track.index, isMuted: isMuted)
    }
  }

  /// The latest pins of a subscriber, by mid.
  var pins: [String: LinePin]? {
    for case .pin(_, let pins) in media.reversed() { return pins }
    return nil
  }
}

extension Stage {
  /// Answers what the media plane left unanswered.
  func resume() {
    let commands = media
    media = []
    for command in commands {
      if let answers = answer(to: command) { for answer in answers { run(answer) } } else { media.append(command) }
    }
  }
}
