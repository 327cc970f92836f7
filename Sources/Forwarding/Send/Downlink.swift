import CongestionControl
import MediaModel
import Octets
import RTP

/// The path to one receiver that reports arrivals: the numbers of its packets, and the rate that the path carries.
struct Downlink {
  /// Bytes of IPv4 or IPv6 plus UDP.
  private static let overhead = (ipv4: 28, ipv6: 48)

  var estimator: RateEstimator
  var division: RateDivision
  var probe: RunningProbe?
  /// When to divide the rate again, or to continue the probe; nil before the first report: a receiver that never reports gets everything that it wishes.
  var nextPass: Instant?
  /// Holds back video that the path cannot take immediately; nil while the path carries everything.
  fileprivate var pacer: Pacer?
  /// When waiting packets may leave next; nil if none waits.
  fileprivate(set) var nextRelease: Instant?
  private(set) var nextNumber: UInt16
  private var clock = FeedbackClock()
  private var copies: CopyBudget
  /// Bytes of retransmissions since `copyRate` was measured.
  private var copiedBytes = 0
  private var copyRate = 0
  private var measuredAt: Instant
  /// How many statuses the receiver may report. A browser reports each packet about once, so this is 20 Mbit/s of small
  /// packets.
  private var statuses = TokenBucket(perSecond: 20_000, burst: 2 * TransportFeedback.mostPackets)

  init(_ feedback: RateFeedback, firstNumber: UInt16, now: Instant) {
    nextNumber = firstNumber
    estimator = RateEstimator(now: now.microseconds, reportsRateAlone: feedback == .rate)
    division = RateDivision(target: estimator.target)
    copies = CopyBudget(now: now)
    measuredAt = now
  }

  /// The receiver reports a rate and its loss, but no packets.
  var reportsRateAlone: Bool { estimator.reportsRateAlone }

  /// The rate that the path carries, in bit/s.
  var rate: Int { estimator.target }

  /// A packet leaves.
  /// - Parameters:
  ///   - length: of the datagram, in bytes.
  ///   - isNumbered: it has the number `nextNumber`.
  mutating func sent(length: Int, to destination: SocketAddress, kind: SentKind, isNumbered: Bool, now: Instant) {
    let size = length + (destination.isIPv4 ? Self.overhead.ipv4 : Self.overhead.ipv6)
    pacer?.sent(bytes: size)
    guard isNumbered else { return }
    estimator.sent(nextNumber, size: size, kind: kind, probe: probe?.order.id ?? 0, now: now.microseconds)
    nextNumber &+= 1
    probe?.sent(size)
    if kind == .retransmission { copied(size) }
  }

  /// A packet is sent again unchanged.
  /// - Parameters:
  ///   - length: of the datagram, in bytes.
  ///   - number: its transport-wide number; nil if it has none.
  mutating func sentAgain(_ number: UInt16?, length: Int, to destination: SocketAddress, now: Instant) {
    let size = length + (destination.isIPv4 ? Self.overhead.ipv4 : Self.overhead.ipv6)
    pacer?.sent(bytes: size)
    guard let number else { return }
    estimator.sentAgain(number, now: now.microseconds)
    copied(size)
  }

  private mutating func copied(_ size: Int) {
    copies.sent(size)
    copiedBytes += size
  }

  /// Takes a report of the receiver.
  /// - Returns: false if it reports more than it may, or if its clock has jumped.
  mutating func received(_ report: TransportFeedback, now: Instant) -> Bool {
    guard statuses.take(report.count, now: now.nanoseconds) == nil else { return false }
    guard let start = clock.microseconds(report.referenceTime) else {
      // Delays by the old clock cannot be compared with delays by the new one.
      estimator.clockJumped()
      return false
    }
    let time = now.microseconds
    for status in report {
      if let offset = status.offset {
        estimator.received(status.number, arrival: start &+ offset, now: time)
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

  /// The receiver reports on packets, so its rate bounds the copies.
  var boundsCopies: Bool { nextPass != nil && !reportsRateAlone }

  /// Whether a packet may be sent again. Asked while `boundsCopies`.
  mutating func permitsCopy(of number: UInt16, ssrc: UInt32, now: Instant) -> Bool {
    copies.permits(
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

/// Video is sent to a narrow path no faster than the path can take it, so that a key frame leaves room for audio. Other paths are not paced, because
/// publishers have already paced their packets.
extension Downlink {
  /// Interval between two checks for waiting packets.
  private static let releaseInterval = Duration.milliseconds(5)

  var isPacing: Bool { pacer != nil }

  /// Includes retransmissions and probes, in bit/s.
  private var pacingRate: Int { max(estimator.pacingRate, probe?.order.rate ?? 0) }

  /// Begins to pace, or stops once no packet waits any longer. A receiver that reports only a rate is not paced, because its estimate would follow the
  /// pacer.
  mutating func setPacing(_ isOn: Bool, now: Instant) {
    if isOn, pacer == nil, !reportsRateAlone {
      pacer = Pacer(now: now.microseconds)
    } else if !isOn, let pacer, pacer.isEmpty {
      self.pacer = nil
    }
  }

  /// Whether a packet leaves now, waits or is dropped.
  mutating func offer(_ packet: PacedPacket, now: Instant) -> Pacer.Verdict {
    let rate = pacingRate
    let verdict = pacer?.offer(packet, rate: rate, now: now.microseconds) ?? .passes
    // Many copies could wait before the first is sent, so each is charged now.
    if verdict == .queued, packet.kind == .retransmission { copies.sent(Int(packet.size)) }
    if verdict == .queued, nextRelease == nil { nextRelease = now.advanced(by: Self.releaseInterval) }
    return verdict
  }

  /// The next waiting packet that leaves now; nil if the others have to wait longer.
  mutating func release(now: Instant) -> PacedPacket? {
    let rate = pacingRate
    if let packet = pacer?.next(rate: rate, now: now.microseconds) {
      if packet.kind == .retransmission { copies.sent(-Int(packet.size)) }
      return packet
    }
    nextRelease = pacer?.isEmpty ?? true ? nil : now.advanced(by: Self.releaseInterval)
    return nil
  }

  /// Whether packets of the slot wait.
  func holds(slot: UInt8) -> Bool { pacer?.holds(slot: slot) ?? false }

  /// Whether so many packets of the slot were dropped that it can continue only with a key frame.
  func needsKeyFrame(slot: UInt8) -> Bool { pacer?.needsKeyFrame(slot: slot) ?? false }

  /// Discards the waiting packets of a slot.
  mutating func removeWaiting(slot: UInt8) { pacer?.removeAll(slot: slot) }
}
