@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages
@testable import Calls

/// The world around one `Node` value, in virtual time: it reads every event and keeps every reply.
final class Stage {
  static let start = Timestamp(milliseconds: 1_790_000_000_000)

  var node: Node
  var now = Stage.start
  private(set) var inbox: [SessionID: [EventDelivery]] = [:]
  /// The connections to which a list of devices was announced, in order.
  private(set) var announced: [SessionID] = []
  private(set) var closed: [SessionID] = []
  private(set) var media: [MediaCommand] = []
  /// Effects that are neither for a client's own queues nor for the media plane.
  private(set) var webhooks: [(channel: Channel, event: EventMessage)] = []
  private(set) var others: [CallMessages.Effect] = []
  private(set) var negotiations: [Negotiate] = []
  private var recorded: [CallRecordingChange] = []
  private var replies: [String: Reply] = [:]
  private(set) var disk = Disk()
  /// The public keys of the links that were made, by the server's tokens.
  var linkKeys: [String: Base64Bytes] = [:]
  /// The devices on disk.
  private(set) var writes = 0
  /// How many entries of lists were written or deleted.
  private(set) var entryWrites = 0
  private let configuration: CallConfiguration
  private var lastSession: UInt64 = 0
  private var lastRequest = 0
  private var lastJoin: UInt64 = 0

  init(_ change: (inout CallConfiguration) -> Void = { _ in }) {
    var configuration = CallConfiguration()
    change(&configuration)
    self.configuration = configuration
    var state: UInt64 = 7
    node = Node(configuration: configuration, hashing: Stage.hashing) {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state
    }
  }

  typealias Reply = CallMessages.Reply

  /// A join id that no test asks for by its number.
  func makeJoinId() -> Base64Bytes {
    lastJoin += 1
    return joinId(of: 1 << 32 + lastJoin)
  }

  /// A substitute for SHA-256: 32 bytes that differ if the input does.
  static func digest(_ bytes: [UInt8]) -> [UInt8] {
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return (0..<32).map { place in
      state = (state ^ UInt64(place)) &* 0x100_0000_01b3
      return UInt8(truncatingIfNeeded: state >> 24)
    }
  }

  static let words = SimulatedWords(digest: digest)
  static let hashing = Hashing(
    digest: digest, authenticationCode: { digest($1 + $0) }, isValid: { $0 == digest($2 + $1) },
    verifies: words.verifies)

  // MARK: doing

  /// Kills the server and restarts it after a while: all connections are gone.
  func restart(after time: Duration = .zero) {
    now = now + time
    node = Node(
      configuration: configuration, hashing: Stage.hashing, random: { 99 }, restoring: disk.read(), now: now)
    inbox = [:]
    handle(.timeout)
  }

  /// Lets the server record that it runs, as it does every few seconds.
  func noteRunning() { disk.write([.store(.running(now))]) }

  /// The state that a restart would load.
  var stored: Stored { disk.read() }

  func handle(_ command: NodeCommand) {
    let effects = node.handle(command, now: now)
    disk.write(effects)
    for effect in effects {
      switch effect {
      case .client(.reply(_, let id, let reply)): replies[id] = reply
      case .client(.event(let session, let delivery)):
        inbox[session, default: []].append(delivery)
        if delivery.message.body.name == .keysRotate { announced.append(session) }
      case .client(.close(let session, _)): closed.append(session)
      case .negotiate(_, _, let negotiate): negotiations.append(negotiate)
      case .media(let command): media.append(command)
      case .webhook(let channel, let event): webhooks.append((channel, event))
      case .recorded(let change): recorded.append(change)
      case .client(.admission), .client(.publish), .read, .push, .ask, .history, .recordings, .measured, .keyless:
        others.append(effect)
      case .store(.device): writes += 1
      case .store(.entry), .store(.entryGone): entryWrites += 1
      case .store: break
      }
    }
  }

  /// Advances time from timer to timer.
  func advance(_ duration: Duration) {
    let end = now + duration
    while let deadline = node.nextDeadline, deadline <= end {
      now = max(now, deadline)
      handle(.timeout)
    }
    now = end
  }

