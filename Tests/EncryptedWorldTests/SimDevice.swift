import CallMessages
import Contract
import Crypto
import MediaModel
import Seeded
import Simulation

@testable import ConclaveClient

/// A device like our client: its keys, its connection, its calls. The world provides time and network.
final class SimDevice {
  unowned let world: World
  let identity: DeviceIdentity
  var trust = KeyTrust.firstUse
  var pins = Pins()
  private(set) var session: SessionID?
  /// The current stay.
  var stay: Stay? { stays.last.flatMap { $0.isOver ? nil : $0 } }
  private(set) var stays: [Stay] = []
  var rings: [CallID: Ring] = [:]
  private(set) var warnings: [KeyWarning] = []
  /// Whether it was told that a device had left, or is not in the call, although that device was present.
  private(set) var falseAlarms: [KeyWarning] = []
  /// When it connected last.
  private(set) var connectedAt: Int64 = 0
  private(set) var refusals: [KeyRefusal] = []
  /// Refusals, except of a list without this device because it has left.
  private(set) var falseRefusals: [KeyRefusal] = []
  private var usedRings = UsedRings()
  var ringers = Ringers()
  /// Whether it was told that only the app's service lets it in.
  private(set) var letInByService = false
  /// Requests whose reply did not answer them.
  private(set) var aborted: [SignalingError] = []
  /// How far its clock is ahead of the world's, in ms.
  var clockError: Int64 = 0
  var clock: Timestamp { Timestamp(milliseconds: world.timestamp.milliseconds + clockError) }
  private(set) var results: [UserID: RingResult] = [:]
  private(set) var lastError: RequestError?

  /// The delay in one direction, in ms.
  var delay: ClosedRange<Int>
  /// How long it takes to answer key requests; nil: it never does.
  var response: Int?
  var directory = KnownKeys()
  private(set) var pending: [Int: Pending] = [:]
  /// Events that came before the reply that makes this device a participant.
  var early: [(message: EventMessage, seq: UInt64)] = []
  private var lastRequest = 0
  private var lastUp: Int64 = 0
  private var lastDown: Int64 = 0
  private var wasConnected = false

  struct Pending {
    var request: Request
    var reply: (CallMessages.Reply) -> Void
  }

  init(_ user: String, _ device: String, in world: World, delay: ClosedRange<Int>, response: Int?) {
    identity = DeviceIdentity(user: user, device: device)!
    self.world = world
    self.delay = delay
    self.response = response
  }

  /// Another device with the same name.
  init(impersonating other: SimDevice, in world: World) {
    identity = DeviceIdentity(user: other.identity.user, device: other.identity.device)!
    self.world = world
    delay = other.delay
    response = other.response
  }

  var address: Device { identity.address }
  var isConnected: Bool { session != nil }

  // MARK: connection

  func connect() {
    guard session == nil, !world.isDown else { return }
    let session = world.newSession(for: self)
    self.session = session
    connectedAt = world.now
    sendUp(session) { [unowned self] in
      world.serve(.connect(session, Identity(device: address, name: nil)))
      world.serve(.subscribe(session, .events, .individual))
    }
    ask(.people(.registerDevice(RegisterDevice(name: nil, keys: identity.registration)))) {
      [unowned self] (_: Registered) in
      if let stay {
        feed(.signaling(isConnected: true), to: stay)
        recover(stay, .signalingBack)
      }
      if world.weakness == .countsAnew { stay?.startCounting() }
    }
    for id in pending.keys.sorted() { if let request = pending[id]?.request { send(request, id, session) } }
  }

  /// The connection breaks; the server notices at once.
  func disconnect() {
    guard let session else { return }
    lose(session)
    world.serve(.disconnect(session))
  }

  func lose(_ lost: SessionID) {
    guard lost == session else { return }
    session = nil
    early = []
    let unanswered = pending.filter { !$0.value.request.isRepeated }.sorted { $0.key < $1.key }
    pending = pending.filter { $0.value.request.isRepeated }
    for case .calls(.inCall(let call, .keys(let handedOut))) in unanswered.map(\.value.request) {
      if let stay, stay.call == call { feed(.handedOut(epoch: handedOut.epoch, taken: nil), to: stay) }
    }
    if let stay {
      feed(.signaling(isConnected: false), to: stay)
      recover(stay, .signalingLost)
    }
  }

