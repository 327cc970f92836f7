import CongestionControl
import MediaModel
import Octets
import RTP

/// The outcome of sending one packet to one receiver.
enum SendResult {
  case sent
  /// It waits for the receiver's path.
  case waits
  /// The receiver's path is not open.
  case notOpen
  case dropped(DropReason)
}

/// A slot on the path of the packets, in flat memory: what it does, and which numbers and layers its stream has. A packet is admitted, selected, paced and
/// written, in this order. Created and kept up to date by the slot's `DownTrack`.
struct SlotPath {
  /// The facts about the source on which forwarding depends.
  struct Source {
    /// In Hz.
    var clockRate: UInt32 = 90_000
    /// The first packet has to begin a key frame, because key frames can be recognized.
    var startsAtKeyFrame = false
    /// Its packets are kept, so they can wait for the receiver's path.
    var isKept = false
  }

  var state = SlotState.empty
  var source = Source()
  var layers = LayerSelection()
  var stream: DownStream
  /// The slot's index among the receiver's video slots, as the pacer knows it; nil for a slot that the pacer does not
  /// know.
  var number: UInt8?
  private(set) var sourceSwitch: SourceSwitch

  init(_ description: SlotDescription, path: UnsafeMutablePointer<SendTransport.Path>, random: inout SplitMix64) {
    // Below 2^15, so that the first packets cannot wrap before the receiver has seen one (RFC 3711 3.3.1).
    sourceSwitch = SourceSwitch(first: UInt16(random.next() & 0x7fff))
    stream = DownStream(description, path: path, retransmissionSequence: UInt16(random.next() & 0x7fff))
  }

  /// Nothing is sent until the next key frame, although there is room for the source.
  var isAwaitingKeyFrame: Bool {
    switch state {
    case .empty, .withheld: false
    case .awaiting: source.startsAtKeyFrame || layers.needsKeyFrame
    case .running, .switching: layers.needsKeyFrame
    }
  }

  /// Sends a packet of the source to the receiver. Its VP8 descriptor is overwritten with this receiver's.
  mutating func forward(_ packet: borrowing Packet, now: Instant, into outbox: Outbox) -> SendResult {
    guard stream.isOpen else { return .notOpen }
    let payloadType = stream.payloadType(of: packet)
    guard payloadType != 255 else { return .dropped(.payloadType) }
    let isFirst = !state.isRunning
    if isFirst, let reason = admit(packet, now: now) { return .dropped(reason) }
    if let reason = select(packet) { return .dropped(reason) }
    if stream.isVideo, let downlink = stream.path.pointee.downlink, downlink.pointee.isPacing,
      let result = pace(packet, by: downlink, now: now)
    {
      return result
    }
    return write(packet, payloadType, isFirst: isFirst, now: now, into: outbox)
  }

  /// A packet while nothing is sent: the first one begins the source here.
  /// - Returns: why it cannot be the first; nil if it is.
  private mutating func admit(_ packet: borrowing Packet, now: Instant) -> DropReason? {
    guard !state.isWithheld else { return .notSelected }
    guard packet.isKeyFrame || !source.startsAtKeyFrame else { return .awaitingKeyFrame }
    begin(packet, now: now)
    return nil
  }

  /// - Returns: why the receiver does not get the packet; nil if it does.
  @inline(__always)
  private mutating func select(_ packet: borrowing Packet) -> DropReason? {
    // Its structure may still come; the packet can be requested again then.
    guard !packet.isUnreadable else { return .dependencies }
    guard layers.mayOmit, !layers.selects(packet) else { return nil }
    leaveOut(packet)
    return layers.isBroken ? .dependencies : .notSelected
  }

  /// Asks the pacer of a narrow path whether the packet may leave.
  /// - Returns: nil when it leaves now.
  @inline(never)
  private mutating func pace(
    _ packet: borrowing Packet, by downlink: UnsafeMutablePointer<Downlink>, now: Instant
  ) -> SendResult? {
    // Requests for unused numbers are answered on the RTX stream.
    guard let number, source.isKept, packet.length <= PacketHistory.longestPacket, stream.numberExtension != 0,
      stream.hasRetransmission(of: packet)
    else { return nil }
    if packet.isKeyFrame, downlink.pointee.holds(slot: number), state.isRunning, sourceSwitch.isAhead(packet.index) {
      // Older packets that wait are discarded in favor of this one: the slot starts again, so the receiver misses none
      // of them.
      state.pause()
      begin(packet, now: now)
    }
    switch downlink.pointee.offer(pacedPacket(packet, number), now: now) {
    case .passes: return nil
    case .queued:
      sourceSwitch.queued(packet, now: now)
      noteTaken(packet)
      return .waits
    case .dropped:
      leaveOut(packet)
      if downlink.pointee.needsKeyFrame(slot: number) { state.pause() }
      return .dropped(.paced)
    }
  }

  private func pacedPacket(_ packet: borrowing Packet, _ number: UInt8) -> PacedPacket {
    var isDiscardable = packet.vp8?.isDiscardable ?? !source.startsAtKeyFrame
    if let frame = packet.frame {
      isDiscardable = frame.dependencies.discardable >> UInt32(layers.target) & 1 != 0
    }
    return PacedPacket(
      index: packet.index, size: packet.length + stream.path.pointee.overhead,
      frame: UInt16(truncatingIfNeeded: packet.header.timestamp), slot: number, kind: .video,
      isDiscardable: isDiscardable, isKeyFrame: packet.isKeyFrame)
  }

