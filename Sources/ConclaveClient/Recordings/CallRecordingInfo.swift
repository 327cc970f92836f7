import Contract
import MediaModel

/// A medium that is recorded of a call.
public enum RecordingMedium: String, Sendable, Hashable, CaseIterable {
  /// Microphones.
  case audio
  /// Cameras.
  case video
  /// Screens and their sound.
  case screen

  init(_ medium: RecordedMedium) {
    self =
      switch medium {
      case .audio: .audio
      case .video: .video
      case .screen: .screen
      }
  }

  var contract: RecordedMedium {
    switch self {
    case .audio: .audio
    case .video: .video
    case .screen: .screen
    }
  }

  /// The medium to which a source belongs.
  init(of source: MediaSource) {
    self =
      switch source {
      case .microphone: .audio
      case .camera: .video
      case .screen, .screenAudio: .screen
      }
  }
}

/// The recording of a call that this device is in: its statement is signed by a device of the call, as it was first seen. Ask the person: without an answer nothing
/// of them is recorded. Show who records, who may play it, and `exported`.
public struct CallRecordingInfo: Sendable, Hashable {
  /// Its id, for the answer.
  public var id: String
  /// The user who records.
  public var user: String
  /// That user's device.
  public var device: String
  /// How certain it is that the device is its user's.
  public var trust: TrustLevel
  /// Whether this device began it.
  public var isOwn: Bool
  /// The users who are meant to play it.
  public var readers: [String]
  /// The media that may be agreed to.
  public var media: Set<RecordingMedium>
  /// The person's answer on this device; empty for no, nil before an answer.
  public var answer: Set<RecordingMedium>?
  /// The answers of the participants, as the server says, by their numbers; empty for no. Participants without an answer are missing.
  public var consents: [UInt32: Set<RecordingMedium>]
  /// The own sources of which readers can open what is sent now: this device has handed out their keys. It is the device's own knowledge, and stays after a
  /// withdrawal until the key is replaced.
  public var exported: Set<MediaSource>
  /// Own sources that are agreed to and not recorded yet: a new key, or the word of the starter's device, is awaited. After 15 s say that it does not answer.
  public var awaited: Set<MediaSource>
  /// Own sources of which nothing is sent, because the person has withdrawn and the server brings no new key.
  public var withheld: Set<MediaSource>
}

/// Why a request to record is not shown to the person. The server lied, or the starter's device does.
public enum RecordingProblem: Sendable, Hashable {
  /// It is not signed by the device that it names, or is about another call, or from a time to come.
  case notSigned
  /// The device that it names is on no list of this call's keys, or has other keys than when it was first seen.
  case stranger
  /// Its id was used by another recording.
  case usedBefore
}
