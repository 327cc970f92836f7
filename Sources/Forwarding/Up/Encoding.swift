import MediaModel
import RTP

/// One RTP stream of an up-track with its retransmissions: a track has one, or one for each simulcast layer.
///
/// A packet that came once, by itself or by RTX, is in `reception`, and while a slot shows the encoding in `history`.
final class Encoding {
  unowned let track: UpTrack
  /// The stream's SSRC, announced or latched by the MID extension; nil until then.
  private(set) var ssrc: UInt32?
  /// The layer's restriction id (RFC 8852); nil where a track has one encoding.
  let rid: String?
  let reception: UnsafeMutablePointer<Reception>
  /// nil where no format has RTX.
  private(set) var history: PacketHistory?
  /// The slots that show it.
  private(set) var downTracks: [DownTrack] = []
  /// Those of `downTracks`: for the packets.
  private(set) var downStreams: ContiguousArray<UnsafeMutablePointer<DownStream>> = []
  /// A slot may show nothing until the next key frame. It stays true until then, also when that slot has gone: at worst one key frame too
  /// many is asked for.
  private(set) var isAwaited = false

  init(of track: UpTrack, ssrc: UInt32?, rid: String? = nil, keyFrameInterval: Duration) {
    self.track = track
    self.ssrc = ssrc
    self.rid = rid
    reception = .allocate(capacity: 1)
    reception.initialize(to: Reception(keyFrames: KeyFrameRequester(interval: keyFrameInterval)))
  }

  deinit {
    reception.deinitialize(count: 1)
    reception.deallocate()
  }

  /// The SSRC of its retransmissions, if announced (RFC 4588 section 8.3).
  var rtxSSRC: UInt32? { ssrc.flatMap { track.description.rtx[$0] } }

  /// Retransmissions will be asked for.
  /// - Parameter capacity: packets, a power of two.
  func keepHistory(_ capacity: Int) {
    if history == nil { history = PacketHistory(capacity: capacity) }
  }

  /// The stream's SSRC is known.
  func latch(_ ssrc: UInt32) { self.ssrc = ssrc }

  /// The sender began the stream anew under another SSRC.
  func restart(ssrc: UInt32) {
    self.ssrc = ssrc
    let request = reception.pointee.keyFrames
    reception.pointee = Reception(keyFrames: request)
    history?.removeAll()
    for down in downTracks { down.sourceRestarted() }
  }

  func add(_ down: DownTrack) {
    down.place = downTracks.count
    downTracks.append(down)
    downStreams.append(down.stream)
  }

  /// The last slot takes the place of the one that goes.
  func remove(_ down: DownTrack) {
    let place = down.place
    downTracks[downTracks.count - 1].place = place
    downTracks.swapAt(place, downTracks.count - 1)
    downStreams.swapAt(place, downStreams.count - 1)
    downTracks.removeLast()
    downStreams.removeLast()
    if downTracks.isEmpty { isAwaited = false }
  }

  /// A slot shows nothing until the next key frame.
  func awaitKeyFrame() { isAwaited = true }

  /// A key frame went out: few slots, if any, still wait for one.
  func keyFrameSent() { isAwaited = downTracks.contains { $0.isAwaitingKeyFrame } }

  func requestKeyFrame(_ now: Instant, isNewSource: Bool) {
    guard track.takesPLI, !track.isSilent else { return }
    reception.pointee.keyFrames.request(now, isNewSource: isNewSource)
  }
}
