import CongestionControl
import MediaModel
import Octets
import RTP

/// The path to one receiver that reports what arrives: the numbers of its packets, and the rate that the path carries.
struct Downlink {
  /// Bytes of IPv4 or IPv6 and UDP.
  private static let overhead = (ipv4: 28, ipv6: 48)

  var estimator: RateEstimator
  var division: RateDivision
  var probe: RunningProbe?
  /// When to divide the rate again, or to continue the probe; nil before the first report: a receiver that never reports gets everything that it wishes.
  var nextPass: Instant?
  private(set) var nextNumber: UInt16
  private var clock = FeedbackClock()
  private var copies: CopyBudget
  /// Bytes of retransmissions since `copyRate` was measured.
  private var copiedBytes = 0
  private var copyRate = 0
  private var measuredAt: Instant
  /// Statuses that the receiver may report. A browser reports each packet about once, so this is 20 Mbit/s of small packets.
  private var statuses = TokenBucket(perSecond: 20_000, burst: 2 * TransportFeedback.mostPackets)

  init(_ feedback: RateFeedback, firstNumber: UInt16, now: Instant) {
    nextNumber = firstNumber
    estimator = RateEstimator(now: now.microseconds, reportsRateAlone: feedback == .rate)
    division = RateDivision(target: estimator.target)
    copies = CopyBudget(now: now)
    measuredAt = now
  }

  /// The receiver reports a rate and its loss, and no packets.
  var reportsRateAlone: Bool { estimator.reportsRateAlone }

  /// The rate that the path carries, in bit/s.
  var rate: Int { estimator.target }

  /// The packet with `nextNumber` leaves.
  /// - Parameter length: of the datagram, in bytes.
  mutating func sent(length: Int, to destination: SocketAddress, kind: SentKind, now: Instant) {
    let size = length + (destination.isIPv4 ? Self.overhead.ipv4 : Self.overhead.ipv6)
    estimator.sent(nextNumber, size: size, kind: kind, probe: probe?.order.id ?? 0, now: now.microseconds)
    nextNumber &+= 1
    probe?.sent(size)
    guard kind == .retransmission else { return }
    copies.sent(size)
    copiedBytes += size
  }

  /// Takes a report of the receiver.
  /// - Returns: false when it reports more than it may.
  mutating func received(_ report: TransportFeedback, now: Instant) -> Bool {
    guard statuses.take(report.count, now: now.nanoseconds) == nil else { return false }
    let start = clock.microseconds(report.referenceTime)
    let time = now.microseconds
    for status in report {
      if let offset = status.offset {
        estimator.received(status.number, arrival: start + offset, now: time)
      } else {
        estimator.missing(status.number, now: time)
      }
    }
    estimator.endReport(now: time)
    if nextPass == nil { nextPass = now }
    return true
  }

  /// Takes the rate that the receiver estimates, in bit/s.
  mutating func received(rate: Int, now: Instant) {
    estimator.remb(rate, now: now.microseconds)
    if nextPass == nil { nextPass = now }
  }

  /// The receiver lost this share of a video's packets.
  mutating func received(lost share: Double, now: Instant) { estimator.reported(lost: share, now: now.microseconds) }

  /// Whether a packet may be sent again. A receiver that does not report on packets is bounded by the count of its requests alone.
  mutating func permitsCopy(of number: UInt16, ssrc: UInt32, now: Instant) -> Bool {
    guard nextPass != nil, !reportsRateAlone else { return true }
    return copies.permits(
      number, of: ssrc, rate: estimator.target, roundTrip: .microseconds(estimator.roundTrip), now: now)
  }

  /// The rate of retransmissions in bit/s, smoothed over half a second or so.
  mutating func measureCopies(now: Instant) -> Int {
    let elapsed = Int(measuredAt.duration(to: now).nanoseconds / 1_000_000)
    guard elapsed >= 20 else { return copyRate }
    copyRate += (copiedBytes * 8_000 / elapsed - copyRate) * min(elapsed, 500) / 500
    copiedBytes = 0
    measuredAt = now
    return copyRate
  }

  /// Media goes to another address from now on.
  mutating func pathChanged() { estimator.pathChanged() }
}
