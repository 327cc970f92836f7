import CAllocations
import Forwarding
import LinuxIO
import MediaModel
import Testing
import Transport

@testable import MediaPlane

/// A worker without a thread: the test runs its turns.
struct WorkerTests {
  let certificate = DTLSCertificate()
  let queue: WorkerQueue<MediaCommand>
  let worker: Worker
  let clients: [TestClient]
  private let log = EventLog()

  init() throws {
    let (socket, listener) = try openPort()
    queue = try WorkerQueue<MediaCommand>()
    // Histories small enough that the warm-up fills them on any machine. The clients send as fast as the worker turns.
    var configuration = SFUConfiguration()
    (configuration.videoHistory, configuration.audioHistory) = (256 << 10, 16 << 10)
    configuration.audioTrack = PublishingRate(packets: 1_000_000, kilobits: 10_000_000)
    (configuration.videoTrack, configuration.publisher) = (configuration.audioTrack, configuration.audioTrack)
    configuration.control = configuration.audioTrack
    let sfu = SFU(configuration: configuration, certificate: certificate, seed: 1)
    worker = try Worker(
      socket: socket, listener: listener, sfu: sfu, queue: queue, board: StatisticsBoard(port: socket.port),
      onEvent: log.append)
    let certificate = certificate
    clients = try (1...4).map { try TestClient(UInt32($0), server: certificate, slots: 3) }
    for client in clients { queue.submit(.configure(client.configuration, request: 0)) }
    // A turn carries out commands for 0.5 ms, and clients check their paths once.
    let log = log
    let areConfigured = eventually({ log.configured.count == 4 }) { turn() }
    try #require(areConfigured)
    for client in clients { client.start(SocketAddress(ipv4: 0x7f00_0001, port: socket.port)) }
    let areConnected = eventually({ clients.allSatisfy(\.isConnected) }) {
      turn()
      for client in clients { client.receive() }
    }
    try #require(areConnected)
  }

  /// A turn that does not wait.
  private func turn() {
    queue.submit(.remove(PeerID(rawValue: 0)))
    worker.turn()
  }

  /// Prevents peers from being given up in a run that takes longer than consent lasts. It is not included where
  /// allocations are counted: libnice allocates for each check.
  private func renewConsent() {
    for client in clients { client.check() }
    turn()
    for client in clients { client.receive() }
  }

  /// Without optimisation the compiler boxes iterators, so this needs a release build.
  @Test(.enabled(if: isOptimized && allocations_are_counted()))
  func forwardingAllocatesNothingInTheSteadyState() {
    for client in clients { client.keepsPayloads = false }
    func round() -> UInt {
      clients[0].sendAudio([1, 2, 3])
      clients[1].sendVideo(packets: 5, byte: 1)
      clients[2].sendVideo(packets: 1, byte: 2, size: 700)
      // Not authentic for any peer: refusals are part of the steady state.
      clients[3].sendRaw([0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9] + [UInt8](repeating: 0, count: 40))
      let before = allocations_of_this_thread()
      worker.turn()
      let count = allocations_of_this_thread() - before
      for client in clients { client.receive() }
      return count
    }
    // Until the histories are full and every table has its size.
    for _ in 0..<700 { _ = round() }
    renewConsent()
    let received = clients.map(\.received).reduce(0, +)

    var allocations: UInt = 0
    for number in 1...2_000 {
      allocations += round()
      if number % 50 == 0 { renewConsent() }
    }

    #expect(allocations == 0)
    #expect(clients.map(\.received).reduce(0, +) - received > 2_000 * 7 * 3 * 99 / 100)
  }

  @Test func audioLeavesInTheTurnThatBroughtIt() {
    // Two batches in a row mean that the socket is busy.
    for number in 0..<5 {
      clients[0].sendAudio([UInt8(number)])
      worker.turn()
      for client in clients { client.receive() }
      #expect(clients[1].audio.count == number + 1)
    }
  }

  @Test func packetsGoBetweenTheCommandsOfABurst() {
    let requests = Array(1...150 as ClosedRange<UInt64>)
    let before = log.configured.count
    for request in requests { queue.submit(.configure(clients[3].configuration, request: request)) }
    for number in 0..<150 where log.configured.count < before + requests.count {
      clients[0].sendAudio([UInt8(number)])
      let carriedOut = log.configured.count
      worker.turn()
      #expect(log.configured.count - carriedOut <= 32)
      for client in clients { client.receive() }
      #expect(clients[1].audio.count == number + 1)
    }
    #expect(Array(log.configured[before...]) == requests)
    #expect(clients[1].audio.count >= 5, "150 commands take five turns at least")
  }

  @Test func allCommandsBeforeTheStopAreCarriedOut() {
    let requests = Array(1...150 as ClosedRange<UInt64>)
    let before = log.configured.count
    for request in requests { queue.submit(.configure(clients[3].configuration, request: request)) }
    queue.stop()
    worker.run()
    #expect(Array(log.configured[before...]) == requests)
  }

  @Test func videoOfABusySocketLeavesWithinTheHold() {
    clients[0].sendVideo(packets: 1, byte: 0)
    turn()
    clients[0].sendVideo(packets: 1, byte: 1)
    worker.turn()
    clients[0].sendVideo(packets: 1, byte: 2)
    // No packet follows, so only the hold's deadline releases them.
    let haveCome = eventually({ clients[1].video.count == 3 }) {
      worker.turn()
      for client in clients { client.receive() }
    }
    #expect(haveCome)
    #expect(clients[1].video.map { $0.last } == [0, 1, 2])
  }
}

private let isOptimized: Bool = {
  #if DEBUG
    false
  #else
    true
  #endif
}()
