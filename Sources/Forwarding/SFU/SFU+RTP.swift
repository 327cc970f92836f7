import MediaModel
import RTP
import Transport
import Octets

extension SFU {
  /// Bytes of the original sequence number that an RTX payload begins with (RFC 4588 section 4).
  fileprivate static let retransmissionHeaderLength = 2

  /// An SRTP packet of a known peer: opened in place, unwrapped if it is RTX, numbered, kept and forwarded.
  func handleRTP(
    _ datagram: UnsafeMutableRawBufferPointer, age: UInt64, on pair: CandidatePair, now: Instant, into outbox: Outbox
  ) {
    let peer = pair.peer
    guard let inbound = peer.inbound else { return drop(.notConnected) }
    let length: Int
    switch inbound.unprotectRTP(datagram) {
    case .packet(let plain): length = plain
    case .dropped(let reason): return drop(reason)
    }
    paths.heard(pair, now: now, into: outbox)
    guard age <= longestAge else { return drop(.stale) }
    // A variable from which a span borrows would be a box on the heap.
    let bytes = datagram.part(0..<length)
    guard var header = RTPHeader(parsing: bytes.bytes), var base = bytes.baseAddress else { return drop(.malformed) }
    let found = peer.stream(of: header, in: UnsafeRawBufferPointer(bytes), now: now)
    // Charged only now, because a stranger could spend the budget by packets under the peer's address. The track comes first, so that a
    // flood on one track leaves room for the others. A packet over budget counts as lost in the reports, so that an honest sender slows
    // down.
    guard found?.track.budget.pointee.takes(length, now: now) ?? true, peer.published.pointee.takes(length, now: now)
    else {
      return output.dropFlood(now: now)
    }
    noteArrival(of: header, in: bytes.bytes, of: peer, now: now)
    guard let stream = found else { return drop(.unknownStream) }
    let (track, encoding) = (stream.track, stream.encoding)
    guard let payload = track.payload(header.payloadType), payload.isRetransmission == stream.isRetransmission
    else { return drop(.payloadType) }
    if payload.isRetransmission {
      guard let ssrc = encoding.ssrc,
        let original = header.unwrapRetransmission(bytes, ssrc: ssrc, payloadType: payload.primaryType)
      else { return drop(.emptyRetransmission) }
      header = original
      base += Self.retransmissionHeaderLength
    }
    let reception = encoding.reception
    let highest = reception.pointee.unwrapper.highest
    let index = reception.pointee.unwrapper.unwrap(header.sequenceNumber)
    switch reception.pointee.window.arrival(of: index) {
    case .new: reception.pointee.window.record(index)
    case .seen: return drop(.duplicate)
    case .late: return drop(.late)
    }
    receive(
      Packet(base: base, length: header.headerLength + header.payloadLength, header: header, index: index),
      payload.codec, of: encoding, isRetransmission: payload.isRetransmission, after: highest, now: now, into: outbox)
  }

  /// A packet that arrived for the first time, from its sender or from the worker that has the sender: counted, and accepted unless its track is silent.
  /// - Parameter highest: the newest index before it, by which holes are found; nil where they are not mended.
  func receive(
    _ packet: consuming Packet, _ codec: PayloadCodec, of encoding: Encoding, isRetransmission: Bool,
    after highest: UInt64?, now: Instant, into outbox: Outbox
  ) {
    let reception = encoding.reception
    if reception.pointee.lastPacket == nil, encoding.isAwaited { output.requestKeyFrame(of: encoding, now: now) }
    reception.pointee.lastPacket = now
    if !isRetransmission {
      reception.pointee.statistics.received(
        packet.index, timestamp: packet.header.timestamp, arrival: now.ticks(encoding.track.clockRate))
    }
    guard !encoding.track.isSilent else { return drop(.muted) }
    if let highest {
      mendHoles(of: encoding, highest: highest, index: packet.index, isRetransmission: isRetransmission, now: now)
    }
    accept(packet, codec, of: encoding, isRetransmission: isRetransmission, now: now, into: outbox)
  }

  /// The packet is read, kept and forwarded.
  private func accept(
    _ packet: consuming Packet, _ codec: PayloadCodec, of encoding: Encoding, isRetransmission: Bool, now: Instant,
    into outbox: Outbox
  ) {
    let (track, reception) = (encoding.track, encoding.reception)
    let peer = track.peer
    guard packet.length > packet.header.headerLength else {
      return leaveOut(packet, of: encoding, isRetransmission: isRetransmission, now: now)
    }
    if codec == .vp8 { packet.readVP8() }
    if codec == .vp8 || track.hasVisibleKeyFrames {
      packet.isKeyFrame = codec.startsKeyFrame(packet.payload.bytes, vp8: packet.vp8)
    }
    if peer.configuration.isOnKeyList, isForeign(packet, codec, of: track, reception) {
      return drop(.sframeForeign)
    }
    if let frames = encoding.frames {
      packet.readFrame(peer.configuration.extensions.dependencyDescriptor, by: frames)
      if frames.pointee.lacksStructure { output.requestKeyFrame(of: encoding, now: now) }
    }
    reception.pointee.rates.add(
      packet.length, present: packet.frame?.dependencies.present ?? 1, timestamp: packet.header.timestamp, now: now)
    if track.isLayered {
      watchLayers(of: track, encoding, packet, isRetransmission: isRetransmission, now: now)
    }
    if packet.isKeyFrame {
      reception.pointee.keyFrames.keyFrameArrived()
      reception.pointee.lastKeyFrame = max(reception.pointee.lastKeyFrame, packet.index)
    }
    if track.isMicrophone {
      slots.note(
        peer.call.speakers.hear(packet, of: peer, most: configuration.voices, now: now), in: peer.call, now: now)
    }
    encoding.preRoll?.insert(packet, now: now)
    // A packet that was sent to no receiver is never requested, except the rest of a key frame whose first packet arrives
    // last.
    if !encoding.slots.isEmpty || !encoding.waiting.isEmpty { encoding.history?.insert(packet, now: now) }
    if !encoding.relays.isEmpty {
      relays.send(packet, of: encoding, isRetransmission: isRetransmission, now: now)
    }
    forward(packet, of: encoding, now: now, into: outbox)
  }

