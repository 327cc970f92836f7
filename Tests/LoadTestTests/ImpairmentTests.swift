import CAllocations
import MediaModel
import Paths
import Seeded
import Testing

@testable import loadtest

/// A bad path, in virtual time.
struct ImpairmentTests {
  private func impairment(_ text: String) throws -> Impairment { try ImpairmentOption(text).impairment }

  /// Arrival times in µs of packets of 972 bytes (1,000 on the wire), sent every `interval` µs.
  private func arrivals(_ text: String, count: Int, interval: Int, seed: UInt64 = 1) throws -> [Int?] {
    var path = ImpairedPath(try impairment(text), seed: seed)
    return (0..<count).map { path.arrival(of: 972, now: $0 * interval) }
  }

  @Test func aShareIsLostAndTheSeedRepeatsIt() throws {
    let first = try arrivals("loss=5%", count: 20_000, interval: 100)
    let lost = first.count { $0 == nil }
    #expect(850...1_150 ~= lost, "\(lost)")
    #expect(try arrivals("loss=5%", count: 20_000, interval: 100) == first)
    #expect(try arrivals("loss=5%", count: 20_000, interval: 100, seed: 2) != first)
  }

  @Test func delayAndJitterStayWithinTheirBoundsAndKeepTheOrder() throws {
    let times = try arrivals("delay=50ms,jitter=10ms", count: 2_000, interval: 30_000).compactMap { $0 }
    let delays = times.enumerated().map { $0.element - $0.offset * 30_000 }
    #expect(times.count == 2_000 && times == times.sorted())
    let (least, most) = (try #require(delays.min()), try #require(delays.max()))
    #expect(least >= 40_000 && least < 41_000 && most <= 60_000 && most > 59_000)
    let crowded = try arrivals("delay=50ms,jitter=10ms", count: 2_000, interval: 100).compactMap { $0 }
    #expect(crowded == crowded.sorted())
  }

  @Test func aLinkPassesItsRateAndDropsAtTheTailOfItsQueue() throws {
    // 1,000 bytes every 10 ms are 800 kbit/s.
    let times = try arrivals("rate=400kbit/s,queue=200ms", count: 1_000, interval: 10_000)
    let passed = times.compactMap { $0 }
    #expect(480...520 ~= passed.count, "\(passed.count)")
    for (index, time) in times.enumerated() {
      if let time { #expect(time - index * 10_000 <= 220_000) }
    }
    #expect(zip(passed, passed.dropFirst()).allSatisfy { $1 - $0 >= 20_000 })
  }

  private func at(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

  @Test func datagramsComeOutWholeInOrderAndInTime() throws {
    let path = ImpairedDatagrams(try impairment("delay=5ms"), seed: 3)
    var random = SeededGenerator(seed: 3)
    var waiting: [(bytes: [UInt8], at: UInt64)] = []
    var taken = 0
    for now in UInt64(1)...3_000 {
      let bytes = random.bytes(1 + random.below(1_500))
      bytes.withUnsafeBytes { path.send($0, SocketAddress(ipv4: 1, port: UInt16(now)), now: at(now)) }
      waiting.append((bytes, now + 5))
      while let arrived = path.takeArrived(at(now)) {
        let next = waiting.removeFirst()
        #expect(Array(arrived.bytes) == next.bytes && next.at == now)
        #expect(arrived.address.port == UInt16(now - 5))
        taken += 1
      }
      #expect(path.nextDue == waiting.first.map { at($0.at) })
    }
    #expect(taken == 2_995 && path.dropped == 0)
  }

  @Test func datagramsWithoutRoomAreDroppedAndCounted() throws {
    let path = ImpairedDatagrams(try impairment("delay=1ms"), seed: 1)
    let bytes = [UInt8](repeating: 7, count: 100)
    for _ in 0..<path.capacity + 10 {
      bytes.withUnsafeBytes { path.send($0, SocketAddress(ipv4: 1, port: 1), now: at(1)) }
    }
    let large = [UInt8](repeating: 7, count: 1_501)
    _ = path.takeArrived(at(9))
    large.withUnsafeBytes { path.send($0, SocketAddress(ipv4: 1, port: 1), now: at(9)) }
    #expect(path.withoutRoom == 11 && path.dropped == 11)
  }
}

extension ImpairmentTests {
  @Test(.enabled(if: allocations_are_counted())) func aDatagramAllocatesNothing() throws {
    let path = ImpairedDatagrams(try impairment("loss=5%,delay=5ms,jitter=2ms,rate=20mbit/s"), seed: 9)
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 900, alignment: 8)
    defer { bytes.deallocate() }
    let datagram = UnsafeRawBufferPointer(bytes)
    let address = SocketAddress(ipv4: 1, port: 1)
    // A range's iterator may allocate in unoptimized code.
    var now = Instant(nanoseconds: 0)
    let before = allocations_of_this_thread()
    while now.nanoseconds < 2_000_000_000 {
      now.nanoseconds += 1_000_000
      path.send(datagram, address, now: now)
      while path.takeArrived(now) != nil {}
    }
    #expect(allocations_of_this_thread() - before == 0)
  }
}
