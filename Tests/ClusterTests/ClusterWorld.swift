@testable import Calls
@testable import Cluster
import MediaModel
import Seeded

/// A cluster of three to seven nodes with clients, over a bus that loses, delays, repeats and reorders, with a store that stalls and fails over, and nodes that stop, go on, die and
/// come back. Everything follows from the seed.
final class ClusterWorld {
  typealias Machines = ModelMachines
  typealias Node = ClusterNode<ModelMachines>

  /// The faults beside those of the bus.
  enum Trouble: Int, CaseIterable {
    case bus, pauses, deaths, cut, failover, lostCommits, slowStore, everything
  }

  /// A machine on which one process after the other runs.
  final class Host {
    let index: Int
    var node: Node?
    var pausedUntil: Instant?
    /// Cut off from the store.
    var cutUntil: Instant?
    /// Its readers are still connected to the server that was replaced.
    var readsBehindUntil: Instant?
    var held: [ClusterInput<Machines>] = []
    /// Its clock runs at this rate.
    let rate: Double
    var lastSession: UInt64 = 0
    /// When it last began, or went on.
    var disturbed = Instant(nanoseconds: 0)
    var streams: [Incarnation: UInt64] = [:]
    var delivered: [Incarnation: UInt64] = [:]
    /// The number of its newest batch, as it was told.
    var committed: UInt64 = 0

    init(index: Int, rate: Double) {
      self.index = index
      self.rate = rate
    }
  }

  struct Pending {
    var request: Machines.Request
    var since: Instant
    var rev: UInt64
  }

  final class Device {
    let index: Int
    let user: UserID
    var session: (id: SessionID, host: Host)?
    var pending: [UInt64: Pending] = [:]
    var lastRequest: UInt64 = 0
    /// Some give up soon, and come to the same node again while it is stopped.
    var patience: Duration { index % 2 == 0 ? .seconds(9) : .seconds(2) }

    init(index: Int, user: UserID) {
      self.index = index
      self.user = user
    }
  }

  enum Event {
    case tick(Host)
    case act(Device)
    case parcel(Parcel<Machines>)
    case arrive(Incarnation, Host, EngineRequest<Machines>, isLate: Bool)
    case answer(Incarnation, Host, EngineAnswer<Machines>)
    case feed(Incarnation, Host, ClusterInput<Machines>)
    case trouble
    case resume(Host)
    case start(Host)
    case bury(Device, SessionID)
    case storeBack
  }

  let seed: UInt64
  let trouble: Trouble
  let mutation: Mutation?
  var random: SeededGenerator
  var engine: SimulatedEngine
  var oracle = Oracle()
  var hosts: [Host] = []
  var devices: [Device] = []
  let calls: [CallID]
  var queue = EventQueue<Event>()
  var now = Instant(nanoseconds: 0)
  let quiet: Instant
  let end: Instant
  var isQuiet: Bool { now >= quiet }
  var lastValue: UInt64 = 0
  var storeDown = false
  var storeSlow: Duration = .zero
  var cuts: [Set<Int>: Instant] = [:]
  let loss, repeats, late: Int
  var deaths = 0
  var counts: [String: Int] = [:]
  /// For somebody who looks for the reason: what happened last.
  var trace: [String]?

  init(seed: UInt64, mutation: Mutation? = nil) {
    self.seed = seed
    self.mutation = mutation
    random = SeededGenerator(seed: seed)
    trouble = Trouble(rawValue: Int(seed % UInt64(Trouble.allCases.count))) ?? .bus
    engine = SimulatedEngine(keepsHistory: trouble == .lostCommits, mutation: mutation)
    loss = random.below(8)
    repeats = random.below(8)
    late = random.below(10)
    quiet = Instant(nanoseconds: 0).advanced(by: .seconds(25 + random.below(15)))
    end = quiet.advanced(by: .seconds(25))
    calls = (0..<(2 + random.below(4))).map { CallID(unchecked: "c\($0)") }
    for index in 0..<(3 + random.below(5)) {
      let host = Host(index: index, rate: 0.95 + random.uniform() / 10)
      hosts.append(host)
      start(host)
      queue.add(.tick(host), at: now.advanced(by: .milliseconds(random.below(100))))
    }
    for user in 0..<(3 + random.below(5)) {
      for _ in 0..<(1 + random.below(2)) {
        let device = Device(index: devices.count, user: UserID(unchecked: "u\(user)"))
        devices.append(device)
        queue.add(.act(device), at: now.advanced(by: .milliseconds(random.below(2_000))))
      }
    }
    queue.add(.trouble, at: now.advanced(by: .milliseconds(3_000 + random.below(3_000))))
  }

