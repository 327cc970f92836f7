import MediaModel

/// The rates of one stream's decode targets, measured over about a second each. A stream without dependency descriptors has one target, 0.
struct LayerRates {
  private static let window = Duration.seconds(1)
  /// The first measurement is made sooner, because a receiver may wait for it.
  private static let firstWindow = Duration.milliseconds(500)
  /// After a pause of this length the window starts again, and the last measurement stays.
  private static let longestWindow = Duration.seconds(2)
  /// Bytes of IP, UDP and SRTP in addition to header and payload.
  private static let overhead = 48
  /// Fewer pictures a second than `choppy` look choppy, and from `smooth` on they no longer do.
  private static let choppy: UInt64 = 10
  private static let smooth: UInt64 = 12

  private var bytes = InlineArray<32, UInt32>(repeating: 0)
  private var rates = InlineArray<32, UInt32>(repeating: 0)
  private var pictures = InlineArray<32, UInt32>(repeating: 0)
  /// The newest picture, and the targets for which it was counted: with spatial layers it has several frames.
  private var picture: (timestamp: UInt32, targets: UInt32)?
  private var choppyTargets: UInt32 = 0
  private var since: Instant?
  private(set) var isMeasured = false

  /// The rate in bit/s on the wire of `target` with everything that it needs.
  subscript(target: Int) -> Int { Int(rates[target & 31]) }

  /// Whether `target` has so few pictures a second that it looks choppy.
  func isChoppy(_ target: Int) -> Bool { choppyTargets >> UInt32(target & 31) & 1 != 0 }

  /// Counts a packet.
  /// - Parameters:
  ///   - length: of header and payload, in bytes.
  ///   - present: the decode targets that the packet belongs to, one bit each.
  ///   - timestamp: of RTP, which all packets of a picture share.
  mutating func add(_ length: Int, present: UInt32, timestamp: UInt32, now: Instant) {
    if let since {
      let elapsed = since.duration(to: now)
      if elapsed >= (isMeasured ? Self.window : Self.firstWindow) { close(after: elapsed, now: now) }
    } else {
      since = now
    }
    let uncounted = count(timestamp, present: present)
    var rest = present
    while rest != 0 {
      bytes[rest.trailingZeroBitCount] &+= UInt32(truncatingIfNeeded: length + Self.overhead)
      pictures[rest.trailingZeroBitCount] &+= uncounted >> UInt32(rest.trailingZeroBitCount) & 1
      rest &= rest &- 1
    }
  }

  /// The targets for which the picture of this timestamp counts for the first time; none for a late packet.
  private mutating func count(_ timestamp: UInt32, present: UInt32) -> UInt32 {
    let age = picture.map { Int32(bitPattern: timestamp &- $0.timestamp) } ?? 1
    guard age >= 0 else { return 0 }
    let counted = age > 0 ? 0 : picture?.targets ?? 0
    picture = (timestamp, counted | present)
    return present & ~counted
  }

  private mutating func close(after elapsed: Duration, now: Instant) {
    since = now
    defer {
      bytes = .init(repeating: 0)
      pictures = .init(repeating: 0)
      picture = nil
    }
    guard elapsed <= Self.longestWindow else { return }
    let milliseconds = UInt64(max(1, elapsed.nanoseconds / 1_000_000))
    for target in bytes.indices {
      let rate = UInt32(clamping: UInt64(bytes[target]) * 8_000 / milliseconds)
      // A key frame, or a still picture, is not a new rate.
      rates[target] = isMeasured ? rates[target] / 2 + rate / 2 : rate
      let frequency = UInt64(pictures[target]) * 1_000 / milliseconds
      if frequency < Self.choppy { choppyTargets |= 1 << UInt32(target) }
      if frequency >= Self.smooth { choppyTargets &= ~(1 << UInt32(target)) }
    }
    isMeasured = true
  }
}
