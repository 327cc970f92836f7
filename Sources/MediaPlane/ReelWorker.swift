import Forwarding
import LinuxIO
package import MediaModel
import RTP
package import Reels
import Synchronization

/// From the control plane and the store to the thread that makes reels.
package enum ReelCommand: Sendable {
  /// Which frames of a peer may be stored from now on; the peer's configuration and worker count the first time.
  case keep(RecordedPeer, PeerConfiguration, worker: WorkerAddress)
  /// A peer changed, as its worker was told. Ignored for one that is not recorded.
  case media(MediaCommand)
  /// The stay is over, or the recording.
  case end(PeerID)
  /// Deletes the peer's stored reel.
  case erase(PeerID)
  /// Bytes are on the disk, or lost.
  case written(ReelName, Int)
}

/// The thread that makes the reels of recorded calls: one more end of the relay, without a socket. It wishes for packets as a worker does, drives a `ReelTable`, and
/// hands on what has to be stored. Other threads have priority.
final class ReelWorker {
  private let port: RelayPort
  private let queue: WorkerQueue<ReelCommand>
  private let table: ReelTable
  private let board: ReelBoard
  private let boards: [(worker: WorkerAddress, board: StatisticsBoard)]
  private let onOutput: @Sendable ([ReelOutput]) -> Void
  private let wallClock: @Sendable () -> Int64
  private let epoll: Epoll
  private var commands: [ReelCommand] = []
  private var nextTick = Instant(nanoseconds: 0)
  private var isStopping = false

  private enum Token {
    static let commands: UInt64 = 0
    static let relay: UInt64 = 1
  }

  /// Messages of each worker before commands and the tick get their turn.
  private static let slice = 256
  private static let slicesPerTurn = 16

  /// - Parameters:
  ///   - boards: of the workers, whose share of video tells whether they have time.
  ///   - wallClock: microseconds since 1970 when the monotonic clock was 0.
  ///   - onOutput: called on this thread, in order; must not block.
  init(
    _ configuration: ReelTable.Configuration, port: RelayPort, queue: WorkerQueue<ReelCommand>, board: ReelBoard,
    boards: [(worker: WorkerAddress, board: StatisticsBoard)], wallClock: @escaping @Sendable () -> Int64,
    onOutput: @escaping @Sendable ([ReelOutput]) -> Void
  ) throws(SystemError) {
    self.port = port
    self.queue = queue
    self.board = board
    self.boards = boards
    self.wallClock = wallClock
    self.onOutput = onOutput
    table = ReelTable(configuration)
    epoll = try Epoll()
    try epoll.add(queue.descriptor, token: Token.commands)
    try epoll.add(port.descriptor, token: Token.relay)
  }

  /// Runs until the queue says stop.
  func run() {
    while !isStopping { turn() }
  }

  private func turn() {
    let begin = MonotonicClock.now()
    let ready = epoll.wait(nanoseconds: waitingTime(now: begin))
    let now = MonotonicClock.now()
    if ready.contains(Token.commands) { takeCommands(now: now) }
    if ready.contains(Token.relay) { takePackets(now: now) }
    if nextTick <= now { tick(now: now) }
    if isStopping { table.close(now: now) }
    send()
    let outputs = table.takeOutputs()
    if !outputs.isEmpty { onOutput(outputs) }
    board.publish(ReelStatistics(counts: table.counts, backlog: table.backlog))
  }

  /// nil while nobody is recorded.
  private func waitingTime(now: Instant) -> UInt64? {
    guard !table.isEmpty else { return nil }
    return nextTick > now ? nextTick.nanoseconds - now.nanoseconds : 0
  }

  private func takeCommands(now: Instant) {
    isStopping = queue.take(into: &commands)
    if !commands.isEmpty { table.setWallClock(wallClock()) }
    for command in commands {
      switch command {
      case .keep(let kept, let configuration, let worker): table.keep(kept, configuration, on: worker, now: now)
      case .media(let command): take(command, now: now)
      case .end(let peer): table.end(peer, now: now)
      case .erase(let peer): table.erase(peer)
      case .written(let name, let count): table.written(count, of: name)
      }
    }
    commands.removeAll(keepingCapacity: true)
  }

  private func take(_ command: MediaCommand, now: Instant) {
    switch command {
    case .configure(let configuration, _): table.describe(configuration, now: now)
    case .mute(let peer, let track, let isMuted): table.mute(peer, track, isMuted, now: now)
    case .hold(let peer, let isHeld): table.hold(peer, isHeld, now: now)
    case .removeTrack(let peer, let track): table.removeTrack(peer, track, now: now)
    case .remove, .receive, .pin, .mirror, .share: break
    }
  }