  /// The server is dead: media is gone, too, and the device tries to connect until the server is back.
  func loseServer() {
    for stay in stays { stay.isCut = true }
    guard let session else { return }
    lose(session)
    comeBack(Backoff())
  }

  private func comeBack(_ backoff: Backoff) {
    var backoff = backoff
    let pause = Int64(backoff.next(using: &world.random) / .milliseconds(1))
    world.at(pause) { [unowned self] in
      if world.isDown { comeBack(backoff) } else { connect() }
    }
  }

  /// The app's process ends: keys and calls are gone, identity and pins are stored.
  func restart() {
    disconnect()
    if let stay { world.setMedia(false, of: self, in: stay.call) }
    stay?.isOver = true
    rings = [:]
    ringers = Ringers()
    pending = [:]
    directory = KnownKeys()
  }

  /// The app is gone for a moment, and the server rings it again as before.
  func restartKeepingRing(_ call: CallID, _ ring: Ring) {
    restart()
    connect()
    rings[call] = ring
  }

  private func jitter() -> Int64 { Int64(delay.lowerBound + world.random.below(delay.count)) }

  private func sendUp(_ session: SessionID, _ action: @escaping () -> Void) {
    lastUp = max(lastUp, world.now + jitter())
    world.at(lastUp - world.now) { [unowned self] in if session == self.session { action() } }
  }

  func sendDown(_ session: SessionID, _ action: @escaping (SimDevice) -> Void) {
    lastDown = max(lastDown, world.now + jitter())
    let late = world.disorder > 0 ? Int64(world.random.below(world.disorder)) : 0
    world.at(lastDown - world.now + late) { [unowned self] in if session == self.session { action(self) } }
  }

  // MARK: requests

  func ask<Body>(_ request: Request, orElse: @escaping () -> Void = {}, then: @escaping (Body) -> Void) {
    lastError = nil
    guard session != nil || request.isRepeated else { return orElse() }
    lastRequest += 1
    pending[lastRequest] = Pending(request: request) { [unowned self] reply in
      switch reply {
      case .ok(let body):
        if let body = body.content as? Body { then(body) } else { world.audit.fail(.broken, "a reply of another type") }
      case .failed(let error):
        lastError = error
        dropEarly()
        orElse()
      }
    }
    if let session { send(request, lastRequest, session) }
  }

  private func send(_ request: Request, _ id: Int, _ session: SessionID) {
    sendUp(session) { [unowned self] in world.serve(.request(session, id: "\(id)", request)) }
  }

  func receive(_ reply: CallMessages.Reply, to id: String) {
    if let id = Int(id), let waiting = pending.removeValue(forKey: id) { waiting.reply(reply) }
  }

  func start(_ users: [String], policy: Policy? = nil) {
    let callees = users.map { UserID($0)! }
    let id = CallID(unchecked: world.uuid())
    let join = JoinCredentials(identity, call: id, at: clock, using: &world.random)
    var keys = KeyAgreement(
      identity: identity, join: join, pins: pins, trust: trust, entrance: .started, now: world.instant)
    let admissions = words(for: callees + [address.user], in: id)
    ask(.people(.listDevices(ListDevices(users: callees)))) { [unowned self] (devices: Devices) in
      let (envelopes, news) = keys.ring(devices.devices, using: &world.random)
      let start = StartCall(
        id: id, callees: callees, media: .audio, policy: policy, joinId: join.joinId, joinKey: join.joinKey,
        envelopes: envelopes.isEmpty ? nil : envelopes, admissions: admissions)
      ask(.start(start)) { [unowned self] (joined: Joined) in
        results = joined.results ?? [:]
        for effect in news { note(effect) }
        keys.known.pins = pins
        guard let effects = keys.start(joined, now: world.instant, using: &world.random) else {
          return refuse(.notUnderstood)
        }
        open(joined, keys, effects)
      }
    }
  }

  func accept(_ call: CallID) {
    let ring = rings[call]
    enter(call, { .call(call, .accept($0)) }) { [unowned self] keys, joined in
      guard let ring, joined.call.epoch == 1, !usedRings.contains(call) else { return [] }
      usedRings.insert(call, at: clock)
      return keys.accept(ring, clock: clock, now: world.instant)
    }
  }