  /// A connection of a device, subscribed to its events; registers keys first unless told not to.
  func connect(
    _ user: String, _ device: String = "phone", keys: Bool = true, mode: AcknowledgementMode = .auto,
    roles: [String] = [], guestOf call: CallID? = nil
  ) -> Client {
    lastSession += 1
    let client = Client(
      stage: self, session: SessionID(rawValue: lastSession),
      device: Device(user: UserID(unchecked: user), device: DeviceID(unchecked: device)))
    handle(.connect(client.session, Identity(device: client.device, name: user, roles: roles, guestOf: call)))
    if keys { _ = client.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: client.keys)))) }
    handle(.subscribe(client.session, .replies, .auto))
    handle(.subscribe(client.session, .events, mode))
    return client
  }

  /// The app's back end.
  func connectService(_ name: String = "backend") -> Client {
    lastSession += 1
    let client = Client(
      stage: self, session: SessionID(rawValue: lastSession),
      device: Device(user: UserID(unchecked: name), device: DeviceID(unchecked: "host")))
    handle(
      .connect(client.session, Identity(device: client.device, name: nil, isService: true, canRegister: false)))
    return client
  }

  /// The public key of the link that a request uses, or one for a new link.
  func linkKey(for request: Request) -> Base64Bytes {
    if case .calls(.call(_, .join(let body))) = request, let link = body.link, let key = linkKeys[link] { return key }
    lastRequest += 1
    return Base64Bytes(Stage.digest(Array("link \(lastRequest)".utf8)))
  }

  /// The reply to a request whose id the test has made.
  func reply(_ id: String) -> Reply? { replies.removeValue(forKey: id) }

  /// The changes of recordings that the store and the media plane were told since the last look.
  func takeRecorded() -> [CallRecordingChange] {
    defer { recorded = [] }
    return recorded
  }

  func takeOthers() -> [CallMessages.Effect] {
    defer { others = [] }
    return others
  }

  func request(_ session: SessionID, _ make: (String) -> NodeCommand) -> Reply? {
    lastRequest += 1
    let id = "r\(lastRequest)"
    handle(make(id))
    return replies.removeValue(forKey: id)
  }

  func takeEvents(_ session: SessionID) -> [EventDelivery] { inbox.removeValue(forKey: session) ?? [] }
  func takeMedia() -> [MediaCommand] {
    defer { media = [] }
    return media
  }
}

/// One device's connection to the stage.
struct Client {
  let stage: Stage
  let session: SessionID
  let device: Device
  var user: UserID { device.user }

  var keys: [DeviceKey] {
    let name = Array("\(user.text)/\(device.device.text)".utf8)
    return [
      DeviceKey(use: .wrap, alg: "HPKE-P256-SHA256-AES256GCM", publicKey: Base64Bytes(name + [1])),
      DeviceKey(use: .sign, alg: "ES256", publicKey: Base64Bytes(name + [2])),
    ]
  }

  /// Adds the words to a request that lets people in, unless it has its own.
  func ask(_ request: Request) -> CallMessages.Reply {
    let link = stage.linkKey(for: request)
    let completed = withWords(request, link: link)
    let reply = stage.request(session) { .request(session, id: $0, completed) }
    if case .ok(.link(let made))? = reply { stage.linkKeys[made.link] = link }
    return reply ?? .failed(RequestError(.internal, "no reply"))
  }

  /// The request with the words that it needs.
  /// - Parameter link: the key of the link that it makes or uses.
  func withWords(_ request: Request, link: Base64Bytes = Base64Bytes([])) -> Request {
    keysOfNow(for: request).map { Stage.words.completed(request, by: $0, link: link) } ?? request
  }

  /// The keys of its participant in the call, or else those that the device has registered.
  private func keysOfNow(for request: Request) -> DeviceEntry? {
    if case .calls(.call(let call, let request)) = request {
      switch request {
      case .invite, .link:
        if let keyed = stage.node.control.calls[call]?.epochs.keyedDevices[device] { return keyed.keys }
      default: break
      }
    }
    return stage.node.people.directory[device]?.entry
  }

  func offer(_ call: CallID, _ offer: MediaOffer, _ tracks: [MediaRequest.Track]) -> RequestError.Code? {
    self.offer(call, .success(offer), tracks)
  }

  func offer(
    _ call: CallID, _ offer: Result<MediaOffer, RequestError>, _ tracks: [MediaRequest.Track]
  ) -> RequestError.Code? {
    if case .failed(let error)? = stage.request(session, { .offer(session, id: $0, call, offer, tracks) }) {
      error.code
    } else {
      nil
    }
  }

  /// nil on success.
  func error(_ request: Request) -> RequestError? {
    if case .failed(let error) = ask(request) { error } else { nil }
  }

  func code(_ request: Request) -> RequestError.Code? { error(request)?.code }

  func get<Body>(_ request: Request, as type: Body.Type = Body.self) throws -> Body {
    let reply = ask(request)
    guard case .ok(let body) = reply, let body = body.content as? Body else {
      if case .failed(let error) = reply { throw error }
      throw RequestError(.internal, "another reply")
    }
    return body
  }

  func call(
    _ callees: [String], media: CallMedia = .video, join: UInt8? = nil, envelopes: [Envelope]? = nil,
    policy change: (inout Policy) -> Void = { _ in }
  ) throws -> CallID {
    try started(callees, media: media, join: join, envelopes: envelopes, policy: change).call.id
  }

