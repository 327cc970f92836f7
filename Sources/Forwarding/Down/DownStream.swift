import CongestionControl
import MediaModel
import Octets
import RTP
import Transport

/// Everything needed to send one more packet to a slot, in flat memory. Created and kept up to date by the slot's
/// `DownTrack`.
struct DownStream {
  /// The outcome of sending one packet to one receiver.
  enum SendResult { case sent, waits, notOpen, dropped(DropReason) }

  let path: UnsafeMutablePointer<SendTransport.Path>
  /// The slot's index among the receiver's video slots, as the pacer knows it; nil for a slot that the pacer does not
  /// know.
  var number: UInt8?
  let isVideo: Bool
  let ssrc: UInt32
  let rtxSSRC: UInt32
  var sourceSwitch: SourceSwitch
  /// The receiver's id of the extension with the transport-wide number; 0 when it does not report on the stream.
  var numberExtension: UInt8 = 0
  /// The receiver's id of the abs-send-time extension; 0 when it does not estimate its rate by that.
  var sendTimeExtension: UInt8 = 0
  /// The receiver's id of the MID extension; 0 when it needs none.
  var midExtension: UInt8 = 0
  var mid: String
  /// The source's extension ids → the receiver's.
  var extensionMap = HeaderExtensionMap()
  /// The source's id of the dependency descriptor.
  var sourceDescriptorID: UInt8 = 0
  /// The source's payload type → the receiver's, and the receiver's RTX type; 255 for none.
  var payloadTypes = InlineArray<128, UInt8>(repeating: 255)
  var retransmissionTypes = InlineArray<128, UInt8>(repeating: 255)
  /// The source's clock rate.
  var clockRate: UInt32 = 90_000
  /// A new source starts at a key frame, because its key frames can be recognized.
  var waitsForKeyFrame = false
  /// The counts for sender reports (RFC 3550 6.4.1).
  private(set) var packetCount: UInt32 = 0
  private(set) var octetCount: UInt32 = 0
  private var retransmissionSequence: UInt16
  /// Reads the encoding's dependency descriptors; nil where it has none.
  var frames: UnsafeMutablePointer<FrameReader>?
  /// Decides which frames go out; nil for a source without descriptors.
  var selector: FrameSelector?
  var frameNumbers = FrameNumbers()
  /// The receiver's wish, in pixels; nil for no limit.
  var maxHeight: Int?
  /// The slot waits for a lower layer. Until then the lowest temporal layer of the current one suffices.
  var isLimited = false
  /// The highest layers that the receiver's rate has room for; `isWithheld` if it has room for none.
  var spatialLimit = Int.max
  var temporalLimit = Int.max
  var isWithheld = false
  /// Frames of VP8's higher temporal layers were left out since the last key frame.
  var isThinned = false
  /// The decode target chosen by wish and structure, and the revision of the structure by which it was chosen.
  var target = 0
  var revision: UInt64 = 0
  /// The source's packets are kept, so they can wait for the receiver's path.
  var isKept = false
  /// The RTX type of the last packet.
  private var retransmissionType: UInt8 = 255
  /// The receiver's first RTX type; 255 for none.
  var paddingType: UInt8 = 255
  /// The datagrams that were sent, for a receiver without RTX. Owned by the `DownTrack`.
  var sentDatagrams: Unmanaged<PacketHistory>?

  init(_ slot: SlotDescription, path: UnsafeMutablePointer<SendTransport.Path>, random: inout SplitMix64) {
    self.path = path
    isVideo = slot.kind == .video
    ssrc = slot.ssrc
    rtxSSRC = slot.rtxSSRC
    mid = slot.mid
    // Below 2^15, so that the first packets cannot wrap before the receiver has seen one (RFC 3711 3.3.1).
    sourceSwitch = SourceSwitch(first: UInt16(random.next() & 0x7fff))
    retransmissionSequence = UInt16(random.next() & 0x7fff)
  }

