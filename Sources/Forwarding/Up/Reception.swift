import MediaModel
import RTP
import Octets

/// How one up-track's stream arrives: numbering, duplicates, holes, key frames, statistics. Starts again when the sender changes its
/// SSRC.
struct Reception {
  var unwrapper = SequenceUnwrapper()
  /// Which packets arrived, so that each is used once, however it came. This is not only about waste: a sequence number sent twice with
  /// different contents would repeat a GCM nonce towards the receivers.
  var window = ReplayWindow()
  var nacks = NackGenerator()
  var statistics = ReceptionStatistics()
  var rates = LayerRates()
  var keyFrames: KeyFrameRequester
  var lastPacket: Instant?
  /// The index of the newest packet that begins a key frame.
  var lastKeyFrame: UInt64 = 0
  /// The timestamp of the last frame that was dropped because its SFrame header names another track.
  var foreignFrame: UInt32?
}
