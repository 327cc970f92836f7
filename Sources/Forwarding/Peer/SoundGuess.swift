import MediaModel

/// Guesses from the sizes of a microphone's packets whether somebody speaks, for senders without audio levels (RFC 6464). Encryption hides what Opus says, and not
/// how much it needed to say it.
///
/// With a variable bit rate, packets of speech are longer than those of the room's noise, and with DTX silence has tiny packets or none. Where the sizes tell
/// nothing, as with a constant bit rate, sound is presumed: nobody is unheard for what their client cannot say.
struct SoundGuess {
  enum Sound { case quiet, speech, presumed }

  /// Longer than the packets of digital silence, and than those that DTX sends now and then.
  private static let tiny = 8
  /// Header and tag of an SFrame.
  private static let encryption = 24
  /// Between speech and silence the sizes differ for so many packets in one window before they count: 1 s of each.
  private static let proof: UInt16 = 50
  private static let window = Duration.seconds(15)
  /// Speech has a pause more often.
  private static let breath = Duration.seconds(30)

  /// The lengths of the last packets, without tiny ones; the newest is the last.
  private var lengths = InlineArray<5, UInt16>(repeating: 0)
  /// The length of the packets of noise: the lowest of so long.
  private var floor: UInt16 = 0
  private var windowLeast = UInt16.max
  private var windowEnd = Instant(nanoseconds: 0)
  /// A bit for each of the last packets, 1 for one above the floor.
  private var longPackets: UInt8 = 0
  /// Packets within speech, and within silence, in this window.
  private var spoken: UInt16 = 0
  private var paused: UInt16 = 0
  /// The sizes of speech and silence have differed.
  private(set) var differs = false
  /// There were packets of silence alone.
  private var hasPauses = false
  /// Until then silence has packets of its own, as with DTX, so all others are speech. Their sizes alone would divide speech into loud and soft.
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
    // One short packet among long ones is no pause.
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
