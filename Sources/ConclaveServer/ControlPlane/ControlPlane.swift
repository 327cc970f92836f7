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

/// The one place where calls change: an actor around the pure `Node`, on one event loop. Requests of clients and events of the media plane come in by
/// `submit`, in order. Their effects go out in that order, each once the changes that it may reveal are on the disk. The loop itself never waits for the disk.
actor ControlPlane: SignalingSink {
  private var node: Node
  private let media: MediaWorkers
  private let announced: AnnouncedAddresses
  private let clock: WallClock
  private let backEnd: BackEnd?
  private let webPush: WebPush?
  private let store: Store
  private var recorder: Recorder
  private var pending = PendingEffects()
  private let archive: Archive
  private let housekeeping: Housekeeping
  private let measurements: Measurements
  private var log: CallLog
  private var telemetry: Telemetry?
  private let clients: Clients
  private nonisolated let waiting = Mutex(Waiting())
  /// Where SDPs are read.
  private let reading: NIOThreadPool
  private let loop: any EventLoop
  private let executor: any SerialExecutor

  private var peers: MediaPeers
  /// Called once, when no call is left and all is told.
  private var idle: (@Sendable () -> Void)?
  /// Called once, when nothing is being written.
  private var quiet: CheckedContinuation<Void, Never>?
  private var isStopped = false
  private var timer: (deadline: Timestamp, task: Scheduled<Void>)?

  /// The number of effects that cost about as much as a simple request.
  private static let effectsOfUnit = 16
  /// Effects that go out in one go.
  private static let effectsOfStep = 512

  /// The way to the clients; callable from any thread, must not block.
  struct Clients: Sendable {
    /// Takes effects that clients get, in order.
    var deliver: @Sendable ([Calls.Effect]) -> Void
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
    node: sending Node, media: MediaWorkers, announced: AnnouncedAddresses, fingerprint: CertificateFingerprint,
    clock: WallClock, loop: any EventLoop, store: Store, recorder: Recorder, archive: Archive,
    housekeeping: Housekeeping, backEnd: BackEnd?, webPush: WebPush?, measurements: Measurements, log: CallLog,
    telemetry: Telemetry?, reading: NIOThreadPool, clients: Clients
  ) {
    self.node = node
    self.media = media
    self.announced = announced
    self.clock = clock
    self.store = store
    self.recorder = recorder
    self.archive = archive
    self.housekeeping = housekeeping
    self.backEnd = backEnd
    self.webPush = webPush
    self.measurements = measurements
    self.log = log
    self.telemetry = telemetry
    self.reading = reading
    self.clients = clients
    self.loop = loop
    executor = loop.executor
    peers = MediaPeers(workers: media.workers, fingerprint: fingerprint, hasTCP: media.hasTCP)
  }

  /// Takes one command from any thread. The commands of a connection are handled in order, users round-robin; a request is refused when too many are pending.
  nonisolated func submit(_ command: NodeCommand) {
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
      let hasMore = release()
      // On a disk that is slow clients wait in their queue, which refuses what is too much. The server's own commands are few.
      let takesAll = !pending.isFull && !recorder.isFull
      let command = waiting.withLock { waiting in
        let command = waiting.commands.next(takesAll: takesAll)
        waiting.isWorking = command != nil || hasMore
        return command
      }
      if let command { handle(command) } else if !hasMore { return }
    } while MonotonicClock.now() < end
    let loop = loop
    loop.execute { loop.scheduleTask(in: .microseconds(50)) { self.assumeIsolated { $0.work() } } }
  }

  /// Calls that run, and devices in them.
  var counts: (calls: Int, participants: Int) { node.counts }

  // For the operator: see `Node`.
  var callSummaries: [CallSummary] { node.callSummaries }
  func inspection(of call: CallID) -> CallInspection? { node.inspection(of: call) }
  var connectedUsers: [ConnectedUser] { node.connectedUsers }
  func isPresent(_ user: UserID) -> Bool { node.isPresent(user) }

  // For guests: see `Node`.
  func admitsGuest(by link: String, to call: CallID) -> Bool { node.admitsGuest(by: link, to: call, now: clock.now()) }
  func runs(_ call: CallID) -> Bool { node.runs(call) }

  /// Replies, events and commands to workers that wait for the disk.
  var waitingForDisk: Int { pending.count }

  /// Takes no new calls from now on.
  /// - Parameter idle: is called once, when no call is left; must not block.
  nonisolated func drain(idle: @escaping @Sendable () -> Void) {
    loop.execute {
      self.assumeIsolated {
        $0.idle = idle
        $0.handle(.drain)
      }
    }
  }

  private func handle(_ command: NodeCommand) {
    switch command {
    case .request(let session, let id, .media(let call, let request)): return read(request, of: call, session, id)
    case .media(.configured(let peer, let request, let slots)):
      tell(peers.configured(peer, request: request, slots: slots).map { [$0] } ?? [], isStored: false)
    default: break
    }
    let effects = node.handle(command, now: clock.now())
    let changes = effects.prefix { if case .store = $0 { true } else { false } }.compactMap(\.change)
    if !changes.isEmpty { recorder.record(changes) }
    let isFromMedia = if case .media = command { true } else { false }
    tell(Array(effects[changes.count...]), isStored: !changes.isEmpty || !isFromMedia)
    write()
    if case .request(let session, _, _) = command, effects.count >= Self.effectsOfUnit {
      clients.charge(session, effects.count / Self.effectsOfUnit)
    }
    schedule()
    tellIdle()
  }

  /// Reads an SDP beside the calls, of participants alone. Later commands of the same user wait for it.
  private func read(_ request: MediaRequest, of call: CallID, _ session: SessionID, _ id: String) {
    if let error = node.refusal(ofOfferBy: session, to: call) {
      return tell([.reply(session, id: id, .failed(error))], isStored: true)
    }
    waiting.withLock { $0.commands.hold(session) }
    reading.submit { _ in
      let offer = NodeCommand.offer(session, id: id, call, Self.offer(in: request.sdp), request.tracks)
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

  // MARK: effects

  /// Effects go out in order, each when the disk has all changes up to now.
  /// - Parameter isStored: they may tell of something that is stored. Otherwise they wait only for earlier ones of the same session.
  private func tell(_ effects: [Calls.Effect], isStored: Bool) {
    if pending.isEmpty, recorder.settled == recorder.recorded {
      carryOut(effects)
    } else if isStored {
      // The app's back end may be asked meanwhile: a question tells no client anything, and its deadline runs already.
      let questions = effects.filter(\.isForBackEnd)
      if !questions.isEmpty { carryOut(questions) }
      pending.append(questions.isEmpty ? effects : effects.filter { !$0.isForBackEnd }, behind: recorder.recorded)
      release()
    } else {
      carryOut(pending.releasable(effects, behind: recorder.recorded))
    }
  }

  /// Carries out effects that wait for nothing any more. Returns whether there are more of them than go out in one go.
  @discardableResult private func release() -> Bool {
    let effects = pending.release(through: recorder.settled, limit: Self.effectsOfStep)
    carryOut(effects)
    tellIdle()
    return effects.count >= Self.effectsOfStep
  }

  private func carryOut(_ effects: [Calls.Effect]) {
    var forClients: [Calls.Effect] = []
    for effect in effects { carryOut(effect, &forClients) }
    if !forClients.isEmpty { clients.deliver(forClients) }
  }

  private func carryOut(_ effect: Calls.Effect, _ forClients: inout [Calls.Effect]) {
    switch effect {
    case .reply, .event, .close, .admission, .publish:
      forClients.append(effect)
    case .negotiate(let session, let id, let negotiate):
      var generator = SystemRandomNumberGenerator()
      let (command, worker) = peers.negotiate(
        negotiate, for: session, id: id, candidates: { announced.addresses(of: $0, in: media) }, using: &generator)
      media.submit(command, worker: worker)
    case .media(let command):
      guard let worker = peers.worker(of: command.peer) else { return }
      media.submit(command, worker: worker)
      if case .remove(let peer) = command { forClients += peers.remove(peer) }
    case .webhook(_, let event):
      let traceparent = telemetry?.take(event)
      backEnd?.webhooks?.send(event, traceparent: traceparent)
      log.take(event)
    case .push(let user, let subscription, let notice, let until):
      webPush?.send(notice, to: subscription, of: user, until: until)
    case .keyless(let call, let participant, let state): log.take(participant, wasWithoutKey: state, in: call)
    case .ask(let question, .authorize(let action, let from, let to, let call)):
      ask(question, action, from: from, to: to, call)
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

  private func ask(_ question: QuestionID, _ action: Question.Action, from: UserID, to: [UserID], _ call: CallID?) {
    guard let backEnd else { return submit(.answer(question, allowed: [])) }
    let logger = log.logger
    let context = call.flatMap { telemetry?.ask(about: $0) }
    let asked = clock.now()
    backEnd.ask(action, from: from, to: to, traceparent: context?.traceparent) { answer in
      if let call { CallLog.log(answer, of: to.count, for: call, to: logger) }
      if let call, let context {
        self.loop.execute {
          self.assumeIsolated {
            $0.telemetry?.take(answer, to: context, about: call, asked: to.count, from: asked, now: $0.clock.now())
          }
        }
      }
      self.submit(.answer(question, allowed: answer.allowed))
    }
  }

  private func tellIdle() {
    guard let idle, node.isIdle, pending.isEmpty else { return }
    self.idle = nil
    idle()
  }

  /// Keeps one timer, at the state machine's next deadline.
  private func schedule() {
    let deadline = node.nextDeadline
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
    guard !isStopped else { return }
    let now = MonotonicClock.now()
    recorder.checkPatience(now: now)
    if let changes = recorder.rewrite(now: now, everything: { node.everything }) { write(changes) }
    housekeeping.begin(now: now) { self.submit(.forget($0)) }
    wake()
  }

  /// Starts the next transaction, if none is under way.
  private func write() {
    guard !isStopped, let changes = recorder.next(now: MonotonicClock.now()) else { return }
    write(changes)
  }

  private func write(_ changes: [StoreChange]) {
    store.write(changes) { error in
      self.loop.execute { self.assumeIsolated { $0.wrote(error) } }
    }
  }

  private func wrote(_ error: StoreError?) {
    recorder.finish(error, now: MonotonicClock.now())
    write()
    release()
    wake()
    if !recorder.isWriting { endWait() }
  }

  /// Goes on with what waits for nothing any more.
  private func wake() { enqueue { _ in () } }

  /// Waits until what was recorded is on the disk, at most as long as the disk may take. Nothing is written afterwards.
  func stop() async {
    if recorder.isWriting {
      let timeout = loop.scheduleTask(in: .nanoseconds(Recorder.patience.nanoseconds)) {
        self.assumeIsolated { $0.endWait() }
      }
      await withCheckedContinuation { quiet = $0 }
      timeout.cancel()
    }
    isStopped = true
    telemetry?.stop(now: clock.now())
  }

  /// `stop` waits for the disk.
  var isEnding: Bool { quiet != nil }

  private func endWait() {
    quiet?.resume()
    quiet = nil
  }

  private func fire(_ deadline: Timestamp) {
    guard timer?.deadline == deadline else { return }
    timer = nil
    handle(.timeout)
  }
}

extension Calls.Effect {
  fileprivate var change: StoreChange? { if case .store(let change) = self { change } else { nil } }

  /// `.acquainted` reads the disk, so it waits for the changes before it.
  fileprivate var isForBackEnd: Bool { if case .ask(_, .authorize) = self { true } else { false } }
}
