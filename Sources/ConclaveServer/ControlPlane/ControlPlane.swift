import Calls
import Contract
import LinuxIO
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Persistence
import SDP
import Signaling
import Synchronization

/// The one place where calls change: an actor around the pure `Calls`, on one event loop. Requests of clients and events of the media plane come in by
/// `submit`, in order; what follows from them goes out at once.
actor ControlPlane: SignalingSink {
  private var calls: Calls
  private let media: MediaWorkers
  private let announced: AnnouncedAddresses
  private let fingerprint: CertificateFingerprint
  private let clock: WallClock
  private let backEnd: BackEnd?
  private var recorder: Recorder
  private let archive: Archive
  private var sweeping: Sweeping
  private let measurements: Measurements
  private let clients: Clients
  private nonisolated let waiting = Mutex(Waiting())
  /// Where SDPs are read.
  private let reading: NIOThreadPool
  private let loop: any EventLoop
  private let executor: any SerialExecutor

  private var negotiations: [PeerID: Negotiation] = [:]
  private var placement: Placement
  /// Answers that wait for the media plane's `.configured`, by request number.
  private var answers: [UInt64: Answer] = [:]
  private var lastRequest: UInt64 = 0
  /// Called once, when no call is left.
  private var idle: (@Sendable () -> Void)?
  private var timer: (deadline: Timestamp, task: Scheduled<Void>)?

  /// So many effects cost about as much as a simple request.
  private static let effectsOfUnit = 16

  private struct Answer {
    var session: SessionID
    var id: String
    var peer: PeerID
    var sdp: String
    var tracks: [MediaAnswer.Track]
  }

  /// The way to the clients; callable from any thread, must not block.
  struct Clients: Sendable {
    /// Takes what goes to clients, in order.
    var deliver: @Sendable ([Delivery]) -> Void
    /// A request of this session brought about more than most do.
    var charge: @Sendable (SessionID, _ units: Int) -> Void
  }

  private struct Waiting: Sendable {
    var commands = CommandQueue()
    /// `work` is called, or about to be.
    var isWorking = false
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter reading: threads that read SDPs, started.
  init(
    calls: sending Calls, media: MediaWorkers, announced: AnnouncedAddresses, fingerprint: CertificateFingerprint,
    clock: WallClock, loop: any EventLoop, recorder: Recorder, archive: Archive, historyDays: Int, backEnd: BackEnd?,
    measurements: Measurements, reading: NIOThreadPool, clients: Clients
  ) {
    self.calls = calls
    self.media = media
    self.announced = announced
    self.fingerprint = fingerprint
    self.clock = clock
    self.recorder = recorder
    self.archive = archive
    sweeping = Sweeping(days: historyDays)
    self.backEnd = backEnd
    self.measurements = measurements
    self.reading = reading
    self.clients = clients
    self.loop = loop
    executor = loop.executor
    placement = Placement(workers: media.workers)
  }

  /// Takes one command from any thread. The commands of a connection are handled in order, users round-robin; a request is refused when too many are pending.
  nonisolated func submit(_ command: Calls.Command) {
    guard enqueue({ $0.append(command) }) != nil, case .request(let session, let id, _) = command else { return }
    let error = RequestError(.serverBusy, "too many requests wait; try again in a moment", retryAfterMs: 1_000)
    clients.deliver([.reply(session, id: id, .failed(error))])
  }

  /// Requests that wait, and that were refused since the start.
  nonisolated var backlog: (waiting: Int, refused: [CommandQueue.Overflow: UInt64]) {
    waiting.withLock { ($0.commands.waiting, $0.commands.refused) }
  }

  private nonisolated func enqueue<Result: Sendable>(_ change: (inout CommandQueue) -> Result) -> Result {
    let (result, begins) = waiting.withLock { waiting in
      let result = change(&waiting.commands)
      defer { waiting.isWorking = true }
      return (result, !waiting.isWorking)
    }
    if begins { loop.execute { self.assumeIsolated { $0.work() } } }
    return result
  }

  /// Handles what waits, a millisecond long. Then the loop's connections get their turn: it looks at its sockets when it has no task that is due.
  private func work() {
    let end = MonotonicClock.now().advanced(by: .milliseconds(1))
    repeat {
      let command = waiting.withLock { waiting in
        let command = waiting.commands.next()
        waiting.isWorking = command != nil
        return command
      }
      guard let command else { return }
      handle(command)
    } while MonotonicClock.now() < end
    let loop = loop
    loop.execute { loop.scheduleTask(in: .microseconds(50)) { self.assumeIsolated { $0.work() } } }
  }

  /// Calls that run, and devices in them.
  var counts: (calls: Int, participants: Int) { calls.counts }

  /// Takes no new calls from now on.
  /// - Parameter idle: is called once, when no call is left; must not block.
  nonisolated func drain(idle: @escaping @Sendable () -> Void) {
    loop.execute {
      self.assumeIsolated {
        $0.idle = idle
        $0.run(.drain)
      }
    }
  }

  private func handle(_ command: Calls.Command) {
    switch command {
    case .request(let session, let id, .media(let call, let request)): read(request, of: call, session, id)
    case .media(.configured(let peer, let request, let slots)): answer(request, peer: peer, slots: slots)
    default: run(command)
    }
  }

  /// Reads an SDP beside the calls, of participants alone. Later commands of the same user wait for it.
  private func read(_ request: MediaRequest, of call: CallID, _ session: SessionID, _ id: String) {
    if let error = calls.refusal(ofOfferBy: session, to: call) {
      return clients.deliver([.reply(session, id: id, .failed(error))])
    }
    waiting.withLock { $0.commands.hold(session) }
    reading.submit { _ in
      let offer = Calls.Command.offer(session, id: id, call, Self.offer(in: request.sdp), request.tracks)
      self.enqueue { $0.resume(session, with: offer) }
    }
  }

  private static func offer(in sdp: String) -> Result<MediaOffer, RequestError> {
    do throws(SDPError) {
      return .success(try MediaOffer(parsing: sdp))
    } catch {
      return .failure(RequestError(.mediaSDPInvalid, "line \(error.line): \(error.reason)", field: "sdp"))
    }
  }

  private func run(_ command: Calls.Command) {
    let effects = calls.handle(command, now: clock.now())
    record(effects)
    var deliveries: [Delivery] = []
    for effect in effects { perform(effect, &deliveries) }
    if !deliveries.isEmpty { clients.deliver(deliveries) }
    if case .request(let session, _, _) = command, effects.count >= Self.effectsOfUnit {
      clients.charge(session, effects.count / Self.effectsOfUnit)
    }
    schedule()
    tellIdle()
  }

  private func tellIdle() {
    guard let idle, calls.isIdle else { return }
    self.idle = nil
    idle()
  }

  /// On disk before anybody is told: what is stored comes first.
  private func record(_ effects: [Calls.Effect]) {
    var changes: [StoreChange] = []
    for effect in effects {
      guard case .store(let change) = effect else { break }
      changes.append(change)
    }
    if !changes.isEmpty { recorder.write(changes, now: MonotonicClock.now()) }
  }

  private func perform(_ effect: Calls.Effect, _ deliveries: inout [Delivery]) {
    switch effect {
    case .reply, .event, .close, .admission, .publish:
      if let delivery = Delivery(effect) { deliveries.append(delivery) }
    case .negotiate(let session, let id, let negotiate): self.negotiate(negotiate, session: session, id: id)
    case .media(let command):
      guard let worker = placement.worker(of: command.peer) else { return }
      media.submit(command, worker: worker)
      if case .remove(let peer) = command { forget(peer, &deliveries) }
    case .webhook(_, let event): backEnd?.webhooks?.send(event)
    case .ask(let question, .authorize(let action, let from, let to)):
      ask(question, action, from: from, to: to)
    case .measured(let numbers): measurements.add(numbers)
    case .ask(let question, .acquainted(let user, let others)):
      archive.acquainted(user, with: others) { self.submit(.answer(question, allowed: $0)) }
    case .history(let session, let id, let query):
      archive.answer(query) { reply in
        self.loop.execute { self.assumeIsolated { $0.clients.deliver([.reply(session, id: id, reply)]) } }
      }
    case .store: break
    }
  }

  private func ask(_ question: QuestionID, _ action: Question.Action, from: UserID, to: [UserID]) {
    guard let backEnd else { return submit(.answer(question, allowed: [])) }
    backEnd.ask(action, from: from, to: to) { self.submit(.answer(question, allowed: $0)) }
  }

  private func negotiate(_ negotiate: Negotiate, session: SessionID, id: String) {
    var generator = SystemRandomNumberGenerator()
    var negotiation = negotiations[negotiate.peer] ?? Negotiation(using: &generator)
    let configuration = negotiation.apply(
      negotiate.offer, tracks: negotiate.tracks, codecs: negotiate.codecs, peer: negotiate.peer, call: negotiate.call,
      participant: negotiate.participant, isOnKeyList: negotiate.isOnKeyList, using: &generator)
    negotiations[negotiate.peer] = negotiation
    let worker = placement.place(negotiate.peer, of: negotiate.call)
    let candidates = announced.addresses(of: worker, in: media)
    lastRequest += 1
    answers[lastRequest] = Answer(
      session: session, id: id, peer: negotiate.peer,
      sdp: negotiation.answer(fingerprint: fingerprint, candidates: candidates, tcp: media.hasTCP),
      tracks: negotiate.tracks.map { MediaAnswer.Track(mid: $0.mid, track: $0.track) })
    media.submit(.configure(configuration, request: lastRequest), worker: worker)
  }

  private func answer(_ request: UInt64, peer: PeerID, slots: SlotMap) {
    guard let answer = answers.removeValue(forKey: request) else { return }
    let body = MediaAnswer(
      sdp: answer.sdp, tracks: answer.tracks, receive: slots.slots.map(Slot.init), rev: slots.revision,
      unsupported: slots.unsupported)
    clients.deliver([.reply(answer.session, id: answer.id, .ok(body))])
  }

  private func forget(_ peer: PeerID, _ deliveries: inout [Delivery]) {
    negotiations[peer] = nil
    placement.remove(peer)
    for (request, answer) in answers where answer.peer == peer {
      answers[request] = nil
      let error = RequestError(.callNotJoined, "this participant left the call; rejoin it first")
      deliveries.append(.reply(answer.session, id: answer.id, .failed(error)))
    }
  }

  /// Keeps one timer, at the state machine's next deadline.
  private func schedule() {
    let deadline = calls.nextDeadline
    guard deadline != timer?.deadline else { return }
    timer?.task.cancel()
    timer = deadline.map { deadline in
      let delay = TimeAmount.nanoseconds(max(0, (deadline - clock.now()).nanoseconds))
      return (deadline, loop.scheduleTask(in: delay) { self.assumeIsolated { $0.fire(deadline) } })
    }
  }

  // MARK: the disk

  /// Lets happen what ran out while the server was down, and looks after the disk each second from then on.
  nonisolated func begin() {
    submit(.timeout)
    loop.execute {
      self.loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
        self.assumeIsolated { $0.tick() }
      }
    }
  }

  private func tick() {
    let now = MonotonicClock.now()
    archive.store.checkpoint()
    if let changes = recorder.begin(now: now, everything: { calls.everything }) { rewrite(changes) }
    guard recorder.health.statistics.failure == nil else { return }
    for user in (try? archive.store.takeForgotten()) ?? [] { run(.forget(user)) }
    sweeping.step(archive.store, at: clock.now(), now: now)
  }

  /// Beside the calls: a disk that fails may take its time.
  private func rewrite(_ changes: [StoreChange]) {
    archive.store.write(changes) { error in
      self.loop.execute { self.assumeIsolated { $0.recorder.finish(error, now: MonotonicClock.now()) } }
    }
  }

  private func fire(_ deadline: Timestamp) {
    guard timer?.deadline == deadline else { return }
    timer = nil
    run(.timeout)
  }
}