  func started(
    _ callees: [String], media: CallMedia = .video, join: UInt8? = nil, envelopes: [Envelope]? = nil,
    policy change: (inout Policy) -> Void = { _ in }
  ) throws -> Joined {
    var policy = Policy()
    change(&policy)
    return try get(
      start(callees.map { UserID(unchecked: $0) }, media: media, policy: policy, join: join, envelopes: envelopes))
  }

  func start(
    _ callees: [UserID], media: CallMedia = .audio, policy: Policy? = nil, join: UInt8? = nil,
    envelopes: [Envelope]? = nil, id: CallID? = nil
  ) -> Request {
    let own = self.join(join)
    // A repeated start has the same id.
    let known = join.map { CallID.uuid(UInt64($0), UInt64(user.text.utf8.first ?? 0)) }
    return .start(
      StartCall(
        id: id ?? known ?? .random, callees: callees, media: media, policy: policy, joinId: own.joinId,
        joinKey: own.joinKey, envelopes: envelopes))
  }

  /// The body of a join request by this device.
  func join(_ byte: UInt8? = nil, link: String? = nil) -> Join {
    let joinId = byte.map(joinId(_:)) ?? stage.makeJoinId()
    return Join(link: link, joinId: joinId, joinKey: joinKey(joinId))
  }

  func joinKey(_ joinId: Base64Bytes, generation: UInt32 = 0) -> JoinKey {
    let name = Array("\(user.text)/\(device.device.text)".utf8)
    return JoinKey(
      alg: "HPKE-P256-SHA256-AES256GCM", publicKey: Base64Bytes(name + joinId.bytes + [UInt8(generation)]),
      generation: generation, at: stage.now, signature: Base64Bytes([1]))
  }

  @discardableResult
  func accept(_ call: CallID, join: UInt8? = nil) throws -> Joined {
    try get(.call(call, .accept(self.join(join))))
  }

  @discardableResult
  func rejoin(_ call: CallID, join: UInt8? = nil) throws -> Joined {
    try get(.call(call, .rejoin(self.join(join))))
  }

  @discardableResult
  func transfer(_ call: CallID, join: UInt8? = nil) throws -> Joined {
    try get(.call(call, .transfer(self.join(join))))
  }

  /// The numbers of a user's participants, as this client sees them.
  func participants(of user: String, in call: CallID) throws -> [ParticipantNumber] {
    try #require(try state(call).members.first { $0.user.text == user }).participants.map(\.participant)
  }

  /// The refusal; nil if the client may read the topic.
  func subscribe(_ channel: Channel) -> String? {
    stage.handle(.subscribe(session, channel, .auto))
    let admissions: [String?] = stage.others.compactMap {
      if case .client(.admission(session, channel, let refusal)) = $0 { .some(refusal) } else { nil }
    }
    return admissions.last ?? "no admission"
  }

  /// The events published to this client on a channel since the last `takeOthers`.
  func published(_ channel: Channel) -> [EventBody] {
    stage.others.compactMap {
      if case .client(.publish(session, channel, _, let event)) = $0 { event.body } else { nil }
    }
  }

  func watch(_ users: String...) throws -> [String: PresenceState.State] {
    let list: PresenceList = try get(.people(.watchPresence(WatchPresence(users: users.map { UserID(unchecked: $0) }))))
    return Dictionary(uniqueKeysWithValues: list.users.map { ($0.user.text, $0.state) })
  }

  func set(_ state: SetPresence.State, role: String? = nil) -> RequestError.Code? {
    code(.people(.setPresence(SetPresence(state: state, role: role))))
  }

  func state(_ call: CallID) throws -> CallState { try get(.call(call, .state)) }

  func phase(of user: String, in call: CallID) throws -> MemberPhase? {
    try state(call).members.first { $0.user.text == user }?.state
  }

  func disconnect() { stage.handle(.disconnect(session)) }

  func acknowledge(_ seq: UInt64, accepted: Bool = true) {
    stage.handle(.acknowledge(session, seqs: [seq], accepted: accepted))
  }

  /// The deliveries since the last look.
  func deliveries() -> [EventDelivery] { stage.takeEvents(session) }
  func events() -> [EventBody] { deliveries().map(\.message.body) }
  func names() -> [EventName] { events().map(\.name) }

  func envelope(for other: Client, epoch: UInt32, bytes: Int = 48) -> Envelope {
    Envelope(
      epoch: epoch, to: other.device, from: nil, key: Base64Bytes([UInt8](repeating: 7, count: 32)),
      alg: "HPKE-P256-SHA256-AES256GCM",
      ciphertext: Base64Bytes([UInt8](repeating: 9, count: bytes)), sigAlg: "ES256",
      signature: Base64Bytes([UInt8](repeating: 8, count: 64)))
  }

