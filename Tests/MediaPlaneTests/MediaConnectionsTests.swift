import LinuxIO
import MediaModel
import Testing

@testable import MediaPlane

/// A worker's TCP connections over loopback; the time and the participants are arguments.
final class MediaConnectionsTests {
  private static let token: UInt64 = 100
  /// A datagram that represents an authentic check.
  private static let proof: UInt8 = 77
  private let port: UInt16
  private let epoll: Epoll
  private let connections: MediaConnections
  private let start = MonotonicClock.now()
  /// Datagrams received, in order.
  private var arrived: [(bytes: [UInt8], source: SocketAddress)] = []
  private var ended: [SocketAddress] = []
  private var held: [TestConnection] = []
  /// Addresses whose authentic checks arrived.
  private var participants: Set<SocketAddress> = []

  init() throws {
    var limits = MediaConnections.Limits()
    limits.connections = 6
    limits.waiting = 4
    let (socket, listener) = try openPort()
    port = socket.port
    connections = MediaConnections(listener, token: Self.token, limits: limits)
    epoll = try Epoll()
    try epoll.add(connections.listener.descriptor, token: Self.token)
  }

  private func turn(waiting nanoseconds: UInt64 = 0, now: Instant? = nil) {
    for token in epoll.wait(nanoseconds: nanoseconds) {
      if token == Self.token {
        connections.accept(now: now ?? start, in: epoll)
      } else {
        let address = connections.receive(Int(token - Self.token), in: epoll, isPath: { participants.contains($0) }) {
          arrived.append((Array($0), $1))
          if $0[0] == Self.proof { participants.insert($1) }
        }
        if let address { ended.append(address) }
      }
    }
  }

  private func sweep(after delay: Duration, participants: [SocketAddress] = []) {
    connections.sweep(now: start.advanced(by: delay), in: epoll) { participants.contains($0) }
  }

  /// An accepted connection, and its local address.
  private func connect(
    from source: UInt32 = 1, receiveBuffer: Int32? = nil, saying byte: UInt8 = 42
  ) throws -> (TestConnection, SocketAddress) {
    let connection = try TestConnection(port: port, from: source, receiveBuffer: receiveBuffer)
    connection.send([byte])
    let before = arrived.count
    try #require(eventually({ arrived.count > before }) { turn(waiting: 1_000_000) })
    return (connection, arrived[arrived.count - 1].source)
  }

  private func send(_ lengths: [Int], byte: UInt8 = 7, to address: SocketAddress) {
    var bytes = lengths.flatMap { [UInt8](repeating: byte, count: $0) }
    bytes.withUnsafeMutableBytes {
      let run = DatagramRun(base: $0.baseAddress!, length: $0.count, segment: lengths[0], destination: address)
      withUnsafePointer(to: run) { connections.send(UnsafeBufferPointer(start: $0, count: 1), in: epoll) }
    }
  }

  @Test func datagramsGoBothWays() throws {
    let (first, address) = try connect()
    let (second, other) = try connect()
    #expect(address.connection != 0 && other.connection != 0 && address.connection != other.connection)
    #expect(address.isLoopback && address.port != other.port)

    send([5, 5, 3], to: address)
    send([9], to: other)
    // It is not for this path.
    send([9], to: SocketAddress(ipv4: address.ipv4, port: address.port))

    #expect(first.receive(milliseconds: 2_000).map(\.count) == [5, 5, 3])
    #expect(second.receive(milliseconds: 2_000).map(\.count) == [9])
    #expect(connections.counters[.slowReader] == 0 && connections.counters[.ended] == 0)
  }

  @Test func datagramsInPiecesArePutTogether() throws {
    let (connection, address) = try connect()
    for piece: [UInt8] in [[0], [3, 1], [2], [3, 0, 1], [9]] {
      connection.write(piece)
      turn(waiting: 1_000_000_000)
    }
    #expect(arrived.map(\.bytes) == [[42], [1, 2, 3], [9]])
    #expect(arrived.allSatisfy { $0.source == address })
  }

  @Test func aConnectionThatBelongsToNoParticipantIsClosed() throws {
    let (stranger, _) = try connect()
    let (participant, address) = try connect()
    sweep(after: .seconds(9), participants: [address])
    #expect(connections.counters.open == 2)
    sweep(after: .seconds(10), participants: [address])
    #expect(connections.counters.open == 1 && connections.counters[.unproven] == 1)
    _ = stranger.receive(milliseconds: 2_000)
    #expect(stranger.hasEnded)
    // A participant that left the call has the same time again.
    sweep(after: .seconds(19))
    #expect(connections.counters.open == 1)
    sweep(after: .seconds(20))
    _ = participant.receive(milliseconds: 2_000)
    #expect(participant.hasEnded && connections.counters.open == 0)
    #expect(connections.nextSweep == nil)
  }

  @Test func underLoadStrangersAreClosedSooner() throws {
    let held = try (0..<4).map { _ in try connect().0 }
    sweep(after: .seconds(1))
    #expect(connections.counters.open == 0 && connections.counters[.unproven] == 4)
    withExtendedLifetime(held) {}
  }

  @Test func tooManyAreRefused() throws {
    var held: [TestConnection] = []
    var addresses: [SocketAddress] = []
    func refused(_ reason: TCPCounters.Rejection) throws {
      let before = connections.counters[reason]
      let connection = try TestConnection(port: port)
      #expect(eventually({ connections.counters[reason] == before + 1 }) { turn(waiting: 1_000_000) })
      _ = connection.receive(milliseconds: 2_000)
      #expect(connection.hasEnded)
    }
    func fill(_ count: Int) throws {
      for _ in 0..<count {
        let (connection, address) = try connect()
        held.append(connection)
        addresses.append(address)
      }
    }
    try fill(4)
    try refused(.tooManyWaiting)
    sweep(after: .milliseconds(10), participants: addresses)
    try fill(2)
    sweep(after: .milliseconds(20), participants: addresses)
    try refused(.full)
    #expect(connections.counters.open == 6)
  }

