import MediaModel

/// Decides which share of the video a worker forwards when it cannot keep up.
///
/// Packets then wait in the kernel's buffer, and all of them age together, audio and video: the buffer holds seconds of them. So their age at the worker shows that
/// there is too much. It does not show when there is time again: at a high load a healthy worker finds packets that are 20 ms old. The time that the thread waits
/// for work shows that, and how much more video it has time for. If a step was nevertheless too large, the next one waits longer.
struct SheddingRule {
  /// The share of the video that receivers wish, 0...1.
  private(set) var share = 1.0

  /// Interval between two judgements.
  private static let window = Duration.milliseconds(50)
  /// The worker is late if packets reach this age while it is busy itself. A thread that other programs displace is late, too, but sheds nothing until the
  /// age is `longestAge`, because its own work is not the cause.
  private static let lateAge = Duration.milliseconds(40)
  private static let longestAge = Duration.milliseconds(250)
  /// The CPU time from which on the thread counts as busy itself, in percent of the window.
  private static let busy: UInt64 = 80
  /// The number of late windows before video is shed; a burst ends sooner. A window in which the age falls does not count, because the backlog of a disturbance is
  /// being worked off.
  private static let patience = 3
  /// After a change the slots pause, or key frames arrive. The load is measured after this time, over `measuredWindows`
  /// consecutive windows that are not late.
  private static let settling = Duration.milliseconds(200)
  private static let measuredWindows = 3
  /// The share of its time that the worker should work, and the share below which there is time for more.
  private static let targetLoad = 0.85
  private static let roomyLoad = 0.8
  /// The smallest step: if little video is left, the load says little about it.
  private static let step = 0.05
  /// A step was too large if packets grow old within this time. Otherwise the overload is new.
  private static let probation = Duration.seconds(5)
  private static let longestWait = Duration.seconds(32)

  private var oldest = Duration.zero
  private var oldestBefore = Duration.zero
  private var windowStart: Instant?
  private var windowCPU: UInt64 = 0
  private var windowIdle: UInt64 = 0
  private var lateWindows = 0
  /// Windows measured since the last change, their total time, and how much of it the thread waited.
  private var calm = (windows: 0, length: 0.0, idle: 0.0)
  /// When the share last changed, and whether it rose.
  private var changedAt = Instant(nanoseconds: 0)
  private var hasRisen = false
  /// Time before the next rise.
  private var wait = settling

  /// A batch has arrived.
  /// - Parameter age: the age of its first datagram.
  mutating func received(after age: Duration) { oldest = max(oldest, age) }

  /// Whether the window is over, so that `judge` must be called.
  func isDue(now: Instant) -> Bool { windowStart.map { $0.duration(to: now) >= Self.window } ?? true }

  /// Judges the window that ends now.
  /// - Parameters:
  ///   - cpuTime: of the thread since its start, in nanoseconds.
  ///   - idleTime: how long the thread has waited for work since its start.
  /// - Returns: whether the share changed.
  mutating func judge(cpuTime: UInt64, idleTime: UInt64, now: Instant) -> Bool {
    defer {
      windowStart = now
      windowCPU = cpuTime
      windowIdle = idleTime
      oldestBefore = oldest
      oldest = .zero
    }
    guard let windowStart else { return false }
    let length = UInt64(clamping: windowStart.duration(to: now).nanoseconds)
    let isBusy = (cpuTime &- windowCPU) / 100 >= length / 10_000 * Self.busy
    let isLate = oldest > Self.longestAge || oldest > Self.lateAge && isBusy
    if !isLate {
      lateWindows = 0
    } else if oldest >= oldestBefore / 10 * 9 {
      lateWindows += 1
    }
    if lateWindows == Self.patience { return shed(now: now) }
    measure(length, idle: idleTime &- windowIdle, isLate: isLate, now: now)
    return rise(now: now)
  }

  private mutating func measure(_ length: UInt64, idle: UInt64, isLate: Bool, now: Instant) {
    guard !isLate, changedAt.duration(to: now) >= Self.settling else {
      calm = (0, 0, 0)
      return
    }
    calm.windows += 1
    calm.length += Double(length)
    calm.idle += Double(min(idle, length))
  }

  private mutating func shed(now: Instant) -> Bool {
    lateWindows = 0
    if hasRisen {
      let wasTooMuch = changedAt.duration(to: now) < Self.probation
      wait = wasTooMuch ? min(wait * 2, Self.longestWait) : Self.settling
    }
    hasRisen = false
    changedAt = now
    calm = (0, 0, 0)
    // The older they are, the more must be shed at once.
    share = share < 0.05 ? 0 : share * (oldest > Self.lateAge * 2 ? 0.5 : 0.75)
    return true
  }

  private mutating func rise(now: Instant) -> Bool {
    guard share < 1, calm.windows >= Self.measuredWindows else { return false }
    let load = max(1 - calm.idle / calm.length, 0.01)
    calm = (0, 0, 0)
    guard load < Self.roomyLoad, changedAt.duration(to: now) >= wait else { return false }
    // The load changes at most in proportion to the video.
    share = min(1, max(share + Self.step, share * Self.targetLoad / load))
    hasRisen = true
    changedAt = now
    return true
  }
}
