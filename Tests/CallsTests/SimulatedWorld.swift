import Contract
import MediaModel

@testable import Calls

/// Users with one to three devices that do random things in virtual time: connections get lost, repeated and replaced, leaders are slow, envelopes are refused. `WorldInvariants` looks at each step.
final class SimulatedWorld {
  /// How a device behaves all its life.
  struct SimulatedDevice {
    let device: Device
    let mode: AckMode
    let hasKeys: Bool
    /// Until it answers `keys.rotate`; nil: never.
    var answerTime: Duration?
    /// Until it acknowledges; nil: never.
    var ackTime: Duration?
    var session: SessionID?
    var isSubscribed = false
    /// Of the last join, to repeat it.
    var lastJoin: (call: CallID, request: Request)?
    var joins: UInt8 = 0
  }

  /// What a device has decided to do later, on the connection at hand.
  enum Plan {
    case answer(CallID, HandOutKeys)
    case acknowledge(UInt64, accepted: Bool)
  }

  var random: SplitMix
  var calls: Calls
  var now = Stage.start
  var devices: [SimulatedDevice] = []
  var invariants = WorldInvariants()
  private(set) var disk = Disk()
  private var ids: SplitMix
  var watchers = WatcherInvariants()
  private var agenda: [(due: Timestamp, session: SessionID, plan: Plan)] = []
  private var lastSession: UInt64 = 0
  private var lastRequest = 0
  /// All links that were ever made.
  private var links: [(call: CallID, link: String)] = []
  private var log: [(at: Timestamp, place: Int?, command: Calls.Command)] = []

  init(seed: UInt64) {
    random = SplitMix(state: seed)
    ids = SplitMix(state: seed ^ 0x5555)
    calls = Calls(
      configuration: Calls.Configuration(), digest: Stage.digest, random: SimulatedWorld.numbers(ids.next()))
    let answerTimes: [Duration?] = [.milliseconds(20), .milliseconds(300), .seconds(2), .seconds(4), nil]
    let ackTimes: [Duration?] = [.milliseconds(10), .milliseconds(200), .seconds(3), nil]
    for user in 0..<(2 + random.below(5)) {
      for device in 0..<(1 + random.below(3)) {
        devices.append(
          SimulatedDevice(
            device: Device(user: UserID(unchecked: "u\(user)"), device: DeviceID(unchecked: "d\(device)")),
            mode: [.auto, .client, .individual][random.below(3)], hasKeys: random.chance(90),
            answerTime: answerTimes[random.below(5)], ackTime: ackTimes[random.below(4)]))
      }
    }
    for place in devices.indices { connect(place) }
  }

  /// What went wrong, with what led to it; nil when nothing did.
  func run(steps: Int) -> String? {
    for _ in 0..<steps {
      step()
      if let failure { return describe(failure) }
    }
    heal()
    return failure.map(describe)
  }

  private var failure: String? { invariants.failure ?? watchers.failure }

  private func describe(_ failure: String) -> String {
    let lines = log.suffix(40).map { entry in
      "\((entry.at - Stage.start) / .milliseconds(1)) \(entry.place.map(String.init) ?? "-") \(entry.command)".prefix(
        200)
    }
    return failure + "\n" + lines.joined(separator: "\n")
  }

  private static func numbers(_ seed: UInt64) -> () -> UInt64 {
    var numbers = SplitMix(state: seed)
    return { numbers.next() }
  }

  /// The server dies, and starts again after a while.
  private func restart() {
    invariants.checkDisk(disk.contents, calls)
    let before = calls
    let down: [Int] = [0, 50, 3_000, 20_000, 130_000]
    now = now + .milliseconds(down[random.below(down.count)])
    agenda = []
    for place in devices.indices {
      devices[place].session = nil
      devices[place].isSubscribed = false
    }
    log.append((now, nil, .drain))
    calls = Calls(
      configuration: Calls.Configuration(), digest: Stage.digest, random: SimulatedWorld.numbers(ids.next()),
      restoring: disk.read(), now: now)
    invariants.checkRestored(calls, from: before)
    // Watches went with their connections.
    if watchers.failure == nil { watchers = WatcherInvariants() }
    handle(.timeout, nil)
  }

