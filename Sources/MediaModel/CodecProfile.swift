/// The decoder that a stream of a payload format needs: its codec, and the meaning of the format parameters that change decoding. An absent
/// parameter has its codec's default.
///
/// Levels are ignored. They bound the size of pictures, which receivers bound by their wishes, and endpoints decode beyond the level that they
/// offer.
package struct CodecProfile: Sendable, Hashable {
  private var codec: String
  private var clockRate: UInt32
  private var profile: Profile

  init(codec: String, clockRate: UInt32, parameters: String) {
    self.codec = codec.lowercased()
    self.clockRate = clockRate
    let parameters = FormatParameters(text: parameters)
    switch self.codec {
    // RFC 9628 section 7.1: profile 0 is the default.
    case "vp9": profile = .numbered(parameters.number("profile-id", default: 0), superset: false)
    // AV1's RTP payload format, version 1.0.0, section 7.2.1. A decoder of a higher profile decodes the lower ones (AV1 specification, annex A.2).
    case "av1": profile = .numbered(parameters.number("profile", default: 0), superset: true)
    case "h264":
      profile = .h264(
        H264Profile(profileLevelID: parameters["profile-level-id"]),
        // RFC 6184 section 8.1: mode 0 is the default.
        packetizationMode: parameters.number("packetization-mode", default: 0))
    // RFC 7798 section 7.1: the Main profile and the main tier are the defaults.
    case "h265":
      profile = .h265(
        profile: parameters.number("profile-id", default: 1), tier: parameters.number("tier-flag", default: 0))
    default: profile = .only
    }
  }

  /// Whether a decoder of `self` decodes a stream of `stream`.
  package func decodes(_ stream: CodecProfile) -> Bool {
    guard codec == stream.codec, clockRate == stream.clockRate else { return false }
    return profile.decodes(stream.profile)
  }

  /// 0 for what most decoders decode, more for what fewer decode: a sender of several formats uses the first one that is
  /// answered.
  package var rarity: Int {
    switch profile {
    case .only: 0
    case .numbered(let number, _): number
    // Mode 0 cannot fragment a NAL unit over several packets, so it is the last resort.
    case .h264(let profile, let mode): profile.rarity * 2 + (mode == 1 ? 0 : 1)
    case .h265(let profile, let tier): profile * 2 + tier
    }
  }

  private enum Profile: Hashable {
    case only
    case numbered(Int, superset: Bool)
    case h264(H264Profile, packetizationMode: Int)
    case h265(profile: Int, tier: Int)

    func decodes(_ stream: Profile) -> Bool {
      switch (self, stream) {
      case (.only, .only): true
      case (.numbered(let own, let superset), .numbered(let other, _)): superset ? own >= other : own == other
      // A receiver of mode 1 also accepts the single NAL unit packets of mode 0 (RFC 6184 section 5.4). Mode 2 interleaves and is compatible
      // only with itself.
      case (.h264(let own, let ownMode), .h264(let other, let otherMode)):
        own.decodes(other) && (ownMode == otherMode || ownMode == 1 && otherMode == 0)
      case (.h265(let own, let ownTier), .h265(let other, let otherTier)): own == other && ownTier >= otherTier
      default: false
      }
    }
  }
}

/// The profile meant by the first four digits of H.264's `profile-level-id` (RFC 6184 section 8.1, table 5): several bit patterns mean the same profile.
private enum H264Profile: Hashable {
  /// Baseline and Constrained Baseline. WebRTC endpoints use no tool of Baseline that the constrained profile lacks (RFC 7742 section 6.2 requires the
  /// constrained one).
  case baseline
  case extended, main, constrainedHigh, high, high10, high422, high444
  /// Intra profiles and later ones, by `profile_idc` and `profile-iop`.
  case other(UInt8, UInt8)

  /// - Parameter profileLevelID: six hex digits; nil or malformed: Baseline (RFC 6184 section 8.1).
  init(profileLevelID: Substring?) {
    guard let text = profileLevelID, text.utf8.count == 6, let number = UInt32(text, radix: 16) else {
      self = .baseline
      return
    }
    let profile = UInt8(number >> 16)
    let constraints = UInt8(number >> 8 & 0xff)
    self =
      switch (profile, constraints) {
      case (0x42, _) where constraints & 0x0f == 0: .baseline
      case (0x4d, _) where constraints & 0x8f == 0x80: .baseline
      case (0x58, _) where constraints & 0x8f == 0x80: .baseline
      case (0x4d, _) where constraints & 0xaf == 0: .main
      case (0x58, _) where constraints & 0xcf == 0: .extended
      case (0x64, 0x00): .high
      case (0x64, 0x0c): .constrainedHigh
      case (0x6e, 0x00): .high10
      case (0x7a, 0x00): .high422
      case (0xf4, 0x00): .high444
      default: .other(profile, constraints)
      }
  }

  /// Whether a decoder of `self` decodes streams of `stream` (H.264 annex A.2).
  func decodes(_ stream: H264Profile) -> Bool {
    if self == stream { return true }
    return switch self {
    case .baseline, .other: false
    case .extended, .main, .constrainedHigh: stream == .baseline
    case .high, .high10, .high422, .high444: stream.rank.map { $0 < self.rank! } ?? false
    }
  }

  /// The order in which each profile contains the previous one; nil outside of that order.
  private var rank: Int? {
    switch self {
    case .baseline: 0
    case .main, .constrainedHigh: 1
    case .high: 2
    case .high10: 3
    case .high422: 4
    case .high444: 5
    case .extended, .other: nil
    }
  }

  var rarity: Int { rank ?? 6 }
}

/// The text after a=fmtp:PT, "name=value;name=value".
private struct FormatParameters {
  let text: String

  /// A number; the default if it is absent or malformed.
  func number(_ name: String, default fallback: Int) -> Int {
    self[name].flatMap { UInt16($0) }.map(Int.init) ?? fallback
  }

  /// The value of a parameter. Names ignore case (RFC 6838 section 4.3).
  subscript(name: String) -> Substring? {
    for item in text.split(separator: ";") {
      let pair = item.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[0].trimmed.lowercased() == name else { continue }
      return pair[1].trimmed
    }
    return nil
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    let text = drop { $0 == " " }
    return text[..<(text.lastIndex { $0 != " " }.map(text.index(after:)) ?? text.startIndex)]
  }
}
