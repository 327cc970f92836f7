import ArgumentParser

/// The kinds of load, by name.
enum Scenario: String, ExpressibleByArgument, CaseIterable, Sendable {
  case meeting, webinar
  case audioRoom = "audio-room"
  case churn, ramp
  case rejoinStorm = "rejoin-storm"
  case lossy, signaling

  /// The values of the options that the command line leaves out; nil for a scenario without calls.
  var preset: CallPreset? {
    var preset = CallPreset()
    switch self {
    case .meeting: break
    case .webinar:
      preset.participants = 63
      preset.publishers = 3
      preset.videoKbps = 1_000
    case .audioRoom:
      preset.participants = 25
      preset.isAudioOnly = true
    case .churn:
      preset.participants = 20
      preset.publishers = 5
      preset.churnRate = 1
    case .ramp:
      preset.participants = 500
      preset.publishers = 3
      preset.step = 20
      preset.seconds = 5
    case .rejoinStorm:
      preset.participants = 50
      preset.publishers = 5
      preset.isAudioOnly = true
      preset.seconds = 5
    case .lossy:
      preset.impairment = "loss=2%,delay=40ms,jitter=10ms"
    case .signaling: return nil
    }
    return preset
  }

  /// For `--help`.
  var meaning: String {
    switch self {
    case .meeting: "calls of 10 in which all send audio and video"
    case .webinar: "3 send audio and 1 Mbit/s of video, 60 watch"
    case .audioRoom: "25 send audio"
    case .churn: "20, of whom 5 send; every second a participant of the last half leaves and joins again (--churn)"
    case .ramp: "3 send, and every 5 s 20 more watch, until a limit is passed (--step, --until)"
    case .rejoinStorm: "50 hear 5; all lose their connections at the same time, and come back as new participants"
    case .lossy: "a meeting over bad paths: 2 % loss, 40 ms ± 10 ms each way (--impair, --impaired)"
    case .signaling: "one publisher and many subscribers of a topic, and many connections at once"
    }
  }

  static var help: String {
    allCases.map { "  \($0.rawValue.padding(14)) \($0.meaning)" }.joined(separator: "\n")
  }
}

/// The options of calls that a scenario may set.
struct CallPreset: Sendable, Hashable {
  var participants = 10
  /// nil: all.
  var publishers: Int?
  var isAudioOnly = false
  var videoKbps = 600
  /// The duration of the measurement, or of each step.
  var seconds = 20.0
  /// Participants that leave and join again per second.
  var churnRate: Double?
  /// Participants that a step adds.
  var step: Int?
  var impairment: String?
}

extension String {
  fileprivate func padding(_ length: Int) -> String { self + String(repeating: " ", count: max(0, length - count)) }
}
