import Glibc
@testable import LinuxIO
import MediaModel
import Testing

/// Failures: an error for one destination must not affect the others.
struct SendFailureTests {
  static let bad: [(SocketAddress, Int, SendFailure)] = [
    (SocketAddress(ipv4: 0xffff_ffff, port: 9), 100, .forbidden),
    (SocketAddress(ipv4: 0x7f00_0001, port: 0), 100, .invalid),
    (SocketAddress(ipv4: 0x7f00_0001, port: 9), 65_520, .tooLarge),
  ]

  @Test(arguments: bad)
  func aFailingDestinationCostsOnlyItself(to address: SocketAddress, length: Int, failure: SendFailure) throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    let good = (1...5).map { TestRun(lengths: [$0 * 10, $0 * 10], to: receiver.address) }
    let failing = TestRun(lengths: [length], to: address)

    sender.send([failing, good[0], good[1], failing, failing, good[2], good[3], good[4], failing])

    #expect(receiver.collect(10).map(\.bytes) == good.flatMap(\.datagrams))
    #expect(sender.counters[failure] == 4)
    #expect(sender.counters.failed == 4)
    #expect(sender.counters.sent == 10)
  }

  @Test func anIcmpErrorOfAnEarlierDatagramLosesNone() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    guard sender.hasIPv6 else { return }
    let closed = SocketAddress(ipv4: 0x7f00_0001, port: try UDPSocket(port: 0).port)
    // A connected socket gets ICMP errors; this one still sends to others by address.
    try #require(connect(sender, toIPv4: closed))
    let runs = (0..<6).map { TestRun(lengths: [10 + $0], to: $0.isMultiple(of: 2) ? closed : receiver.address) }

    for run in runs { sender.send([run]) }

    #expect(receiver.collect(3).map(\.bytes.count) == [11, 13, 15])
    #expect(sender.counters[.refused] >= 2)
    #expect(sender.counters.sent == 6)
    #expect(sender.counters.failed == 0)
  }

  @Test func aFullSendBufferDropsTheRestOfTheCall() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    guard sender.hasIPv6 else { return }
    // 60,000 bytes in fragments of 1,280 do not fit into a buffer of 4,608: ENOBUFS.
    try #require(setOption(sender.descriptor, SOL_SOCKET, SO_SNDBUF, 1))
    try #require(setOption(sender.descriptor, Int32(IPPROTO_IPV6), IPV6_MTU, 1_280))

    sender.send([
      TestRun(lengths: [11], to: receiver.address6), TestRun(lengths: [60_000], to: receiver.address6),
      TestRun(lengths: [5, 5], to: receiver.address6),
    ])

    #expect(receiver.collect(1).map(\.bytes.count) == [11])
    #expect(sender.counters[.bufferFull] == 3)
    sender.send([TestRun(lengths: [12], to: receiver.address6)])
    #expect(receiver.collect(1).map(\.bytes.count) == [12])
  }

  @Test func aRefusedRunLeavesAsSingleDatagrams() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    // The kernel does not segment datagrams without a checksum.
    try #require(setOption(sender.descriptor, SOL_SOCKET, SO_NO_CHECK, 1))
    let runs = (1...40).map { TestRun(lengths: Array(repeating: $0, count: 70) + [1], to: receiver.address) }

    for run in runs {
      sender.send([run, TestRun(lengths: [500], to: receiver.address)])
      #expect(
        receiver.collect(72).map(\.bytes) == run.datagrams + [
          TestRun(lengths: [500], to: receiver.address).datagrams[0]
        ])
    }

    #expect(sender.counters.sent == 40 * 72)
    #expect(sender.counters.failed == 0)
    // After 16 refusals in a row it does not try again for a while.
    #expect(sender.counters.refusedRuns == 16)
  }

  @Test func aSegmentAboveThePathsLimitLeavesInFragments() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    guard sender.hasIPv6 else { return }
    try #require(setOption(sender.descriptor, Int32(IPPROTO_IPV6), IPV6_MTU, 1_280))
    let tooLarge = TestRun(lengths: [1_400, 1_400, 1_400], to: receiver.address6)
    let fitting = TestRun(lengths: [1_200, 1_200, 300], to: receiver.address6)

    sender.send([tooLarge, fitting])

    #expect(receiver.collect(6).map(\.bytes) == tooLarge.datagrams + fitting.datagrams)
    #expect(sender.counters.refusedRuns == 1)
    #expect(sender.counters.segmentedRuns == 1)
  }

  @Test func withoutSendOffloadRunsShareCalls() throws {
    var options = UDPSocket.Options()
    options.sendOffload = false
    let sender = try UDPSocket(port: 0, options: options)
    let receiver = try Receiver()
    let runs = (1...8).map { TestRun(lengths: Array(repeating: $0, count: 16), to: receiver.address) }

    sender.send(runs)

    #expect(receiver.collect(128).map(\.bytes) == runs.flatMap(\.datagrams))
    #expect(sender.counters.sendCalls == 2)
    #expect(sender.counters.segmentedRuns == 0)
  }

  @Test func thePauseEndsAndOneRefusalRenewsIt() {
    var gate = SegmentationGate(isKnown: true)
    for _ in 0..<16 {
      let allowed = gate.allows()
      #expect(allowed)
      gate.refused()
    }
    var waited = 0
    while !gate.allows() { waited += 1 }
    #expect(waited == 4_096)
    gate.refused()
    let allowed = gate.allows()
    #expect(!allowed)
  }

  @Test func anAcceptedRunForgivesTheRefusals() {
    var gate = SegmentationGate(isKnown: true)
    for _ in 0..<100 {
      for _ in 0..<15 { gate.refused() }
      gate.accepted()
      let allowed = gate.allows()
      #expect(allowed)
    }
  }

  static let reasons: [(Int32, SendFailure)] = [
    (EAGAIN, .bufferFull), (ENOBUFS, .bufferFull), (ENETUNREACH, .unreachable), (EHOSTUNREACH, .unreachable),
    (ECONNREFUSED, .refused), (EPERM, .forbidden), (EACCES, .forbidden), (EMSGSIZE, .tooLarge), (EINVAL, .invalid),
    (EIO, .other),
  ]

  @Test(arguments: reasons)
  func eachErrnoHasItsReason(code: Int32, reason: SendFailure) { #expect(SendFailure(code: code) == reason) }

  @Test func aPrivilegedPortIsExplained() {
    let error = PortError(.udp, 443, code: EACCES)
    #expect(error == .forbidden(.udp, 443))
    #expect(error.description.contains("CAP_NET_BIND_SERVICE"))
    #expect(PortError(.udp, 1, code: EMFILE).description.contains("Too many open files"))
  }
}
