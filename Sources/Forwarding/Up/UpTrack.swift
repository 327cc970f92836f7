import MediaModel
import Octets
import RTP

/// One participant's incoming track: its description, and the encodings that carry it.
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
  /// It is not forwarded, because it is muted or its peer is held.
  private(set) var isSilent: Bool
  /// Equal for formats of the same profile, within one call.
  var formatKey: Int
  /// Its RTP streams; never empty.
  private(set) var encodings: [Encoding] = []
  /// The allocation passes that last chose this track, and that last gave it a slot.
  var chosenIn: UInt64 = 0
  var placedIn: UInt64 = 0
  var clock = LayerClock()
  var demand: LayerDemand
  /// It is in its call's list of tracks whose demand must be computed again.
  var isDemandNoted = false
  /// It is no longer a track of its peer.
  var isDetached = false
  /// For the packets of all its encodings and their retransmissions.
  var budget: UnsafeMutablePointer<PublishingBudget> { budgetBox.pointer }
  private let budgetBox: Box<PublishingBudget>
  private var payloads = InlineArray<128, Payload?>(repeating: nil)

  var track: TrackID { description.track }
  var kind: MediaKind { description.source.kind }
  private(set) var clockRate: UInt32 = 90_000
  let isMicrophone: Bool
  /// Whether the sender answers NACK.
  private(set) var takesNack = false
  /// How the sender can be asked for a key frame; nil when it cannot.
  private(set) var keyFrameFeedback: KeyFrameFeedback?
  /// A new slot can wait for a key frame, because we can recognize one.
  private(set) var hasVisibleKeyFrames = false

  init(
    _ description: UpTrackDescription, of peer: Peer, formatKey: Int, _ configuration: SFUConfiguration,
    _ histories: HistoryBudget
  ) {
    self.peer = peer
    self.description = description
    self.formatKey = formatKey
    isMuted = description.muted
    isSilent = isMuted || peer.isHeld
    isMicrophone = description.source == .microphone
    demand = LayerDemand(layers: description.rids.count)
    budgetBox = Box(
      PublishingBudget(description.source.kind == .audio ? configuration.audioTrack : configuration.videoTrack))
    let interval =
      description.source == .screen ? KeyFrameRequester.screenInterval : KeyFrameRequester.cameraInterval
    encodings = description.rids.enumerated().map { rank, rid in
      Encoding(of: self, ssrc: nil, rid: rid, rank: rank, keyFrameInterval: interval)
    }
    if encodings.isEmpty {
      encodings = [Encoding(of: self, ssrc: description.ssrcs.first, keyFrameInterval: interval)]
    }
    describe(description, configuration, histories)
  }

  /// Returns whether the track fell silent, or was heard again.
  func set(isMuted: Bool, isHeld: Bool) -> Bool {
    self.isMuted = isMuted
    let wasSilent = isSilent
    isSilent = isMuted || isHeld
    return isSilent != wasSilent
  }

  /// The wishes for its layers may have changed, or for a track of another worker.
  func noteDemandChange() { if isLayered || peer.home != nil { peer.call.noteDemand(of: self) } }

  /// The frames of a room's track show no key frame, because the app encrypts them whole: slots begin at any packet until the next offer, and their receivers ask for
  /// key frames themselves.
  func forgetKeyFrames() {
    hasVisibleKeyFrames = false
    for encoding in encodings {
      for down in encoding.downTracks { down.mapSource() }
      encoding.keyFrameSent()
    }
  }

  func payload(_ type: UInt8) -> Payload? { payloads[Int(type & 127)] }

  /// The only encoding, if its SSRC is not among those that the offer announces: the sender started the stream again.
  var restartedEncoding: Encoding? {
    guard !isLayered, let known = encodings[0].ssrc, !description.ssrcs.isEmpty, !description.ssrcs.contains(known)
    else { return nil }
    return encodings[0]
  }

  /// Takes the values of a later offer for the same track.
  func describe(_ new: UpTrackDescription, _ configuration: SFUConfiguration, _ histories: HistoryBudget) {
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
    keyFrameFeedback =
      kind != .video
      ? nil : new.formats.contains { $0.pli } ? .pictureLoss : new.formats.contains { $0.fir } ? .fullIntraRequest : nil
    let hasDescriptors = kind == .video && peer.configuration.extensions.dependencyDescriptor != 0
    if hasDescriptors { for encoding in encodings { encoding.readFrames() } }
    let codecs = new.formats.map { PayloadCodec(name: $0.codec) }
    // In a call, frames may be encrypted from their first byte on if there are neither layers nor descriptors. A room learns so when it waits in vain.
    let isReadable = isLayered || hasDescriptors || peer.isPinned
    hasVisibleKeyFrames =
      !codecs.isEmpty && codecs.allSatisfy { $0 == .vp8 || isReadable && $0.hasVisibleKeyFrames }
    // Receivers may have RTX although the sender has none.
    guard kind == .video || new.formats.contains(where: { $0.nack }) else { return }
    // Layers share the track's memory, and a third of a power of two is not a power of two.
    let limit = (kind == .video ? configuration.videoHistory : configuration.audioHistory) / (isLayered ? 4 : 1)
    for encoding in encodings { encoding.keepHistory(limit, span: configuration.historySpan, histories) }
  }
}