  /// A packet without media: a receiver would take it for an empty frame.
  @inline(never)
  private func leaveOut(
    _ packet: borrowing Packet, of encoding: Encoding, isRetransmission: Bool, now: Instant
  ) {
    drop(.padding)
    for slot in encoding.slots { slot.pointee.leaveOut(packet) }
    // Its number must not be a gap there either.
    if !encoding.relays.isEmpty { relays.send(packet, of: encoding, isRetransmission: isRetransmission, now: now) }
  }

  /// Notes when a packet arrived, whichever stream it belongs to, for the transport-wide feedback.
  private func noteArrival(of header: RTPHeader, in packet: RawSpan, of peer: Peer, now: Instant) {
    guard let arrivals = peer.arrivals,
      let element = HeaderExtensions(header)?.element(arrivals.pointee.extensionID, in: packet), element.length == 2
    else { return }
    let wasWaiting = arrivals.pointee.deadline != nil
    let number = packet.uint16(at: element.offset)
    if !arrivals.pointee.received(number, of: header.ssrc, length: packet.byteCount, now: now) {
      counts.pointee.arrivalsUnreported &+= 1
    }
    if !wasWaiting { output.schedule(peer, arrivals.pointee.deadline) }
  }

  private func forward(_ packet: borrowing Packet, of encoding: Encoding, now: Instant, into outbox: Outbox) {
    var sent: UInt64 = 0
    for (place, slot) in encoding.slots.enumerated() {
      switch slot.pointee.forward(packet, now: now, into: outbox) {
      case .sent: sent &+= 1
      case .waits:
        counts.pointee.paced &+= 1
        output.scheduleRelease(to: encoding.downTracks[place].peer)
      case .notOpen: break
      case .dropped(let reason):
        drop(reason)
        let isBroken = reason == .dependencies && slot.pointee.layers.needsKeyFrame
        // The pacer dropped a frame that others refer to, or the source's numbers jumped.
        let isCutOff = (reason == .paced || reason == .jumped) && !slot.pointee.state.isRunning
        if isCutOff { encoding.awaitKeyFrame() }
        if isBroken || isCutOff { output.requestKeyFrame(of: encoding, now: now) }
      }
    }
    counts.pointee.forwarded &+= sent
    encoding.meter.pointee.add(
      packet.length, copies: sent, slots: encoding.slots.count, isVideo: encoding.isVideo, now: now)
    if packet.isKeyFrame { encoding.keyFrameSent() }
  }

  /// Notes the holes that a packet opens or closes.
  private func mendHoles(
    of encoding: Encoding, highest: UInt64, index: UInt64, isRetransmission: Bool, now: Instant
  ) {
    guard index != highest &+ 1, encoding.track.takesNack else { return }
    let reception = encoding.reception
    guard index > highest else {
      return reception.pointee.nacks.arrived(index, isRetransmission: isRetransmission, now: now)
    }
    if !reception.pointee.nacks.jumped(from: highest, to: index, now: now) {
      output.requestKeyFrame(of: encoding, now: now)
    }
    output.schedule(encoding.track.peer, reception.pointee.nacks.deadline)
  }
}

extension RTPHeader {
  /// Turns an RTX packet into the packet that it carries (RFC 4588 section 4), in place: the header moves up over the original sequence number,
  /// so the packet begins `retransmissionHeaderLength` bytes later. nil if it carries no packet.
  fileprivate func unwrapRetransmission(
    _ bytes: UnsafeMutableRawBufferPointer, ssrc: UInt32, payloadType: UInt8
  ) -> RTPHeader? {
    guard payloadLength > SFU.retransmissionHeaderLength, let base = bytes.baseAddress else { return nil }
    let sequenceNumber = bytes.bytes.uint16(at: headerLength)
    (base + SFU.retransmissionHeaderLength).copyMemory(from: base, byteCount: headerLength)
    let original = bytes.part(SFU.retransmissionHeaderLength..<bytes.count)
    RTPHeader.rewrite(
      payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc, in: original)
    return RTPHeader(parsing: original.bytes)
  }
}
