import Forwarding
import LinuxIO
import MediaModel
import Testing
import Transport

@testable import MediaPlane

struct MediaPlaneTests {
  let certificate = DTLSCertificate()
  let log = EventLog()

  private func makePlane(workers: Int = 1, firstPort: UInt16 = 0) throws -> MediaWorkers {
    var configuration = MediaPlaneConfiguration()
    configuration.workers = workers
    configuration.firstPort = firstPort
    // A port chosen here is free for UDP, but another test's TCP connection may use it.
    configuration.tcp = firstPort == 0
    return try MediaWorkers(configuration, node: Incarnation(1), certificate: certificate, seed: 1) { [log] in
      log.append($0)
    }
  }

  private func join(_ plane: MediaWorkers, clients count: Int, overTCP: Int = 0) throws -> [TestClient] {
    let clients = try (1...count).map {
      try TestClient(UInt32($0), server: certificate, slots: count - 1, overTCP: $0 <= overTCP)
    }
    try plane.connect(clients, log)
    // A worker that is starved fills slots later, and what comes before that goes to nobody: a microphone and a camera of each other client.
    let areFilled = eventually {
      clients.allSatisfy { log.filledSlots(of: $0.configuration.peer) == 2 * (count - 1) }
    }
    try #require(areFilled)
    return clients
  }