  /// This device's words that let these users into a call.
  func words(for users: [UserID], in call: CallID) -> [Admission] {
    Set(users).sorted().map { .letting($0, into: call, by: identity) }
  }

  func invite(_ users: [String], to call: CallID) {
    let callees = users.map { UserID($0)! }
    ask(.call(call, .invite(Invite(callees: callees, admissions: words(for: callees, in: call))))) {
      (_: InviteResults) in
    }
  }

  /// Makes a link, and calls `made` with the server's token and the secret.
  func makeLink(to call: CallID, with known: LinkSecret? = nil, _ made: @escaping (String, LinkSecret) -> Void) {
    let secret = known ?? LinkSecret(maker: identity.fingerprint, using: &world.random)
    let word = Admission.making(secret.link(of: call), of: call, by: identity)
    ask(.call(call, .link(MakeLink(admission: word)))) { (link: CallLink) in made(link.link, secret) }
  }

  func join(_ call: CallID) { enter(call, { .call(call, .join($0)) }) { _, _ in [] } }

  func join(_ call: CallID, link: String, secret: LinkSecret, isLasting: Bool = false) {
    enter(
      call, by: isLasting ? .lasting(secret, own: address) : .link(secret),
      { [identity] in
        var body = $0
        body.link = link
        body.admission = .coming(by: secret, into: call, as: identity)
        return .call(call, .join(body))
      }
    ) { _, _ in [] }
  }

  func transfer(_ call: CallID) { enter(call, { .call(call, .transfer($0)) }) { _, _ in [] } }

  /// Events were lost: the device requests their content.
  func catchUp() {
    guard let stay else { return }
    run(.inCall(stay.call, .listKeys(ListKeys(since: stay.keys.newestAccepted))), of: stay)
    askState(of: stay)
  }

  func rejoin(_ call: CallID) { enter(call, { .call(call, .rejoin($0)) }) { _, _ in [] } }

  func leave() {
    guard let stay else { return }
    stay.isOver = true
    ask(.call(stay.call, .leave)) { (_: NoBody) in }
  }

  private func enter(
    _ call: CallID, by way: LettingIn.Entrance? = nil, _ request: @escaping (Join) -> Request,
    first: @escaping (inout KeyAgreement, Joined) -> [KeyEffect]
  ) {
    let join = JoinCredentials(identity, call: call, at: clock, using: &world.random)
    let entrance = way ?? ringers[call].map { .invited(by: [$0]) } ?? LettingIn.Entrance.other
    var keys = KeyAgreement(
      identity: identity, join: join, pins: pins, trust: trust, directory: directory, entrance: entrance,
      now: world.instant)
    ask(request(join.body)) { [unowned self] (joined: Joined) in
      rings[call] = nil
      var isRejoined = false
      if case .calls(.call(_, .rejoin)) = request(join.body) { isRejoined = true }
      guard joined.call.id == call else { return refuse(.notUnderstood) }
      keys.known.pins = pins
      var effects = keys.enter(joined, now: world.instant)
      effects += first(&keys, joined)
      open(joined, keys, effects, isRejoined: isRejoined)
    }
  }

  private func open(
    _ joined: Joined, _ keys: KeyAgreement, _ effects: [KeyEffect], isRejoined: Bool = false,
    continuing old: Stay? = nil
  ) {
    stay?.isOver = true
    let stay = Stay(joined, keys: keys, device: self, continuing: old)
    stays.append(stay)
    stay.keys.known.pins = pins
    perform(effects, of: stay)
    takeEarly(stay, isRejoined: isRejoined)
    world.at(100) { [unowned self] in if !stay.isOver { world.setMedia(true, of: self, in: stay.call) } }
  }

  // MARK: events

  func apply(_ body: EventBody, rev: UInt64? = nil, to stay: Stay) {
    switch stay.session.handle(body, rev: rev) {
    case .ended, .gone: stay.isOver = true
    case .outdated: return
    default: break
    }
    switch body {
    case .rotate(let rotation):
      if world.weakness == .pausesForRotation { stay.cipher.stopSending() }
      feed(.rotate(rotation), to: stay)
    case .switchKeys(let change): feed(.switchKeys(epoch: change.epoch), to: stay)
    case .keyRequest(let request): feed(.keyRequest(request), to: stay)
    case .confirmed(let confirmed): feed(.confirmed(confirmed), to: stay)
    case .member, .members: take(CallSession.changes(in: body), of: stay)
    case .state(let state):
      if stay.session.standing != .absent {
        stay.isBeginning = false
        feed(.state(state), to: stay)
      }
      recover(stay, .state(stay.session.standing))
    default: break
    }
  }