  private func step() {
    if random.below(150) == 0 { restart() }
    let wait: [Int] = [0, 1, 30, 100, 400, 1_500, 4_000, 16_000, 40_000, 130_000]
    let bound = random.chance(3) ? 10 : random.chance(10) ? 8 : 6
    advance(.milliseconds(wait[random.below(bound)]))
    let place = random.below(devices.count)
    if devices[place].session == nil {
      if random.chance(60) { connect(place) }
      return
    }
    switch random.below(100) {
    case 0..<6: disconnect(place)
    case 6..<10: connect(place)
    case 10..<12: toggleSubscription(place)
    case 12..<20: mediaEvent()
    case 24..<28: watch(place)
    case 20..<24: if let last = devices[place].lastJoin { ask(place, last.request) }
    default: randomRequest(place)
    }
  }

  /// Everybody comes back and behaves: whatever was open has to settle.
  private func heal() {
    for place in devices.indices {
      devices[place].answerTime = .milliseconds(100)
      devices[place].ackTime = .milliseconds(100)
      connect(place)
    }
    advance(.seconds(40))
    // `rotateMinutes` may be over at this very moment.
    for _ in 0..<50
    where calls.calls.values.contains(where: {
      $0.epochs.current != $0.epochs.newest.number || $0.epochs.pending != nil
    }) {
      advance(.milliseconds(100))
    }
    invariants.checkSettled(calls)
    for (place, simulated) in devices.enumerated() {
      for id in calls.memberships[simulated.device.user] ?? []
      where calls.calls[id]?.initiator == simulated.device.user { ask(place, .end(id)) }
    }
    advance(.seconds(300))
    invariants.checkEmpty(calls)
    invariants.checkDisk(disk.contents, calls)
  }

  // MARK: connections

  private func connect(_ place: Int) {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    let simulated = devices[place]
    devices[place].session = session
    devices[place].isSubscribed = false
    handle(.connect(session, Identity(device: simulated.device, name: "somebody")), place)
    if simulated.hasKeys, calls.directory[simulated.device]?.entry == nil || random.chance(5) { register(place) }
    devices[place].isSubscribed = true
    handle(.subscribe(session, .events, simulated.mode), place)
  }

  private func register(_ place: Int) {
    let version = random.chance(50) ? UInt8(random.below(3)) : 0
    let keys = [KeyUse.wrap, .sign].map {
      DeviceKey(use: $0, alg: "x", publicKey: Base64Bytes([UInt8(place), version, $0 == .wrap ? 0 : 1]))
    }
    ask(place, .registerDevice(RegisterDevice(name: nil, keys: keys)))
  }

  private func disconnect(_ place: Int) {
    guard let session = devices[place].session else { return }
    devices[place].session = nil
    devices[place].isSubscribed = false
    handle(.disconnect(session), place)
  }

  private func toggleSubscription(_ place: Int) {
    guard let session = devices[place].session else { return }
    devices[place].isSubscribed.toggle()
    handle(
      devices[place].isSubscribed
        ? .subscribe(session, .events, devices[place].mode) : .unsubscribe(session, .events), place)
  }

  private func watch(_ place: Int) {
    guard let session = devices[place].session else { return }
    let calls = calls.memberships[devices[place].device.user] ?? []
    switch random.below(4) {
    case 0: ask(place, .watchPresence(WatchPresence(users: someUsers())))
    case 1: ask(place, .setPresence(SetPresence(state: random.chance(70) ? .available : .unavailable)))
    default:
      guard let call = calls.randomElement(using: &random) else { return }
      handle(
        random.chance(80) ? .subscribe(session, .call(call), .auto) : .unsubscribe(session, .call(call)), place)
    }
  }

  private func mediaEvent() {
    let peers = calls.peers.sorted { $0.key.rawValue < $1.key.rawValue }
    // The last one often: that is who waits for media.
    guard let (peer, place) = random.chance(30) ? peers.last : peers.randomElement(using: &random) else { return }
    switch random.below(10) {
    case 0..<5: handle(.media(.connected(peer)), nil)
    case 5..<7: handle(.media(.disconnected(peer, silence: .seconds(random.below(20)))), nil)
    case 7: handle(.media(.quality(peer, level: random.below(5), bitrate: 1)), nil)
    default:
      let loudest = (1...6).filter { _ in random.chance(50) }.map { ParticipantNumber($0) }
      handle(.media(.speakers(place.call, loudest)), nil)
    }
  }

  // MARK: requests

