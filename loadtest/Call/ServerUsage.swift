import LinuxIO

/// The CPU time and memory that the server's process uses while the test measures.
struct ServerUsage {
  struct Result: Sendable {
    /// CPU time for each RTP packet that the server sent to a participant.
    var cpuMicrosPerPacket: Double
    var packetsPerSecond: Double
    var rssBytes: UInt64
    /// The memory that the participants added.
    var addedBytes: UInt64
    /// The share of one core that it used.
    var cpuShare: Double
  }

  private let process: Int32?
  private var residentBefore: UInt64 = 0
  private var cpuBefore: UInt64 = 0
  private(set) var result: Result?

  init(process: Int32?) { self.process = process }

  mutating func noteBeforeJoining() { residentBefore = usage?.residentBytes ?? 0 }

  mutating func start() { cpuBefore = usage?.cpuNanoseconds ?? 0 }

  mutating func stop(packets: UInt64, seconds: Double) {
    guard let usage else { return }
    let cpu = Double(usage.cpuNanoseconds &- cpuBefore)
    result = Result(
      cpuMicrosPerPacket: packets == 0 ? 0 : cpu / 1000 / Double(packets),
      packetsPerSecond: Double(packets) / seconds, rssBytes: usage.residentBytes,
      addedBytes: usage.residentBytes - min(residentBefore, usage.residentBytes), cpuShare: cpu / 1e9 / seconds)
  }

  private var usage: ProcessUsage? { process.flatMap { ProcessUsage(of: $0) } }
}