  private func takePackets(now start: Instant) {
    var now = start
    port.hear()
    for _ in 0..<Self.slicesPerTurn {
      let count = port.receive(Self.slice) { message, packet, sender in take(message, packet, from: sender, now: now) }
      guard count > 0 else { return }
      now = MonotonicClock.now()
    }
    port.remind()
  }

  private func take(
    _ message: RelayMessage, _ packet: UnsafeMutableRawBufferPointer, from sender: RelayEnd, now: Instant
  ) {
    guard case .worker(let worker) = sender else { return }
    switch message.body {
    case .packet(let index, _, let restarts):
      let isKnown = table.receive(
        packet.bytes, index: index, restarts: restarts, of: message.track, rank: message.rank, peer: message.peer,
        from: worker, now: now)
      // Nothing is wanted of a peer that is not recorded, or no longer.
      if !isKnown { send(.wish(.nothing), about: message, to: sender) }
    case .report(let ntp, let rtp, _, let clockOffset):
      let instant = Instant(nanoseconds: NTPTimestamp(rawValue: ntp).nanoseconds &+ clockOffset)
      table.report(rtp, at: instant, of: message.track, rank: message.rank, peer: message.peer, now: now)
    case .wish, .keyFrame: break
    }
  }

  private func tick(now: Instant) {
    nextTick = now.advanced(by: ReelTable.tickTime)
    table.setWallClock(wallClock())
    for end in port.takeLosers() {
      if case .worker(let worker) = end { table.lost(from: worker, now: now) }
    }
    for (worker, board) in boards { table.setVideoShare(board.statistics.videoShare, of: worker, now: now) }
    table.tick(now: now)
  }

  private func send() {
    for wish in table.takeWishes() {
      let body: RelayMessage.Body =
        switch wish.kind {
        case .nothing: .wish(.nothing)
        case .packets: .wish(.packets)
        case .wanted: .wish(.wanted)
        case .keyFrame: .keyFrame
        }
      let message = RelayMessage(peer: wish.peer, track: wish.track, rank: wish.rank, body: body)
      // The table repeats a wish that finds no room.
      _ = port.send(message, UnsafeRawBufferPointer(start: nil, count: 0), to: .worker(wish.worker))
    }
    port.publish()
  }

  private func send(_ body: RelayMessage.Body, about message: RelayMessage, to end: RelayEnd) {
    var answer = message
    answer.body = body
    _ = port.send(answer, UnsafeRawBufferPointer(start: nil, count: 0), to: end)
  }
}

/// Counts of the thread that makes reels.
package struct ReelStatistics: Sendable {
  package var counts: ReelCounts
  /// Bytes that were handed out and are not on the disk.
  package var backlog: Int

  package init(counts: ReelCounts = ReelCounts(), backlog: Int = 0) {
    self.counts = counts
    self.backlog = backlog
  }
}

/// Where the thread puts its statistics for others to read, without ever waiting for them.
final class ReelBoard: Sendable {
  private let latest = Mutex(ReelStatistics())

  var statistics: ReelStatistics { latest.withLock { $0 } }

  func publish(_ statistics: ReelStatistics) { _ = latest.withLockIfAvailable { $0 = statistics } }
}

/// The other threads' handle of the thread that makes reels.
struct ReelHandle: Sendable {
  let queue: WorkerQueue<ReelCommand>
  let board: ReelBoard
  private let thread: OSThread

  /// Starts the thread; the parameters are those of `ReelWorker`.
  init(
    _ configuration: ReelTable.Configuration, exchange: RelayExchange,
    boards: [(worker: WorkerAddress, board: StatisticsBoard)], wallClock: @escaping @Sendable () -> Int64,
    onOutput: @escaping @Sendable ([ReelOutput]) -> Void
  ) throws(SystemError) {
    let queue = try WorkerQueue<ReelCommand>()
    let board = ReelBoard()
    let worker = try ReelWorker(
      configuration, port: RelayPort(exchange.ends.count - 1, of: exchange), queue: queue, board: board, boards: boards,
      wallClock: wallClock, onOutput: onOutput)
    thread = try OSThread(name: "reels", isBackground: true) { worker.run() }
    self.queue = queue
    self.board = board
  }

  /// Ends the thread and waits for it.
  func stop() {
    queue.stop()
    thread.join()
  }
}