  /// The first thing that is wrong; nil if nothing is.
  func run() -> String? {
    while let (time, event) = queue.next(), time <= end {
      now = time
      handle(event)
      if let failure = oracle.failures.first ?? engine.failures.first { return describe(failure) }
    }
    checkRest()
    return (oracle.failures.first ?? engine.failures.first).map(describe)
  }

  private func describe(_ failure: String) -> String {
    "seed \(seed) (\(trouble)), \(Double(now.nanoseconds / 1_000_000) / 1000) s: \(failure)"
  }

  func note(_ text: @autoclosure () -> String) {
    trace?.append("\(Double(now.nanoseconds / 1_000_000) / 1000) \(text())")
  }

  func after(_ milliseconds: Int) -> Instant { now.advanced(by: .milliseconds(milliseconds)) }

  private func handle(_ event: Event) {
    switch event {
    case .tick(let host):
      feed(host, .tick)
      queue.add(.tick(host), at: after(100))
    case .act(let device):
      act(device)
      queue.add(.act(device), at: after(100 + random.below(500)))
    case .parcel(let parcel):
      guard let host = hosts.first(where: { $0.node?.id == parcel.to }) else { return }
      if let parcel = altered(parcel, at: host) { feed(host, .parcel(parcel)) }
    case .arrive(let node, let host, let request, let isLate): arrive(request, of: node, host, isLate: isLate)
    case .answer(let node, let host, let answer):
      guard host.node?.id == node else { return }
      if case .committed(let number, _, _, _) = answer { host.committed = number }
      feed(host, .engine(altered(answer, of: host)))
    case .feed(let node, let host, let input): if host.node?.id == node { feed(host, input) }
    case .trouble:
      guard !isQuiet else { return }
      makeTrouble()
      queue.add(.trouble, at: after(2_000 + random.below(6_000)))
    case .resume(let host): goOn(host)
    case .start(let host): start(host)
    case .bury(let device, let session): if device.session?.id == session { leave(device) }
    case .storeBack: storeDown = false
    }
  }

  // MARK: nodes

  private func local(_ host: Host) -> Instant {
    Instant(nanoseconds: UInt64(Double(now.nanoseconds) * host.rate) + 1_000_000_000)
  }

  private func start(_ host: Host) {
    guard host.node == nil else { return }
    guard !storeDown else { return queue.add(.start(host), at: after(500)) }
    let id = engine.register(host: host.index, now: now)
    var times = Times()
    times.idle = .seconds(1)
    switch mutation {
    case .deadlineForgotten: times.request = .seconds(1_000)
    default: break
    }
    var numbers = SeededGenerator(seed: seed &+ id.rawValue)
    host.node = Node(
      id: id, machines: ModelMachines(mutation: mutation), times: times, now: local(host), random: { numbers.next() })
    host.disturbed = now
    host.streams = [:]
    host.delivered = [:]
    host.committed = 0
  }

  func feed(_ host: Host, _ input: ClusterInput<Machines>) {
    guard host.node != nil else { return }
    if case .tick = input {} else { note("> \(host.index)/\(host.node?.id.rawValue ?? 0) \(input)") }
    guard host.pausedUntil == nil else {
      if case .tick = input {} else { host.held.append(input) }
      return
    }
    let id = host.node?.id ?? Incarnation(0)
    for effect in host.node?.handle(input, now: local(host)) ?? [] {
      guard host.node?.id == id else { return }
      perform(effect, of: host, id)
    }
  }

  private func goOn(_ host: Host) {
    host.pausedUntil = nil
    host.disturbed = now
    let held = host.held
    host.held = []
    for input in held { feed(host, input) }
  }

  func die(_ host: Host) {
    host.node = nil
    host.pausedUntil = nil
    host.held = []
    for device in devices {
      guard let session = device.session, session.host === host else { continue }
      // The connection is reset at once, or nobody answers any more.
      queue.add(.bury(device, session.id), at: after(random.chance(50) ? 1 : 3_000 + random.below(3_000)))
    }
    queue.add(.start(host), at: after(500 + random.below(8_000)))
  }

