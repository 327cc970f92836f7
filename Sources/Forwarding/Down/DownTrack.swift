import CongestionControl
import MediaModel
import Octets
import RTP

/// A receiver's slot: one stream under one SSRC for its whole life, whichever track is in it.
final class DownTrack {
  private(set) var description: SlotDescription
  /// The receiver; a slot with a source has one.
  unowned let peer: Peer
  let transport: SendTransport
  /// Its index among the slots of its encoding.
  var place = 0
  /// The part that each packet needs, with the slot's state.
  var slot: UnsafeMutablePointer<SlotPath> { box.pointer }
  private let box: Box<SlotPath>
  private(set) var source: UpTrack?
  /// For a track with several layers: those that the receiver should get.
  var claimed: ArraySlice<Encoding> = []
  /// The most that the slot's pin allows.
  var ceiling = LayerCeiling()
  /// How much of the source the receiver's rate and the worker's time have room for.
  var rateAllotment = Allotment.everything
  var loadAllotment = Allotment.everything
  /// The limit that the receiver was told, and the one that was found last.
  private(set) var picture: LimitedPicture?
  private var judgedPicture: LimitedPicture?
  /// When the source took the slot. A louder source cannot displace it immediately.
  private(set) var since = Instant(nanoseconds: 0)
  /// The receiver's ids.
  private var extensions: HeaderExtensionIDs
  /// The receiver has reported on this SSRC, so it has identified the stream and no longer needs the MID.
  var isKnown = false
  /// The last two sender reports that were sent: the id by which a receiver report names each, and when it was sent. A round trip may be longer
  /// than the time between two reports.
  var lastReport: (compact: UInt32, at: Instant)?
  var reportBefore: (compact: UInt32, at: Instant)?
  /// The stream's counts when they were last read.
  var measured: (packets: UInt32, octets: UInt32) = (0, 0)
  /// Bounds the copies to a receiver that does not report arrivals; nil until the receiver requests one.
  var copies: CopyBudget?
  /// For each key of the call's formats, whether the slot carries it.
  private var supportedFormats: [Bool] = []
  /// The datagrams that were sent; nil if RTX carries the retransmissions, or nothing can be requested again.
  private var sentDatagrams: PacketHistory?

  init(
    _ description: SlotDescription, of peer: Peer, _ configuration: SFUConfiguration, _ histories: HistoryBudget,
    random: inout SplitMix64
  ) {
    self.description = description
    self.peer = peer
    transport = peer.transport
    extensions = peer.configuration.extensions
    box = Box(SlotPath(description, path: transport.path, random: &random))
    keepSent(configuration, histories)
  }

  /// The encoding of the source that the slot gets.
  var encoding: Encoding? { encoding(slot.pointee.state.rank) }

  /// The encoding to which it switches at that one's next key frame.
  var next: Encoding? { encoding(slot.pointee.state.next) }

  private func encoding(_ rank: Int?) -> Encoding? {
    guard let rank, let source else { return nil }
    return source.encodings[rank]
  }

  /// It shows nothing, or not what it should show, until the next key frame.
  var isAwaitingKeyFrame: Bool { transport.isOpen && slot.pointee.isAwaitingKeyFrame }

  /// Takes the values of a later offer for the same slot.
  func describe(
    _ new: SlotDescription, extensions: HeaderExtensionIDs, _ configuration: SFUConfiguration,
    _ histories: HistoryBudget
  ) {
    if new.formats != description.formats { supportedFormats = [] }
    description = new
    self.extensions = extensions
    keepSent(configuration, histories)
    mapSource()
    noteAwaiting()
  }

  /// The slot's m-line is inactive. Only its numbers are kept: the receiver may have forgotten which stream the SSRC belongs to.
  func rest(now: Instant) {
    setSource(nil, now: now)
    slot.pointee.number = nil
    slot.pointee.stream.sentDatagrams = nil
    sentDatagrams = nil
    copies = nil
    isKnown = false
  }

  /// A receiver without RTX gets the same datagram again. It needs fewer kept packets than a source whose packets are
  /// requested by many.
  private func keepSent(_ configuration: SFUConfiguration, _ histories: HistoryBudget) {
    let isOfUse = description.formats.contains { $0.nack && $0.rtxPayloadType == nil }
    guard isOfUse != (sentDatagrams != nil) else { return }
    let limit = description.kind == .video ? configuration.videoHistory / 8 : configuration.audioHistory / 8
    sentDatagrams =
      isOfUse
      ? PacketHistory(first: Encoding.firstHistory, limit: limit, span: configuration.historySpan, budget: histories)
      : nil
    slot.pointee.stream.sentDatagrams = sentDatagrams.map { .passUnretained($0) }
  }

  /// Puts `track` in the slot; nil empties it.
  func setSource(_ track: UpTrack?, now: Instant) {
    guard track !== source else { return }
    expect(nil)
    claim([])
    detach()
    slot.pointee.state.leave()
    source = track
    rateAllotment = .everything
    loadAllotment = .everything
    picture = nil
    judgedPicture = nil
    ceiling = LayerCeiling()
    slot.pointee.layers.wish(nil)
    if let track {
      if track.isLayered { claim(track.encodings.suffix(1)) }
      let first = claimed.last.map(track.liveEncoding) ?? track.encodings[0]
      slot.pointee.state.take(rank: first.rank)
      attach(to: first)
    }
    since = now
    mapSource()
    noteAwaiting()
  }

