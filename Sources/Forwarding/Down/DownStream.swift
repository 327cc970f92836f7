import CongestionControl
import MediaModel
import Octets
import RTP
import Transport

/// Writes and encrypts the packets of a slot: one stream under one SSRC, and its retransmissions. In flat memory, as a part of `SlotPath`.
struct DownStream {
  let path: UnsafeMutablePointer<SendTransport.Path>
  let isVideo: Bool
  let ssrc: UInt32
  let rtxSSRC: UInt32
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
  /// The receiver's first RTX type; 255 for none.
  var paddingType: UInt8 = 255
  /// The datagrams that were sent, for a receiver without RTX. Owned by the `DownTrack`.
  var sentDatagrams: Unmanaged<PacketHistory>?
  /// The counts for sender reports (RFC 3550 6.4.1).
  private(set) var packetCount: UInt32 = 0
  private(set) var octetCount: UInt32 = 0
  private var retransmissionSequence: UInt16
  /// The RTX type of the last packet.
  private var retransmissionType: UInt8 = 255

  init(_ slot: SlotDescription, path: UnsafeMutablePointer<SendTransport.Path>, retransmissionSequence: UInt16) {
    self.path = path
    isVideo = slot.kind == .video
    ssrc = slot.ssrc
    rtxSSRC = slot.rtxSSRC
    mid = slot.mid
    self.retransmissionSequence = retransmissionSequence
  }

  /// Takes the receiver's numbers for the slot. Those of the source follow in `map(from:…)`.
  /// - Parameter isKnown: the receiver has identified the stream and no longer needs the MID.
  mutating func map(to slot: SlotDescription, _ extensions: HeaderExtensionIDs, isKnown: Bool) {
    mid = slot.mid
    midExtension = isKnown ? 0 : extensions.mid
    paddingType = slot.formats.lazy.compactMap(\.rtxPayloadType).first.map { $0 & 127 } ?? 255
    numberExtension = slot.feedback == .packets ? extensions.transportSequence : 0
    sendTimeExtension = slot.feedback == .rate ? extensions.sendTime : 0
    payloadTypes = .init(repeating: 255)
    retransmissionTypes = .init(repeating: 255)
    extensionMap = HeaderExtensionMap()
  }

  /// Builds the tables from the source's numbers to the receiver's. MID, RID, abs-send-time and the transport-wide number belong to the hop; all but RID are
  /// written for each hop.
  mutating func map(
    from formats: [PayloadFormat], _ sender: HeaderExtensionIDs, to own: [PayloadFormat],
    _ extensions: HeaderExtensionIDs
  ) {
    for format in formats {
      // Prefers the same profile to one that contains it.
      guard let same = own.first(where: { $0.profile == format.profile }) ?? own.first(where: format.carries)
      else { continue }
      let type = Int(format.payloadType & 127)
      payloadTypes[type] = same.payloadType & 127
      retransmissionTypes[type] = same.rtxPayloadType.map { $0 & 127 } ?? 255
    }
    let ids = [
      (sender.audioLevel, extensions.audioLevel), (sender.videoOrientation, extensions.videoOrientation),
      (sender.playoutDelay, extensions.playoutDelay),
    ]
    // Packets of both header forms carry it, and the shorter form has no longer ids.
    sourceDescriptorID = sender.dependencyDescriptor
    if sender.dependencyDescriptor != 0, (1...14).contains(extensions.dependencyDescriptor) {
      extensionMap[sender.dependencyDescriptor] = extensions.dependencyDescriptor
    }
    for (old, new) in ids where old != 0 { extensionMap[old] = new }
  }

  // A call of these that is not inlined would copy the tables.

  /// Media may be sent to the receiver.
  @inline(__always)
  var isOpen: Bool { path.pointee.isOpen && path.pointee.sender != nil }

  /// The receiver's payload type for the source's; 255 for none.
  @inline(__always)
  func payloadType(of packet: borrowing Packet) -> UInt8 { payloadTypes[Int(packet.header.payloadType & 127)] }

  /// Whether the receiver has RTX for the packet's format.
  @inline(__always)
  func hasRetransmission(of packet: borrowing Packet) -> Bool {
    retransmissionTypes[Int(packet.header.payloadType & 127)] != 255
  }

  /// The packet leaves now or waits: requests for unused numbers are answered under its RTX type.
  @inline(__always)
  mutating func taken(_ packet: borrowing Packet) {
    retransmissionType = retransmissionTypes[Int(packet.header.payloadType & 127)]
  }

  /// The values of a packet that differ from the source's.
  struct Rewriting {
    var payloadType: UInt8
    var numbers: SourceSwitch.Numbers
    /// The packet gets the marker although its sender did not set it.
    var setsMarker: Bool
    /// The offsets from the source's frame numbers and template ids to the receiver's; nil for a source without descriptors.
    var shift: (frameNumber: UInt16, templates: UInt8)?
  }