  private func perform(_ effect: ClusterEffect<Machines>, of host: Host, _ id: Incarnation) {
    note("< \(host.index)/\(id.rawValue) \(effect)")
    switch effect {
    case .answer(let session, let number, let answer): deliver(answer, number, to: session)
    case .busy(let session, let number): deliver(nil, number, to: session)
    case .close(let session):
      if mutation == .closeForgotten { return }
      if let device = devices.first(where: { $0.session?.id == session }) { leave(device) }
    case .parcel(let parcel): carry(parcel, from: host)
    case .engine(let request):
      counts["engine", default: 0] += 1
      send(request, of: id, host)
    case .exit:
      deaths += 1
      die(host)
    }
  }

  // MARK: the bus

  private func carry(_ parcel: Parcel<Machines>, from host: Host) {
    counts["parcels", default: 0] += 1
    let to = hosts.first { $0.node?.id == parcel.to }
    if let to, let until = cuts[[host.index, to.index]], now < until { return }
    if !isQuiet, random.below(100) < loss { return }
    for _ in 0...(!isQuiet && random.below(100) < repeats ? 1 : 0) {
      let isLate = !isQuiet && random.below(100) < late
      queue.add(.parcel(parcel), at: after(1 + random.below(isLate ? 4_000 : 20)))
    }
  }

  private func altered(_ parcel: Parcel<Machines>, at host: Host) -> Parcel<Machines>? {
    var parcel = parcel
    switch mutation {
    case .oldStreamAccepted:
      if case .mail = parcel.content {} else { break }
      parcel.stream = max(parcel.stream, host.streams[parcel.from] ?? 0)
      host.streams[parcel.from] = parcel.stream
    case .gapIgnored: if case .again = parcel.content { return nil }
    case .numberIgnored:
      // Mail is taken as the next, whatever its number is.
      guard case .mail(let letter) = parcel.content else {
        if case .have = parcel.content { return parcel }
        return nil
      }
      host.delivered[parcel.from, default: 0] += 1
      var outgoing = OutgoingLink()
      for _ in 1..<(host.delivered[parcel.from] ?? 1) { _ = outgoing.letter(letter.message) }
      parcel.stream = 1
      parcel.content = .mail(outgoing.letter(letter.message))
    default: break
    }
    return parcel
  }

  // MARK: the store

  private func send(_ request: EngineRequest<Machines>, of node: Incarnation, _ host: Host) {
    if mutation == .answerBeforeCommit, case .write(let batch) = request, batch.owners.isEmpty, batch.adoptions.isEmpty,
      batch.questions.isEmpty
    {
      let answer = EngineAnswer<Machines>.committed(batch.number, claims: [], adopted: [:], found: [:])
      queue.add(.answer(node, host, answer), at: after(0))
      queue.add(.arrive(node, host, request, isLate: true), at: after(1 + random.below(300)))
      return
    }
    var delay = random.below(5)
    if !isQuiet, storeSlow > .zero, random.chance(60) { delay += random.below(Int(storeSlow.nanoseconds / 1_000_000)) }
    queue.add(.arrive(node, host, request, isLate: false), at: after(delay))
  }

  private func arrive(_ request: EngineRequest<Machines>, of node: Incarnation, _ host: Host, isLate: Bool) {
    if isLate {
      if !storeDown { _ = apply(request, of: node, host) }
      return
    }
    let isCut = host.cutUntil.map { now < $0 } ?? false
    if isCut || storeDown || (!isQuiet && trouble != .slowStore && random.below(400) == 0) {
      // The connection is lost before the transaction, after it, or while the server goes on with it.
      if !isCut, case .write = request {
        switch random.below(3) {
        case 0 where !storeDown: _ = apply(request, of: node, host)
        case 1: queue.add(.arrive(node, host, request, isLate: true), at: after(random.below(3_000)))
        default: break
        }
      }
      queue.add(.answer(node, host, failure(of: request)), at: after(200 + random.below(1_000)))
      return
    }
    queue.add(.answer(node, host, apply(request, of: node, host)), at: after(random.below(4)))
  }

  private func apply(_ request: EngineRequest<Machines>, of node: Incarnation, _ host: Host) -> EngineAnswer<Machines> {
    let isBehind = host.readsBehindUntil.map { now < $0 } ?? false
    switch request {
    case .write(let batch): return engine.write(altered(batch), now: now)
    case .resume: return engine.resume(node)
    case .poll: return engine.poll(behind: isBehind)
    case .declareDead(let other, let commits):
      let answer = engine.declareDead(other, commits, now: now)
      if case .declared(_, true) = answer { counts["declared", default: 0] += 1 }
      return answer
    case .load(let entity, let term): return engine.load(entity, term, by: node, behind: isBehind)
    }
  }

