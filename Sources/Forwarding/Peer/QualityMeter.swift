import MediaModel

/// The quality that one peer gets, judged by its receiver reports (RFC 3550 section 6.4.1) and the bytes sent: 4 is best, at 0
/// hardly anything can be understood. It falls immediately and rises one level at a time, so that it does not flap.
struct QualityMeter {
  static let interval = Duration.seconds(2)
  /// The number of judgements in a row that must be better before the level rises.
  static let patience = 3

  private(set) var level: Int?
  private var better = 0
  private var judgedAt: Instant?
  private var octetsBefore: UInt64 = 0
  /// The reports since the last judgement: packets sent meanwhile, how many of them were lost in 1/256, and the worst
  /// jitter.
  private var packets: UInt64 = 0
  private var lost: UInt64 = 0
  private var jitter = Duration.zero
  /// In 1/65,536, smoothed over judgements.
  private var loss: UInt64 = 0

  /// The peer reported on a stream.
  /// - Parameters:
  ///   - fractionLost: in 1/256 of the `packets` sent since its last report.
  mutating func reported(fractionLost: UInt8, of packets: UInt32, jitter: Duration) {
    guard packets > 0 else { return }
    self.packets &+= UInt64(packets)
    lost &+= UInt64(fractionLost) &* UInt64(packets)
    self.jitter = max(self.jitter, jitter)
  }

  /// Judges the reports since the last call.
  /// - Parameter octets: sent to the peer in total.
  /// - Returns: the level and bit/s if the level has changed; nil also before the interval is over, and without reports.
  mutating func judge(roundTrip: Duration, octets: UInt64, now: Instant) -> (level: Int, bitrate: Int)? {
    guard let since = judgedAt else {
      judgedAt = now
      octetsBefore = octets
      return nil
    }
    let time = since.duration(to: now)
    guard time >= Self.interval, packets > 0 else { return nil }
    let fresh = min(65_535, (lost << 8) / packets)
    loss = level == nil ? fresh : (loss + fresh) / 2  // in range: 16 bits
    let bits = (octets &- octetsBefore) &* 8
    let bitrate = Int(clamping: bits) / Int(max(1, time.nanoseconds / 1_000_000)) * 1000
    let measured = Self.level(loss: loss, roundTrip: roundTrip, jitter: jitter)
    judgedAt = now
    octetsBefore = octets
    (packets, lost, jitter) = (0, 0, .zero)
    return change(to: measured) ? (level ?? measured, bitrate) : nil
  }

  /// Nothing reaches the peer any longer. Returns what to report; nil if that is already known.
  mutating func gone(now: Instant) -> (level: Int, bitrate: Int)? {
    (packets, lost, jitter, better) = (0, 0, .zero, 0)
    judgedAt = now
    guard let level, level != 0 else { return nil }
    self.level = 0
    return (0, 0)
  }

  private mutating func change(to measured: Int) -> Bool {
    guard let level else {
      self.level = measured
      return true
    }
    better = measured > level ? better + 1 : 0
    guard measured < level || better >= Self.patience else { return false }
    better = 0
    self.level = measured < level ? measured : level + 1  // in range: 4 levels
    return true
  }

  /// The worst of three. Loss in percent: up to 1 nobody notices it, from 20 on speech breaks up. A round trip of 400 ms is the limit of what people accept
  /// according to ITU-T G.114.
  private static func level(loss: UInt64, roundTrip: Duration, jitter: Duration) -> Int {
    min(
      grade(Int(loss), [655, 1966, 5243, 13_107]),
      grade(Int(roundTrip.nanoseconds / 1_000_000), [300, 500, 900, 2000]),
      grade(Int(jitter.nanoseconds / 1_000_000), [40, 80, 150, 400]))
  }

  /// 4 up to the first bound, 0 above the last.
  private static func grade(_ value: Int, _ bounds: InlineArray<4, Int>) -> Int {
    var grade = 4
    for i in bounds.indices where value > bounds[i] { grade -= 1 }
    return grade
  }
}
