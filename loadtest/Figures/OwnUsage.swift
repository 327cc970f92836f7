import Foundation
import LinuxIO

/// The resources that the load test itself used in some time, and whether it used so much that its figures no longer
/// describe the server.
struct OwnUsage: Sendable {
  /// Share of a core: of the whole process, and of each media thread.
  let cpu: Double
  let threads: [Double]
  /// The number of processors that it may run on.
  let processors: Int
  /// Datagrams that its sockets lost.
  let socketDrops: UInt64
  /// How late the media threads ran for their timers.
  let lateness: LatencyHistogram

  /// A thread that uses more than this share of a core, or a program that uses more than this share of its cores,
  /// delays what it measures.
  static let busy = 0.85

  /// The usage between two readings.
  init(from before: Reading, to after: Reading, processors: Int = availableProcessors().count) {
    self.processors = processors
    func share(_ cpu: UInt64, _ earlier: UInt64, _ time: UInt64) -> Double {
      time == 0 ? 0 : Double(cpu - min(earlier, cpu)) / Double(time)
    }
    cpu = share(after.ownCPU, before.ownCPU, after.nanoseconds - min(before.nanoseconds, after.nanoseconds))
    threads = zip(after.threads, before.threads).map { now, before in
      share(now.tally.threadNanoseconds, before.tally.threadNanoseconds, now.at - min(before.at, now.at))
    }
    lateness = zip(after.threads, before.threads).reduce(into: LatencyHistogram()) { sum, threads in
      sum.merge(threads.0.tally.lateness.since(threads.1.tally.lateness))
    }
    let drops = { (reading: Reading) in reading.threads.reduce(UInt64(0)) { $0 + $1.tally.socketDrops } }
    socketDrops = drops(after) - min(drops(before), drops(after))
  }

  var busiestThread: Double { threads.max() ?? 0 }

  /// Why the load test itself determined the latency; nil when it did not.
  var bottleneck: String? {
    if busiestThread > Self.busy {
      return String(
        format: "a media thread used %.0f %% of a core: add --threads, or cores for the load test", busiestThread * 100)
    }
    if cpu > Self.busy * Double(processors) {
      return String(
        format: "it used %.0f %% of a core and may run on %d: give it more cores, or a machine of its own", cpu * 100,
        processors)
    }
    if socketDrops > 0 {
      return "\(socketDrops) datagrams were lost on this side: add --threads, or raise net.core.rmem_max"
    }
    return nil
  }
}
