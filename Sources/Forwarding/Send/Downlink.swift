import CongestionControl
import MediaModel
import Octets
import RTP

/// The path to one receiver that reports what arrives: the numbers of its packets, and the rate that the path carries.
struct Downlink {
  /// Bytes of IPv4 or IPv6 and UDP.
  private static let overhead = (ipv4: 28, ipv6: 48)

  private var estimator: RateEstimator
  private(set) var nextNumber: UInt16
  private var clock = FeedbackClock()
  /// Statuses that the receiver may report. A browser reports each packet about once, so this is 20 Mbit/s of small packets.
  private var statuses = TokenBucket(perSecond: 20_000, burst: 2 * TransportFeedback.mostPackets)

  init(firstNumber: UInt16, now: Instant) {
    nextNumber = firstNumber
    estimator = RateEstimator(now: now.microseconds)
  }

  /// The rate that the path carries, in bit/s.
  var rate: Int { estimator.target }

  /// The packet with `nextNumber` leaves.
  /// - Parameter length: of the datagram, in bytes.
  mutating func sent(length: Int, to destination: SocketAddress, kind: SentKind, now: Instant) {
    let size = length + (destination.isIPv4 ? Self.overhead.ipv4 : Self.overhead.ipv6)
    estimator.sent(nextNumber, size: size, kind: kind, probe: 0, now: now.microseconds)
    nextNumber &+= 1
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
    return true
  }

  /// Media goes to another address from now on.
  mutating func pathChanged() { estimator.pathChanged() }
}