  private func randomRequest(_ place: Int) {
    let user = devices[place].device.user
    let known = (calls.memberships[user] ?? []) + (random.chance(5) ? calls.calls.keys.sorted() : [])
    guard let call = known.randomElement(using: &random), !random.chance(known.count < 3 ? 25 : 5) else {
      return start(place)
    }
    devices[place].joins &+= 1
    let join = Join(joinId: joinId(devices[place].joins))
    switch random.below(28) {
    case 0...5: ask(place, .accept(call, join))
    case 6: ask(place, .decline(call, Decline()))
    case 7, 8: ask(place, .invite(call, Invite(callees: someUsers())))
    case 9: ask(place, .cancel(call, Cancel(callees: random.chance(50) ? someUsers() : nil)))
    case 10, 11: ask(place, .join(call, join))
    case 12, 13: ask(place, .rejoin(call, join))
    case 14: ask(place, .leave(call))
    case 15: if random.chance(30) { ask(place, .end(call)) }
    case 16: ask(place, .requestKey(call, RequestKey()))
    case 17...19: mute(place, joined(place) ?? call)
    case 20: ask(place, .transfer(call, join))
    case 21: ask(place, .hold(call, Hold(held: random.chance(40))))
    case 22: ask(place, .link(call, MakeLink(expiresIn: 60 + random.below(100), revoke: random.chance(20))))
    case 23: joinByLink(place, join)
    case 24...26: seldomRequest(place, call)
    default: offer(place, joined(place) ?? call)
    }
  }

  /// A call that the device is in.
  private func joined(_ place: Int) -> CallID? {
    let device = devices[place].device
    let inside = (calls.memberships[device.user] ?? []).filter {
      (try? calls.calls[$0]?.participant(of: device)) != nil
    }
    return inside.randomElement(using: &random)
  }

  private func joinByLink(_ place: Int, _ join: Join) {
    guard let (call, link) = links.randomElement(using: &random) else { return }
    var join = join
    join.link = link
    ask(place, .join(call, join))
  }

  private func seldomRequest(_ place: Int, _ call: CallID) {
    let number = ParticipantNumber(1 + random.below(6))
    let track = TrackID(participant: number, index: 1)
    switch random.below(9) {
    case 0: ask(place, .stats(call, QualityNumbers(rtt: 1)))
    case 1: ask(place, .report(call, ReportAbuse(participant: number, text: "x")))
    case 2:
      let device = devices[random.below(devices.count)].device.device
      if random.chance(30) { ask(place, .removeDevice(RemoveDevice(device: device))) }
    case 3, 4: ask(place, .receive(call, Receive(lastN: random.below(5), videos: [.init(track: track, paused: true)])))
    default:
      ask(place, .message(call, SendMessage(to: random.chance(50) ? [number] : nil, body: Base64Bytes([1]))))
    }
  }

  private func start(_ place: Int) {
    var policy = Policy()
    policy.ringSeconds = 5 + random.below(20)
    policy.whenBusy = random.chance(50) ? .reject : .ring
    policy.aloneSeconds = random.chance(30) ? random.below(60) : nil
    policy.awaySeconds = random.chance(30) ? random.below(60) : nil
    policy.connectSeconds = random.chance(20) ? 1 + random.below(30) : nil
    policy.rotateMinutes = random.chance(30) ? 1 : nil
    let callees = someUsers()
    let envelopes = devices.filter { callees.contains($0.device.user) && random.chance(60) }
      .filter { calls.directory[$0.device]?.entry != nil }.map { envelope(to: $0.device, epoch: 1) }
    devices[place].joins &+= 1
    ask(
      place,
      .start(
        StartCall(
          callees: callees, media: .video, policy: policy, joinId: joinId(devices[place].joins),
          envelopes: devices[place].hasKeys ? envelopes : nil)))
  }

  private func someUsers() -> [UserID] {
    devices.map(\.device.user).filter { _ in random.chance(40) }
  }

  private func offer(_ place: Int, _ call: CallID) {
    guard let session = devices[place].session else { return }
    let sources: [String: TrackSource] = ["0": .microphone, "1": .camera, "2": .screen]
    let tracks = sources.keys.sorted().filter { _ in random.chance(60) }.compactMap { mid in
      sources[mid].map { MediaRequest.Track(mid: mid, source: $0, replace: random.chance(30)) }
    }
    lastRequest += 1
    handle(.offer(session, id: "\(lastRequest)", call, .sending(sources), tracks), place)
  }

