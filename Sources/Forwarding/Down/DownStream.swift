import MediaModel
import Octets
import RTP
import Transport

/// All that it takes to send one more packet to a slot, in flat memory: made and kept up to date by the slot's `DownTrack`.
struct DownStream {
  /// The outcome of sending one packet to one receiver.
  enum SendResult { case sent, notOpen, dropped(DropReason) }

  let path: UnsafeMutablePointer<SendTransport.Path>
  let isVideo: Bool
  let ssrc: UInt32
  let rtxSSRC: UInt32
  var sourceSwitch: SourceSwitch
  /// The receiver's id of the MID extension; 0 when it needs none.
  var midExtension: UInt8 = 0
  var mid: String
  /// The source's extension ids → the receiver's.
  var extensionMap = HeaderExtensionMap()
  /// The source's payload type → the receiver's, and the receiver's RTX type; 255 for none.
  var payloadTypes = InlineArray<128, UInt8>(repeating: 255)
  var retransmissionTypes = InlineArray<128, UInt8>(repeating: 255)
  /// The source's clock rate.
  var clockRate: UInt32 = 90_000
  /// A new source starts at a key frame, as its key frames are recognizable.
  var waitsForKeyFrame = false
  /// The counts of the sender reports (RFC 3550 6.4.1).
  private(set) var packetCount: UInt32 = 0
  private(set) var octetCount: UInt32 = 0
  private var retransmissionSequence: UInt16

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
    if !sourceSwitch.isRunning {
      guard packet.isKeyFrame || !waitsForKeyFrame else { return .dropped(.awaitingKeyFrame) }
      sourceSwitch.start(packet, clockRate: clockRate, now: now)
    }
    guard let numbers = sourceSwitch.map(packet) else { return .dropped(.beforeSwitch) }
    let overhead = path.pointee.overhead
    let size = packet.length + Self.headerRoom + Self.maximumPadding + overhead
    guard let room = outbox.reserve(size, &path.pointee.cursor) else { return .dropped(.outboxFull) }
    let header = writeHeader(
      packet, payloadType: payloadType, sequenceNumber: numbers.sequenceNumber, ssrc: ssrc,
      timestamp: numbers.timestamp, into: room)
    packet.vp8?.rewrite(
      pictureID: numbers.pictureID, tl0PictureIndex: numbers.tl0PictureIndex, keyIndex: numbers.keyIndex,
      in: packet.payload)
    let payload = UnsafeRawBufferPointer(packet.payload)
    var padding = 0
    if isVideo {
      padding = Self.padding(
        for: header + payload.count + overhead, isLast: packet.header.marker, outbox, path.pointee.cursor)
      if padding > 0 { RTPHeader.setPadding(true, in: room) }
    }
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, payload: payload, padding: UInt8(truncatingIfNeeded: padding))
    }
    guard let length else { return .dropped(.notProtected) }
    outbox.commit(length, &path.pointee.cursor, to: path.pointee.destination, isUrgent: !isVideo)
    sourceSwitch.sent(numbers, now: now)
    packetCount &+= 1
    octetCount &+= UInt32(truncatingIfNeeded: payload.count)
    return .sent
  }

  /// Sends a packet of the source's history again, under the slot's RTX SSRC (RFC 4588). False when it can't be.
  mutating func retransmit(_ packet: borrowing Packet, into outbox: Outbox) -> Bool {
    guard path.pointee.isOpen, let sender = path.pointee.sender, let numbers = sourceSwitch.numbers(of: packet) else {
      return false
    }
    let payloadType = retransmissionTypes[Int(packet.header.payloadType & 127)]
    let size = packet.length + Self.headerRoom + 2 + path.pointee.overhead
    guard payloadType != 255, let room = outbox.reserve(size, &path.pointee.cursor) else { return false }
    let header = writeHeader(
      packet, payloadType: payloadType, sequenceNumber: retransmissionSequence, ssrc: rtxSSRC,
      timestamp: numbers.timestamp, into: room)
    retransmissionSequence &+= 1
    room.store(numbers.sequenceNumber, at: header)
    // The history's memory must keep the source's numbers, so the descriptor is rewritten at its new place.
    let descriptor = packet.vp8?.length ?? 0
    let copy = UnsafeMutableRawBufferPointer(rebasing: room[(header + 2)..<(header + 2 + descriptor)])
    copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet.payload[..<descriptor]))
    packet.vp8?.rewrite(
      pictureID: numbers.pictureID, tl0PictureIndex: numbers.tl0PictureIndex, keyIndex: numbers.keyIndex, in: copy)
    let rest = UnsafeRawBufferPointer(rebasing: packet.payload[descriptor...])
    let length = sender._withUnsafeGuaranteedRef {
      $0.protectRTP(room, headerLength: header, prefixLength: descriptor + 2, payload: rest)
    }
    guard let length else { return false }
    outbox.commit(length, &path.pointee.cursor, to: path.pointee.destination, isUrgent: !isVideo)
    return true
  }
}

extension DownStream {
  /// The MID extension that we may add: a word of extension header, at most 17 bytes, filled up to words.
  private static let headerRoom = 24
  private static let maximumPadding = 255

  /// Returns the header's length.
  private func writeHeader(
    _ packet: borrowing Packet, payloadType: UInt8, sequenceNumber: UInt16, ssrc: UInt32, timestamp: UInt32,
    into room: UnsafeMutableRawBufferPointer
  ) -> Int {
    room.baseAddress!.copyMemory(from: packet.base, byteCount: packet.header.headerLength)
    RTPHeader.rewrite(
      payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc, in: room)
    RTPHeader.setPadding(false, in: room)
    var length = packet.header.headerLength
    if let elements = packet.extensions {
      var bytes = room.mutableBytes
      elements.rewriteIDs(by: extensionMap, in: &bytes)
    } else if packet.header.extensionOffset != 0 {
      // Not of RFC 8285, so not negotiated.
      room[0] &= ~0x10
      length = packet.header.extensionOffset - 4
    }
    if midExtension != 0 {
      length = room.appendExtension(midExtension, mid, headerLength: length, of: packet.extensions)
    }
    return length
  }

  /// Padding that makes equal lengths, and so one GSO run, of a frame's packets. They differ by a byte or so: browsers split a frame
  /// evenly and put the longer packets last, hence the rounding of those that begin a run. At most a sixteenth of the packet.
  private static func padding(for length: Int, isLast: Bool, _ outbox: Outbox, _ cursor: Outbox.Cursor) -> Int {
    let joining = outbox.padding(for: length, cursor)
    if joining > 0, joining <= min(length / 16, maximumPadding) { return joining }
    return isLast || joining > 0 ? 0 : -length & 3
  }
}
