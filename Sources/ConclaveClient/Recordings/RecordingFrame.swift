/// A track of a recording.
public struct RecordingTrack: Sendable, Hashable, Codable {
  /// How its frames are encoded.
  public enum Codec: UInt8, Sendable, Hashable, Codable { case opus = 1, vp8, vp9, av1, h264 }

  /// Its number n in the reel, from 1 on.
  public var number: UInt8
  /// The source of its media.
  public var source: MediaSource
  /// How its frames are encoded.
  public var codec: Codec
  /// The units of its RTP timestamps in a second: 48,000 for Opus, 90,000 for video.
  public var clockRate: UInt32

  /// A track from its parts.
  public init(number: UInt8, source: MediaSource, codec: Codec, clockRate: UInt32) {
    self.number = number
    self.source = source
    self.codec = codec
    self.clockRate = clockRate
  }
}

/// One encoded frame of a recording.
public struct RecordingFrame: Sendable, Hashable {
  /// The track's number n.
  public var track: UInt8
  /// When it was captured, in microseconds since 1970: by the recording device's clock, or in a call's recording by the server's.
  public var time: Int64
  /// Whether it can be decoded without those before it. Each frame of Opus can.
  public var isKeyFrame: Bool
  /// No other frame refers to it.
  public var isDiscardable: Bool
  /// Quarter turns clockwise by which a picture is to be shown, 0 to 3.
  public var orientation: UInt8
  /// The codec's bytes.
  public var bytes: [UInt8]

  /// A frame from its parts.
  public init(
    track: UInt8, time: Int64, isKeyFrame: Bool, isDiscardable: Bool = false, orientation: UInt8 = 0, bytes: [UInt8]
  ) {
    self.track = track
    self.time = time
    self.isKeyFrame = isKeyFrame
    self.isDiscardable = isDiscardable
    self.orientation = orientation
    self.bytes = bytes
  }
}

/// A time in which nothing, or not everything, can be played.
public struct RecordingGap: Sendable, Hashable {
  /// Why. The first seven are what the recording device or the server has written down; the others were found here.
  public enum Reason: Sendable, Hashable {
    /// Packets were lost on the sender's way to the server.
    case network
    /// The server had no time or memory.
    case serverLate
    /// The disk was slow or full.
    case disk
    /// The server or the device was restarted.
    case restart
    /// The sender's key had not arrived at the server.
    case keyNotAdmitted
    /// The recorder was away.
    case recorderAway
    /// Another reason, or none was given.
    case unknown
    /// The server has no such segment.
    case missing
    /// The segment is not the one that was recorded.
    case refused(SegmentRefusal)
    /// The segment does not end with its last record: it was not finished, or is damaged behind what plays.
    case cutShort
    /// No key of this track and epoch was handed out, so its frames stay closed.
    case noKey
    /// A frame that did not open under its track's key, or came twice, or from another track.
    case foreignFrame
    /// A codec that this library does not open in a call's recording.
    case unsupportedCodec
  }

  /// The track's number n; nil for all tracks of the reel.
  public var track: UInt8?
  /// The first moment, in microseconds since 1970.
  public var from: Int64
  /// The last moment, in microseconds since 1970; not before `from`.
  public var to: Int64
  /// Why nothing can be played.
  public var reason: Reason
}

/// Something that happened to a track while it was recorded.
public struct RecordingMark: Sendable, Hashable {
  /// The event's kind.
  public enum Event: UInt8, Sendable, Hashable {
    case muted = 1, unmuted, held, resumed, ended, paused, continued, consentEnded
  }

  /// The track's number n; nil for all tracks of the reel.
  public var track: UInt8?
  /// When, in microseconds since 1970.
  public var time: Int64
  /// The event's kind.
  public var event: Event
}

/// One segment of a reel, opened as far as it can be.
public struct RecordingSegment: Sendable, Hashable {
  /// Its place in the reel, from 0 on.
  public var number: Int
  /// When it begins, in microseconds since 1970.
  public var start: Int64
  /// When it ends, in microseconds since 1970: by its last record, or else when the next one begins.
  public var end: Int64
  /// The tracks that it has frames of, by their numbers.
  public var tracks: [RecordingTrack]
  /// In the order of their times.
  public var frames: [RecordingFrame]
  /// In the order of their beginnings.
  public var gaps: [RecordingGap]
  /// In the order of their times.
  public var marks: [RecordingMark]
}
