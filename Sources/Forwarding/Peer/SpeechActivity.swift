import MediaModel

/// How much a peer speaks, from the audio levels of its microphone (RFC 6464): the last second against the noise of its room.
///
/// The activities at three time scales are those of Volfin and Cohen ("Dominant Speaker Identification for Multipoint Videoconferencing", 2012).
struct SpeechActivity {
  /// The paper's levels come every 20 ms. Packets of up to 120 ms count as several; a longer gap is silence.
  private static let step = Duration.milliseconds(20)
  private static let longestPacket = 6
  /// The noise is heard in pauses of 100 ms.
  private static let pauseSteps = 5
  /// The noise is the lowest level in this time.
  private static let noiseWindow = Duration.seconds(15)
  /// Speech is this far above the noise.
  private static let margin: UInt8 = 10
  /// In a room quieter than the lower bound everything would be speech; and somebody who speaks from the first packet
  /// on is not noise.
  private static let noiseBounds: (least: UInt8, first: UInt8) = (50, 65)

  /// Above silence (127), in decibel, one for each step.
  private var levels = InlineArray<50, UInt8>(repeating: 0)
  private var newest = 0
  private var updated: Instant?
  private var noise: UInt8 = 0
  private var windowLeast: UInt8 = 127
  private var windowEnd = Instant(nanoseconds: 0)
  /// One bit for each of the last packets, 1 for speech.
  private var loudPackets: UInt8 = 0
  /// When the last packet above the noise arrived.
  private(set) var lastLoud = Instant(nanoseconds: 0)

  /// Three of the last five packets are above the noise: more than a click.
  var isSpeaking: Bool { (loudPackets & 0x1f).nonzeroBitCount >= 3 }

  /// The least level of speech.
  private var threshold: UInt8 { max(noise, Self.noiseBounds.least) + Self.margin }

  /// - Parameters:
  ///   - level: 0 is the loudest, 127 silence.
  ///   - isGuess: no microphone has measured it. Everything but silence is then speech, but gets no scores, so that anyone who is known to speak
  ///     displaces it.
  mutating func heard(level: UInt8, isGuess: Bool = false, now: Instant) {
    let value = isGuess ? 0 : 127 - (level & 127)
    let steps = max(1, updated.map { Self.steps(from: $0, to: now) } ?? 1)
    if steps > Self.longestPacket {
      append(0, count: steps - 1)
      append(value, count: 1)
      loudPackets = 0
    } else {
      append(value, count: steps)
    }
    updated = now
    if !isGuess {
      // One quiet packet among loud ones is not a pause.
      var loudest: UInt8 = 0
      for i in 0..<Self.pauseSteps { loudest = max(loudest, levels[(newest + levels.count - i) % levels.count]) }
      learnNoise(loudest, now)
    }
    let isLoud = isGuess ? level < 127 : value > threshold
    loudPackets = loudPackets << 1 | (isLoud ? 1 : 0)
    if isLoud { lastLoud = now }
  }

  /// The activity now. Missing packets count as silence.
  func scores(at now: Instant) -> SpeechScores {
    let missing = updated.map { Self.steps(from: $0, to: now) } ?? levels.count
    // A packet may be late by one step.
    let silent = missing < 2 ? 0 : missing
    var (immediate, medium, long) = (0, 0, 0)
    for group in 0..<10 {
      var loud = 0
      for i in group * 5..<group * 5 + 5 where i >= silent {
        let level = levels[(newest + levels.count - (i - silent)) % levels.count]
        let value = level < threshold ? 0 : Int(level / 10)
        if i == 0 { immediate = value }
        if value > 7 { loud += 1 }
      }
      if group == 0 { medium = loud }
      if loud > 4 { long += 1 }
    }
    return SpeechScores(immediate: immediate, medium: medium, long: long)
  }

  private static func steps(from: Instant, to now: Instant) -> Int {
    Int(clamping: from.duration(to: now).nanoseconds / step.nanoseconds)
  }

  private mutating func append(_ value: UInt8, count: Int) {
    for _ in 0..<min(count, levels.count) {
      newest = (newest + 1) % levels.count
      levels[newest] = value
    }
  }

  /// The noise falls at once and rises by the geometric mean, as the paper's authors do it. Digital silence says nothing about the
  /// room.
  private mutating func learnNoise(_ value: UInt8, _ now: Instant) {
    guard value > 0 else { return }
    guard noise > 0, value >= noise else {
      noise = noise == 0 ? min(value, Self.noiseBounds.first) : value
      windowLeast = 127
      windowEnd = now.advanced(by: Self.noiseWindow)
      return
    }
    windowLeast = min(windowLeast, value)
    guard now >= windowEnd else { return }
    noise = UInt8(min(127, (Double(noise) * Double(windowLeast)).squareRoot()))
    windowLeast = 127
    windowEnd = now.advanced(by: Self.noiseWindow)
  }
}

/// How likely it is that somebody speaks now, has spoken recently, and has spoken for a while.
struct SpeechScores {
  var immediate: Double
  var medium: Double
  var long: Double

  static let none = SpeechScores(immediate: 0, medium: 0, long: 0)

  /// - Parameters: the levels' tens, 0 to 12; the loud ones among five of them; among ten groups of five, the groups that are all
  ///   loud.
  init(immediate: Int, medium: Int, long: Int) {
    self.immediate = Self.immediateScores[immediate]
    self.medium = Self.mediumScores[medium]
    self.long = Self.longScores[long]
  }

  /// In the last second: at least 400 ms of speech, or none.
  var isSpeech: Bool { long >= Self.longScores[4] }
  var isSilent: Bool { long <= Self.longScores[0] }

  /// Whether this speaker takes the first place from `dominant`. A lead of e³, e² and more than 1: it speaks now while the other pauses, and has
  /// spoken for longer.
  func displaces(_ dominant: SpeechScores) -> Bool {
    immediate > 20.085_537 * dominant.immediate && medium > 7.389_056 * dominant.medium && long > dominant.long
  }

  // ln C(n, v) + n ln ½ − ln λ + λ v for v = 0 to n, at least 1e-10, with (n, λ) = (13, 0.78), (5, 24), (10, 47).
  static let immediateScores: InlineArray<14, Double> = [
    1e-10, 1e-10, 1e-10, 1e-10, 0.929831, 2.297617, 3.365299, 4.145299, 4.637617, 4.829831, 4.69354, 4.174257, 3.162497,
    1.377548,
  ]
  static let mediumScores: InlineArray<6, Double> = [1e-10, 18.965648, 43.658795, 67.658795, 90.965648, 113.35621]
  static let longScores: InlineArray<11, Double> = [
    1e-10, 38.520966, 87.025043, 135.005872, 182.565488, 229.74781, 276.565488, 323.005872, 369.025043, 414.520966,
    459.218381,
  ]
}
