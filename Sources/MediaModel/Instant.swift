/// A point on the monotonic clock, in nanoseconds. The cores receive it as an argument and never read a clock.
package struct Instant: InstantProtocol, Hashable, Sendable {
  package var nanoseconds: UInt64

  package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  package func advanced(by duration: Duration) -> Instant {
    Instant(nanoseconds: UInt64(max(0, Int64(nanoseconds) + duration.nanoseconds)))
  }

  package func duration(to other: Instant) -> Duration {
    .nanoseconds(Int64(other.nanoseconds) - Int64(nanoseconds))
  }

  package static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }
}

/// A point on the wall clock, in milliseconds since 1970 (the protocol's unit).
package struct Timestamp: Comparable, Hashable, Sendable, Codable {
  package var milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// For a `TokenBucket`; 0 before 1970.
  package var nanoseconds: UInt64 { UInt64(max(0, milliseconds)) &* 1_000_000 }

  package init(from decoder: any Decoder) throws {
    milliseconds = try decoder.singleValueContainer().decode(Int64.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(milliseconds)
  }

  package static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

  package static func + (t: Timestamp, d: Duration) -> Timestamp {
    Timestamp(milliseconds: t.milliseconds + d.nanoseconds / 1_000_000)
  }

  package static func - (t: Timestamp, d: Duration) -> Timestamp {
    Timestamp(milliseconds: t.milliseconds - d.nanoseconds / 1_000_000)
  }

  package static func - (a: Timestamp, b: Timestamp) -> Duration { .milliseconds(a.milliseconds - b.milliseconds) }
}

extension Duration {
  /// Whole nanoseconds; enough for 292 years.
  package var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
