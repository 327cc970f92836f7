@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel
import Seeded
import Simulation

import CallMessages
@testable import Calls

/// Users with one to three devices that act at random in virtual time. Connections are lost, repeated, replaced and
/// delayed, leaders are slow, envelopes are refused, and the server dies.
///
/// The invariants check each command and its effects; a `Mutation` sits between the server and them. In a late world
/// the server consists of its two separate state machines, with `DelayedMail` between them, and each step is one of
/// theirs. In an eighth of these worlds the messages are encoded as JSON.
final class SimulatedWorld {
  /// The permanent behaviour of a device.
  struct SimulatedDevice {
    let device: Device
    let mode: AcknowledgementMode
    let hasKeys: Bool
    let roles: [String]
    /// The delay in one direction.
    let latency: Duration
    /// The time until it answers `keys.rotate`; nil: never.
    var answerTime: Duration?
    /// The time until it acknowledges; nil: never.
    var ackTime: Duration?
    /// The connection from the server's view.
    var session: SessionID?
    /// Whether the connection is broken and the server has not noticed.
    var isDeaf = false
    var isSubscribed = false
    /// The last join, to repeat it.
    var lastJoin: Request?
    var joins: UInt64 = 0
  }

  /// A pending action on one connection.
  enum Plan {
    case command(NodeCommand)
    case receive(EventDelivery)
    /// The server notices that the connection is broken.
    case notice
    /// The app's back end answers.
    case answer(QuestionID, allowed: Set<UserID>)
  }

  /// A request that waits for the app's back end.
  struct Asked {
    var command: NodeCommand
    var session: SessionID
    /// The time at which it is given up.
    var due: Timestamp
  }

  var random: SeededGenerator
  /// The generator for later additions, separate so that old seeds still lead to the same run.
  var whims: SeededGenerator
  var node: Node
  var now = Stage.start
  var devices: [SimulatedDevice] = []
  /// The devices at the ends of the connections, from the server's view.
  var places: [SessionID: Int] = [:]
  /// The app's back end.
  var service: SessionID?
  /// All links made so far.
  var links: [(call: CallID, link: String, key: Base64Bytes)] = []
  var agenda: [(due: Timestamp, session: SessionID, plan: Plan)] = []
  var lastSession: UInt64 = 0
  var lastRequest = 0
  var asked: [QuestionID: Asked] = [:]
  var mutant: Mutant?
  var disk = Disk()
  let configuration: CallConfiguration
  private let isLate: Bool
  var mail: DelayedMail
  private(set) var isDraining = false
  private(set) var boots: UInt32 = 0
  private var ids: SeededGenerator
  var views: [CallID: CallView] = [:]
  private var log: [(at: Timestamp, place: Int?, command: NodeCommand)] = []

  /// For recordings of calls.
  var consents: SeededGenerator
  /// Calls may be recorded.
  let isRecorded: Bool
  /// All devices behave well: this checks what settles.
  private(set) var isHealing = false
  /// Whether the server has just started.
  private var isStarting = false

  let verdict: Verdict
  var members: MemberInvariants
  var events: EventInvariants
  var keys: KeyInvariants
  var chain: ChainInvariants
  var history: HistoryInvariants
  var watchers: WatcherInvariants
  private var webhooks: WebhookInvariants
  var late: LateInvariants
  private(set) var recordings: ConsentInvariants
  let rest: RestInvariants

