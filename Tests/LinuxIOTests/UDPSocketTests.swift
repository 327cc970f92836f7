import Glibc
import LinuxIO
import MediaModel
import Testing

struct UDPSocketTests {
  @Test func portZeroGetsAPortThatIsReported() throws {
    let socket = try UDPSocket(port: 0)
    #expect(socket.port >= 1_024)
  }

  @Test func aPortInUseSaysWhatToDo() throws {
    let first = try UDPSocket(port: 0)
    let error = #expect(throws: PortError.self) { try UDPSocket(port: first.port) }
    #expect(error == .inUse(.udp, first.port))
    #expect(error?.description.contains("ss -ulpn 'sport = :\(first.port)'") == true)
  }

  @Test func aTCPPortInUseSaysWhatToDo() throws {
    let port = try UDPSocket(port: 0).port
    let first = try TCPListener(port: port, ipv6: false)
    let error = #expect(throws: PortError.self) { try TCPListener(port: port, ipv6: false) }
    #expect(error == .inUse(.tcp, port))
    #expect(error?.description.contains("ss -tlpn 'sport = :\(port)'") == true)
    withExtendedLifetime(first) {}
  }

  @Test func datagramsForAConnectionAreNotSentByUDP() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    var connection = receiver.address
    connection.connection = 1
    sender.send([TestRun(lengths: [5], to: connection), TestRun(lengths: [6], to: receiver.address)])
    #expect(receiver.collect(1).map(\.bytes.count) == [6])
    #expect(sender.counters.sent == 1)
  }

  @Test func buffersAreReportedAsGranted() throws {
    var options = UDPSocket.Options()
    options.bufferSize = 100_000
    let socket = try UDPSocket(port: 0, options: options)
    #expect(socket.receiveBufferSize == 100_000)
    #expect(socket.sendBufferSize == 100_000)
  }

  @Test(arguments: [false, true])
  func oneSocketTakesBothFamilies(ipv6: Bool) throws {
    let sender = try Receiver()
    let receiver = try Receiver()
    guard receiver.socket.hasIPv6 || !ipv6 else { return }
    sender.socket.send([TestRun(lengths: [100], to: ipv6 ? receiver.address6 : receiver.address)])

    let received = try #require(receiver.collect(1).first)

    #expect(received.bytes == (0..<100).map { UInt8($0) })
    #expect(received.source == (ipv6 ? sender.address6 : sender.address))
  }

  @Test func aDatagramKnowsHowLongItWaited() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    // The kernel begins to timestamp packets a moment after the first socket has requested it.
    var isStamped = false
    for _ in 0..<1_000 where !isStamped {
      sender.send([TestRun(lengths: [3], to: receiver.address)])
      MonotonicClock.sleep(nanoseconds: 1_000_000)
      #expect(receiver.collect(1).count == 1)
      isStamped = receiver.ages.last ?? 0 >= 1_000_000
    }
    try #require(isStamped)
    let start = MonotonicClock.now()
    sender.send([TestRun(lengths: [5], to: receiver.address)])
    MonotonicClock.sleep(nanoseconds: 20_000_000)
    let between = MonotonicClock.now()
    sender.send([TestRun(lengths: [7], to: receiver.address)])
    try #require(receiver.collect(2).count == 2)
    let end = MonotonicClock.now()
    let ages = receiver.ages.suffix(2).map { Duration.nanoseconds($0) }
    // A busy kernel may deliver the second one after this test has read the first.
    #expect(ages[0] >= .milliseconds(20) && ages[0] <= start.duration(to: end))
    #expect(ages[1] <= between.duration(to: end))
  }

  /// A connected socket, like that of an ICE agent, accepts datagrams only from the address to which it sends.
  @Test(arguments: [false, true])
  func answersLeaveFromTheAddressThatThePeerUsed(ipv6: Bool) throws {
    let server = try Receiver(ipv6: ipv6)
    var addresses: [UInt16] = []
    for host in 0x7f00_0001...0x7f00_0003 as ClosedRange<UInt32> {
      let client = try PlainSocket(to: SocketAddress(ipv4: host, port: server.socket.port))
      try #require(send(client.descriptor, "?", 1, 0) == 1)
      var source = try #require(server.collect(1).first).source
      source.localAddress = try #require(server.locals.last)
      addresses.append(source.localAddress)

      server.socket.send([TestRun(lengths: [9], to: source), TestRun(lengths: [700, 700, 5], to: source)])

      #expect(try client.receive(4) == [9, 700, 700, 5])
    }
    #expect(addresses == [1, 2, 3])
    #expect(server.socket.counters.sent == 12)
  }

  @Test func anAnswerOverIPv6LeavesFromTheAddressThatThePeerUsed() throws {
    let server = try Receiver()
    guard server.socket.hasIPv6 else { return }
    let client = try Receiver()
    client.socket.send([TestRun(lengths: [4], to: server.address6)])
    var source = try #require(server.collect(1).first).source
    source.localAddress = try #require(server.locals.last)
    #expect(source.localAddress == 1)

    server.socket.send([TestRun(lengths: [5], to: source)])

    #expect(client.collect(1).map(\.source) == [server.address6])
  }

  @Test func withoutIPv6TheSocketServesIPv4() throws {
    let sender = try Receiver(ipv6: false)
    let receiver = try Receiver(ipv6: false)
    #expect(!receiver.socket.hasIPv6)
    sender.socket.send([
      TestRun(lengths: [10, 10, 4], to: receiver.address6), TestRun(lengths: [20, 20, 3], to: receiver.address),
    ])

    let received = receiver.collect(3)

    #expect(received.map(\.bytes.count) == [20, 20, 3])
    #expect(received.allSatisfy { $0.source == sender.address })
    #expect(sender.socket.counters[.unreachable] == 3)
    #expect(sender.socket.counters.failed == 3)
  }

  static let runs: [[Int]] = [
    [1_200], Array(repeating: 1_200, count: 32), Array(repeating: 1_000, count: 64), [1_200, 1_200, 1], [5, 5, 5, 4],
  ]

  @Test(arguments: runs, [false, true])
  func runsArriveAsTheirDatagrams(lengths: [Int], receiveOffload: Bool) throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver(receiveOffload: receiveOffload)
    let run = TestRun(lengths: lengths, to: receiver.address)

    sender.send([run])

    #expect(receiver.collect(lengths.count).map(\.bytes) == run.datagrams)
    #expect(sender.counters.sent == UInt64(lengths.count))
    #expect(sender.counters.sentBytes == UInt64(lengths.reduce(0, +)))
    #expect(sender.counters.sendCalls == 1)
    #expect(sender.counters.segmentedRuns == (lengths.count > 1 ? 1 : 0))
    #expect(receiver.socket.counters.receivedBytes == sender.counters.sentBytes)
  }

  @Test func aCoalescedMessageIsSplit() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver(batchCapacity: 1)
    let run = TestRun(lengths: Array(repeating: 900, count: 20) + [7], to: receiver.address)

    sender.send([run])

    // One message of one system call has all of them.
    #expect(receiver.collect(1).map(\.bytes) == run.datagrams)
    #expect(receiver.batch.isFull)
  }

  @Test func moreRunsThanOneCallTakesArriveInOrder() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver(batchCapacity: 10)
    let runs = (0..<200).map { TestRun(lengths: [$0 + 1], to: receiver.address) }

    sender.send(runs)

    #expect(receiver.collect(200).map(\.bytes.count) == Array(1...200))
    #expect(sender.counters.sendCalls == 4)
  }

  @Test func anEmptySocketYieldsNothing() throws {
    let receiver = try Receiver()
    receiver.socket.receive(into: receiver.batch)
    #expect(receiver.batch.datagrams.isEmpty)
    #expect(receiver.socket.counters.receiveErrors == 0)
  }

  @Test func anEmptyDatagramIsOneDatagram() throws {
    let receiver = try Receiver()
    let sender = try PlainSocket(to: receiver.address)
    #expect(send(sender.descriptor, nil, 0, 0) == 0)
    #expect(receiver.collect(1).map(\.bytes) == [[]])
  }

  @Test func aDatagramTooLargeForTheBatchIsCountedAndNoOtherIsLost() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver(receiveOffload: false)
    sender.send([2_048, 2_049, 30].map { TestRun(lengths: [$0], to: receiver.address) })

    #expect(receiver.collect(2).map(\.bytes.count) == [2_048, 30])
    #expect(receiver.socket.counters.truncated == 1)
  }

  @Test func datagramsThatTheKernelDropsAreReported() throws {
    var options = UDPSocket.Options()
    options.bufferSize = 4_096
    let receiver = try UDPSocket(port: 0, options: options)
    let sender = try UDPSocket(port: 0)
    sender.send((0..<100).map { _ in TestRun(lengths: [1_000], to: .init(ipv4: 0x7f00_0001, port: receiver.port)) })

    let batch = ReceiveBatch(capacity: 200)
    receiver.receive(into: batch)

    #expect(receiver.receiveDrops > 0)
    #expect(Int(receiver.receiveDrops) + batch.datagrams.count == 100)
  }
}
