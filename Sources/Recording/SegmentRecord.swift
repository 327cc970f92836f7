/// One record of a segment's contents. Enumerated bytes stay as they are where a later version may know more of them.
package enum SegmentRecord: Hashable, Sendable {
  case stream(RecordedStream)
  case frame(RecordedFrame)
  case clock(RecordedClock)
  case gap(RecordedGap)
  case mark(RecordedMark)
  case end(SegmentEnd)
}

/// Announces an index: frames under it are of one track, layer and epoch.
package struct RecordedStream: Hashable, Sendable {
  package var index: UInt8
  /// The track's number, from 1 on.
  package var n: UInt8
  /// 1 microphone, 2 camera, 3 screen, 4 the screen's sound.
  package var source: UInt8
  /// 1 Opus, 2 VP8, 3 VP9, 4 AV1, 5 H.264.
  package var codec: UInt8
  /// The rank by height, 0 lowest.
  package var layer: UInt8
  /// In Hz, above 0.
  package var clockRate: UInt32
  /// The epoch of the call's key; 0 in a sealed segment.
  package var epoch: UInt32

  package init(
    index: UInt8, n: UInt8, source: UInt8, codec: UInt8, layer: UInt8, clockRate: UInt32, epoch: UInt32
  ) {
    self.index = index
    self.n = n
    self.source = source
    self.codec = codec
    self.layer = layer
    self.clockRate = clockRate
    self.epoch = epoch
  }
}

package struct RecordedFrame: Hashable, Sendable {
  package var index: UInt8
  package var flags: UInt8
  /// RTP's, in units of the stream's clock rate.
  package var timestamp: UInt32
  /// In milliseconds since the segment's start.
  package var arrival: UInt32
  /// When it was captured, in microseconds since 1970, as far as the segment's clocks tell.
  package var time: Int64
  /// Where its bytes are in the contents.
  package var range: Range<Int>

  package var isKeyFrame: Bool { flags & 1 != 0 }
  /// No other frame refers to it.
  package var isDiscardable: Bool { flags & 2 != 0 }
  /// Quarter turns clockwise.
  package var orientation: UInt8 { flags >> 2 & 3 }
  package var spatialLayer: UInt8 { flags >> 4 & 3 }
  package var temporalLayer: UInt8 { flags >> 6 }
}

/// The instant of an RTP timestamp.
package struct RecordedClock: Hashable, Sendable {
  package enum Source: UInt8, Sendable {
    case senderReport = 1
    case arrivals, device
  }

  package var index: UInt8
  package var source: Source
  package var timestamp: UInt32
  /// Microseconds since 1970.
  package var time: Int64

  package init(index: UInt8, source: Source, timestamp: UInt32, time: Int64) {
    self.index = index
    self.source = source
    self.timestamp = timestamp
    self.time = time
  }
}

package struct RecordedGap: Hashable, Sendable {
  /// nil: of all streams.
  package var index: UInt8?
  /// 1 the sender's network, 2 the server was late, 3 the disk, 4 a restart, 5 no key, 6 the recorder was away.
  package var reason: UInt8
  /// In milliseconds since the segment's start.
  package var range: ClosedRange<UInt32>
  /// Packets that are missing; 0 if that is not known.
  package var missing: UInt32

  package init(index: UInt8?, reason: UInt8, range: ClosedRange<UInt32>, missing: UInt32) {
    self.index = index
    self.reason = reason
    self.range = range
    self.missing = missing
  }
}

package struct RecordedMark: Hashable, Sendable {
  /// nil: of all streams.
  package var index: UInt8?
  /// 1 muted, 2 unmuted, 3 held, 4 resumed, 5 the track ended, 6 paused by the person, 7 resumed, 8 the consent ended.
  package var what: UInt8
  /// In milliseconds since the segment's start.
  package var at: UInt32

  package init(index: UInt8?, what: UInt8, at: UInt32) {
    self.index = index
    self.what = what
    self.at = at
  }
}

/// The last record of a segment.
package struct SegmentEnd: Hashable, Sendable {
  package enum Reason: UInt8, Sendable {
    /// Another segment follows.
    case continued = 1
    /// The reel is complete.
    case complete
    /// The server ended it after a restart.
    case recovered
  }

  package var reason: Reason
  /// Microseconds since 1970.
  package var time: Int64

  package init(reason: Reason, time: Int64) {
    self.reason = reason
    self.time = time
  }
}
