import LinuxIO
import MediaModel

/// The loop of a media thread: waits for sockets and timers, and runs each peer.
final class MediaThread {
  private let wakeUp: EventFD
  private let epoll: Epoll
  private let batch = ReceiveBatch(capacity: 32)
  private let statistics = Statistics()
  private let opened = OpenedFrames()
  private let output = OutputBuffer()
  private var peers: [MediaPeer] = []
  /// Datagrams that the sockets of former peers lost.
  private var formerDrops: UInt64 = 0
  /// Datagrams that their impaired paths dropped, and how many of them for lack of memory.
  private var formerImpaired: (dropped: UInt64, withoutRoom: UInt64) = (0, 0)
  /// The earliest timeout of all peers.
  private var nextDue = Instant(nanoseconds: 0)
  private var isMeasuring = false
  private var isStopped = false
  private var nextPublication = Instant(nanoseconds: 0)

  private static let publicationInterval = Duration.milliseconds(250)
  /// The token of `wakeUp`; a peer's token is its index in `peers`.
  private static let wakeUpToken = UInt64.max

  init(wakeUp: EventFD) throws {
    self.wakeUp = wakeUp
    epoll = try Epoll()
    try epoll.add(wakeUp.descriptor, token: Self.wakeUpToken)
  }

  /// Returns after `.stop`.
  func run(takeCommands: () -> [MediaLoop.Command], publish: (Tally, Instant) -> Void) {
    while !isStopped {
      let now = MonotonicClock.now()
      let next = min(nextPublication, nextDue)
      let ready = epoll.wait(nanoseconds: next > now ? next.nanoseconds - now.nanoseconds : 0)
      let woken = MonotonicClock.now()
      if next > now, woken >= next { statistics.woke(at: woken, due: next) }
      for token in ready {
        if token == Self.wakeUpToken {
          wakeUp.drain()
          for command in takeCommands() { perform(command) }
        } else {
          let peer = peers[Int(token)]
          peer.receive(into: batch)
          nextDue = min(nextDue, peer.nextTimeout)
        }
      }
      handleTimeouts(publish)
    }
  }

  private func handleTimeouts(_ publish: (Tally, Instant) -> Void) {
    let now = MonotonicClock.now()
    if nextDue <= now {
      nextDue = Instant(nanoseconds: .max)
      for peer in peers {
        if peer.nextTimeout <= now { peer.handleTimeout(now: now, isMeasuring: isMeasuring) }
        nextDue = min(nextDue, peer.nextTimeout)
      }
    }
    guard nextPublication <= now else { return }
    nextPublication = now.advanced(by: Self.publicationInterval)
    publish(currentTally, now)
  }

  private var currentTally: Tally {
    var tally = statistics.tally
    tally.socketDrops = formerDrops
    tally.threadNanoseconds = ThreadClock.now()
    (tally.impaired, tally.impairedWithoutRoom) = formerImpaired
    for peer in peers {
      tally.socketDrops += UInt64(peer.socket.receiveDrops)
      tally.impaired += peer.impaired.dropped
      tally.impairedWithoutRoom += peer.impaired.withoutRoom
    }
    return tally
  }

  /// Adds a peer; a participant that rejoined replaces its former peer.
  private func add(_ peer: MediaPeer, at place: Int) {
    guard place < peers.count else { return peers.append(peer) }
    let former = peers[place]
    formerDrops += UInt64(former.socket.receiveDrops)
    formerImpaired.dropped += former.impaired.dropped
    formerImpaired.withoutRoom += former.impaired.withoutRoom
    former.setup.progress.ended(former.count)
    peers[place] = peer
  }

  private func perform(_ command: MediaLoop.Command) {
    switch command {
    case .add(let setup):
      do {
        let peer = try MediaPeer(
          setup, statistics: statistics, opened: opened, output: output, now: MonotonicClock.now())
        let place =
          peers.firstIndex {
            $0.setup.index == setup.index && $0.setup.isSecond == setup.isSecond
          } ?? peers.count
        try epoll.add(peer.socket.descriptor, token: UInt64(place))
        add(peer, at: place)
        nextDue = min(nextDue, peer.nextTimeout)
      } catch {
        setup.progress.failed("\(error)")
      }
    case .silence(let index): peers.first { $0.setup.index == index }?.silence()
    case .want(let index, let track, let layers):
      peers.first { $0.setup.index == index }?.want(layers, of: track)
    case .measure(let on):
      isMeasuring = on
      if on { statistics.measuringSince = MonotonicClock.now() }
    case .report(let continuation):
      for peer in peers { peer.setup.progress.ended(peer.count) }
      continuation.resume(returning: peers.map(\.traffic))
    case .stop: isStopped = true
    }
  }
}
