import MediaModel

/// Guesses from the sizes of a microphone's packets whether somebody speaks, for senders without audio levels (RFC 6464). Encryption hides the content of Opus
/// packets but not their size.
///
/// With a variable bit rate, packets of speech are longer than packets of background noise, and with DTX silence has tiny packets or none. Where the sizes say
/// nothing, as with a constant bit rate, speech is presumed, so that nobody is silenced because of their client.
struct SoundGuess {
  enum Sound { case quiet, speech, presumed }

  /// Above the size of packets of digital silence, and of those that DTX sends occasionally.
  private static let tiny = 8
  /// Header and tag of an SFrame.
  private static let encryption = 24
  /// How many packets within speech, and within silence, must differ in size in one window before the difference
  /// counts: 1 s of each.
  private static let proof: UInt16 = 50
  private static let window = Duration.seconds(15)
  /// Speech pauses more often than this.
  private static let breath = Duration.seconds(30)

  /// The lengths of the last packets, without tiny ones; the newest is the last.
  private var lengths = InlineArray<5, UInt16>(repeating: 0)
  /// The length of noise packets: the lowest in one window.
  private var floor: UInt16 = 0
  private var windowLeast = UInt16.max
  private var windowEnd = Instant(nanoseconds: 0)
  /// One bit for each of the last packets, 1 if above the floor.
  private var longPackets: UInt8 = 0
  /// Packets within speech and within silence in this window.
  private var spoken: UInt16 = 0
  private var paused: UInt16 = 0
  /// The sizes of speech and silence have been seen to differ.
  private(set) var differs = false
  /// There were packets that contained only silence.
  private var hasPauses = false
  /// Until this time silence has its own packets, as with DTX, so all others are speech. Judged by size alone, speech would be divided into loud
  /// and soft.
  private var pausesUntil = Instant(nanoseconds: 0)

  /// - Parameter length: the payload's.
  mutating func heard(_ length: Int, isEncrypted: Bool, now: Instant) -> Sound {
    let length = length - (isEncrypted ? Self.encryption : 0)
    guard length > Self.tiny else {
      hasPauses = true
      pausesUntil = now.advanced(by: Self.breath)
      longPackets <<= 1
      return .quiet
    }
    for i in 0..<4 { lengths[i] = lengths[i + 1] }
    lengths[4] = UInt16(clamping: length)
    // One short packet among long ones is not a pause.
    var longest: UInt16 = 0
    for i in lengths.indices { longest = max(longest, lengths[i]) }
    learnFloor(longest, now)
    let isLong = Int(lengths[4]) * 8 > Int(floor) * 9
    longPackets = longPackets << 1 | (isLong ? 1 : 0)
    if now < pausesUntil { return .speech }
    learnDifference()
    if differs { return isLong ? .speech : .quiet }
    return hasPauses ? .speech : .presumed
  }

  /// The floor falls at once and rises by the geometric mean, as `SpeechActivity`'s noise does.
  private mutating func learnFloor(_ longest: UInt16, _ now: Instant) {
    if floor == 0 || longest < floor { floor = longest }
    windowLeast = min(windowLeast, longest)
    guard now >= windowEnd else { return }
    if windowEnd.nanoseconds > 0 {
      floor = max(1, UInt16((Double(floor) * Double(windowLeast)).squareRoot()))
    }
    windowLeast = .max
    windowEnd = now.advanced(by: Self.window)
    (spoken, paused) = (0, 0)
  }

  private mutating func learnDifference() {
    guard !differs else { return }
    let long = longPackets & 0x1f
    if long.nonzeroBitCount >= 3 { spoken &+= 1 } else if long == 0 { paused &+= 1 }
    differs = spoken >= Self.proof && paused >= Self.proof
  }
}