  /// Sends the source's packet on: one copy of the header, one encryption from the packet's memory to the outbox's. The packet's VP8
  /// descriptor is overwritten with this receiver's.
  mutating func forward(_ packet: borrowing Packet, now: Instant, into outbox: Outbox) -> SendResult {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return .notOpen }
    let payloadType = payloadTypes[Int(packet.header.payloadType & 127)]
    guard payloadType != 255 else { return .dropped(.payloadType) }
    let isFirst = !sourceSwitch.isRunning
    if isFirst {
      guard !isWithheld else { return .dropped(.notSelected) }
      guard packet.isKeyFrame || !waitsForKeyFrame else { return .dropped(.awaitingKeyFrame) }
      begin(packet, now: now)
    }
    // Its structure may still come; the packet can be requested again then.
    guard !packet.isUnreadable else { return .dropped(.dependencies) }
    if mayOmit, !selects(packet) {
      sourceSwitch.omit(packet)
      return .dropped(selector?.isBroken ?? false ? .dependencies : .notSelected)
    }
    if isVideo, let downlink = path.pointee.downlink, downlink.pointee.isPacing,
      let result = pace(packet, by: downlink, now: now)
    {
      return result
    }
    var mapped = sourceSwitch.map(packet)
    if mapped == nil { mapped = beginAfterJump(packet, now: now) }
    guard let numbers = mapped else {
      return .dropped(sourceSwitch.isRunning ? .beforeSwitch : .jumped)
    }
    let overhead = path.pointee.overhead
    let size = packet.length + Self.headerRoom + Self.maximumPadding + overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return .dropped(.outboxFull) }
    let header = writeHeader(
      packet, payloadType: payloadType, sequenceNumber: numbers.sequenceNumber, ssrc: ssrc,
      timestamp: numbers.timestamp, now: now, into: room)
    var isLast = packet.header.marker
    // Sound after a silence begins a talkspurt (RFC 3551 section 4.1).
    if isFirst, !isVideo { RTPHeader.setMarker(in: room) }
    if frames != nil, !isLast, let frame = packet.frame {
      isLast = endsPicture(frame.dependencies, endsFrame: frame.endsFrame)
      if isLast { RTPHeader.setMarker(in: room) }
    }
    packet.vp8?.rewrite(
      pictureID: numbers.pictureID, tl0PictureIndex: numbers.tl0PictureIndex, keyIndex: numbers.keyIndex,
      in: packet.payload)
    let payload = UnsafeRawBufferPointer(packet.payload)
    var padding = 0
    if isVideo {
      padding = Self.padding(
        for: header + payload.count + overhead, isLast: isLast, outbox, path.pointee.cursor)
      if padding > 0 { RTPHeader.setPadding(true, in: room) }
    }
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, payload: payload, padding: UInt8(truncatingIfNeeded: padding))
    }
    guard let length else { return .dropped(.notProtected) }
    keep(room, length, packet.header.payloadType, index: numbers.index, now: now)
    commit(length, kind: isVideo ? .video : .audio, now: now, into: outbox)
    sourceSwitch.sent(numbers, now: now)
    noteTaken(packet)
    count(payload.count)
    return .sent
  }

  /// The source's packet is not sent on, and the receiver does not miss it.
  mutating func leaveOut(_ packet: borrowing Packet) { sourceSwitch.omit(packet) }

  /// The source's numbers have jumped: it starts again, with this packet or with a later key frame.
  /// - Returns: nil if the packet is merely too old, or if a key frame is needed and this is not one.
  @inline(never)
  private mutating func beginAfterJump(_ packet: borrowing Packet, now: Instant) -> SourceSwitch.Numbers? {
    guard sourceSwitch.hasJumped(to: packet.index) else { return nil }
    sourceSwitch.endSource()
    guard packet.isKeyFrame || !waitsForKeyFrame else { return nil }
    begin(packet, now: now)
    if mayOmit { _ = selects(packet) }
    return sourceSwitch.map(packet)
  }

  /// The packet leaves now or waits.
  private mutating func noteTaken(_ packet: borrowing Packet) {
    if let frames, let frame = packet.frame { frameNumbers.sent(frame, frames.pointee.structure) }
    retransmissionType = retransmissionTypes[Int(packet.header.payloadType & 127)]
  }

  private mutating func count(_ octets: Int) {
    packetCount &+= 1
    octetCount &+= UInt32(truncatingIfNeeded: octets)
  }

  /// Asks the pacer of a narrow path whether the packet may leave.
  /// - Returns: nil when it leaves now.
  @inline(never)
  private mutating func pace(
    _ packet: borrowing Packet, by downlink: UnsafeMutablePointer<Downlink>, now: Instant
  ) -> SendResult? {
    // Requests for unused numbers are answered on the RTX stream.
    guard let number, isKept, packet.length <= PacketHistory.longestPacket, numberExtension != 0,
      retransmissionTypes[Int(packet.header.payloadType & 127)] != 255
    else { return nil }
    if packet.isKeyFrame, downlink.pointee.holds(slot: number), sourceSwitch.isAhead(packet.index) {
      // Older packets that wait are discarded in favor of this one: the slot starts again, so the receiver misses none
      // of them.
      sourceSwitch.pause()
      begin(packet, now: now)
    }
    switch downlink.pointee.offer(pacedPacket(packet, number), now: now) {
    case .passes: return nil
    case .queued:
      sourceSwitch.queued(packet, now: now)
      noteTaken(packet)
      return .waits
    case .dropped:
      sourceSwitch.omit(packet)
      if downlink.pointee.needsKeyFrame(slot: number) { sourceSwitch.pause() }
      return .dropped(.paced)
    }
  }

  private func pacedPacket(_ packet: borrowing Packet, _ number: UInt8) -> PacedPacket {
    var isDiscardable = packet.vp8?.isDiscardable ?? !waitsForKeyFrame
    if let frame = packet.frame { isDiscardable = frame.dependencies.discardable >> UInt32(target) & 1 != 0 }
    return PacedPacket(
      index: packet.index, size: packet.length + path.pointee.overhead,
      frame: UInt16(truncatingIfNeeded: packet.header.timestamp), slot: number, kind: .video,
      isDiscardable: isDiscardable, isKeyFrame: packet.isKeyFrame)
  }

  /// Sends a packet of the source's history that has waited. It gets its sequence number only now, so packets dropped meanwhile have none.
  mutating func release(_ packet: borrowing Packet, now: Instant, into outbox: Outbox) -> SendResult {
    let payloadType = payloadTypes[Int(packet.header.payloadType & 127)]
    guard payloadType != 255 else { return .dropped(.payloadType) }
    guard let numbers = sourceSwitch.map(packet) else {
      guard sourceSwitch.hasJumped(to: packet.index) else { return .dropped(.beforeSwitch) }
      sourceSwitch.endSource()
      return .dropped(.jumped)
    }
    let result = sendKept(packet, numbers, payloadType, as: .video, now: now, into: outbox)
    guard case .sent = result else { return result }
    sourceSwitch.released(numbers.index)
    count(packet.payload.count)
    return .sent
  }

  /// Sends a packet of the source's history again, under the slot's RTX SSRC (RFC 4588). Returns false if it cannot be
  /// sent.
  /// - Parameter kind: how it counts for the estimate.
  mutating func retransmit(
    _ packet: borrowing Packet, as kind: SentKind = .retransmission, now: Instant, into outbox: Outbox
  ) -> Bool {
    let payloadType = retransmissionTypes[Int(packet.header.payloadType & 127)]
    guard payloadType != 255, let numbers = sourceSwitch.numbers(of: packet),
      case .sent = sendKept(packet, numbers, payloadType, as: kind, now: now, into: outbox)
    else { return false }
    retransmissionSequence &+= 1
    return true
  }

  /// Sends a datagram again exactly as it was sent before: a different one under its number would reuse a nonce (RFC
  /// 7714 section 8.1).
  mutating func sendAgain(_ datagram: UnsafeMutableRawBufferPointer, now: Instant, into outbox: Outbox) -> Bool {
    guard path.pointee.isOpen, path.pointee.sender != nil,
      let room = outbox.reserve(datagram.count, &path.pointee.cursor)
    else { return false }
    room.copyMemory(from: UnsafeRawBufferPointer(datagram))
    let destination = path.pointee.destination
    outbox.commit(datagram.count, &path.pointee.cursor, to: destination, isUrgent: !isVideo)
    path.pointee.downlink?.pointee.sentAgain(
      transportNumber(of: datagram), length: datagram.count, to: destination, now: now)
    return true
  }

  private func transportNumber(of datagram: UnsafeMutableRawBufferPointer) -> UInt16? {
    guard numberExtension != 0, let header = RTPHeader(parsing: datagram.bytes),
      let element = HeaderExtensions(header)?.element(numberExtension, in: datagram.bytes), element.length == 2
    else { return nil }
    return datagram.bytes.uint16(at: element.offset)
  }

  /// Sends a packet of the source's history, which keeps the source's numbers.
  /// - Parameter kind: all but `.video` go out on the RTX stream.
  private mutating func sendKept(
    _ packet: borrowing Packet, _ numbers: SourceSwitch.Numbers, _ payloadType: UInt8, as kind: SentKind, now: Instant,
    into outbox: Outbox
  ) -> SendResult {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return .notOpen }
    let size = packet.length + Self.headerRoom + 2 + path.pointee.overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return .dropped(.outboxFull) }
    let isCopy = kind != .video
    let header = writeHeader(
      packet, payloadType: payloadType,
      sequenceNumber: isCopy ? retransmissionSequence : numbers.sequenceNumber, ssrc: isCopy ? rtxSSRC : ssrc,
      timestamp: numbers.timestamp, now: now, into: room)
    if let frames, let element = packet.extensions?.element(sourceDescriptorID, in: packet.bytes.bytes),
      let descriptor = frames.pointee.layers(element, in: packet.bytes.bytes),
      endsPicture(descriptor.frame, endsFrame: descriptor.endsFrame)
    {
      RTPHeader.setMarker(in: room)
    }
    let start = isCopy ? header + 2 : header
    if isCopy { room.store(numbers.sequenceNumber, at: header) }
    // The packet in the history must keep the source's numbers, so the descriptor is rewritten in the copy.
    let descriptor = packet.vp8?.length ?? 0
    let copy = UnsafeMutableRawBufferPointer(rebasing: room[start..<(start + descriptor)])
    copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet.payload[..<descriptor]))
    packet.vp8?.rewrite(
      pictureID: numbers.pictureID, tl0PictureIndex: numbers.tl0PictureIndex, keyIndex: numbers.keyIndex, in: copy)
    let rest = UnsafeRawBufferPointer(rebasing: packet.payload[descriptor...])
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, prefixLength: start - header + descriptor, payload: rest)
    }
    guard let length else { return .dropped(.notProtected) }
    if !isCopy { keep(room, length, packet.header.payloadType, index: numbers.index, now: now) }
    commit(length, kind: kind, now: now, into: outbox)
    return .sent
  }

  /// Keeps the datagram for a receiver without RTX of its format.
  @inline(__always)
  private func keep(
    _ room: UnsafeMutableRawBufferPointer, _ length: Int, _ payloadType: UInt8, index: UInt64, now: Instant
  ) {
    guard let sentDatagrams, retransmissionTypes[Int(payloadType & 127)] == 255 else { return }
    sentDatagrams._withUnsafeGuaranteedRef {
      $0.insert(UnsafeRawBufferPointer(rebasing: room[..<length]), index: index, now: now)
    }
  }

  /// Keeps the packet that was just protected in the outbox. It leaves now.
  private func commit(_ length: Int, kind: SentKind, now: Instant, into outbox: Outbox) {
    outbox.commit(length, &path.pointee.cursor, to: path.pointee.destination, isUrgent: !isVideo)
    path.pointee.downlink?.pointee.sent(
      length: length, to: path.pointee.destination, kind: kind, isNumbered: numberExtension != 0, now: now)
  }
}

