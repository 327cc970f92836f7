import MediaModel

/// The source of a track's media.
public enum MediaSource: String, Sendable, Hashable, Codable {
  /// A person's voice.
  case microphone
  /// A person's picture.
  case camera
  /// A shared screen.
  case screen
  /// The sound of a shared screen.
  case screenAudio = "screen-audio"

  init(_ source: TrackSource) {
    switch source {
    case .microphone: self = .microphone
    case .camera: self = .camera
    case .screen: self = .screen
    case .screenAudio: self = .screenAudio
    }
  }

  var trackSource: TrackSource {
    switch self {
    case .microphone: .microphone
    case .camera: .camera
    case .screen: .screen
    case .screenAudio: .screenAudio
    }
  }
}
