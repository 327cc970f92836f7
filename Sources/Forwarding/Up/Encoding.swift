import MediaModel
import Octets
import RTP

/// One RTP stream of an up-track with its retransmissions: a track has one, or one for each simulcast layer.
///
/// A packet that arrived, itself or by RTX, is in `reception`, and while a slot shows the encoding also in `history`.
final class Encoding {
  unowned let track: UpTrack
  /// The stream's SSRC, announced or latched by the MID extension; nil until then.
  private(set) var ssrc: UInt32?
  /// The layer's restriction id (RFC 8852); nil where a track has one encoding.
  let rid: String?
  /// Its index among the track's layers, 0 for the lowest.
  let rank: Int
  var reception: UnsafeMutablePointer<Reception> { receptionBox.pointer }
  private let receptionBox: Box<Reception>
  /// nil for sound without NACK.
  private(set) var history: PacketHistory?
  /// The last packets of a microphone that not everybody hears; nil if they would be of no use.
  private(set) var preRoll: PacketHistory?
  /// Reads its dependency descriptors; nil where they were not negotiated.
  var frames: UnsafeMutablePointer<FrameReader>? { framesBox?.pointer }
  private var framesBox: Box<FrameReader>?
  let isVideo: Bool
  /// The call's meter, kept alive by `load`.
  let meter: UnsafeMutablePointer<LoadMeter>
  private let load: CallLoad
  /// Packets of it arrived recently.
  var isAlive = false
  /// The number of frames of other layers since its last packet.
  var framesOfOthers = 0
  /// Slots that show another layer until the next key frame of this one.
  private(set) var waiting: [DownTrack] = []
  /// The number of slots that should get it, whatever they show: because they wish it, or because their path has no
  /// room for their wish.
  var claims = 0 { didSet { track.noteDemandChange() } }
  /// The slots that show it.
  private(set) var downTracks: [DownTrack] = []
  /// Those of `downTracks`: for the packets.
  private(set) var slots: ContiguousArray<UnsafeMutablePointer<SlotPath>> = []
  /// A slot may show nothing until the next key frame. It stays true until then, even if that slot is gone: at worst one key frame too
  /// many is requested.
  private(set) var isAwaited = false

  init(of track: UpTrack, ssrc: UInt32?, rid: String? = nil, rank: Int = 0, keyFrameInterval: Duration) {
    self.track = track
    self.ssrc = ssrc
    self.rid = rid
    self.rank = rank
    isVideo = track.kind == .video
    load = track.peer.call.load
    meter = load.meter
    receptionBox = Box(Reception(keyFrames: KeyFrameRequester(interval: keyFrameInterval)))
  }

  /// In pixels: as its structure says, else what browsers send under these layer names.
  var height: Int { frames?.pointee.structure.height(of: 0) ?? 180 << rank }

  /// `height` when the last packet arrived.
  var knownHeight = 0

  /// At least one slot gets it, waits for it, or should get it, here or on another worker.
  var isWanted: Bool { claims > 0 || !downTracks.isEmpty || !waiting.isEmpty || relays.contains(where: \.isWanted) }

  /// The ends that get its packets, and whether they want it encoded.
  private(set) var relays: [(end: RelayEnd, isWanted: Bool)] = []
  /// The last wish that was sent to the worker of its peer.
  var toldWish: RelayWish?
  /// How many streams preceded this one: how often `restart` was called.
  private(set) var restarts: UInt32 = 0

  /// An end wishes for it.
  func relay(to end: RelayEnd, _ wish: RelayWish) {
    // Wishes are repeated.
    if relays.contains(where: { $0.end == end && $0.isWanted == (wish == .wanted) }), wish != .nothing { return }
    relays.removeAll { $0.end == end }
    if wish != .nothing { relays.append((end, wish == .wanted)) }
    track.noteDemandChange()
  }

