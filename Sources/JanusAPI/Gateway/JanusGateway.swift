package import MediaModel
import Octets

/// The rooms of Janus's API: sessions, their handles, and the rooms of the videoroom plugin.
///
/// ## Overview
/// `handle` takes a client's request, a result of the media plane, or the time, and returns what to send and what the media plane has to do. Requests of one
/// handle are carried out one after the other: while a description is being read or written, later ones wait.
///
/// ## Invariants
/// - Each request gets one reply. A request that is answered by an event gets `ack` first, then one event with its transaction, unless its handle ends.
/// - A room's media has a `CallID` that no call has, and its peers have ids that no call's have, so nothing here reaches a call.
package struct JanusGateway<Generator: RandomNumberGenerator & Sendable>: Sendable {
  package let configuration: GatewayConfiguration
  var generator: Generator
  var now = Instant(nanoseconds: 0)
  var sessions: [UInt64: GatewaySession] = [:]
  var handles: [UInt64: PluginHandle] = [:]
  var rooms: [PluginID: Room] = [:]
  /// The handles of the peers.
  var peers: [PeerID: UInt64] = [:]
  /// The handles that wait for the media plane, by the number of the result.
  var waiters: [UInt64: UInt64] = [:]
  /// The sessions whose events a WebSocket gets.
  var sockets: [UInt64: Set<UInt64>] = [:]
  /// The sessions of the polls.
  var pollers: [UInt64: UInt64] = [:]
  var isDraining = false
  package internal(set) var counters = GatewayCounters()

  private var effects: [JanusEffect] = []
  var timers = Heap<Instant, GatewayTimer>()
  /// Sessions whose poll may be answered, and those that have too many events, after the command.
  private var polled: Set<UInt64> = []
  private var overfull: Set<UInt64> = []
  private var lastPeer: UInt64 = 0
  private var lastNumber: UInt64 = 0

  /// - Parameter generator: must be cryptographic, because who knows a session's id can use it.
  /// - Throws: `JanusError` with the element of a room of the configuration that is wrong.
  package init(_ configuration: GatewayConfiguration, using generator: Generator) throws(JanusError) {
    self.configuration = configuration
    self.generator = generator
    for room in configuration.rooms {
      let elements = Elements(room, of: .room)
      let id = try elements.required("room", elements.id("room", configuration.ids))
      guard rooms[id] == nil else { throw JanusError(.roomExists, "Room \(id.description) already exists") }
      let settings = try RoomSettings(elements, id: id, limits: configuration.limits)
      rooms[id] = Room(id: id, isPreset: true, settings: settings, now: now)
    }
  }

  /// The time of the next `timeout`.
  package var nextDeadline: Instant? { timers.first?.key }

  package mutating func handle(_ command: JanusCommand, now: Instant) -> [JanusEffect] {
    self.now = now
    switch command {
    case .request(let request): receive(request)
    case .unreadable(let requester, let reason):
      refuse(JanusError(.invalidJSON, reason), RequestContext(from: requester), name: "unknown")
    case .poll(let exchange, let session, let maximum, let grant):
      poll(exchange, session: session, maximum: maximum, grant)
    case .socketEnded(let socket, let ending): socketEnded(socket, ending)
    case .exchangeEnded(let exchange): exchangeEnded(exchange)
    case .result(let number, let result): received(result, number: number)
    case .media(let event): received(event)
    case .endRoom(let room): endRoom(room)
    case .drain: drain()
    case .timeout: fireTimers()
    }
    for session in polled.sorted() { answerPoll(of: session) }
    polled = []
    for session in overfull.sorted() {
      counters.refuse(.waitingEvents)
      endSession(session)
    }
    overfull = []
    defer { effects = [] }
    return effects
  }

  // MARK: Output

  mutating func media(_ command: RoomMedia) { effects.append(.media(command)) }

  mutating func reply(_ message: JSONObject, to requester: Requester) {
    effects.append(.send(requester, .object(message)))
  }

  /// Gives the session an event: by its WebSocket, or when it polls or is claimed.
  mutating func deliver(_ event: JSONObject, to id: UInt64) {
    guard let session = sessions[id] else { return }
    if let socket = session.socket { return effects.append(.send(.socket(socket), .object(event))) }
    let limits = configuration.limits
    guard session.waiting.count < limits.waitingEvents, session.waitingBytes < limits.waitingBytes else {
      overfull.insert(id)
      return
    }
    sessions[id]?.keep(.object(event))
    polled.insert(id)
  }

  mutating func answerPoll(of id: UInt64) {
    guard let poll = sessions[id]?.poll, sessions[id]?.waiting.isEmpty == false else { return }
    let events = sessions[id]?.take(poll.maximum ?? 1) ?? []
    forgetPoll(of: id)
    effects.append(.send(.exchange(poll.exchange), poll.maximum == nil ? events[0] : .list(events)))
  }

  mutating func forgetPoll(of id: UInt64) {
    guard let poll = sessions[id]?.poll else { return }
    pollers[poll.exchange] = nil
    sessions[id]?.poll = nil
    sessions[id]?.lastActive = now
  }

  /// Ends a poll without an event.
  mutating func endPoll(of id: UInt64, with message: JSONObject) {
    guard let poll = sessions[id]?.poll else { return }
    forgetPoll(of: id)
    let answer = JSONTree.object(message)
    effects.append(.send(.exchange(poll.exchange), poll.maximum == nil ? answer : .list([answer])))
  }

  // MARK: Ids

  /// A random id that `isFree`.
  mutating func fresh(where isFree: (UInt64) -> Bool) -> UInt64 {
    while true {
      let id = UInt64.random(in: PluginID.numbers, using: &generator)
      if isFree(id) { return id }
    }
  }

  mutating func freshID(where isFree: (PluginID) -> Bool) -> PluginID {
    while true {
      let id = configuration.ids.random(using: &generator)
      if isFree(id) { return id }
    }
  }

  mutating func nextPeer() -> PeerID {
    lastPeer += 1
    return PeerID(room: lastPeer, of: configuration.incarnation)
  }

  mutating func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }
}

/// A client's request while it is carried out.
struct RequestContext {
  var from: Requester
  var transaction: String?
  var session: UInt64?
  var grant = Grant()

  func message(_ kind: String) -> JSONObject {
    var message: JSONObject = ["janus": .text(kind)]
    message.add("session_id", session.map { JSONTree($0) })
    message.add("transaction", transaction.map { .text($0) })
    return message
  }
}

extension PeerID {
  /// Calls count their peers from 1 on, and rooms in the upper half of the 36 bits, so no peer of a room has the id of a call's.
  private static var firstOfRooms: UInt64 { 1 << 35 }

  init(room number: UInt64, of incarnation: Incarnation) {
    self.init(number | Self.firstOfRooms, of: incarnation)
  }

  package var isOfRoom: Bool { number & Self.firstOfRooms != 0 }
}
