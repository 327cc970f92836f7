import MediaModel
import RTP

/// One participant's track as it comes in, with the slots that it goes out to.
final class UpTrack {
  /// The meaning of a payload type on this track.
  struct Payload {
    /// The format's own payload type, also when this is the one of its RTX.
    var primaryType: UInt8
    var isRetransmission: Bool
    var codec: PayloadCodec
  }

  unowned let peer: Peer
  private(set) var description: UpTrackDescription
  private(set) var isMuted: Bool
  /// Nothing of it is forwarded: it is muted, or its peer is held.
  private(set) var isSilent: Bool
  /// The stream's SSRC: announced, or latched by the MID extension.
  var ssrc: UInt32?
  /// Equal for formats that carry each other, within one call.
  var formatKey: Int
  let reception: UnsafeMutablePointer<Reception>
  /// nil where no format has RTX.
  private(set) var history: PacketHistory?
  /// The allocation passes that last chose this track, and gave it a slot.
  var chosenIn: UInt64 = 0
  var placedIn: UInt64 = 0
  private(set) var downTracks: [DownTrack] = []
  /// Those of `downTracks`: for the packets.
  private(set) var downStreams: ContiguousArray<UnsafeMutablePointer<DownStream>> = []
  private var payloads = InlineArray<128, Payload?>(repeating: nil)

  var track: TrackID { description.track }
  var kind: MediaKind { description.source.kind }
  private(set) var clockRate: UInt32 = 90_000
  let isMicrophone: Bool
  /// Whether the sender answers NACK and PLI.
  private(set) var takesNack = false
  private(set) var takesPLI = false
  /// A new slot can wait for a key frame, for we can tell one.
  private(set) var hasVisibleKeyFrames = false

  init(_ description: UpTrackDescription, of peer: Peer, formatKey: Int, configuration: SFUConfiguration) {
    self.peer = peer
    self.description = description
    self.formatKey = formatKey
    isMuted = description.muted
    isSilent = isMuted || peer.isHeld
    isMicrophone = description.source == .microphone
    ssrc = description.ssrcs.first
    reception = .allocate(capacity: 1)
    reception.initialize(to: Reception(keyFrames: KeyFrameRequester(interval: configuration.keyFrameInterval)))
    describe(description, configuration)
  }

  deinit {
    reception.deinitialize(count: 1)
    reception.deallocate()
  }

  /// Returns whether the track fell silent, or was heard again.
  func set(isMuted: Bool, isHeld: Bool) -> Bool {
    self.isMuted = isMuted
    let wasSilent = isSilent
    isSilent = isMuted || isHeld
    return isSilent != wasSilent
  }

  func payload(_ type: UInt8) -> Payload? { payloads[Int(type & 127)] }

  /// Takes what a later offer says of the same track.
  func describe(_ new: UpTrackDescription, _ configuration: SFUConfiguration) {
    description = new
    payloads = .init(repeating: nil)
    for format in new.formats {
      let codec = PayloadCodec(name: format.codec)
      payloads[Int(format.payloadType & 127)] = Payload(
        primaryType: format.payloadType & 127, isRetransmission: false, codec: codec)
      if let type = format.rtxPayloadType {
        payloads[Int(type & 127)] = Payload(
          primaryType: format.payloadType & 127, isRetransmission: true, codec: codec)
      }
    }
    clockRate = new.formats.first?.clockRate ?? 90_000
    takesNack = new.formats.contains { $0.nack }
    takesPLI = kind == .video && new.formats.contains { $0.pli }
    hasVisibleKeyFrames = !new.formats.isEmpty && new.formats.allSatisfy { $0.codec.lowercased() == "vp8" }
    if history == nil, new.formats.contains(where: { $0.rtxPayloadType != nil }) {
      history = PacketHistory(capacity: kind == .video ? configuration.videoHistory : configuration.audioHistory)
    }
  }

  /// The sender began the track anew under another SSRC.
  func restart(ssrc: UInt32, configuration: SFUConfiguration) {
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

  /// A slot may show nothing until this track's next key frame. It stays true until then, also when that slot has gone: at worst one key
  /// frame too many is asked for.
  private(set) var isAwaited = false

  /// A slot shows nothing until the next key frame.
  func awaitKeyFrame() { isAwaited = true }

  /// A key frame went out: few slots, if any, still wait for one.
  func keyFrameSent() { isAwaited = downTracks.contains { $0.isAwaitingKeyFrame } }

  func requestKeyFrame(_ now: Instant, isNewSource: Bool) {
    guard takesPLI, !isSilent else { return }
    reception.pointee.keyFrames.request(now, isNewSource: isNewSource)
  }
}