  /// Compares what the receiver gets with what it was told. The receiver is told only what two judgements in a row found, so a brief change is
  /// not reported.
  /// - Returns: whether the receiver must be told something else.
  func judgePicture() -> Bool {
    let before = judgedPicture
    judgedPicture =
      switch allotment {
      case _ where source?.isSilent ?? true: nil
      case .nothing: .paused
      case .upTo: .lower
      case .everything: nil
      }
    guard judgedPicture == before, judgedPicture != picture else { return false }
    picture = judgedPicture
    return true
  }

  /// Tells the source if this slot shows nothing until its next key frame.
  func noteAwaiting() { if isAwaitingKeyFrame { encoding?.awaitKeyFrame() } }

  /// Builds the tables from the source's numbers to the receiver's; called again when an offer of either side has
  /// changed them.
  func mapSource() {
    slot.pointee.stream.map(to: description, extensions, isKnown: isKnown)
    guard let source else { return }
    let frames = encoding?.frames
    if slot.pointee.layers.frames != frames {
      slot.pointee.layers.read(by: frames)
      slot.pointee.state.pause()
    }
    slot.pointee.source = SlotPath.Source(
      clockRate: source.clockRate, startsAtKeyFrame: source.hasVisibleKeyFrames, isKept: encoding?.history != nil)
    slot.pointee.stream.map(
      from: source.description.formats, source.peer.configuration.extensions, to: description.formats, extensions)
  }

  /// The source was muted, or the receiver was away.
  func pause() {
    forgetWaiting()
    slot.pointee.state.pause()
    noteAwaiting()
  }

  /// The source started again under another SSRC.
  func sourceRestarted() {
    forgetWaiting()
    slot.pointee.state.restart()
    noteAwaiting()
  }

  /// Whether the slot carries the call's formats of this key.
  func carries(_ key: Int, of formats: [PayloadFormat]) -> Bool {
    while supportedFormats.count < formats.count {
      let format = formats[supportedFormats.count]
      supportedFormats.append(description.formats.contains { format.carries($0) })
    }
    return formats.indices.contains(key) && supportedFormats[key]
  }

  /// Sends the packet again that was sent as `sequenceNumber`. Returns false if it cannot be sent.
  func retransmit(_ sequenceNumber: UInt16, now: Instant, into outbox: Outbox) -> Bool {
    if let sentDatagrams, let index = slot.pointee.sourceSwitch.index(of: sequenceNumber),
      let datagram = sentDatagrams.datagram(index)
    {
      return slot.pointee.stream.sendAgain(datagram, now: now, into: outbox)
    }
    if slot.pointee.isUnused(sequenceNumber) {
      return slot.pointee.retransmitNothing(sequenceNumber, now: now, into: outbox)
    }
    guard let source, let encoding, let index = slot.pointee.sourceIndex(sequenceNumber),
      var packet = encoding.history?.packet(index)
    else { return false }
    if source.payload(packet.header.payloadType)?.codec == .vp8 { packet.readVP8() }
    guard slot.pointee.stream.hasRetransmission(of: packet) else {
      // It came before the source's first packet here and has not gone out yet. The sender refuses to encrypt a second packet under one number.
      guard case .sent = slot.pointee.release(packet, now: now, into: outbox) else { return false }
      return true
    }
    if let downlink = transport.downlink, let number = slot.pointee.number {
      let copy = PacedPacket(index: index, size: packet.length, frame: 0, slot: number, kind: .retransmission)
      switch downlink.pointee.offer(copy, now: now) {
      case .passes: break
      case .queued: return true
      case .dropped: return false
      }
    }
    return slot.pointee.retransmit(packet, now: now, into: outbox)
  }

  /// Sends a packet that has waited for the receiver's path, if it is still kept.
  func release(_ waiting: PacedPacket, now: Instant, into outbox: Outbox) -> SendResult {
    guard let source, var packet = encoding?.history?.packet(waiting.index) else {
      slot.pointee.leaveOut(waiting.index)
      return .dropped(.notRetransmitted)
    }
    if source.payload(packet.header.payloadType)?.codec == .vp8 { packet.readVP8() }
    guard waiting.kind == .retransmission else { return slot.pointee.release(packet, now: now, into: outbox) }
    return slot.pointee.retransmit(packet, now: now, into: outbox) ? .sent : .dropped(.notRetransmitted)
  }

  /// Packets that wait for the receiver's path are of no use any longer.
  func forgetWaiting() {
    if let number = slot.pointee.number { transport.downlink?.pointee.removeWaiting(slot: number) }
  }

  /// Sends the last 200 ms of a speaker who has just been let in, so that the first syllable is heard. The packets keep their timestamps, so a jitter
  /// buffer takes them for a burst.
  /// - Returns: the number of packets sent.
  func sendPreRoll(now: Instant, into outbox: Outbox) -> UInt64 {
    guard let source, let since = source.peer.voice.since, since.duration(to: now) < Self.preRollWindow,
      let encoding, let history = encoding.preRoll, let newest = encoding.reception.pointee.unwrapper.highest,
      let last = history.packet(newest)
    else { return 0 }
    var sent: UInt64 = 0
    for index in newest &- min(newest, Self.preRollPackets - 1)...newest {
      guard let packet = history.packet(index),
        last.header.timestamp &- packet.header.timestamp < source.clockRate / 5
      else { continue }
      if case .sent = slot.pointee.forward(packet, now: now, into: outbox) { sent += 1 }
    }
    return sent
  }

  private static let preRollPackets: UInt64 = 10
  /// A slot that becomes free after this time is too late for the first syllable.
  private static let preRollWindow = Duration.milliseconds(300)
}
