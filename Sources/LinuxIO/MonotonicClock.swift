import Glibc
package import MediaModel

package enum ThreadClock {
  /// CPU time of the calling thread in nanoseconds, user and system (CLOCK_THREAD_CPUTIME_ID). A thread that is displaced by another uses
  /// none.
  package static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}

/// CLOCK_MONOTONIC.
package enum MonotonicClock {
  package static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
  }

  /// CLOCK_BOOTTIME: the same plus the time in which the machine was suspended.
  package static func sinceBoot() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
  }

  /// Stops this thread for at least this time, or until a signal comes.
  package static func sleep(nanoseconds: UInt64) {
    var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
  }
}
