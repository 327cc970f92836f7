import MediaModel
import Octets
import RTP
import SDP
import Transport

func readRTP(_ packet: UnsafeMutableRawBufferPointer) {
  var map = HeaderExtensionMap()
  for id in UInt8(1)...14 { map[id] = 15 - id }
  let bytes = packet.bytes
  guard let header = RTPHeader(parsing: bytes) else { return }
  precondition(header.headerLength + header.payloadLength + header.paddingLength == packet.count)
  if let extensions = HeaderExtensions(header) {
    for id in UInt8(0)...16 {
      guard let element = extensions.element(id, in: bytes) else { continue }
      precondition(element.range.upperBound <= header.headerLength)
    }
    let start = header.extensionOffset - 4
    withUnsafeTemporaryAllocation(byteCount: header.headerLength + 8, alignment: 8) { copy in
      copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<start]))
      var writer = HeaderExtensionWriter(copy, at: start, hasTwoByteHeaders: extensions.hasTwoByteHeaders)
      _ = writer.append(extensions, of: UnsafeRawBufferPointer(packet), by: map, noting: 1)
      precondition(writer.finish() <= header.headerLength)
    }
  }
  let payload = UnsafeMutableRawBufferPointer(rebasing: packet[header.payloadRange])
  let descriptor = VP8Descriptor(parsing: payload.bytes)
  for codec in ["VP8", "VP9", "AV1", "H264", "opus"] {
    _ = PayloadCodec(name: codec).frameStart(in: payload.bytes, vp8: descriptor)
    _ = PayloadCodec(name: codec).startsKeyFrame(payload.bytes, vp8: descriptor)
  }
  guard let descriptor else { return }
  _ = descriptor.isKeyFrame(payload.bytes)
  descriptor.rewrite(pictureID: 1, tl0PictureIndex: 2, keyIndex: 3, in: payload)
}

/// Descriptors of one stream, one after another: those after a structure are read with it.
func readDependencies(_ input: UnsafeMutableRawBufferPointer) {
  var structure = DependencyStructure()
  for element in input.parts {
    guard let descriptor = try? DependencyDescriptor(parsing: element.bytes, by: &structure) else { continue }
    precondition(structure.targetCount == 32 || UInt64(descriptor.frame.present) >> UInt64(structure.targetCount) == 0)
    for i in 0..<descriptor.frame.referenceCount { precondition((1...4096).contains(descriptor.frame.reference(i))) }
    for target in 0..<structure.targetCount {
      precondition(structure.isNested(target, in: target))
      sum &+= structure.height(of: structure.spatialLayer(of: target)) ?? 0
    }
    DependencyDescriptor.shift(frameNumber: 7, templates: 9, in: element)
  }
}

/// The sum of what is read keeps reads from being optimised away.
nonisolated(unsafe) var sum = 0

func readRTCP(_ compound: UnsafeMutableRawBufferPointer) {
  var packets = RTCPCompound(UnsafeRawBufferPointer(compound))
  while let packet = packets.next() {
    switch packet {
    case .senderReport(let report): sum &+= report.reports.reduce(0) { $0 &+ Int($1.cumulativeLost) }
    case .receiverReport(_, let reports): sum &+= reports.reduce(0) { $0 &+ Int($1.jitter) }
    case .bye(let sources): sum &+= sources.reduce(0) { $0 &+ Int($1) }
    case .nack(let nack): sum &+= nack.missing.reduce(0) { $0 &+ Int($1) }
    case .pictureLoss(_, let media): sum &+= Int(media)
    case .fullIntraRequest(let request): sum &+= request.reduce(0) { $0 &+ Int($1.sequence) }
    case .transportFeedback(let report): for status in report { sum &+= Int(status.number) }
    case .receiverRate(let rate): sum &+= rate
    case .other(let type, _): sum &+= Int(type)
    }
  }
}

func readTransportFeedback(_ packet: UnsafeMutableRawBufferPointer) {
  guard let feedback = TransportFeedback(parsing: UnsafeRawBufferPointer(packet)) else { return }
  let statuses = Array(feedback)
  precondition((1...TransportFeedback.mostPackets).contains(statuses.count))
  sum &+= statuses.reduce(0) { $0 &+ Int($1.offset ?? 0) }
}

/// An offer that is read is answered, and the answer can be read.
func readSDP(_ offer: UnsafeMutableRawBufferPointer) {
  guard let offer = try? MediaOffer(parsing: offer.text) else { return }
  var random = SystemRandomNumberGenerator()
  var negotiation = Negotiation(using: &random)
  _ = negotiation.apply(
    offer, tracks: [], codecs: ["VP8", "H264"], peer: PeerID(rawValue: 1), call: CallID("c1")!,
    participant: ParticipantNumber(1), isOnKeyList: true, using: &random)
  let answer = negotiation.answer(fingerprint: fingerprint, candidates: [server], tcp: true)
  guard (try? SessionDescription(parsing: answer)) != nil else { fatalError("the answer cannot be read") }
}