  /// - Parameter crowd: the number of participants from which on changes of members wait for others.
  init(
    seed: UInt64, isLate: Bool = false, crowd: Int = 64, isRecorded: Bool = false, mutation: Mutation? = nil
  ) {
    self.isLate = isLate
    self.isRecorded = isRecorded
    consents = SeededGenerator(seed: seed ^ 0xc0de)
    mail = DelayedMail(seed: seed ^ 0x1a7e)
    mail.isCoded = seed % 16 == 1
    mail.takesRepeats = mutation == .takesRepeats
    let verdict = Verdict()
    self.verdict = verdict
    members = MemberInvariants(verdict)
    events = EventInvariants(verdict, crowd: crowd)
    keys = KeyInvariants(verdict)
    chain = ChainInvariants(verdict)
    history = HistoryInvariants(verdict)
    watchers = WatcherInvariants(verdict, crowd: crowd)
    webhooks = WebhookInvariants(verdict, crowd: crowd)
    late = LateInvariants(verdict)
    recordings = ConsentInvariants(verdict)
    rest = RestInvariants(verdict: verdict)
    mutant = mutation.map { Mutant(mutation: $0, random: SeededGenerator(seed: seed ^ 0x7777)) }
    random = SeededGenerator(seed: seed)
    whims = SeededGenerator(seed: seed ^ 0x10dd)
    ids = SeededGenerator(seed: seed ^ 0x5555)
    var configuration = SimulatedWorld.configuration(mutation, crowd: crowd, asksBackEnd: whims.chance(30))
    configuration.records = isRecorded ? .members : nil
    self.configuration = configuration
    node = Node(configuration: configuration, hashing: Stage.hashing, random: SimulatedWorld.numbers(ids.next()))
    makeDevices()
    for place in devices.indices { connect(place) }
    connectService()
  }

  private static func configuration(_ mutation: Mutation?, crowd: Int, asksBackEnd: Bool) -> CallConfiguration {
    var configuration = CallConfiguration()
    if mutation != .ignoresRole { configuration.neverStarts = ["guest"] }
    configuration.asksBackEnd = asksBackEnd
    configuration.limits.crowd = crowd
    // Events dropped for lack of room are tested elsewhere.
    configuration.maximumKeptEvents = 100_000
    configuration.maximumKeptBytes = 1 << 30
    return configuration
  }

  private func makeDevices() {
    let answerTimes: [Duration?] = [.milliseconds(20), .milliseconds(300), .seconds(2), .seconds(4), nil]
    let ackTimes: [Duration?] = [.milliseconds(10), .milliseconds(200), .seconds(3), nil]
    let latencies: [Duration] = [.zero, .zero, .milliseconds(30), .milliseconds(400)]
    // Most are small, since events coincide more often in them.
    let users = random.chance(3) ? 10 + random.below(21) : random.chance(10) ? 6 + random.below(5) : 2 + random.below(5)
    for user in 0..<users {
      let roles = random.chance(5) ? ["guest"] : random.chance(5) ? ["interpreter"] : []
      for device in 0..<(1 + random.below(3)) {
        devices.append(
          SimulatedDevice(
            device: Device(user: UserID(unchecked: "u\(user)"), device: DeviceID(unchecked: "d\(device)")),
            mode: [.auto, .client, .individual][random.below(3)], hasKeys: random.chance(90), roles: roles,
            latency: latencies[random.below(4)], answerTime: answerTimes[random.below(5)],
            ackTime: ackTimes[random.below(4)]))
      }
    }
  }

  /// Returns the failure with the steps that led to it; nil when nothing failed.
  func run(steps: Int) -> String? {
    for _ in 0..<steps where verdict.failure == nil { step() }
    if verdict.failure == nil { heal() }
    return verdict.failure.map { describe("\($0.check): \($0.what)") }
  }

  private func describe(_ failure: String) -> String {
    let lines = log.suffix(40).map { entry in
      let device = entry.place.map { "\(devices[$0].device.user.text)/\(devices[$0].device.device.text)" }
      return "\((entry.at - Stage.start) / .milliseconds(1)) \(device ?? "-") \(entry.command)".prefix(240)
    }
    return failure + "\n" + lines.joined(separator: "\n")
  }

  private static func numbers(_ seed: UInt64) -> () -> UInt64 {
    var numbers = SeededGenerator(seed: seed)
    return { numbers.next() }
  }