  @Test func theOldestStrangerGivesWayWhenAllPlacesAreTaken() throws {
    let (participant, _) = try connect(from: 1, saying: Self.proof)
    let strangers = try (2...6).map { try connect(from: $0).0 }
    #expect(connections.counters.open == 6)
    for (number, stranger) in strangers.enumerated() {
      let (next, _) = try connect(from: UInt32(10 + number), saying: Self.proof)
      #expect(connections.counters[.evicted] == UInt64(number + 1) && connections.counters.open == 6)
      _ = stranger.receive(milliseconds: 2_000)
      #expect(stranger.hasEnded)
      send([number + 1], to: arrived[arrived.count - 1].source)
      #expect(next.receive(milliseconds: 2_000).map(\.count) == [number + 1])
      held.append(next)
    }
    // All belong to participants now.
    let late = try TestConnection(port: port, from: 99)
    #expect(eventually({ connections.counters[.full] == 1 }) { turn(waiting: 1_000_000) })
    #expect(!participant.hasEnded && connections.counters.open == 6)
    withExtendedLifetime(late) {}
  }

  @Test func aParticipantThatLeftIsAStrangerAgain() throws {
    let (first, address) = try connect(from: 1, saying: Self.proof)
    for source in 2...6 as ClosedRange<UInt32> { held.append(try connect(from: source, saying: Self.proof).0) }
    participants.remove(address)
    connections.sweep(now: start, in: epoll) { participants.contains($0) }
    held.append(try connect(from: 7, saying: Self.proof).0)
    _ = first.receive(milliseconds: 2_000)
    #expect(first.hasEnded && connections.counters[.evicted] == 1)
  }

  /// A flood of strangers from many addresses, and an honest client that proves itself with its first datagram.
  @Test func aFloodOfStrangersKeepsNobodyOut() throws {
    for round in 0..<50 as Range<UInt32> {
      var strangers: [TestConnection] = []
      for source in 0..<6 {
        strangers.append(try TestConnection(port: port, from: 20 + round * 4 % 200 + UInt32(source)))
      }
      let (honest, address) = try connect(from: 1, saying: Self.proof)
      send([9], to: address)
      #expect(honest.receive(milliseconds: 2_000).map(\.count) == [9], "round \(round)")
      withExtendedLifetime(strangers) {}
      participants.remove(address)
    }
    #expect(connections.counters[.full] == 0 && connections.counters[.evicted] > 20)
  }

  @Test func theQueueOfNumbersKeepsItsOrder() {
    var queue = NumberQueue(greatest: 50)
    var model: [UInt16] = []
    var random = SystemRandomNumberGenerator()
    for _ in 0..<20_000 {
      let number = UInt16.random(in: 1...50, using: &random)
      if let place = model.firstIndex(of: number) {
        queue.remove(number)
        model.remove(at: place)
      } else {
        queue.append(number)
        model.append(number)
      }
      guard queue.first == model.first else {
        Issue.record("the first of \(model) is \(queue.first as Any)")
        return
      }
    }
  }

  @Test func aLengthThatNoDatagramHasEndsTheConnection() throws {
    let (connection, address) = try connect()
    connection.write([0xff, 0xff, 1, 2, 3])
    turn(waiting: 1_000_000_000)
    #expect(ended == [address] && connections.counters[.tooLong] == 1)
    _ = connection.receive(milliseconds: 2_000)
    #expect(connection.hasEnded)
  }

  @Test(arguments: [false, true])
  func aConnectionThatEndsIsTold(byReset: Bool) throws {
    var connection: TestConnection? = try connect().0
    let address = arrived[0].source
    if byReset { connection?.reset() } else { connection = nil }
    #expect(eventually({ ended == [address] }) { turn(waiting: 1_000_000) })
    #expect(connections.counters[.gone] == 1 && connections.counters.open == 0)
    // Its number belongs to another connection now.
    let (next, newAddress) = try connect()
    #expect(newAddress.connection == address.connection)
    send([5, 5], to: address)
    #expect(connections.counters[.ended] == 2)
    send([1], to: newAddress)
    #expect(next.receive(milliseconds: 2_000).map(\.count) == [1])
  }

  /// A reader that stops: the excess is lost in whole datagrams, and once it reads again, new datagrams arrive.
  @Test func aSlowReaderLosesWholeDatagrams() throws {
    let (connection, address) = try connect(receiveBuffer: 4_096)
    var sent = 0
    while connections.counters[.slowReader] < 1_000 {
      send(Array(repeating: 1_200, count: 20) + [100], byte: UInt8(truncatingIfNeeded: sent), to: address)
      sent += 21
      try #require(sent < 1_000_000)
    }
    var received: [[UInt8]] = []
    let lost = Int(connections.counters[.slowReader])
    let isComplete = eventually({ received.count == sent - lost }) {
      received += connection.receive(milliseconds: 1)
      turn()
    }
    #expect(isComplete, "\(received.count) of \(sent) less \(lost)")
    #expect(received.allSatisfy { ($0.count == 1_200 || $0.count == 100) && Set($0).count == 1 })

    let flows = eventually({ received.last == [99] }) {
      send([1], byte: 99, to: address)
      received += connection.receive(milliseconds: 1)
      turn()
    }
    #expect(flows)
  }
}
