import CallMessages
import Calls
import Contract
import LinuxIO
import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Connections
import ReelStore

/// The one place where calls change: an actor around the pure `Node`, on one event loop. Requests of clients and events of the media plane come in by
/// `submit`, in order. Their effects go out in the same order, each once the changes that it may reveal are on the disk. The loop itself never waits for the
/// disk.
actor ControlPlane: SignalingSink {
  private var node: Node
  private let clock: WallClock
  private let store: any Storage
  private let token: FencingToken
  private var recorder: Recorder
  private var pending = PendingEffects()
  private let outlet: EffectOutlet
  private let housekeeping: Housekeeping
  private let recordings: RecordingService?
  private let clients: Clients
  private let inbox: CommandInbox
  private let loop: any EventLoop
  private let executor: any SerialExecutor

  /// Called once, when no call is left and everything has been delivered.
  private var idle: (@Sendable () -> Void)?
  /// Called once, when nothing is being written.
  private var quiet: CheckedContinuation<Void, Never>?
  private var isStopped = false
  private var clockWatch = ClockWatch()
  /// When it was last recorded that the server is running.
  private var notedRunning: Timestamp?
  private let logger: Logger
  private var timer: (deadline: Timestamp, task: Scheduled<Void>)?

  /// How often it is recorded that the server is running, while there are calls.
  private static let runningPause = Duration.seconds(5)

  /// The most effects that go out in one step.
  private static let effectsOfStep = 512

  /// The interface to the clients; callable from any thread, must not block.
  struct Clients: Sendable {
    /// Receives what is sent to clients, in order.
    var deliver: @Sendable ([Delivery]) -> Void
    /// Events that followed from what this user's sessions sent.
    var charge: @Sendable (UserID, EventCharge) -> Void
    /// Why a request of this session is refused although it has its turn: earlier requests, which may have been queued with it, caused too
    /// much.
    var refusal: @Sendable (SessionID) -> RequestError?
  }

  /// Where the state and the history lie, and who writes them.
  struct Disk {
    var store: any Storage
    /// The token of this start.
    var token: FencingToken
    var recorder: Recorder
    var archive: Archive
    var housekeeping: Housekeeping
    /// nil if the server stores no recordings.
    var recordings: RecordingService?
    /// nil if it records no calls.
    var callRecordings: CallRecordings?
  }

  /// The media plane, and what offers to it are answered with.
  struct Media {
    var workers: MediaWorkers
    /// How many peers of one call a worker takes before another worker joins in.
    var callShare: Int
    var announced: AnnouncedAddresses
    var fingerprint: CertificateFingerprint
    /// Started threads that read SDPs.
    var reading: NIOThreadPool
  }

  struct Parts {
    var clock: WallClock
    var loop: any EventLoop
    var disk: Disk
    var media: Media
    var clients: Clients
    var backEnd: BackEnd?
    var webPush: WebPush?
    var measurements = Measurements()
    var log: CallLog
    var telemetry: Telemetry?
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(node: sending Node, _ parts: Parts) {
    var log = parts.log
    for tally in node.callTallies { log.restore(tally, now: parts.clock.now()) }
    self.node = node
    clock = parts.clock
    store = parts.disk.store
    token = parts.disk.token
    recorder = parts.disk.recorder
    housekeeping = parts.disk.housekeeping
    recordings = parts.disk.recordings
    clients = parts.clients
    loop = parts.loop
    logger = log.logger
    executor = loop.executor
    inbox = CommandInbox()
    outlet = Self.outlet(parts, log: log, inbox: inbox)
    inbox.start { [weak self] in
      guard let self else { return }
      loop.execute { self.assumeIsolated { $0.work() } }
    }
  }

  private static func outlet(_ parts: Parts, log: CallLog, inbox: CommandInbox) -> EffectOutlet {
    let (workers, announced) = (parts.media.workers, parts.media.announced)
    return EffectOutlet(
      parts: EffectOutlet.Parts(
        clients: parts.clients,
        media: EffectOutlet.MediaOutlet(
          // All of them are this server's.
          submit: { workers.submit($0, worker: $1.worker) },
          candidates: { announced.addresses(of: $0.worker, in: workers) }),
        archive: parts.disk.archive, recordings: parts.disk.recordings, callRecordings: parts.disk.callRecordings,
        backEnd: parts.backEnd, webPush: parts.webPush, measurements: parts.measurements,
        answer: { _ = inbox.append($0) }),
      peers: MediaPeers(
        workers: workers.addresses, callShare: parts.media.callShare, fingerprint: parts.media.fingerprint,
        hasTCP: workers.hasTCP),
      reader: OfferReader(threads: parts.media.reading, inbox: inbox), log: log, telemetry: parts.telemetry,
      clock: parts.clock, loop: parts.loop)
  }

  /// Accepts one command from any thread. The commands of a connection are handled in order, users round-robin. A request is refused if too many are pending.
  nonisolated func submit(_ command: NodeCommand) {
    guard !inbox.append(command), case .request(let session, let id, _) = command else { return }
    let error = RequestError(.serverBusy, "too many requests wait; try again in a moment", retryAfterMs: 1_000)
    clients.deliver([.reply(session, id: id, .failed(error))])
  }

  /// Pending requests, and requests refused since the start.
  nonisolated var backlog: (waiting: Int, refused: [CommandQueue.Overflow: UInt64]) {
    inbox.backlog
  }

  /// Handles pending commands for a millisecond. Then the loop's connections get their turn: the loop checks its sockets when it has no task that
  /// is due.
  private func work() {
    let end = MonotonicClock.now().advanced(by: .milliseconds(1))
    repeat {
      let hasMore = release()
      // While the disk is slow clients wait in their queue, which refuses what is too much. The server's own commands are few.
      let takesAll = !pending.isFull && !recorder.isFull
      let command = inbox.next(takesAll: takesAll, goesOn: hasMore)
      if let command { handle(command) } else if !hasMore { return }
    } while MonotonicClock.now() < end
    let loop = loop
    loop.execute { loop.scheduleTask(in: .microseconds(50)) { self.assumeIsolated { $0.work() } } }
  }

  /// Changes limits and rules for future calls.
  func configure(_ change: @Sendable (inout CallConfiguration) -> Void) { node.configure(change) }

  /// The outcomes of calls and joins since the start.
  var callCounts: CallCounts { outlet.callCounts }

  /// Alerts of recordings since the start.
  var alertCounts: AlertCounts { node.alertCounts }

  /// The answer of the owner of what is asked about, with times of the machine's clock. Here that is always this process.
  func ask(_ inquiry: Inquiry) async -> InquiryAnswer { node.answer(inquiry, now: clock.now()).later(by: clock.lag) }

  /// The time by which times of calls and recordings lag behind the machine's clock.
  nonisolated var lag: Duration { clock.lag }

  /// Replies, events and commands to workers that wait for the disk.
  var waitingForDisk: Int { pending.count }

  /// Takes no new calls from now on.
  /// - Parameter idle: called once, when no call is left and every request before has its reply; must not block.
  nonisolated func drain(idle: @escaping @Sendable () -> Void) {
    loop.execute {
      self.assumeIsolated {
        $0.idle = idle
        $0.handle(.drain)
      }
    }
  }

  private func handle(_ command: NodeCommand) {
    if case .media(.configured(let peer, let request, let slots)) = command,
      let reply = outlet.configured(peer, request: request, slots: slots)
    {
      tell([reply], isStored: false)
    }
    if case .request(let session, let id, _) = command, let error = clients.refusal(session) {
      return tell([.client(.reply(session, id: id, .failed(error)))], isStored: false)
    }
    let payer = node.payer(of: command)
    let effects = node.handle(command, now: clock.now())
    let changes = effects.prefix { if case .store = $0 { true } else { false } }.compactMap(\.change)
    if !changes.isEmpty {
      let lag = clock.lag
      recorder.record(changes.map { $0.later(by: lag) })
    }
    let isFromMedia = if case .media = command { true } else { false }
    tell(Array(effects[changes.count...]), isStored: !changes.isEmpty || !isFromMedia)
    write()
    if let payer { charge(effects, to: payer) }
    schedule()
    tellIdle()
  }

  private func charge(_ effects: [CallMessages.Effect], to user: UserID) {
    let events = EventCharge(effects)
    if events.count > 0 { clients.charge(user, events) }
  }

  // MARK: effects

  /// Effects go out in order, each once the disk has all changes up to now.
  /// - Parameter isStored: they may reveal something that is stored. Otherwise they wait only for earlier ones of the same session.
  private func tell(_ effects: [CallMessages.Effect], isStored: Bool) {
    if pending.isEmpty, recorder.settled == recorder.recorded {
      outlet.carryOut(effects)
    } else if isStored {
      let early = effects.filter(\.tellsNobody)
      if !early.isEmpty { outlet.carryOut(early) }
      pending.append(early.isEmpty ? effects : effects.filter { !$0.tellsNobody }, behind: recorder.recorded)
      release()
    } else {
      outlet.carryOut(pending.releasable(effects, behind: recorder.recorded))
    }
  }

  /// Carries out effects that no longer wait for anything. Returns whether there are more than go out in one step.
  @discardableResult private func release() -> Bool {
    let effects = pending.release(through: recorder.settled, limit: Self.effectsOfStep)
    outlet.carryOut(effects)
    tellIdle()
    return effects.count >= Self.effectsOfStep
  }

  private func tellIdle() {
    guard let idle, node.isIdle, pending.isEmpty, inbox.backlog.waiting == 0 else { return }
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

  /// Handles everything that expired while the server was down, and looks after the disk each second from then on.
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
    if let step = clockWatch.step(machine: clock.machineTime(), steady: clock.now()) {
      clock.follow(step)
      logger.warning(
        "the machine's clock was set; tokens, TURN credentials, signatures and the times that people are told follow it",
        metadata: ["seconds": "\(step.components.seconds)"])
    }
    // The event loop's timers do not count the time for which the machine was suspended.
    if let (deadline, task) = timer, deadline <= clock.now() {
      task.cancel()
      fire(deadline)
    }
    recorder.checkPatience(now: now)
    if let changes = recorder.rewrite(now: now, everything: { node.everything }) { write(changes) }
    housekeeping.begin(now: now) { [recordings] user in
      recordings?.store.forget(user)
      self.submit(.forget(user))
    }
    if notedRunning.map({ $0 + Self.runningPause <= clock.now() }) ?? true { noteRunning() }
    inbox.wake()
  }

  /// Records that the server is running, so that the times of its calls do not include an outage.
  private func noteRunning() {
    guard !node.isIdle else { return }
    notedRunning = clock.now()
    recorder.record([.running(clock.now())])
    write()
  }

  /// Starts the next transaction, if none is under way.
  private func write() {
    guard !isStopped, let changes = recorder.next(now: MonotonicClock.now()) else { return }
    write(changes)
  }

  private func write(_ changes: [StoreChange]) {
    store.write(changes, as: token) { error in
      self.loop.execute { self.assumeIsolated { $0.wrote(error) } }
    }
  }

  private func wrote(_ error: StoreError?) {
    recorder.finish(error, now: MonotonicClock.now())
    write()
    release()
    inbox.wake()
    if !recorder.isWriting { endWait() }
  }

  /// Waits until everything recorded is on the disk, at most as long as the disk may take. Nothing is written
  /// afterwards.
  func stop() async {
    noteRunning()
    if recorder.isWriting {
      let timeout = loop.scheduleTask(in: .nanoseconds(Recorder.patience.nanoseconds)) {
        self.assumeIsolated { $0.endWait() }
      }
      await withCheckedContinuation { quiet = $0 }
      timeout.cancel()
    }
    isStopped = true
    outlet.stop()
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

extension CallMessages.Effect {
  fileprivate var change: StoreChange? { if case .store(let change) = self { change } else { nil } }

  /// A question to the app's back end, whose deadline is already running, and an SDP to be read, for which the next commands of the user wait: neither
  /// waits for the disk. `.acquainted` reads the disk, so it waits for the changes before it.
  fileprivate var tellsNobody: Bool {
    switch self {
    case .ask(_, .authorize), .read: true
    case .ask(_, .acquainted), .client, .negotiate, .media, .webhook, .push, .history, .recordings, .recorded, .store,
      .measured, .keyless:
      false
    }
  }
}