  private func failure(of request: EngineRequest<Machines>) -> EngineAnswer<Machines> {
    switch request {
    case .write(let batch): .unclear(batch.number)
    case .resume: .notResumed
    case .poll: .notPolled
    case .declareDead(let node, _): .declared(node, false)
    case .load(let entity, let term): .notLoaded(entity, term)
    }
  }

  private func altered(_ batch: Batch<Machines>) -> Batch<Machines> {
    guard mutation == .lastChangesLeftOut else { return batch }
    var batch = batch
    let released = batch.owners.compactMap { if case .release(let entity, _) = $0 { entity } else { nil } }
    batch.changes.removeAll { released.contains($0.entity) }
    return batch
  }

  private func altered(_ answer: EngineAnswer<Machines>, of host: Host) -> EngineAnswer<Machines> {
    switch (mutation, answer) {
    case (.unclearIsCommitted, .unclear(let number)): .committed(number, claims: [], adopted: [:], found: [:])
    case (.nothingReplayed, .resumed(let number?)): .resumed(skip(number, host))
    case (.nothingReplayed, .refused(let batch, .missing(let number))):
      .refused(batch, .missing(after: skip(number, host)))
    default: answer
    }
  }

  /// The store is told that it has what it has lost.
  private func skip(_ number: UInt64, _ host: Host) -> UInt64 {
    guard let id = host.node?.id, number < host.committed else { return number }
    engine.rows.nodes[id]?.commits = host.committed
    return host.committed
  }

  // MARK: clients

  private func act(_ device: Device) {
    guard let session = device.session else {
      // A balancer that does not notice sends some to a node that is stopped.
      let stopped = random.chance(30) ? hosts.first { $0.pausedUntil != nil } : nil
      guard let host = stopped ?? hosts.randomElement(using: &random), let id = host.node?.id else { return }
      host.lastSession += 1
      let session = SessionID(host.lastSession, of: id)
      device.session = (session, host)
      oracle.begin(device.index)
      feed(host, .connect(session, device.user))
      return
    }
    if device.pending.values.contains(where: { $0.since.duration(to: now) > device.patience }) {
      // The client gives up. A node that works has answered a patient one by now.
      let isWorking =
        device.patience > .seconds(8)
        && session.id.edge == session.host.node?.id && session.host.pausedUntil == nil
        && session.host.disturbed.duration(to: now) > .seconds(9)
      if isWorking { oracle.fail("a request has no answer") }
      leave(device)
      return disconnect(session)
    }
    guard !isQuiet, device.pending.count < 3 else { return }
    if random.below(20) == 0 {
      leave(device)
      return disconnect(session)
    }
    let call = calls[random.below(calls.count)]
    lastValue += 1
    switch random.below(8) {
    case 0: request(.start(call, join: lastValue), of: device)
    case 1, 2: request(.join(call, join: lastValue), of: device)
    case 3: request(.leave(call), of: device)
    case 4, 5: request(.read(call), of: device)
    default: request(.note(lastValue), of: device)
    }
  }

  private func disconnect(_ session: (id: SessionID, host: Host)) {
    guard let id = session.host.node?.id else { return }
    // The edge learns of it at once, or when its heart-beats are missing.
    let delay = random.chance(70) ? 1 : random.below(2_000)
    queue.add(.feed(id, session.host, .disconnect(session.id)), at: after(delay))
  }

  private func request(_ request: Machines.Request, of device: Device) {
    guard let session = device.session else { return }
    device.lastRequest += 1
    let rev = request.call.flatMap { oracle.revs[$0] } ?? 0
    device.pending[device.lastRequest] = Pending(request: request, since: now, rev: rev)
    feed(session.host, .request(session.id, number: device.lastRequest, request))
  }

  func leave(_ device: Device) {
    device.session = nil
    device.pending = [:]
  }

  /// - Parameter answer: nil for `busy`.
  private func deliver(_ answer: Machines.Answer?, _ number: UInt64?, to session: SessionID) {
    guard let device = devices.first(where: { $0.session?.id == session }) else { return }
    guard let number else {
      if let answer { oracle.take(event: answer, of: device.user, at: device.index) }
      return
    }
    guard let pending = device.pending.removeValue(forKey: number) else {
      return oracle.fail("a request has two answers")
    }
    counts[answer == nil ? "busy" : "answers", default: 0] += 1
    if let answer {
      oracle.take(answer, to: pending.request, before: pending.rev, of: device.user, at: device.index)
    } else if !isQuiet, random.chance(60) {
      request(pending.request, of: device)
    }
  }