  private func mute(_ place: Int, _ call: CallID) {
    let members = calls.calls[call]?.members ?? []
    let tracks = members.filter { $0.user == devices[place].device.user || random.chance(10) }
      .flatMap { $0.participants.flatMap(\.tracks.live) }
    guard let track = tracks.randomElement(using: &random) else { return offer(place, call) }
    ask(place, .track(call, track.id, ChangeTrack(muted: !track.muted)))
  }

  private func envelope(to device: Device, epoch: UInt32) -> Envelope {
    Envelope(
      epoch: epoch, to: device, from: nil, alg: "x", ciphertext: Base64Bytes([1]), sigAlg: nil, signature: nil)
  }

  private func ask(_ place: Int, _ request: Request) {
    guard let session = devices[place].session else { return }
    switch request {
    case .accept(let call, _), .join(let call, _), .rejoin(let call, _), .transfer(let call, _):
      devices[place].lastJoin = (call, request)
    default: break
    }
    lastRequest += 1
    handle(.request(session, id: "\(lastRequest)", request), place)
  }

  // MARK: time

  private func advance(_ duration: Duration) {
    let end = now + duration
    while true {
      let plan = agenda.indices.min { agenda[$0].due < agenda[$1].due }
      let planned = plan.map { agenda[$0].due } ?? end + .seconds(1)
      let deadline = calls.nextDeadline ?? end + .seconds(1)
      guard min(planned, deadline) <= end, failure == nil else { break }
      now = max(now, min(planned, deadline))
      if deadline <= planned {
        handle(.timeout, nil)
      } else if let plan {
        carryOut(agenda.remove(at: plan))
      }
    }
    now = end
  }

  private func carryOut(_ entry: (due: Timestamp, session: SessionID, plan: Plan)) {
    guard let place = devices.firstIndex(where: { $0.session == entry.session }) else { return }
    switch entry.plan {
    case .answer(let call, let keys): ask(place, .keys(call, keys))
    case .acknowledge(let seq, let accepted):
      handle(.acknowledge(entry.session, seq: seq, accepted: accepted), place)
    }
  }

  private func handle(_ command: Calls.Command, _ place: Int?) {
    log.append((now, place, command))
    let effects = calls.handle(command, now: now)
    disk.write(effects)
    if random.chance(3) { invariants.checkDisk(disk.contents, calls) }
    invariants.check(command, effects, calls, now: now, devices)
    watchers.check(command, effects, calls, devices)
    for effect in effects {
      switch effect {
      case .event(let session, let delivery): react(to: delivery, on: session)
      case .close(let session, _): lose(session)
      case .reply(_, _, .ok(let body)): if let link = body as? Link { keep(link, of: command) }
      case .ask(let id, .acquainted(_, let users)): handle(.answer(id, allowed: Set(users)), nil)
      default: break
      }
    }
  }

  /// The server closes a connection; one that was replaced is not its device's any more.
  private func lose(_ session: SessionID) {
    guard let place = devices.firstIndex(where: { $0.session == session }) else { return }
    devices[place].session = nil
    devices[place].isSubscribed = false
  }

  private func keep(_ link: Link, of command: Calls.Command) {
    if case .request(_, _, .link(let call, _)) = command { links.append((call, link.link)) }
  }

  private func react(to delivery: EventDelivery, on session: SessionID) {
    guard let place = devices.firstIndex(where: { $0.session == session }) else { return }
    let simulated = devices[place]
    func plan(_ plan: Plan, in delay: Duration?) {
      if let delay { agenda.append((now + delay, session, plan)) }
    }
    switch delivery.message.body {
    case .rotate(let rotate):
      if let deliver = rotate.deliver, let call = delivery.message.call {
        let some = deliver.filter { _ in !random.chance(5) }
        let keys = HandOutKeys(
          epoch: rotate.epoch, envelopes: some.map { envelope(to: $0.address, epoch: rotate.epoch) })
        plan(.answer(call, keys), in: simulated.answerTime)
      }
    case .keyRequest(let request):
      if let call = delivery.message.call {
        let keys = HandOutKeys(
          epoch: request.epoch, envelopes: [envelope(to: request.to.address, epoch: request.epoch)])
        plan(.answer(call, keys), in: .milliseconds(50))
      }
    default: break
    }
    if simulated.mode != .auto {
      plan(.acknowledge(delivery.seq, accepted: !random.chance(10)), in: simulated.ackTime)
    }
  }
}