  @Test(arguments: 0...3, [1, 2, 3])
  func mediaFlowsBetweenThreeParticipants(overTCP: Int, workers: Int) throws {
    let plane = try makePlane(workers: workers)
    let clients = try join(plane, clients: 3, overTCP: overTCP)

    for (index, client) in clients.enumerated() {
      for number in 0..<20 { client.sendAudio([UInt8(index), UInt8(number)]) }
      client.sendVideo(packets: 12, byte: UInt8(index))
    }

    for (index, client) in clients.enumerated() {
      #expect(
        eventually({ client.audio.count >= 40 && client.video.count >= 24 }) { client.receive(waiting: 1_000_000) })
      for other in clients.indices where other != index {
        #expect(client.audio.filter { $0[0] == other }.map { $0[1] } == Array(0..<20))
        #expect(client.video.filter { $0.last == UInt8(other) }.count == 12)
      }
    }
    plane.stop()
    let statistics = plane.statistics()
    func sum<Number: AdditiveArithmetic>(_ number: (WorkerStatistics) -> Number) -> Number {
      statistics.reduce(.zero) { $0 + number($1) }
    }
    #expect(sum(\.forwarding.forwarded) == 3 * 32 * 2)
    // Each packet goes to all other workers.
    let relayed: [UInt64] = [0, 96, 192]
    #expect(sum(\.forwarding.relayed) == relayed[workers - 1])
    #expect(sum { $0.forwarding.drops(.relayFull) } == 0)
    #expect(sum(\.socket.failed) == 0)
    #expect(sum(\.tcp.open) == overTCP && sum(\.tcp.accepted) == UInt64(overTCP))
    #expect(sum { $0.tcp[.slowReader] } == 0)
    // Their connections end with them.
    withExtendedLifetime(clients) {}
  }

  /// A room: two publishers and two subscribers, on one worker or on two threads. Each subscriber gets what its slots are pinned to.
  @Test(arguments: 1...2) func pinnedTracksReachTheirSubscribers(workers: Int) throws {
    let plane = try makePlane(workers: workers)
    let clients = try (1...4).map {
      try TestClient(UInt32($0), server: certificate, slots: $0 > 2 ? 1 : 0, isSender: $0 <= 2, filling: .pinned)
    }
    try plane.connect(clients, log)
    func pin(_ subscriber: Int, to publisher: Int) {
      let (tracks, slots) = (clients[publisher].configuration.tracks, clients[subscriber].configuration.slots)
      let pins = zip(slots, tracks).map { slot, track in
        SlotPin(mid: slot.mid, source: TrackPin(peer: clients[publisher].configuration.peer, track: track.track))
      }
      plane.submit(.pin(clients[subscriber].configuration.peer, pins), worker: subscriber % workers)
    }
    // The third client has the first's worker, and the fourth the second's: each gets the publisher of the other one.
    pin(2, to: 1)
    pin(3, to: 0)
    try #require(eventually { [2, 3].allSatisfy { log.filledSlots(of: clients[$0].configuration.peer) == 2 } })
    // A worker's wish for a track reaches the publisher's worker by itself, and what comes before it goes nowhere.
    for (subscriber, publisher) in [(2, 1), (3, 0)] {
      let flows = eventually({ clients[subscriber].audio.count >= 20 && clients[subscriber].video.count >= 12 }) {
        clients[publisher].sendAudio([UInt8(publisher)])
        clients[publisher].sendVideo(packets: 4, byte: UInt8(publisher))
        clients[subscriber].receive(waiting: 1_000_000)
      }
      #expect(flows)
    }
    plane.stop()
    for (subscriber, publisher) in [(2, 1), (3, 0)] {
      clients[subscriber].receive()
      #expect(clients[subscriber].audio.allSatisfy { $0 == [UInt8(publisher)] })
      #expect(clients[subscriber].video.allSatisfy { $0.last == UInt8(publisher) })
    }
    #expect((plane.statistics().reduce(0) { $0 + $1.forwarding.relayed } > 0) == (workers > 1))
    #expect(clients[0].received == clients[0].audio.count && clients[0].audio.isEmpty, "publishers receive nothing")
  }

  @Test func aPeerThatLosesTheConnectionComesByAnother() throws {
    let plane = try makePlane()
    let clients = try join(plane, clients: 2, overTCP: 1)
    clients[0].reconnect()
    #expect(eventually { plane.statistics()[0].tcp[.gone] == 1 })
    let flows = eventually({ clients[0].audio.contains([7]) }) {
      clients[1].sendAudio([7])
      clients[0].receive(waiting: 1_000_000)
    }
    #expect(flows)
    #expect(log.connected.count == 2)
  }

  @Test func noiseOverTCPDisturbsNobody() throws {
    let plane = try makePlane()
    let clients = try join(plane, clients: 2, overTCP: 1)
    var noise = Noise(seed: 2)
    for number in 0..<50 {
      let stranger = try TestConnection(port: plane.port(of: 0))
      // Some are read as lengths and datagrams, most as an impossible length.
      stranger.write(number % 2 == 0 ? [0, UInt8(number)] + noise.bytes(200) : noise.bytes(500))
      if number % 5 == 0 { stranger.reset() }
      clients[0].sendAudio([UInt8(number)])
    }
    #expect(eventually({ clients[1].audio.count == 50 }) { clients[1].receive(waiting: 1_000_000) })
    let areGone = { plane.statistics()[0].tcp.accepted == 51 && plane.statistics()[0].tcp.open == 1 }
    #expect(eventually(areGone))
    #expect(plane.statistics()[0].tcp[.tooLong] > 0)
    withExtendedLifetime(clients) {}
  }

  @Test func withoutTCPNobodyListens() throws {
    var configuration = MediaPlaneConfiguration()
    configuration.workers = 1
    configuration.tcp = false
    let plane = try MediaWorkers(configuration, node: Incarnation(1), certificate: certificate, seed: 1) { _ in }
    #expect(throws: TestConnection.Refused.self) { try TestConnection(port: plane.port(of: 0)) }
    #expect(!plane.hasTCP)
  }

  @Test func noiseIsCountedAndDisturbsNobody() throws {
    let plane = try makePlane()
    let clients = try join(plane, clients: 2)
    let stranger = try TestClient(9, server: certificate, slots: 1)
    stranger.start(plane.loopback(0))
    var noise = Noise(seed: 1)
    for length in 1...64 {
      for _ in 0..<4 { stranger.sendRaw(noise.bytes(length * 16)) }
      clients[0].sendAudio([UInt8(length)])
    }

    #expect(eventually({ clients[1].audio.count == 64 }) { clients[1].receive(waiting: 1_000_000) })
    stranger.receive()
    plane.stop()

    let statistics = plane.statistics()[0]
    let drops = DropReason.allCases.reduce(0) { $0 + statistics.forwarding.drops($1) }
    #expect(drops >= 256)
    #expect(!stranger.isConnected && stranger.received == 0)
  }

  @Test func statisticsArriveByThemselves() throws {
    let plane = try makePlane()
    let client = try TestClient(1, server: certificate, slots: 0)
    client.start(plane.loopback(0))
    #expect(eventually { plane.statistics()[0].socket.received == 1 })
    #expect(plane.statistics()[0].port == plane.port(of: 0))
  }

  @Test func eachWorkerHasItsPortAndItsCalls() throws {
    let plane = try makePlane(workers: 3)
    #expect(Set((0..<3).map(plane.port(of:))).count == 3)
    let clients = try (0..<3).map { try TestClient(UInt32($0 + 1), server: certificate, slots: 0, call: "call\($0)") }
    for (worker, client) in clients.enumerated() {
      plane.submit(.configure(client.configuration, request: UInt64(worker)), worker: worker)
    }
    try #require(eventually { log.configured.count == 3 })

    for (worker, client) in clients.enumerated() { client.start(plane.loopback(worker)) }

    let connected = eventually({ clients.allSatisfy(\.isConnected) }) {
      for client in clients { client.receive(waiting: 1_000_000) }
    }
    #expect(connected)
  }

  @Test func commandsOfAThreadAreCarriedOutInOrder() throws {
    let plane = try makePlane()
    let client = try TestClient(1, server: certificate, slots: 1)
    for request in 0..<500 { plane.submit(.configure(client.configuration, request: UInt64(request)), worker: 0) }
    #expect(eventually { log.configured.count == 500 })
    #expect(log.configured == Array(0..<500))
  }

  @Test func commandsGetTheirTurnUnderAFlood() throws {
    let plane = try makePlane()
    let client = try TestClient(1, server: certificate, slots: 0)
    client.start(plane.loopback(0))
    plane.submit(.configure(client.configuration, request: 1), worker: 0)
    #expect(eventually({ log.configured == [1] }) { for _ in 0..<200 { client.sendRaw([1, 2, 3]) } })
  }

  @Test func stopCarriesOutWhatWasSubmittedAndFreesThePorts() throws {
    let plane = try makePlane(workers: 2)
    let client = try TestClient(1, server: certificate, slots: 0)
    let port = plane.port(of: 0)
    plane.submit(.configure(client.configuration, request: 7), worker: 0)

    plane.stop()
    plane.stop()

    #expect(log.configured == [7])
    plane.submit(.remove(client.configuration.peer), worker: 0)
    #expect(throws: Never.self) { try UDPSocket(port: port) }
  }

  @Test func aPortInUseStopsTheWorkersBeforeIt() throws {
    // A pair of ports of which the second is taken.
    var taken = try UDPSocket(port: 0)
    while (try? UDPSocket(port: taken.port - 1)) == nil { taken = try UDPSocket(port: 0) }
    let first = taken.port - 1

    let error = #expect(throws: MediaPlaneError.self) { try makePlane(workers: 2, firstPort: first) }

    #expect(error?.description.contains("UDP port \(taken.port) is in use") == true)
    #expect(throws: Never.self) { try UDPSocket(port: first) }
  }

  @Test(arguments: [(0, 5_000), (2, 65_535), (-1, 0)])
  func anImpossibleLayoutIsRefused(workers: Int, firstPort: UInt16) {
    #expect(throws: MediaPlaneError.self) { try makePlane(workers: workers, firstPort: firstPort) }
  }

  @Test func allHostAddressesCarryTheWorkersPort() throws {
    let plane = try makePlane(workers: 2)
    let addresses = plane.addresses(of: 1)
    #expect(addresses.contains(plane.loopback(1)))
    #expect(addresses.allSatisfy { $0.port == plane.port(of: 1) })
  }
}

/// Repeatable noise (Knuth's MMIX generator).
private struct Noise {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }
}