extension DownStream {
  /// Answers a request for a sequence number under which no packet is sent, so that the receiver stops waiting for it: with an RTX packet
  /// that contains only the number. Returns false if it cannot be sent.
  mutating func retransmitNothing(_ sequenceNumber: UInt16, now: Instant, into outbox: Outbox) -> Bool {
    guard retransmissionType != 255 else { return false }
    return sendEmpty(retransmissionType, as: .retransmission, answering: sequenceNumber, now: now, into: outbox)
  }

  /// Sends padding on the slot's RTX stream, so that the receiver misses no media. Returns false if it cannot be sent.
  mutating func sendPadding(now: Instant, into outbox: Outbox) -> Bool {
    guard paddingType != 255 else { return false }
    return sendEmpty(paddingType, as: .padding, answering: nil, now: now, into: outbox)
  }

  private mutating func sendEmpty(
    _ payloadType: UInt8, as kind: SentKind, answering number: UInt16?, now: Instant, into outbox: Outbox
  ) -> Bool {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return false }
    let size = RTPHeader.fixedLength + Self.headerRoom + Self.maximumPadding + path.pointee.overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return false }
    RTPHeader.write(
      marker: false, payloadType: payloadType, sequenceNumber: retransmissionSequence,
      timestamp: sourceSwitch.lastTimestamp, ssrc: rtxSSRC, into: room)
    retransmissionSequence &+= 1
    var header = RTPHeader.fixedLength
    if numberExtension != 0 || sendTimeExtension != 0 {
      var writer = HeaderExtensionWriter(room)
      writeHop(now: now, &writer)
      header = writer.finish()
    }
    let padding = number == nil ? Self.maximumPadding : 0
    if let number { room.store(number, at: header) }
    if padding > 0 { RTPHeader.setPadding(true, in: room) }
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(
        room, headerLength: header, prefixLength: number == nil ? 0 : 2,
        payload: UnsafeRawBufferPointer(start: nil, count: 0), padding: UInt8(padding))
    }
    guard let length else { return false }
    commit(length, kind: kind, now: now, into: outbox)
    return true
  }

  /// Room for the extensions that we may add: one word of extension header, the number or time with at most 5 bytes, the MID with 18, padded
  /// to words.
  private static let headerRoom = 32
  private static let maximumPadding = 255

  /// Returns the header's length.
  private func writeHeader(
    _ packet: borrowing Packet, payloadType: UInt8, sequenceNumber: UInt16, ssrc: UInt32, timestamp: UInt32,
    now: Instant, into room: UnsafeMutableRawBufferPointer
  ) -> Int {
    let header = packet.header
    // An extension outside RFC 8285 was not negotiated.
    let start = header.extensionOffset == 0 ? header.headerLength : header.extensionOffset - 4
    room.baseAddress!.copyMemory(from: packet.base, byteCount: start)
    RTPHeader.rewrite(
      payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc, in: room)
    RTPHeader.setPadding(false, in: room)
    var writer = HeaderExtensionWriter(
      room, at: start, hasTwoByteHeaders: packet.extensions?.hasTwoByteHeaders ?? false)
    writeHop(now: now, &writer)
    if let elements = packet.extensions {
      let source = frames == nil ? 0 : sourceDescriptorID
      let descriptor = writer.append(elements, of: packet.bytes, by: extensionMap, noting: source)
      // This receiver's frame number and template ids.
      if let descriptor, source != 0 {
        DependencyDescriptor.shift(
          frameNumber: frameNumbers.shift, templates: frameNumbers.templateShift, in: room.part(descriptor))
      }
    }
    if midExtension != 0 { writer.append(midExtension, mid) }
    return writer.finish()
  }

  /// The extension by which the receiver reports on the packet, if any.
  private func writeHop(now: Instant, _ writer: inout HeaderExtensionWriter) {
    if numberExtension != 0 {
      if let downlink = path.pointee.downlink { writer.append(numberExtension, downlink.pointee.nextNumber) }
    } else if sendTimeExtension != 0 {
      writer.append(sendTimeExtension, low24Bits: now.ticks(1 << 18))
    }
  }

  /// Padding that makes the packets of a frame equally long, so that they form one GSO run. They differ by a byte or so: browsers
  /// split a frame evenly and put the longer packets last, so the packets that begin a run are rounded up. At most a sixteenth of
  /// the packet.
  private static func padding(for length: Int, isLast: Bool, _ outbox: Outbox, _ cursor: Outbox.Cursor) -> Int {
    let joining = outbox.padding(for: length, cursor)
    if joining > 0, joining <= min(length / 16, maximumPadding) { return joining }
    return isLast || joining > 0 ? 0 : -length & 3
  }
}
