import CAllocations
import LinuxIO
import Testing

/// One sender, ten receivers, packets made beforehand: nothing but `SFU.handle`.
@Suite(.serialized) struct SteadyStateTests {
  /// Unoptimised code allocates boxes, so this holds only for release builds.
  @Test(.enabled(if: isRelease && allocations_are_counted()), arguments: [false, true])
  func forwardsWithoutAllocating(isReported: Bool) throws {
    let bench = try ForwardingBench(receivers: 10, packets: 3000, isReported: isReported)
    bench.forward(0..<1000)
    let before = allocations_of_this_thread()
    bench.forward(1000..<3000)
    #expect(allocations_of_this_thread() == before)
    #expect(bench.forwarded == 30_000)
  }

  /// Packets that pass the pacer, and packets that wait in it.
  @Test(.enabled(if: isRelease && allocations_are_counted()), arguments: [120, 1183])
  func pacesWithoutAllocating(payload: Int) throws {
    let bench = try ForwardingBench(
      receivers: 10, packets: 3000, payload: payload, isReported: true, isPaced: true,
      history: payload == 120 ? 256 << 10 : 1 << 20)
    bench.forward(0..<1000)
    let before = allocations_of_this_thread()
    bench.forward(1000..<3000)
    #expect(allocations_of_this_thread() == before)
    // 11 Mbit/s pass; 30 of 96 Mbit/s leave.
    #expect(payload == 120 ? bench.forwarded == 30_000 : bench.forwarded > 3_000)
    #expect(payload == 120 ? bench.waited == 0 : bench.waited > 5_000)
  }

  /// The work whose instructions `Tests/EndToEnd/test_instructions.py` counts, by the name of `measured`.
  @Test(.enabled(if: isRelease)) func forwardsForTheCount() throws {
    let bench = try ForwardingBench(receivers: 10, packets: 3000, payload: 1183, isReported: true)
    bench.forward(0..<1000)
    bench.measured(1000..<3000)
    #expect(bench.forwarded == 30_000)
  }

  /// Prints this thread's nanoseconds for each sent packet. Fails if a packet is not sent, or takes ten times as long
  /// as it should.
  @Test(.enabled(if: isRelease)) func forwardingCost() throws {
    for (length, isReported, isPaced, name) in [
      (1183, false, false, "1200 B"), (120, false, false, "137 B"), (1183, true, false, "1200 B with feedback"),
      (120, true, false, "137 B with feedback"), (120, true, true, "137 B with feedback and pacer"),
    ] {
      let bench = try ForwardingBench(
        receivers: 10, packets: 21_000, payload: length, isReported: isReported, isPaced: isPaced)
      bench.forward(0..<1000)
      var best = Double.infinity
      for round in 0..<10 {
        let start = ThreadClock.now()
        bench.forward(1000 + round * 2000..<3000 + round * 2000)
        best = min(best, Double(ThreadClock.now() - start) / 20_000)
      }
      #expect(bench.forwarded == 210_000)
      #expect(best < 10_000)
      print("forwarding, 10 receivers, \(name): \(Int(best)) ns a packet")
    }
  }
}

let isRelease: Bool = {
  #if DEBUG
    false
  #else
    true
  #endif
}()