  // MARK: trouble

  private func makeTrouble() {
    let kinds: [Trouble] = [.bus, .pauses, .deaths, .cut, .failover]
    switch trouble == .everything ? kinds[random.below(kinds.count)] : trouble {
    case .bus:
      let (one, other) = (random.below(hosts.count), random.below(hosts.count))
      if one != other { cuts[[one, other]] = min(quiet, after(random.below(random.chance(60) ? 4_000 : 12_000))) }
    case .pauses:
      let host = hosts[random.below(hosts.count)]
      guard host.node != nil, host.pausedUntil == nil else { return }
      let until = min(quiet, after(random.below(20_000)))
      host.pausedUntil = until
      queue.add(.resume(host), at: until)
    case .deaths:
      let host = hosts[random.below(hosts.count)]
      if host.node != nil { die(host) }
    case .cut:
      let host = hosts[random.below(hosts.count)]
      host.cutUntil = min(quiet, after(random.below(12_000)))
    case .failover, .lostCommits:
      guard !storeDown else { return }
      storeDown = true
      if trouble == .lostCommits {
        engine.goBack(to: Instant(nanoseconds: now.nanoseconds - UInt64(random.below(3_000)) * 1_000_000))
        oracle.exempt = engine.exempt
      } else {
        engine.replaced = engine.rows
        for host in hosts where random.chance(40) { host.readsBehindUntil = min(quiet, after(random.below(10_000))) }
      }
      queue.add(.storeBack, at: after(300 + random.below(6_000)))
    case .slowStore: storeSlow = .milliseconds(random.below(3_500))
    case .everything: break
    }
    if trouble == .slowStore, random.chance(30) { storeSlow = .zero }
  }

  // MARK: at rest

  /// No fault for 25 s: everybody knows the same.
  private func checkRest() {
    if trouble == .slowStore, deaths > 0 || counts["declared"] != nil {
      oracle.fail("a slow store has killed a node")
    }
    for device in devices {
      let user = device.user
      if !device.pending.isEmpty { oracle.fail("a request is still open") }
      guard device.session != nil, !engine.exempt.contains(.user(user)) else { continue }
      let owners = hosts.filter { $0.node?.owns(.user(user)) == true }
      if owners.count != 1 { oracle.fail("a connected user has \(owners.count) owners") }
      for call in calls where engine.rows.calls[call]?.members[user] != nil && !engine.exempt.contains(.call(call)) {
        let stored = engine.rows.calls[call]?.rev ?? 0
        if oracle.rev(of: call, at: device.index) != stored {
          oracle.fail("a device knows rev \(oracle.rev(of: call, at: device.index)) of \(stored)")
        }
      }
    }
    for (user, notes) in oracle.notes where !engine.exempt.contains(.user(user)) {
      if !notes.isSubset(of: engine.rows.users[user] ?? []) { oracle.fail("a confirmed note is lost") }
    }
    for call in calls where !engine.exempt.contains(.call(call)) { checkRest(call) }
  }

  private func checkRest(_ call: CallID) {
    let stored = engine.rows.calls[call] ?? ModelMachines.StoredCall()
    if !(oracle.numbers[call] ?? [:]).allSatisfy({ stored.numbers[$0.key] == $0.value }) {
      oracle.fail("a confirmed join is lost")
    }
    if stored.rev < oracle.revs[call] ?? 0 { oracle.fail("a confirmed rev is lost") }
    let connected = Set(devices.filter { $0.session != nil }.map(\.user)).intersection(stored.members.keys)
    let owners = hosts.compactMap { $0.node?.owns(.call(call)) == true ? $0.node : nil }
    if owners.count > 1 { oracle.fail("a call has two owners") }
    guard !connected.isEmpty else { return }
    guard let owner = owners.first else { return oracle.fail("a call with connected members has no owner") }
    let known = owner.machines.calls[call]?.connected ?? []
    if known.subtracting(engine.exempt.users) != connected.subtracting(engine.exempt.users) {
      let wrong = known.symmetricDifference(connected).map(\.text).sorted()
      oracle.fail("\(call) is wrong about who is connected: \(wrong)")
    }
  }
}

extension Set<EntityID> {
  fileprivate var users: Set<UserID> {
    Set<UserID>(compactMap { if case .user(let user) = $0 { user } else { nil } })
  }
}