  @inline(__always)
  private mutating func write(
    _ packet: borrowing Packet, _ payloadType: UInt8, isFirst: Bool, now: Instant, into outbox: Outbox
  ) -> SendResult {
    var mapped = sourceSwitch.map(packet)
    if mapped == nil { mapped = beginAfterJump(packet, now: now) }
    guard let numbers = mapped else { return .dropped(state.isRunning ? .beforeSwitch : .jumped) }
    // Sound after a silence begins a talkspurt (RFC 3551 section 4.1).
    var setsMarker = isFirst && !stream.isVideo
    if !packet.header.marker, layers.endsPicture(packet) { setsMarker = true }
    let new = DownStream.Rewriting(
      payloadType: payloadType, numbers: numbers, setsMarker: setsMarker, shift: layers.shift)
    let result = stream.write(packet, new, now: now, into: outbox)
    guard case .sent = result else { return result }
    sourceSwitch.sent(numbers, now: now)
    noteTaken(packet)
    return .sent
  }

  /// Begins with a source's first packet, or its first after a pause.
  private mutating func begin(_ packet: borrowing Packet, now: Instant) {
    guard let continuation = state.begin() else { return }
    sourceSwitch.start(packet, as: continuation, clockRate: source.clockRate, now: now)
    layers.begin(packet, isSameTrack: continuation.isSameTrack)
  }

  /// The source's numbers have jumped: it starts again, with this packet or with a later key frame.
  /// - Returns: nil if the packet is merely too old, or if a key frame is needed and this is not one.
  @inline(never)
  private mutating func beginAfterJump(_ packet: borrowing Packet, now: Instant) -> SourceSwitch.Numbers? {
    guard sourceSwitch.hasJumped(to: packet.index) else { return nil }
    state.restart()
    guard packet.isKeyFrame || !source.startsAtKeyFrame else { return nil }
    begin(packet, now: now)
    if layers.mayOmit { _ = layers.selects(packet) }
    return sourceSwitch.map(packet)
  }

  /// The packet leaves now or waits.
  @inline(__always)
  private mutating func noteTaken(_ packet: borrowing Packet) {
    layers.taken(packet)
    stream.taken(packet)
  }

  /// The source's packet is not sent on, and the receiver does not miss it.
  mutating func leaveOut(_ packet: borrowing Packet) { leaveOut(packet.index) }

  /// The same for the packet with this index, even if it has a number: the number then stays unused.
  mutating func leaveOut(_ index: UInt64) { if state.isRunning { sourceSwitch.omit(index) } }
}

extension SlotPath {
  /// Sends a packet of the source's history that has waited. It gets its sequence number only now, so packets dropped meanwhile have none.
  mutating func release(_ packet: borrowing Packet, now: Instant, into outbox: Outbox) -> SendResult {
    let payloadType = stream.payloadType(of: packet)
    guard payloadType != 255 else { return .dropped(.payloadType) }
    guard let numbers = sourceSwitch.map(packet) else {
      guard sourceSwitch.hasJumped(to: packet.index) else { return .dropped(.beforeSwitch) }
      state.restart()
      return .dropped(.jumped)
    }
    let result = writeKept(packet, payloadType, numbers, as: .video, now: now, into: outbox)
    if case .sent = result { sourceSwitch.released(numbers.index) }
    return result
  }

  /// Sends a packet of the source's history again, under the slot's RTX SSRC (RFC 4588). Returns false if it cannot be
  /// sent.
  /// - Parameter kind: how it counts for the estimate.
  mutating func retransmit(
    _ packet: borrowing Packet, as kind: SentKind = .retransmission, now: Instant, into outbox: Outbox
  ) -> Bool {
    guard stream.hasRetransmission(of: packet), let numbers = sourceSwitch.numbers(of: packet) else { return false }
    let payloadType = stream.retransmissionTypes[Int(packet.header.payloadType & 127)]
    if case .sent = writeKept(packet, payloadType, numbers, as: kind, now: now, into: outbox) { return true }
    return false
  }

  private mutating func writeKept(
    _ packet: borrowing Packet, _ payloadType: UInt8, _ numbers: SourceSwitch.Numbers, as kind: SentKind, now: Instant,
    into outbox: Outbox
  ) -> SendResult {
    let new = DownStream.Rewriting(
      payloadType: payloadType, numbers: numbers,
      setsMarker: layers.endsPicture(ofKept: packet, descriptor: stream.sourceDescriptorID), shift: layers.shift)
    return stream.writeKept(packet, new, as: kind, now: now, into: outbox)
  }

  /// Answers a request for a sequence number under which no packet is sent. Returns false if it cannot be sent.
  mutating func retransmitNothing(_ sequenceNumber: UInt16, now: Instant, into outbox: Outbox) -> Bool {
    stream.retransmitNothing(sequenceNumber, timestamp: sourceSwitch.lastTimestamp, now: now, into: outbox)
  }

  /// Sends padding on the slot's RTX stream. Returns false if it cannot be sent.
  mutating func sendPadding(now: Instant, into outbox: Outbox) -> Bool {
    stream.sendPadding(timestamp: sourceSwitch.lastTimestamp, now: now, into: outbox)
  }

  /// The running source's packet that was sent under `sequenceNumber`; nil if it was another source's, or if none was sent.
  func sourceIndex(_ sequenceNumber: UInt16) -> UInt64? {
    state.isRunning ? sourceSwitch.sourceIndex(sequenceNumber) : nil
  }

  /// Whether no packet of the running source is sent under `sequenceNumber`, or no longer.
  func isUnused(_ sequenceNumber: UInt16) -> Bool { state.isRunning && sourceSwitch.isUnused(sequenceNumber) }
}

extension SlotState.Continuation {
  /// The packets before belong to another layer of the same track.
  fileprivate var isSameTrack: Bool { if case .layer = self { true } else { false } }
}