  private func step() {
    if random.below(150) == 0 { restart() }
    let wait: [Int] = [0, 1, 30, 100, 400, 1_500, 4_000, 16_000, 40_000, 130_000]
    let bound = random.chance(3) ? 10 : random.chance(10) ? 8 : 6
    advance(.milliseconds(wait[random.below(bound)]))
    let place = random.below(devices.count)
    if devices[place].session == nil || devices[place].isDeaf {
      if random.chance(60) { connect(place) }
      return
    }
    switch random.below(100) {
    case 0..<6: disconnect(place)
    case 6..<10: connect(place)
    case 10..<12: toggleSubscription(place)
    case 12..<20: mediaEvent()
    case 20..<24: if let last = devices[place].lastJoin { ask(place, last) }
    case 24..<28: watch(place)
    case 28..<31: serve()
    case 31: actOfTheOperator()
    default: randomRequest(place)
    }
  }

  /// Everybody comes back and behaves well: everything pending has to settle.
  private func heal() {
    isHealing = true
    mail.slowest = 20
    for place in devices.indices {
      devices[place].answerTime = .milliseconds(100)
      devices[place].ackTime = .milliseconds(100)
      connect(place)
    }
    advance(.seconds(40))
    // `rotateMinutes` may end at this very moment, or the last confirmation may still be collected with others. An
    // epoch does not wait for the ACK of a device that has sent `keys/wait`.
    for _ in 0..<50
    where node.control.calls.values.contains(where: {
      $0.epochs.current != $0.epochs.newest.number || $0.epochs.pending != nil || $0.epochs.isTelling
        || !$0.epochs.unopened.isEmpty
    }) || !mail.isEmpty {
      advance(.milliseconds(100))
    }
    rest.checkSettled(node)
    chain.checkTold(node)
    rest.checkQueues(node, disk)
    if let service { for id in node.control.calls.keys.sorted() { requestOfService(service, .call(id, .end)) } }
    advance(.seconds(10))
    rest.checkSeen(events.models, devices)
    advance(.seconds(300))
    verdict.require(.settles, mail.isEmpty, "messages go back and forth forever")
    rest.checkEmpty(node)
    rest.checkQueues(node, disk)
    rest.checkDisk(disk.contents, node)
  }

  // MARK: the server

  /// The server dies, and starts again after a while.
  func restart() {
    isStarting = true
    defer { isStarting = false }
    // A server delivers all messages of a command before it confirms it.
    deliverAll()
    guard verdict.failure == nil else { return }
    rest.checkDisk(disk.contents, node)
    let before = node
    let down: [Int] = [0, 50, 3_000, 20_000, 130_000]
    now = now + .milliseconds(down[random.below(down.count)])
    if whims.chance(20) { now = now - .seconds(whims.chance(50) ? 7 : 3_600) }
    agenda = []
    asked = [:]
    isDraining = false
    places = [:]
    service = nil
    for place in devices.indices {
      devices[place].session = nil
      devices[place].isSubscribed = false
      devices[place].isDeaf = false
    }
    log.append((now, nil, .drain))
    mail.restart()
    var stored = disk.read()
    boots = stored.boots
    mutant?.change(&stored)
    node = Node(
      configuration: configuration, hashing: Stage.hashing, random: SimulatedWorld.numbers(ids.next()),
      restoring: stored, now: now)
    rest.checkRestored(node, from: before)
    events.restart(devices.map(\.device), now: now)
    keys.restart()
    recordings.restart()
    late.restart()
    webhooks.restart()
    // Watches ended with their connections.
    watchers = WatcherInvariants(verdict, crowd: configuration.limits.crowd)
    views = node.control.calls.mapValues(CallView.init)
    handle(.timeout, nil)
    connectService()
  }

  func handle(_ command: NodeCommand, _ place: Int?) {
    guard verdict.failure == nil else { return }
    log.append((now, place, command))
    if case .connect(let session, _) = command { places[session] = place }
    if case .drain = command { isDraining = true }
    if isLate {
      handleLate(command, place)
    } else {
      handleWhole(command, place)
    }
  }

  private func handleWhole(_ command: NodeCommand, _ place: Int?) {
    let effects = carryOut(mutant?.heard(command, self) ?? command)
    if case .disconnect(let session) = command { places[session] = nil }
    look(at: command, by: place, effects)
    if verdict.failure != nil { return }
    // The server dies after writing what it would confirm, and before confirming it.
    if !isHealing, random.below(1_500) == 0, !isStarting { return restart() }
    for effect in effects { spread(effect, command) }
    if random.chance(3) {
      rest.checkDisk(disk.contents, node)
      rest.checkQueues(node, disk)
    }
  }

