import Glibc

/// The CPU time and memory that a process has used, for measurements.
package struct ProcessUsage: Sendable {
  /// CPU time of all its threads since its start, user and system, in nanoseconds.
  package var cpuNanoseconds: UInt64
  /// The memory that it uses at present.
  package var residentBytes: UInt64

  /// nil if there is no such process, or it may not be inspected.
  package init?(of process: Int32 = getpid()) {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0,
      let pages = Self.residentPages(of: process)
    else { return nil }
    cpuNanoseconds = UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    residentBytes = pages &* UInt64(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The second number in /proc/PID/statm (proc(5)).
  private static func residentPages(of process: Int32) -> UInt64? {
    let file = open("/proc/\(process)/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    let text = String(unsafeUninitializedCapacity: 128) { buffer in
      max(0, read(file, buffer.baseAddress, buffer.count))
    }
    let fields = text.split(separator: " ")
    return fields.count > 1 ? UInt64(fields[1]) : nil
  }
}
