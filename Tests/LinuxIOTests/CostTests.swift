import CAllocations
import Glibc
import LinuxIO
import MediaModel
import Testing

/// The cost of the packet path: this thread's CPU time, and a ratio of two measurements in one test, because machines
/// are noisy.
@Suite(.serialized) struct CostTests {
  @Test(.enabled(if: allocations_are_counted()))
  func sendingAndReceivingAllocateNothing() throws {
    let sender = try UDPSocket(port: 0)
    let receiver = try Receiver()
    let failing = SocketAddress(ipv4: 0xffff_ffff, port: 9)
    var runs = [[1_200, 1_200, 1_200], [200], [900, 7]].map { TestRun(lengths: $0, to: receiver.address) }
    runs.append(TestRun(lengths: [10, 10], to: failing))
    let all = runs.map(\.run)
    func round() -> Int {
      all.withUnsafeBufferPointer { sender.send($0) }
      receiver.socket.receive(into: receiver.batch)
      return receiver.batch.datagrams.count
    }
    var received = round()
    let before = allocations_of_this_thread()

    for _ in 0..<1_000 { received += round() }

    #expect(allocations_of_this_thread() - before == 0)
    #expect(received == 6 * 1_001)
    #expect(sender.counters[.forbidden] == 2 * 1_001)
    withExtendedLifetime(runs) {}
  }

  @Test(.enabled(if: allocations_are_counted()))
  func theCounterCounts() {
    let before = allocations_of_this_thread()
    let array = (0..<100).map { [$0] }
    #expect(array.count == 100)
    #expect(allocations_of_this_thread() - before >= 100)
  }

  /// Release builds measured a sixth. Under a sanitizer, where allocations are not counted either, it was once 0.63.
  @Test(.enabled(if: allocations_are_counted()))
  func aRunOf32CostsLessThanHalfOfSingleSends() throws {
    let receiver = try Receiver(receiveOffload: false)
    let sender = try UDPSocket(port: 0)
    let plain = try PlainSocket(to: receiver.address)
    let run = TestRun(lengths: Array(repeating: 1_200, count: 32), to: receiver.address)
    func microseconds(_ body: () -> Void) -> Double {
      var best = UInt64.max
      for _ in 0..<20 {
        let start = ThreadClock.now()
        for _ in 0..<8 { body() }
        best = min(best, ThreadClock.now() - start)
        #expect(receiver.collect(256).count == 256)
      }
      return Double(best) / 256_000
    }
    let single = microseconds { for i in 0..<32 { _ = send(plain.descriptor, run.memory + i * 1_200, 1_200, 0) } }
    let offloaded = microseconds { sender.send([run]) }
    #expect(offloaded < single / 2, "\(offloaded) against \(single) µs a datagram")
  }
}
