import MediaModel
import RTP

/// How one up-track's stream arrives: numbering, duplicates, holes, key frames, statistics. Begins anew when the sender changes its SSRC.
struct Reception {
  var unwrapper = SequenceUnwrapper()
  var window = ReceiveWindow()
  var nacks = NackGenerator()
  var statistics = ReceptionStatistics()
  var keyFrames: KeyFrameRequester
  var lastPacket: Instant?
  /// The timestamp of the last frame that was dropped because its SFrame header names another track.
  var foreignFrame: UInt32?
}