  func handOut(_ call: CallID, _ epoch: UInt32, to others: [Client]) throws -> KeysDelivered {
    try get(.inCall(call, .keys(HandOutKeys(epoch: epoch, envelopes: others.map { envelope(for: $0, epoch: epoch) }))))
  }

  /// The peer that the server made for this device in a call.
  func peer(in call: CallID) throws -> PeerID {
    try #require(stage.node.control.calls[call]?.member(user)?.participant(on: device)?.peer)
  }

  func connectMedia(_ call: CallID) throws { stage.handle(.media(.connected(try peer(in: call)))) }
  func loseMedia(_ call: CallID, silence: Duration = .seconds(5)) throws {
    stage.handle(.media(.disconnected(try peer(in: call), silence: silence)))
  }
}

func joinId(_ byte: UInt8) -> Base64Bytes { Base64Bytes([UInt8](repeating: byte, count: 16)) }

func joinId(of number: UInt64) -> Base64Bytes {
  Base64Bytes((0..<16).map { place in place < 8 ? UInt8(truncatingIfNeeded: number >> UInt64(8 * place)) : 0xaa })
}

extension CallID {
  /// A random UUID.
  static var random: CallID {
    var numbers = SystemRandomNumberGenerator()
    return uuid(numbers.next(), numbers.next())
  }

  static func uuid(_ high: UInt64, _ low: UInt64) -> CallID {
    func digits(_ number: UInt64, _ count: Int) -> String {
      let text = String(number & (count == 16 ? .max : (1 << UInt64(4 * count)) - 1), radix: 16)
      return String(repeating: "0", count: count - text.count) + text
    }
    return CallID(
      unchecked: [
        digits(high >> 32, 8), digits(high >> 16, 4), "4" + digits(high, 3), "a" + digits(low >> 48, 3),
        digits(low, 12),
      ].joined(separator: "-"))
  }
}

extension [EventBody] {
  var causes: [MemberCause] { compactMap { if case .member(let change) = $0 { change.cause } else { nil } } }
  var rings: [Ring] { compactMap { if case .ring(let ring) = $0 { ring } else { nil } } }
  var rotations: [Rotate] { compactMap { if case .rotate(let rotate) = $0 { rotate } else { nil } } }
  var envelopes: [Envelope] { compactMap { if case .envelope(let envelope) = $0 { envelope } else { nil } } }
  var switches: [UInt32] { compactMap { if case .switchKeys(let keys) = $0 { keys.epoch } else { nil } } }
  var confirmed: [KeysConfirmed] { compactMap { if case .confirmed(let keys) = $0 { keys } else { nil } } }
  var waits: [KeysWaiting] { compactMap { if case .keyWaiting(let keys) = $0 { keys } else { nil } } }
  var pairings: [PairingMessage] { compactMap { if case .pairing(let message) = $0 { message } else { nil } } }
  var keyRequests: [KeyRequest] { compactMap { if case .keyRequest(let request) = $0 { request } else { nil } } }
  var presences: [String] {
    compactMap { if case .presence(let state) = $0 { "\(state.user.text) \(state.state.rawValue)" } else { nil } }
  }
  var ended: Ended? { compactMap { if case .ended(let ended) = $0 { ended } else { nil } }.first }
  func contains(_ name: EventName) -> Bool { contains { $0.name == name } }
}

/// The answers to inquiries.
extension Node {
  private func answer(_ inquiry: CallsInquiry, now: Timestamp = Stage.start) -> InquiryAnswer {
    answer(.calls(inquiry), now: now)
  }

  var callSummaries: [CallSummary] { if case .summaries(let calls) = answer(.summaries) { calls } else { [] } }

  func inspection(of call: CallID) -> CallInspection? {
    if case .inspection(let found) = answer(.inspection(call)) { found } else { nil }
  }

  func admitsGuest(by link: String, to call: CallID, now: Timestamp) -> Bool {
    if case .truth(true) = answer(.admitsGuest(link: link, call), now: now) { true } else { false }
  }

  var counts: (calls: Int, participants: Int) {
    if case .counts(let calls, let participants) = answer(.counts) { (calls, participants) } else { (-1, -1) }
  }

  func runs(_ call: CallID) -> Bool { if case .truth(true) = answer(.runs(call)) { true } else { false } }

  var connectedUsers: [ConnectedUser] {
    if case .connectedUsers(let users) = answer(.people(.connectedUsers), now: Stage.start) { users } else { [] }
  }

  func isPresent(_ user: UserID) -> Bool {
    if case .truth(true) = answer(.people(.isPresent(user)), now: Stage.start) { true } else { false }
  }
}
