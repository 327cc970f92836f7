import Forwarding
import LinuxIO
import MediaModel
import Transport

/// One thread's loop: it waits for its socket, its TCP connections, its commands and its SFU's timers, and drives the SFU.
///
/// Not Sendable: created by `MediaWorkers` and sent to its thread, which is the only one to use it from then on. In the steady state it allocates
/// nothing and takes no lock: the command queue's lock only when a command has arrived, the statistics' lock only every 100 ms and only if it is free.
final class Worker {
  private let socket: UDPSocket
  /// nil: only UDP.
  private let connections: MediaConnections?
  private let sfu: SFU
  /// nil: there are no other workers.
  private let relay: RelayPort?
  /// Handshake steps that were run elsewhere; nil: the SFU runs them itself.
  private let handshakes: WorkerQueue<HandshakeStep>?
  private let queue: WorkerQueue<MediaCommand>
  private let board: StatisticsBoard
  private let onEvent: @Sendable (MediaEvent) -> Void

  private let epoll: Epoll
  private let batch: ReceiveBatch
  private let outbox: Outbox
  private var rule: FlushRule
  private var naps = NapRule()
  private var shedding = SheddingRule()
  /// Commands taken from the queue, and how many of them have been carried out.
  private var commands: [MediaCommand] = []
  private var carriedOut = 0
  private var finishedSteps: [HandshakeStep] = []
  /// The queue is closed after `commands`.
  private var isQueueClosed = false
  private(set) var statistics: WorkerStatistics
  /// When statistics must be published; nil if nothing happened since the last time.
  private var publishAt: Instant?
  /// Nanoseconds in which the thread waited for work.
  private var idleTime: UInt64 = 0
  private var isStopping = false

  /// Datagrams between two checks of clock, timers and outbox. With GRO one receive can return thousands.
  private static let slice = 64
  /// Slices before commands get their turn even though the socket still delivers.
  private static let slicesPerTurn = 32
  /// Commands between two checks of the sockets, and the CPU time after which no other is begun. A join of a large call takes tens of microseconds, and the
  /// slots that the commands fill take a few hundred. Each command may write to one receiver. The quarter of the outbox that is left when it is nearly full
  /// has room for that.
  private static let commandsPerTurn = 32
  private static let commandNanoseconds: UInt64 = 500_000
  private static let publishInterval = Duration.milliseconds(100)

  private enum Token {
    static let socket: UInt64 = 0
    static let commands: UInt64 = 1
    static let relay: UInt64 = 2
    static let handshakes: UInt64 = 3
    /// The tokens of connections are above it.
    static let listener: UInt64 = 4
  }