  private func carryOut(_ command: NodeCommand) -> [CallMessages.Effect] {
    var effects = node.handle(command, now: now)
    if mutant != nil {
      var server = node
      mutant?.change(&effects, &server, self, command)
      node = server
    }
    disk.write(effects)
    return effects
  }

  private func look(at handled: NodeCommand, by place: Int?, _ effects: [CallMessages.Effect]) {
    let resumed = takeAsked(handled)
    let isTimeout = if case .timeout = handled { true } else { false }
    let command = resumed?.command ?? handled
    let session = SimulatedWorld.session(of: command)
    let asker = (resumed.flatMap { places[$0.session] } ?? place).map { devices[$0].device }
    let before = views
    let touched = isTimeout ? nil : touched(command)
    for id in touched ?? Array(node.control.calls.keys) { views[id] = node.control.calls[id].map(CallView.init) }
    for id in before.keys where node.control.calls[id] == nil { views[id] = nil }
    let step = WorldStep(
      command: command, asker: asker, isService: session != nil && session == service,
      allowed: resumed?.allowed, isTimeout: isTimeout, isDraining: isDraining, effects: effects, before: before,
      after: views,
      changed: (touched ?? Array(node.control.calls.keys)).filter { node.control.calls[$0] != nil }, node: node,
      now: now,
      devices: places.mapValues { devices[$0].device })
    members.check(step)
    let told = events.check(step)
    keys.check(step, told)
    recordings.check(step, effects.compactMap(\.recorded))
    chain.check(step, told) { disk.call($0) }
    history.check(step)
    watchers.check(step)
    webhooks.check(step, told, service: service)
    rest.checkNumbers(effects, boots: boots)
  }

  func checkConsents(_ step: WorldStep, _ changes: [CallRecordingChange]) { recordings.check(step, changes) }

  /// The request that this command continues, and the users that it may reach.
  private func takeAsked(_ command: NodeCommand) -> (
    command: NodeCommand, session: SessionID, allowed: Set<UserID>
  )? {
    let found: (QuestionID, Set<UserID>)?
    switch command {
    case .answer(let id, let allowed): found = (id, allowed)
    case .timeout:
      // A request of a closed connection was dropped with it; all others time out at different times.
      asked = asked.filter { $0.value.due >= now && places[$0.value.session] != nil }
      found = asked.first { $0.value.due == now }.map { ($0.key, []) }
    default: found = nil
    }
    guard let (id, allowed) = found, let waiting = asked.removeValue(forKey: id), places[waiting.session] != nil else {
      return nil
    }
    return (waiting.command, waiting.session, allowed)
  }

  /// The calls that a command may have changed, so that not all are checked each time; nil: any.
  private func touched(_ command: NodeCommand) -> [CallID]? {
    switch command {
    case .media(.connected(let peer)), .media(.disconnected(let peer, _)), .media(.quality(let peer, _, _)):
      return node.control.peers[peer].map { [$0.call] }
    case .media, .answer, .drain: return []
    case .timeout, .disconnect, .forget: return nil
    default:
      guard let session = SimulatedWorld.session(of: command) else { return nil }
      return node.people.directory.device(of: session).map { node.people.calls(of: $0.user) }
    }
  }

  static func session(of command: NodeCommand) -> SessionID? {
    switch command {
    case .connect(let session, _), .subscribe(let session, _, _), .unsubscribe(let session, _),
      .acknowledge(let session, _, _), .request(let session, _, _), .offer(let session, _, _, _, _),
      .disconnect(let session):
      session
    case .media, .answer, .recording, .recordingFailed, .pushGone, .waitsAtLink, .forget, .end, .disconnectUser,
      .endLinks,
      .failures, .drain,
      .timeout:
      nil
    }
  }

  func noteSeen(_ delivery: EventDelivery, _ device: Device) { events.models[device]?.see(delivery) }
}
