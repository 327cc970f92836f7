import MediaModel

/// Decides which share of the video a worker forwards when it cannot keep up.
///
/// Packets then wait in the kernel's buffer, and all of them grow old together, audio with video: the buffer holds seconds of them. Their age at the
/// worker is therefore what counts. Less video makes the age fall; it rises again in steps, and after each step that was too much the next one waits
/// longer.
struct SheddingRule {
  /// The part of the video that receivers wish, 0...1.
  private(set) var share = 1.0

  /// Between two judgements.
  private static let window = Duration.milliseconds(50)
  /// The worker is late with packets of this age if it is busy itself. A thread that other programs displace is late, too, but sheds nothing until the age
  /// is `longestAge`: its own work is not the cause.
  private static let lateAge = Duration.milliseconds(40)
  private static let longestAge = Duration.milliseconds(250)
  /// CPU time of the thread by which it is busy itself, in percent of the window.
  private static let busy: UInt64 = 80
  /// Late windows in a row before video is shed: a burst ends sooner.
  private static let patience = 3
  /// Below this age there is time for more.
  private static let calmAge = Duration.milliseconds(10)
  private static let step = 0.1
  private static let shortestWait = Duration.seconds(2)
  private static let longestWait = Duration.seconds(32)

  private var oldest = Duration.zero
  private var windowStart: Instant?
  private var windowCPU: UInt64 = 0
  private var lateWindows = 0
  /// When the share last changed, and whether it rose.
  private var changedAt = Instant(nanoseconds: 0)
  private var hasRisen = false
  /// Before the next rise.
  private var wait = shortestWait

  /// A batch has come.
  /// - Parameter age: of its first datagram.
  mutating func received(after age: Duration) { oldest = max(oldest, age) }

  /// Whether the window is over, so that `judge` has something to say.
  func isDue(now: Instant) -> Bool { windowStart.map { $0.duration(to: now) >= Self.window } ?? true }

  /// Judges the window that ends now.
  /// - Parameter cpuTime: of the thread since its start, in nanoseconds.
  /// - Returns: whether the share changed.
  mutating func judge(cpuTime: UInt64, now: Instant) -> Bool {
    defer {
      windowStart = now
      windowCPU = cpuTime
      oldest = .zero
    }
    guard let windowStart else { return false }
    let length = UInt64(clamping: windowStart.duration(to: now).nanoseconds)
    let isBusy = (cpuTime &- windowCPU) / 100 >= length / 10_000 * Self.busy
    lateWindows = oldest > Self.longestAge || oldest > Self.lateAge && isBusy ? lateWindows + 1 : 0
    return lateWindows == Self.patience ? shed(now: now) : rise(now: now)
  }

  private mutating func shed(now: Instant) -> Bool {
    lateWindows = 0
    if hasRisen {
      // A step was too much if the packets grew old soon after it. Otherwise the overload is new.
      let isSoon = changedAt.duration(to: now) < Self.longestWait
      wait = isSoon ? min(wait * 2, Self.longestWait) : Self.shortestWait
    }
    hasRisen = false
    changedAt = now
    // The older they are, the more has to go at once.
    share = share < 0.05 ? 0 : share * (oldest > Self.lateAge * 2 ? 0.5 : 0.75)
    return true
  }

  private mutating func rise(now: Instant) -> Bool {
    guard share < 1, oldest < Self.calmAge, changedAt.duration(to: now) >= wait else { return false }
    share = min(1, share + Self.step)
    hasRisen = true
    changedAt = now
    return true
  }
}
