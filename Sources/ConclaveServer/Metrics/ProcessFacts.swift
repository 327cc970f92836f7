import Foundation
import Glibc
import LinuxIO

/// The figures of Prometheus' `process_*` metrics, as its own clients read them from /proc (proc(5)). A figure that cannot be read is nil.
struct ProcessFacts: Sendable {
  static var id: Int32 { getpid() }

  var cpuSeconds: Double?
  var residentBytes: Double?
  var openFiles: Double?
  var maximumFiles: Double?
  /// Since 1970.
  var startSeconds: Double?

  init() {
    if let usage = ProcessUsage() {
      cpuSeconds = Double(usage.cpuNanoseconds) / 1e9
      residentBytes = Double(usage.residentBytes)
    }
    openFiles = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { Double($0.count) }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 { maximumFiles = Double(limit.rlim_cur) }
    startSeconds = Self.startSeconds
  }

  /// Read once: it does not change.
  private static let startSeconds: Double? = {
    // The name, in parentheses, may contain anything; the fields after it are counted from 3.
    guard let stat = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
      let name = stat.lastIndex(of: ")")
    else { return nil }
    let fields = stat[stat.index(after: name)...].split(separator: " ")
    guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
    var (real, boot) = (timespec(), timespec())
    clock_gettime(CLOCK_REALTIME, &real)
    clock_gettime(CLOCK_BOOTTIME, &boot)
    let booted = Double(real.tv_sec - boot.tv_sec) + Double(real.tv_nsec - boot.tv_nsec) / 1e9
    return booted + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }()
}

extension Metrics.Page {
  mutating func add(_ process: ProcessFacts) {
    line("conclave_build_info", "gauge", "The version that runs; always 1.", "{version=\"\(Server.version)\"} 1")
    func figure(_ name: String, _ type: String, _ help: String, _ value: Double?) {
      if let value { line(name, type, help, " \(value)") }
    }
    figure("process_cpu_seconds_total", "counter", "CPU time of all threads.", process.cpuSeconds)
    figure("process_resident_memory_bytes", "gauge", "Memory that the process holds.", process.residentBytes)
    figure("process_open_fds", "gauge", "Open files.", process.openFiles)
    figure("process_max_fds", "gauge", "The limit of open files.", process.maximumFiles)
    figure("process_start_time_seconds", "gauge", "Start of the process, since 1970.", process.startSeconds)
  }
}
