import CongestionControl
import MediaModel

/// How a receiver's rate is divided among its slots.
///
/// Until the path shows that it is too narrow, everything wished is sent, and nothing is probed. From then on the estimate decides, until all
/// wishes have been met for a while.
struct RateDivision {
  /// Between two passes while the estimate decides, and while it does not.
  static let interval = Duration.milliseconds(50)
  static let relaxedInterval = Duration.milliseconds(200)
  /// Once all wishes have been met for this long, the estimate no longer decides.
  private static let patience = Duration.seconds(10)
  /// Any rate.
  private static let unlimited = 1 << 40

  private(set) var isLimited = false
  private var allocator = LayerAllocator()
  private var fellAt: Instant?
  private var lastTarget: Int

  /// - Parameter target: the estimate's initial value, in bit/s.
  init(target: Int) { lastTarget = target }

  /// Notes the target, and whether the path turns out to be too narrow for the traffic.
  ///
  /// The target is presumed to be above everything that is sent, even while a queue stands: a path may be too narrow from the first packet on, and a
  /// target that was never above the path's rate could not fall.
  /// - Parameter sent: everything that is sent to the receiver, in bit/s.
  mutating func observe(_ estimator: inout RateEstimator, sent: Int, now: Instant) {
    let isFallen = estimator.target < lastTarget
    if isFallen { fellAt = now }
    if !isLimited {
      if isFallen, estimator.target < sent / 100 * 97 {
        isLimited = true
        allocator = LayerAllocator()
      } else {
        estimator.presume(sent / 5 * 6, sent: sent, now: now.microseconds)
      }
    }
    lastTarget = estimator.target
  }

  /// Divides the estimate among `streams`.
  /// - Parameter fixed: audio and retransmissions, in bit/s.
  /// - Returns: what each stream gets.
  mutating func divide(
    _ streams: [StreamWish], by estimator: inout RateEstimator, fixed: Int, now: Instant
  ) -> [Allotment] {
    let time = now.microseconds
    if !streams.isEmpty, allocator.isNew {
      _ = allocator.allocate(streams, target: Self.unlimited, proven: Self.unlimited, isCongested: false, now: time)
    }
    _ = allocator.allocate(
      streams, target: estimator.target - fixed, proven: estimator.proven(now: time) - fixed,
      isCongested: estimator.isCongested, now: time)
    let wished = streams.reduce(0) { $0 + ($1.highest >= 0 ? $1.steps[$1.highest].rate : 0) }
    let next = allocator.nextStep(of: streams)
    let allocated = allocator.rate(of: streams)
    estimator.demand = RateDemand(
      allocated: allocated + fixed, nextStep: next.map { $0 + fixed }, wished: wished + fixed,
      isPaused: allocated == 0 && next != nil)
    if next != nil {
      fellAt = now
    } else if let fellAt, fellAt.duration(to: now) >= Self.patience {
      isLimited = false
      return streams.map { _ in .everything }
    }
    return streams.indices.map { Allotment(allocator.step($0), of: streams[$0]) }
  }
}
