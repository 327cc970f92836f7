import MediaModel

/// The rates of one stream's decode targets, measured over about a second each. A stream without dependency descriptors has one target, 0.
struct LayerRates {
  private static let window = Duration.seconds(1)
  /// The first figure comes sooner, because a receiver may wait for it.
  private static let firstWindow = Duration.milliseconds(500)
  /// After a pause as long as this the window begins anew, and the last figure stays.
  private static let longestWindow = Duration.seconds(2)
  /// Bytes of IP, UDP and SRTP beside header and payload.
  private static let overhead = 48

  private var bytes = InlineArray<32, UInt32>(repeating: 0)
  private var rates = InlineArray<32, UInt32>(repeating: 0)
  private var since: Instant?
  private(set) var isMeasured = false

  /// The rate in bit/s on the wire of `target` with all that it needs.
  subscript(target: Int) -> Int { Int(rates[target & 31]) }

  /// Counts a packet.
  /// - Parameters:
  ///   - length: of header and payload, in bytes.
  ///   - present: the decode targets that the packet belongs to, a bit each.
  mutating func add(_ length: Int, present: UInt32, now: Instant) {
    if let since {
      let elapsed = since.duration(to: now)
      if elapsed >= (isMeasured ? Self.window : Self.firstWindow) { close(after: elapsed, now: now) }
    } else {
      since = now
    }
    var rest = present
    while rest != 0 {
      bytes[rest.trailingZeroBitCount] &+= UInt32(truncatingIfNeeded: length + Self.overhead)
      rest &= rest &- 1
    }
  }

  private mutating func close(after elapsed: Duration, now: Instant) {
    since = now
    defer { bytes = .init(repeating: 0) }
    guard elapsed <= Self.longestWindow else { return }
    let milliseconds = UInt64(max(1, elapsed.nanoseconds / 1_000_000))
    for target in bytes.indices {
      let rate = UInt32(clamping: UInt64(bytes[target]) * 8_000 / milliseconds)
      // A key frame, or a still picture, is no new rate.
      rates[target] = isMeasured ? rates[target] / 2 + rate / 2 : rate
    }
    isMeasured = true
  }
}