  private func take(_ changes: [MemberChange], of stay: Stay) {
    feed(.members(changes.map(\.member)), to: stay)
    if changes.contains(where: { stay.session.isOwn($0.member) }) { recover(stay, .standing(stay.session.standing)) }
  }

  func acknowledge(_ seq: UInt64, accepted: Bool = true, after time: Int = 0) {
    guard let session else { return }
    world.at(Int64(time)) { [unowned self] in
      sendUp(session) { [unowned self] in world.serve(.acknowledge(session, seqs: [seq], accepted: accepted)) }
    }
  }

  // MARK: keys

  func trust(_ warning: KeyWarning) {
    pins.add(
      PinnedDevice(user: warning.user, device: warning.device, fingerprint: warning.fingerprint, isVerified: true))
    if let stay { feed(.trusted(Device(user: UserID(warning.user)!, device: DeviceID(warning.device)!)), to: stay) }
  }

  func feed(_ input: KeyInput, to stay: Stay) {
    // A reply to a stay that is over is ignored.
    guard !stay.isOver else { return }
    stay.keys.known.pins = pins
    perform(stay.keys.handle(input, now: world.instant, using: &world.random), of: stay)
  }

  private func refuse(_ error: SignalingError) { aborted.append(error) }

  private func note(_ effect: KeyEffect) {
    switch effect {
    case .pin(let device, let fingerprint): pins.pin(device, fingerprint)
    case .warn(let warning):
      if world.weakness != .hidesWarnings { warnings.append(warning) }
      if [.mayStillHear, .notInCall].contains(warning.problem), world.isThere(warning, for: self) {
        falseAlarms.append(warning)
      }
      if world.weakness == .trustsWhatComes { world.at(0) { [unowned self] in trust(warning) } }
    case .refused(let refusal):
      refusals.append(refusal)
      if refusal != .notOnList || world.isListed(self) { falseRefusals.append(refusal) }
    default: break
    }
  }

  private func perform(_ effects: [KeyEffect], of stay: Stay) {
    for effect in effects {
      switch effect {
      case .request(let request): run(request, of: stay)
      case .acknowledge(let seq, let opened): if let response { acknowledge(seq, accepted: opened, after: response) }
      case .install(let keys):
        share(keys, with: stay)
        stay.install(keys, world)
      case .askState: askState(of: stay)
      case .letInByService(let isByService): letInByService = letInByService || isByService
      case .drop, .tilesChanged, .waitingGuests: break
      case .send(let key):
        if world.weakness == .neverSwitches, stay.cipher.sendingEpoch != nil { continue }
        stay.send(key)
      case .stopSending: if world.weakness != .neverStops { stay.cipher.stopSending() }
      case .silence(let causes):
        stay.silence = causes
        stay.silences.formUnion(causes)
      case .confirmation(let state): stay.confirmation = state
      case .exclude(let fingerprint): stay.cipher.exclude(fingerprint)
      case .rejoin:
        guard !stay.hasBegunAnew else { continue }
        stay.hasBegunAnew = true
        recover(stay, .historyBroken)
      // Keeps what a device should forget, like a device that keeps listening: forgetting must not be what protects the
      // others.
      case .retire(let epoch): if stay.isOver { continue } else { stay.cipher.retire(epoch) }
      case .pin, .warn, .refused: note(effect)
      case .code: break
      }
    }
    world.oracles?.look(at: stay)
    watch(stay)
  }