/// An answer that is read fits an offer of three streams or is refused, and the next offer can be read.
func readAnswer(_ input: UnsafeMutableRawBufferPointer) {
  guard let answer = try? SubscriberAnswer(parsing: input.text) else { return }
  var random = SystemRandomNumberGenerator()
  var offering = Offering(using: &random)
  for (number, codec) in ["opus", "VP8", "H264"].enumerated() {
    let kind = codec == "opus" ? MediaKind.audio : .video
    let format = PayloadFormat(
      payloadType: 100, codec: codec, clockRate: kind == .audio ? 48_000 : 90_000, channels: kind == .audio ? 2 : nil)
    let source = TrackPin(
      peer: PeerID(rawValue: 1), track: TrackID(participant: 1, index: UInt8(number + 1)))
    let label = OfferedStream.Label(stream: "1", track: codec)
    let stream = OfferedStream(source: source, kind: kind, formats: [format], label: label)
    guard (try? offering.add(stream, using: &random)) != nil else { fatalError("three streams have no room") }
  }
  _ = offering.offer(fingerprint: fingerprint, candidates: [server], tcp: true)
  do {
    let configuration = try offering.apply(
      answer, peer: PeerID(rawValue: 2), call: CallID("c1")!, participant: ParticipantNumber(2))
    precondition(configuration.slots.count + configuration.restingSlots.count <= 3)
    precondition(configuration.slots.allSatisfy { !$0.formats.isEmpty })
  } catch { precondition(offering.isPending) }
  let next = offering.offer(fingerprint: fingerprint, candidates: [server], tcp: true)
  guard let sections = (try? SessionDescription(parsing: next))?.sections, sections.count == 3 else {
    fatalError("the next offer cannot be read")
  }
}

func readSFrame(_ frame: UnsafeMutableRawBufferPointer) {
  _ = try? SFrameHeader(parsingEscaped: frame.bytes)
  guard let header = try? SFrameHeader(parsing: frame.bytes) else { return }
  // There is one encoding of each header.
  withUnsafeTemporaryAllocation(byteCount: SFrameHeader.maximumByteCount, alignment: 1) { written in
    let length = header.write(into: written)
    precondition(written.prefix(length).elementsEqual(frame.prefix(length)))
  }
}

private nonisolated(unsafe) let responder = STUNResponder(role: .controlled)
private nonisolated(unsafe) let checker = ConnectivityChecker(
  role: .controlling, local: ICECredentials(fragment: "evtj", password: "VOkJxbRl1RmTxUk/WvJxBt"),
  remote: ICECredentials(fragment: "h6vY", password: "VOkJxbRl1RmTxUk/WvJxBt"), tieBreaker: 1)!
private let server = SocketAddress(ipv4: 0xc000_0201, port: 3478)
private let fingerprint = CertificateFingerprint(hash: "sha-256", digest: [UInt8](repeating: 1, count: 32))

func readSTUN(_ datagram: UnsafeMutableRawBufferPointer) {
  withUnsafeTemporaryAllocation(byteCount: STUNResponder.replyCapacity, alignment: 8) { reply in
    _ = responder.respond(to: UnsafeRawBufferPointer(datagram), from: server, into: reply) { _ in
      "VOkJxbRl1RmTxUk/WvJxBt"
    }
    _ = checker.makeCheck(of: server, transaction: (1, 2), into: reply)
  }
  if case .succeeded = checker.handle(UnsafeRawBufferPointer(datagram), from: server) {
    fatalError("an answer without the password counts")
  }
}

private let certificate = DTLSCertificate()

/// A server and a client that get the same datagrams.
func readDTLS(_ datagrams: UnsafeMutableRawBufferPointer) {
  let parts = datagrams.parts
  for role in [DTLSSession.Role.server, .client] {
    let session = DTLSSession(
      role: role, certificate: certificate, remoteFingerprint: fingerprint)
    var now = Instant(nanoseconds: 0)
    _ = session.start(now: now) { sum &+= $0.count }
    for part in parts {
      if case .connected = session.handle(UnsafeRawBufferPointer(part), now: now, send: { sum &+= $0.count }) {
        fatalError("a stranger is connected")
      }
      now = now.advanced(by: .milliseconds(300))
      _ = session.handleTimeout(now: now) { sum &+= $0.count }
    }
  }
}

/// RTP and RTCP with each profile; the input's first byte decides which. A packet with a forged tag never opens.
func readSRTP(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  let isGCM = first & 2 == 0
  let receiver = SRTPReceiver(
    profile: isGCM ? .aeadAES128GCM : .aes128CMSHA1Tag80,
    master: SRTPMasterKey(
      key: [UInt8](repeating: 7, count: 16), salt: [UInt8](repeating: 9, count: isGCM ? 12 : 14)))
  let datagram = UnsafeMutableRawBufferPointer(rebasing: input.dropFirst())
  let opened = first & 1 == 0 ? receiver.unprotectRTP(datagram) : receiver.unprotectRTCP(datagram)
  if case .packet = opened { fatalError("a forged packet opens") }
}

/// The datagrams do not depend on how the stream was cut.
func readFraming(_ input: UnsafeMutableRawBufferPointer) {
  let whole = datagrams(of: [input])
  let cut = input.count / 3
  let pieces = [
    UnsafeMutableRawBufferPointer(rebasing: input[..<cut]), UnsafeMutableRawBufferPointer(rebasing: input[cut...]),
  ]
  precondition(whole == datagrams(of: pieces))
}

private func datagrams(of pieces: [UnsafeMutableRawBufferPointer]) -> [[UInt8]] {
  let input = FramedInput(maximum: 300)
  var datagrams: [[UInt8]] = []
  for piece in pieces {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: input.headroom + piece.count, alignment: 1)
    defer { buffer.deallocate() }
    UnsafeMutableRawBufferPointer(rebasing: buffer[input.headroom...]).copyMemory(from: UnsafeRawBufferPointer(piece))
    guard input.split(buffer, each: { datagrams.append(Array($0)) }) else { break }
  }
  return datagrams
}