  /// Sends the source's packet on: one copy of the header, one encryption from the packet's memory to the outbox's. The packet's VP8
  /// descriptor is overwritten with this receiver's.
  @inline(__always)
  mutating func write(
    _ packet: borrowing Packet, _ new: Rewriting, now: Instant, into outbox: Outbox
  ) -> SendResult {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return .notOpen }
    let overhead = path.pointee.overhead
    let size = packet.length + Self.headerRoom + Self.maximumPadding + overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return .dropped(.outboxFull) }
    let header = writeHeader(
      packet, new, sequenceNumber: new.numbers.sequenceNumber, ssrc: ssrc, now: now, into: room)
    if let vp8 = packet.vp8 {
      vp8.rewrite(
        pictureID: new.numbers.pictureID, tl0PictureIndex: new.numbers.tl0PictureIndex, keyIndex: new.numbers.keyIndex,
        in: packet.overwritten.part(packet.header.headerLength..<packet.length))
    }
    let payload = packet.payload
    var padding = 0
    if isVideo {
      var isLast = packet.header.marker
      if new.setsMarker { isLast = true }
      padding = Self.padding(for: header + payload.count + overhead, isLast: isLast, outbox, path.pointee.cursor)
      if padding > 0 { RTPHeader.setPadding(true, in: room) }
    }
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, payload: payload, padding: UInt8(truncatingIfNeeded: padding))
    }
    guard let length else { return .dropped(.notProtected) }
    keep(room, length, packet.header.payloadType, index: new.numbers.index, now: now)
    commit(length, kind: isVideo ? .video : .audio, now: now, into: outbox)
    count(payload.count)
    return .sent
  }

  /// Sends a packet of the source's history, which keeps the source's numbers.
  /// - Parameter kind: all but `.video` go out on the RTX stream (RFC 4588).
  mutating func writeKept(
    _ packet: borrowing Packet, _ new: Rewriting, as kind: SentKind, now: Instant, into outbox: Outbox
  ) -> SendResult {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return .notOpen }
    let size = packet.length + Self.headerRoom + 2 + path.pointee.overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return .dropped(.outboxFull) }
    let isCopy = kind != .video
    let header = writeHeader(
      packet, new, sequenceNumber: isCopy ? retransmissionSequence : new.numbers.sequenceNumber,
      ssrc: isCopy ? rtxSSRC : ssrc, now: now, into: room)
    let start = isCopy ? header + 2 : header
    if isCopy { room.store(new.numbers.sequenceNumber, at: header) }
    // The packet in the history must keep the source's numbers, so the descriptor is rewritten in the copy.
    let descriptor = packet.vp8?.length ?? 0
    let copy = UnsafeMutableRawBufferPointer(rebasing: room[start..<(start + descriptor)])
    copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet.payload[..<descriptor]))
    packet.vp8?.rewrite(
      pictureID: new.numbers.pictureID, tl0PictureIndex: new.numbers.tl0PictureIndex, keyIndex: new.numbers.keyIndex,
      in: copy)
    let rest = UnsafeRawBufferPointer(rebasing: packet.payload[descriptor...])
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, prefixLength: start - header + descriptor, payload: rest)
    }
    guard let length else { return .dropped(.notProtected) }
    if isCopy {
      retransmissionSequence &+= 1
    } else {
      keep(room, length, packet.header.payloadType, index: new.numbers.index, now: now)
      count(packet.payload.count)
    }
    commit(length, kind: kind, now: now, into: outbox)
    return .sent
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

  private mutating func count(_ octets: Int) {
    packetCount &+= 1
    octetCount &+= UInt32(truncatingIfNeeded: octets)
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
  /// that contains only the number.
  /// - Parameter timestamp: of the newest packet of the stream.
  /// - Returns: false if it cannot be sent.
  mutating func retransmitNothing(
    _ sequenceNumber: UInt16, timestamp: UInt32, now: Instant, into outbox: Outbox
  ) -> Bool {
    guard retransmissionType != 255 else { return false }
    return sendEmpty(
      retransmissionType, timestamp, as: .retransmission, answering: sequenceNumber, now: now, into: outbox)
  }

  /// Sends padding on the slot's RTX stream, so that the receiver misses no media. Returns false if it cannot be sent.
  /// - Parameter timestamp: of the newest packet of the stream.
  mutating func sendPadding(timestamp: UInt32, now: Instant, into outbox: Outbox) -> Bool {
    guard paddingType != 255 else { return false }
    return sendEmpty(paddingType, timestamp, as: .padding, answering: nil, now: now, into: outbox)
  }

  private mutating func sendEmpty(
    _ payloadType: UInt8, _ timestamp: UInt32, as kind: SentKind, answering number: UInt16?, now: Instant,
    into outbox: Outbox
  ) -> Bool {
    guard path.pointee.isOpen, let sender = path.pointee.sender else { return false }
    let size = RTPHeader.fixedLength + Self.headerRoom + Self.maximumPadding + path.pointee.overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return false }
    RTPHeader.write(
      marker: false, payloadType: payloadType, sequenceNumber: retransmissionSequence, timestamp: timestamp,
      ssrc: rtxSSRC, into: room)
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
    _ packet: borrowing Packet, _ new: Rewriting, sequenceNumber: UInt16, ssrc: UInt32, now: Instant,
    into room: UnsafeMutableRawBufferPointer
  ) -> Int {
    let header = packet.header
    // An extension outside RFC 8285 was not negotiated.
    let start = header.extensionOffset == 0 ? header.headerLength : header.extensionOffset - 4
    room.baseAddress!.copyMemory(from: packet.base, byteCount: start)
    RTPHeader.rewrite(
      payloadType: new.payloadType, sequenceNumber: sequenceNumber, timestamp: new.numbers.timestamp, ssrc: ssrc,
      in: room)
    RTPHeader.setPadding(false, in: room)
    if new.setsMarker { RTPHeader.setMarker(in: room) }
    var writer = HeaderExtensionWriter(
      room, at: start, hasTwoByteHeaders: packet.extensions?.hasTwoByteHeaders ?? false)
    writeHop(now: now, &writer)
    if let elements = packet.extensions {
      let source = new.shift == nil ? 0 : sourceDescriptorID
      let descriptor = writer.append(elements, of: packet.bytes, by: extensionMap, noting: source)
      // This receiver's frame number and template ids.
      if let descriptor, source != 0, let shift = new.shift {
        DependencyDescriptor.shift(
          frameNumber: shift.frameNumber, templates: shift.templates, in: room.part(descriptor))
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