  private func run(_ request: Request, of stay: Stay) {
    switch request {
    case .people(.listDevices):
      ask(request, orElse: { [unowned self] in feed(.directory(nil), to: stay) }) { [unowned self] (reply: Devices) in
        directory.learn(reply.devices)
        feed(.directory(reply), to: stay)
      }
    case .calls(.inCall(_, .listKeys)):
      ask(request, orElse: { [unowned self] in feed(.list(nil), to: stay) }) { [unowned self] (list: KeyList) in
        feed(.list(list), to: stay)
      }
    case .calls(.inCall(_, .confirmKey(let body))):
      ask(request, orElse: { [unowned self] in feed(.confirmationSent(epoch: body.epoch, taken: false), to: stay) }) {
        [unowned self] (_: NoBody) in feed(.confirmationSent(epoch: body.epoch, taken: true), to: stay)
      }
    case .calls(.inCall(_, .listConfirmations(let body))):
      ask(
        request,
        orElse: { [unowned self] in feed(.confirmations(epoch: body.epoch, bucket: body.bucket, nil), to: stay) }
      ) { [unowned self] (reply: ConfirmationTags) in
        feed(.confirmations(epoch: body.epoch, bucket: body.bucket, reply), to: stay)
      }
    case .calls(.inCall(_, .keys(let handedOut))):
      guard let response else {
        return world.at(0) { [unowned self] in feed(.handedOut(epoch: handedOut.epoch, taken: nil), to: stay) }
      }
      world.at(Int64(response)) { [unowned self] in
        guard world.weakness == .sealsLate || !stay.isOver && stay.keys.isDue(request) else {
          return feed(.handedOut(epoch: handedOut.epoch, taken: nil), to: stay)
        }
        world.oracles?.posted(handedOut, by: stay)
        ask(request, orElse: { self.feed(.handedOut(epoch: handedOut.epoch, taken: false), to: stay) }) {
          (_: KeysDelivered) in
          self.world.oracles?.taken(handedOut.epoch, of: stay)
          self.feed(.handedOut(epoch: handedOut.epoch, taken: true), to: stay)
        }
      }
    default: ask(request) { (_: NoBody) in }
    }
  }

  /// Timers of the keys and of the recovery.
  private func watch(_ stay: Stay) {
    guard !stay.isOver, let due = [stay.keys.nextTimeout, stay.recovery.nextTimeout].compactMap({ $0 }).min() else {
      return
    }
    let wait = Int64(max(0, world.instant.duration(to: due) / .milliseconds(1)).rounded(.up))
    world.at(wait) { [unowned self] in
      guard !stay.isOver else { return }
      if let next = stay.keys.nextTimeout, next <= world.instant {
        perform(stay.keys.handleTimeout(now: world.instant), of: stay)
      }
      if let action = stay.recovery.handleTimeout(now: world.instant) { carryOut(action, of: stay) }
    }
  }

  private func askState(of stay: Stay) {
    ask(
      .call(stay.call, .state),
      orElse: { [unowned self] in
        if lastError != nil { stay.isOver = true } else { feed(.stateFailed, to: stay) }
      }
    ) { [unowned self] (state: CallState) in apply(.state(state), to: stay) }
  }

  // MARK: coming back

  private func recover(_ stay: Stay, _ input: Recovery.Input) {
    if let action = stay.recovery.handle(input, now: world.instant, using: &world.random) { carryOut(action, of: stay) }
    watch(stay)
  }

  private func carryOut(_ action: Recovery.Action, of stay: Stay) {
    switch action {
    case .askState: askState(of: stay)
    case .restartMedia: world.at(200) { [unowned self] in world.setMedia(true, of: self, in: stay.call) }
    case .giveUp: stay.isOver = true
    case .rejoin:
      let join = JoinCredentials(identity, call: stay.call, at: clock, using: &world.random)
      var keys = KeyAgreement(
        identity: identity, join: join, pins: pins, trust: trust, directory: directory, now: world.instant)
      ask(
        .call(stay.call, .rejoin(join.body)),
        orElse: { [unowned self] in recover(stay, .rejoinFailed(code: lastError?.code.rawValue)) }
      ) { [unowned self] (joined: Joined) in
        stay.cipher.stopSending()
        keys.known.pins = pins
        keys.follow(stay.keys, now: world.instant)
        let effects = keys.enter(joined, now: world.instant)
        open(joined, keys, effects, isRejoined: true, continuing: stay)
      }
    }
  }
}

extension Request {
  /// Our client sends it again on the next connection when the reply has not come.
  fileprivate var isRepeated: Bool {
    switch self {
    case .people(.listDevices), .calls(.start), .calls(.call(_, .accept)), .calls(.call(_, .join)),
      .calls(.call(_, .rejoin)), .calls(.call(_, .transfer)), .calls(.inCall(_, .listKeys)):
      true
    default: false
    }
  }
}