  init(
    socket: UDPSocket, listener: TCPListener? = nil, sfu: SFU, relay: RelayPort? = nil,
    handshakes: WorkerQueue<HandshakeStep>? = nil, queue: WorkerQueue<MediaCommand>, board: StatisticsBoard,
    rule: FlushRule = FlushRule(), onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws(SystemError) {
    self.socket = socket
    connections = listener.map { MediaConnections($0, token: Token.listener) }
    self.sfu = sfu
    self.relay = relay
    self.handshakes = handshakes
    self.queue = queue
    self.board = board
    self.rule = rule
    self.onEvent = onEvent
    batch = ReceiveBatch()
    outbox = Outbox()
    statistics = board.statistics
    epoll = try Epoll()
    try epoll.add(socket.descriptor, token: Token.socket)
    try epoll.add(queue.descriptor, token: Token.commands)
    if let handshakes { try epoll.add(handshakes.descriptor, token: Token.handshakes) }
    if let relay { try epoll.add(relay.descriptor, token: Token.relay) }
    if let listener { try epoll.add(listener.descriptor, token: Token.listener) }
  }

  /// Runs until the queue says stop.
  func run() {
    while !isStopping { turn() }
  }

  /// One wake-up: waits, then does everything that is due.
  func turn() {
    let begin = MonotonicClock.now()
    let ready = wait(now: begin)
    var now = MonotonicClock.now()
    idleTime &+= now.nanoseconds &- begin.nanoseconds
    rule.woke(now: now)
    statistics.turns &+= 1
    var datagrams = 0
    for token in ready {
      switch token {
      case Token.socket: now = drain(now: now)
      case Token.commands: takeCommands()
      case Token.relay: now = takeRelayed(now: now)
      case Token.handshakes: takeSteps(now: now)
      case Token.listener: connections?.accept(now: now, in: epoll)
      default: datagrams += readConnection(Int(token - Token.listener), now: now)
      }
    }
    // The datagrams of all connections together count as one batch.
    if datagrams > 0 {
      arrived(datagrams, now: now)
      scheduleStatistics(now: now)
    }
    // After a flood possibly nothing arrives over UDP.
    if shedding.share < 1 { shedVideo(now: now) }
    carryOutCommands(now: now)
    settle(now: now)
    sweepConnections(now: now)
    publishIfDue(now: now)
  }

  /// Sleeps until something is ready or due. Returns the tokens of what is ready.
  private func wait(now: Instant) -> UnsafeBufferPointer<UInt64> {
    rule.waits(now: now)
    let limit = waitingTime(now: now)
    guard naps.isDue else { return epoll.wait(nanoseconds: limit) }
    naps.taken()
    let nap = UInt64(NapRule.length.nanoseconds)
    MonotonicClock.sleep(nanoseconds: min(limit ?? nap, nap))
    return epoll.wait(nanoseconds: 0)
  }

  /// Nanoseconds to the earliest deadline of the SFU's timer, the outbox and the statistics; nil if there is none.
  private func waitingTime(now: Instant) -> UInt64? {
    guard carriedOut == commands.count else { return 0 }
    var first = sfu.nextTimeout
    if let deadline = rule.deadline { first = min(first ?? deadline, deadline) }
    if let publishAt { first = min(first ?? publishAt, publishAt) }
    if let due = connections?.nextSweep { first = min(first ?? due, due) }
    guard let first else { return nil }
    return first > now ? first.nanoseconds - now.nanoseconds : 0
  }

  /// Takes the waiting commands once the earlier ones have been carried out.
  private func takeCommands() {
    guard carriedOut == commands.count else { return }
    commands.removeAll(keepingCapacity: true)
    carriedOut = 0
    isQueueClosed = queue.take(into: &commands)
  }

  /// Takes the results of handshake steps that `HandshakeThread` has run.
  private func takeSteps(now: Instant) {
    _ = handshakes?.take(into: &finishedSteps)
    for step in finishedSteps {
      let start = ThreadClock.now()
      sfu.handle(step, now: now, into: outbox)
      statistics.passes.add(.handshakes, nanoseconds: ThreadClock.now() - start)
      if outbox.isNearlyFull { flush() }
    }
    finishedSteps.removeAll(keepingCapacity: true)
    scheduleStatistics(now: now)
  }

  /// Carries out as many commands as packets may wait for. The others follow in the next turns.
  private func carryOutCommands(now: Instant) {
    guard carriedOut < commands.count || isQueueClosed else { return }
    let start = ThreadClock.now()
    let end = min(carriedOut + Self.commandsPerTurn, commands.count)
    carriedOut += sfu.handle(commands[carriedOut..<end], now: now, into: outbox) {
      ThreadClock.now() - start > Self.commandNanoseconds
    }
    statistics.passes.add(.commands, nanoseconds: ThreadClock.now() - start)
    if outbox.isNearlyFull { flush() }
    deliverEvents()
    scheduleStatistics(now: now)
    isStopping = isQueueClosed && carriedOut == commands.count
    if isStopping {
      flush()
      publish(now: now)
    }
  }

  /// Reads the socket until it is empty, or others must have their turn. Returns the time of the last batch.
  private func drain(now start: Instant) -> Instant {
    var now = start
    var slices = 0
    repeat {
      socket.receive(into: batch)
      shedding.received(after: .nanoseconds(batch.datagrams.first?.age ?? 0))
      shedVideo(now: now)
      let datagrams = batch.datagrams
      var first = 0
      while first < datagrams.count {
        if slices > 0 { now = MonotonicClock.now() }
        let end = min(first + Self.slice, datagrams.count)
        let flooded = sfu.flooded
        for index in first..<end {
          handle(datagrams[index].bytes, from: datagrams[index].source, age: datagrams[index].age, now: now)
        }
        arrived(end - first, flooded: sfu.flooded &- flooded, now: now)
        settle(now: now)
        first = end
        slices += 1
      }
    } while batch.isFull && slices < Self.slicesPerTurn
    // More has already arrived.
    if batch.isFull { naps.taken() }
    scheduleStatistics(now: now)
    return now
  }

  /// Takes what other workers have sent until nothing is left, or others must have their turn. Returns the time of the last slice.
  private func takeRelayed(now start: Instant) -> Instant {
    guard let relay else { return start }
    var now = start
    relay.hear()
    for slice in 0..<Self.slicesPerTurn {
      if slice > 0 { now = MonotonicClock.now() }
      let count = relay.receive(Self.slice) { message, packet, sender in
        sfu.handle(message, packet, from: sender, now: now, into: outbox)
        if outbox.isNearlyFull { flush() }
      }
      guard count > 0 else { return now }
      arrived(count, now: now)
      settle(now: now)
      scheduleStatistics(now: now)
    }
    relay.remind()
    return now
  }

  /// - Parameter age: time in the kernel's buffer, in nanoseconds; unknown for a TCP stream.
  private func handle(
    _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, age: UInt64 = 0, now: Instant
  ) {
    if case .dtls = DatagramKind.classify(datagram.bytes) {
      let start = ThreadClock.now()
      sfu.handle(datagram, from: source, now: now, into: outbox)
      statistics.passes.add(.handshakes, nanoseconds: ThreadClock.now() - start)
    } else {
      sfu.handle(datagram, from: source, age: age, now: now, into: outbox)
    }
    if outbox.isNearlyFull { flush() }
  }

  /// Forwards less video while the socket's datagrams grow old, and more again afterwards.
  private func shedVideo(now: Instant) {
    guard shedding.isDue(now: now) else { return }
    _ = shedding.judge(cpuTime: ThreadClock.now(), idleTime: idleTime, now: now)
    sfu.setVideoShare(shedding.share, now: now)
  }

  /// Takes what a TCP connection has received; returns the number of datagrams.
  private func readConnection(_ number: Int, now: Instant) -> Int {
    var datagrams = 0
    let ended = connections?.receive(number, in: epoll, isPath: { sfu.isPath($0) }) { datagram, source in
      handle(datagram, from: source, now: now)
      datagrams += 1
    }
    if let ended { sfu.forget(ended, now: now) }
    return datagrams
  }

  /// Informs the rules of naps and flushes about a batch. A flood that is dropped is no reason to let the packets of others
  /// wait.
  private func arrived(_ datagrams: Int, flooded: UInt64 = 0, now: Instant) {
    let kept = datagrams - Int(clamping: flooded)
    rule.handled(kept: kept, of: datagrams)
    guard kept > 0 else { return }
    rule.arrived(now: now)
    naps.arrived(kept, now: now)
  }

  private func sweepConnections(now: Instant) {
    guard let connections, let due = connections.nextSweep, due <= now else { return }
    connections.sweep(now: now, in: epoll) { sfu.isPath($0) }
    scheduleStatistics(now: now)
  }

  /// Called after each batch: timers, then the outbox by its rule, then events.
  private func settle(now: Instant) {
    // Other workers need not wait until this one has sent.
    relay?.publish()
    if let timeout = sfu.nextTimeout, timeout <= now {
      let start = ThreadClock.now()
      if let pass = sfu.handleTimeout(now: now, into: outbox) {
        statistics.passes.add(pass, nanoseconds: ThreadClock.now() - start)
      }
      scheduleStatistics(now: now)
    }
    let held = rule.deadline
    if rule.isDue(now: now, isEmpty: outbox.isEmpty, isUrgent: outbox.isUrgent) {
      if held != nil { statistics.heldFlushes &+= 1 }
      flush()
    }
    deliverEvents()
    relay?.publish()
  }

  private func flush() {
    let start = MonotonicClock.now()
    let runs = outbox.runs.count
    socket.send(outbox.runs)
    if let connections, connections.counters.accepted > 0 { connections.send(outbox.runs, in: epoll) }
    outbox.reset()
    rule.flushed(in: start.duration(to: MonotonicClock.now()), runs: runs)
    statistics.flushes &+= 1
  }

  private func deliverEvents() {
    guard !sfu.events.isEmpty else { return }
    for event in sfu.events { onEvent(event) }
    sfu.events.removeAll(keepingCapacity: true)
  }

  private func scheduleStatistics(now: Instant) {
    if publishAt == nil { publishAt = now.advanced(by: Self.publishInterval) }
  }

  private func publishIfDue(now: Instant) {
    guard let publishAt, now >= publishAt else { return }
    publish(now: now)
  }

  private func publish(now: Instant) {
    statistics.forwarding = sfu.counters
    statistics.socket = socket.counters
    statistics.receiveDrops = socket.receiveDrops
    statistics.videoShare = shedding.share
    if let connections { statistics.tcp = connections.counters }
    publishAt = board.publish(statistics) ? nil : now.advanced(by: Self.publishInterval)
  }
}
