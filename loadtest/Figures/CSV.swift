import Foundation

/// Samples as comma-separated values: a header line, then a line for each sample (RFC 4180).
enum CSV {
  private static let columns: [(name: String, value: @Sendable (Sample) -> String)] = [
    ("seconds", { number($0.seconds, 2) }),
    ("phase", { $0.phase }),
    ("joined", { String($0.joined) }),
    ("packets_per_second", { number($0.packetsPerSecond, 0) }),
    ("mbit_per_second", { number($0.megabitsPerSecond, 3) }),
    ("latency_p50_ms", { number($0.p50Ms, 3) }),
    ("latency_p90_ms", { number($0.p90Ms, 3) }),
    ("latency_p99_ms", { number($0.p99Ms, 3) }),
    ("latency_max_ms", { number($0.maxMs, 3) }),
    ("loss", { number($0.loss, 6) }),
    ("frames_q", { number($0.frames(of: 0), 0) }),
    ("frames_h", { number($0.frames(of: 1), 0) }),
    ("frames_f", { number($0.frames(of: 2), 0) }),
    ("server_cpu", { number($0.serverCPU, 4) }),
    ("server_memory_bytes", { number($0.serverMemory, 0) }),
    ("own_cpu", { number($0.ownCPU, 4) }),
    ("busiest_thread", { number($0.busiestThread, 4) }),
    ("socket_drops", { String($0.socketDrops) }),
  ]

  static func text(_ samples: [Sample]) -> String {
    let lines = [columns.map(\.name)] + samples.map { sample in columns.map { field($0.value(sample)) } }
    return lines.map { $0.joined(separator: ",") + "\r\n" }.joined()
  }

  /// Empty for an unknown figure.
  private static func number(_ value: Double?, _ digits: Int) -> String {
    value.map { String(format: "%.\(digits)f", $0) } ?? ""
  }

  private static func field(_ text: String) -> String {
    text.contains(where: { ",\"\r\n".contains($0) }) ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
  }
}