  /// The sender puts dependency descriptors into its packets.
  func readFrames() { if frames == nil { framesBox = Box(FrameReader()) } }

  /// The SSRC of its retransmissions, if announced (RFC 4588 section 8.3).
  var rtxSSRC: UInt32? { ssrc.flatMap { track.description.rtx[$0] } }

  /// Retransmissions will be asked for.
  /// - Parameter limit: bytes at most, a power of two.
  func keepHistory(_ limit: Int, span: Duration, _ budget: HistoryBudget) {
    guard history == nil else { return }
    history = PacketHistory(first: Self.firstHistory, limit: limit, span: span, budget: budget)
  }

  /// Bytes of a new history: 2.5 s of Opus at 40 kbit/s with all its headers.
  static let firstHistory = 16 << 10

  /// A microphone's last 200 ms: 2 KiB at 60 kbit/s, 8 KiB at 300.
  func keepPreRoll(_ isOfUse: Bool, _ budget: HistoryBudget) {
    guard isOfUse != (preRoll != nil) else { return }
    preRoll = isOfUse ? PacketHistory(first: 2 << 10, limit: 8 << 10, span: .milliseconds(200), budget: budget) : nil
  }

  /// The stream's SSRC is known.
  func latch(_ ssrc: UInt32) { self.ssrc = ssrc }

  /// The sender started the stream again under another SSRC.
  func restart(ssrc: UInt32) {
    restarts &+= 1
    self.ssrc = ssrc
    let request = reception.pointee.keyFrames
    reception.pointee = Reception(keyFrames: request)
    history?.removeAll()
    preRoll?.removeAll()
    frames?.pointee = FrameReader()
    for down in downTracks { down.sourceRestarted() }
  }

  /// The worker that has the sender says that the stream started again.
  func restart(as restarts: UInt32) {
    restart(ssrc: ssrc ?? 0)
    self.restarts = restarts
  }

  func add(_ down: DownTrack) {
    down.place = downTracks.count
    downTracks.append(down)
    slots.append(down.slot)
    track.noteDemandChange()
  }

  /// `down` will show it from its next key frame on.
  func expect(_ down: DownTrack) {
    waiting.append(down)
    isAwaited = true
    track.noteDemandChange()
  }

  func forget(_ down: DownTrack) {
    waiting.removeAll { $0 === down }
    endWait()
    track.noteDemandChange()
  }

  /// The slots that waited for the key frame that has arrived.
  func takeWaiting() -> [DownTrack] {
    defer { waiting.removeAll(keepingCapacity: true) }
    return waiting
  }

  private func endWait() { if downTracks.isEmpty, waiting.isEmpty { isAwaited = false } }

  /// The last slot takes the index of the removed one.
  func remove(_ down: DownTrack) {
    let place = down.place
    downTracks[downTracks.count - 1].place = place
    downTracks.swapAt(place, downTracks.count - 1)
    slots.swapAt(place, slots.count - 1)
    downTracks.removeLast()
    slots.removeLast()
    endWait()
    track.noteDemandChange()
  }

  /// A slot shows nothing until the next key frame.
  func awaitKeyFrame() { isAwaited = true }

  /// A key frame was sent: few slots, if any, still wait for one.
  func keyFrameSent() { isAwaited = !waiting.isEmpty || downTracks.contains { $0.isAwaitingKeyFrame } }

  /// Requests were due: a room's track that arrives, but never with a key frame, is shown without one.
  func noteRequest(_ now: Instant) {
    guard track.peer.isPinned, track.hasVisibleKeyFrames, reception.pointee.keyFrames.isUnanswered(now),
      let last = reception.pointee.lastPacket, last.duration(to: now) < .seconds(1)
    else { return }
    track.forgetKeyFrames()
  }

  func requestKeyFrame(_ now: Instant) {
    guard track.keyFrameFeedback != nil, !track.isSilent else { return }
    reception.pointee.keyFrames.request(now)
  }
}
