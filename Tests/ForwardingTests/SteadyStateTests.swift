import CAllocations
import Glibc
import MediaModel
import RTP
import Testing

@testable import Forwarding

/// One sender, ten receivers, packets made beforehand: nothing but `SFU.handle`.
@Suite(.serialized) struct SteadyStateTests {
  /// Unoptimised code takes boxes from the heap, so this speaks of release builds.
  @Test(.enabled(if: isRelease && allocations_are_counted()), arguments: [false, true])
  func forwardsWithoutAllocating(isReported: Bool) throws {
    let bench = try Bench(receivers: 10, packets: 3000, isReported: isReported)
    bench.forward(0..<1000)
    let before = allocations_of_this_thread()
    bench.forward(1000..<3000)
    #expect(allocations_of_this_thread() == before)
    #expect(bench.forwarded == 30_000)
  }

  /// Prints nanoseconds of this thread for each packet that leaves. Fails when one does not, or takes ten times as long as it should.
  @Test(.enabled(if: isRelease)) func forwardingCost() throws {
    for (length, isReported, name) in [
      (1183, false, "1200 B"), (120, false, "137 B"), (1183, true, "1200 B with feedback"),
      (120, true, "137 B with feedback"),
    ] {
      let bench = try Bench(receivers: 10, packets: 21_000, payload: length, isReported: isReported)
      bench.forward(0..<1000)
      var best = Double.infinity
      for round in 0..<10 {
        let start = threadTime()
        bench.forward(1000 + round * 2000..<3000 + round * 2000)
        best = min(best, Double(threadTime() - start) / 20_000)
      }
      #expect(bench.forwarded == 210_000)
      #expect(best < 10_000)
      print("forwarding, 10 receivers, \(name): \(Int(best)) ns a packet")
    }
  }

  private func threadTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

let isRelease: Bool = {
  #if DEBUG
    false
  #else
    true
  #endif
}()

/// A call that is up, and the sender's next packets as they will come from the network.
private final class Bench {
  private let call: SimulatedCall
  private let sender: TestPeer
  private var datagrams: [[UInt8]] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1500, alignment: 64)
  private let before: UInt64

  init(receivers: Int, packets: Int, payload: Int = 1150, isReported: Bool) throws {
    call = SimulatedCall()
    sender = call.join([.camera], audioSlots: 0, videoSlots: 0)
    for _ in 0..<receivers {
      let receiver = call.join([], audioSlots: 0, videoSlots: 1)
      guard isReported else { continue }
      receiver.reportArrivals()
      call.configure(receiver)
    }
    try call.connect()
    call.run(milliseconds: 2500)
    let track = sender.tracks[0]
    track.packetsPerFrame = packets
    track.payloadLength = payload
    track.wantsKeyFrame = false
    track.isMidSent = false
    let sender = sender
    datagrams = track.nextFrame(extensions: sender.configuration.extensions).map { sender.protect($0)! }
    before = call.sfu.counters.forwarded
  }

  deinit { buffer.deallocate() }

  var forwarded: UInt64 { call.sfu.counters.forwarded - before }

  /// Hands these packets to the SFU, emptying the outbox as a worker does after a full batch.
  func forward(_ range: Range<Int>) {
    let sfu = call.sfu
    let outbox = call.outbox
    let address = sender.address
    var now = call.now
    for i in range {
      datagrams[i].withUnsafeBytes { buffer.copyMemory(from: $0) }
      let datagram = UnsafeMutableRawBufferPointer(rebasing: buffer[..<datagrams[i].count])
      now = now.advanced(by: .microseconds(100))
      sfu.handle(datagram, from: address, now: now, into: outbox)
      if i % 32 == 31 { outbox.reset() }
    }
  }
}
