import MediaModel
import RTP
import Transport

@testable import Forwarding

/// A participant: controlling ICE agent and DTLS client that sends its tracks, answers NACK and PLI, and requests
/// missing packets.
final class TestPeer {
  static let certificate = DTLSCertificate()

  var configuration: PeerConfiguration
  var address: SocketAddress
  /// The spoofed source address of its datagrams; it still receives at `address`.
  var spoofedSource: SocketAddress?
  var tracks: [TestTrack] = []
  var streams: [UInt32: ReceivedStream] = [:]
  /// Whether it takes part in the simulation; otherwise it neither sends nor reacts.
  var isPresent = true
  var isChecking = true
  var sendsNacks = true
  var ignoresPLI = false
  var sendsReports = true
  var isClosed = false
  var senderReports: [(report: SenderReport, at: Instant)] = []
  var reports: [ReportBlock] = []
  /// Datagrams that were neither authentic nor expected, except duplicates from the network.
  var refused = 0
  /// Packets that contain only padding.
  private(set) var paddings = 0
  var outbound: SRTPSender?
  private var inbound: SRTPReceiver?
  private(set) var unlucky: UnluckyReceiver?
  private var checker: ConnectivityChecker
  private let responder = STUNResponder(role: .controlling)
  /// Whether it answers the server's checks, as a full agent must (RFC 8445 section 7.3).
  var answersChecks = true
  /// The received checks of the server.
  private(set) var checksReceived = 0
  /// The transport-wide number of the next packet.
  var transportNumber: UInt16 = 65_000
  /// When each number was sent, including retransmissions and padding.
  private(set) var departures: [(number: UInt16, ssrc: UInt32)] = []
  private(set) var arrivalReports: [ArrivalReport] = []
  var rateEstimate: TestRateEstimate?
  var feedback = TestFeedback()

  /// A received transport-wide report.
  struct ArrivalReport {
    var at: Instant
    var length: Int
    var media: UInt32
    var number: UInt8
    /// µs of the server's clock, modulo 2^24 · 64 ms.
    var reference: Int64
    var statuses: [TransportFeedback.Status]
  }
  private let session: DTLSSession
  private var hasStarted = false
  private var transaction: UInt64 = 0
  private var ticks = 0
  private var output: [[UInt8]] = []

  init(
    number: UInt32, sources: [TrackSource], audioSlots: Int, videoSlots: Int, muted: Bool, announcesSSRCs: Bool,
    codec: String
  ) {
    configuration = Self.configuration(number, sources, audioSlots, videoSlots, muted, announcesSSRCs, codec)
    address = SocketAddress(ipv4: 0xc0a8_0000 | number, port: 4000)
    checker = ConnectivityChecker(
      role: .controlling, local: configuration.remote, remote: configuration.local, tieBreaker: UInt64(number))!
    session = DTLSSession(
      role: .client, certificate: Self.certificate, remoteFingerprint: SimulatedCall.certificate.fingerprint)
    for (i, description) in configuration.tracks.enumerated() {
      tracks.append(Self.track(description, number, i))
    }
    for slot in configuration.slots { streams[slot.ssrc] = ReceivedStream(slot) }
  }

  var isConnected: Bool { outbound != nil }

  static func track(_ description: UpTrackDescription, _ number: UInt32, _ index: Int) -> TestTrack {
    TestTrack(description, ssrc: number * 1000 + UInt32(index), rtxSSRC: number * 1000 + 500 + UInt32(index))
  }

  func stream(_ mid: String) -> ReceivedStream { streams.values.first { $0.slot.mid == mid }! }

  /// The received serials of one track, in any slot.
  func serials(of track: TestTrack) -> [UInt64] {
    let prefix = UInt64(track.description.track.participant) << 8 | UInt64(track.description.track.index)
    return streams.values.flatMap { $0.serials.filter { $0 >> 32 == prefix } }
  }

  func takeOutput() -> [[UInt8]] {
    defer { output = [] }
    return output
  }

  /// Makes new ICE credentials on both sides; the caller configures the SFU.
  func restartICE() {
    configuration.local = ICECredentials(
      fragment: "again\(configuration.participant)", password: "new local password 123")
    configuration.remote = ICECredentials(
      fragment: "far\(configuration.participant)", password: "new remote password 12")
    checker = ConnectivityChecker(
      role: .controlling, local: configuration.remote, remote: configuration.local, tieBreaker: 1)!
  }

  func close() { session.close { output.append([UInt8]($0)) } }

  func tick(_ now: Instant) {
    ticks += 1
    let isCheckDue = ticks % (isConnected ? 500 : 50) == 1
    if isChecking, isCheckDue { check() }
    if let due = session.nextTimeout, due <= now {
      _ = session.handleTimeout(now: now) { output.append([UInt8]($0)) }
    }
    guard isConnected else { return }
    for track in tracks where ticks % track.interval == 0 {
      guard track.isSending else {
        track.skip()
        continue
      }
      for packet in track.nextFrame(extensions: configuration.extensions) { send(packet) }
    }
    if sendsNacks, ticks % 40 == 0 { askForMissing() }
    if sendsReports, ticks % 1000 == 0 { sendReports(now) }
    if ticks % 50 == 0 { sendFeedback() }
    if ticks % 500 == 0 { sendRate() }
  }

  func check() {
    transaction += 1
    var bytes = [UInt8](repeating: 0, count: ConnectivityChecker.checkCapacity)
    let length = bytes.withUnsafeMutableBytes {
      checker.makeCheck(of: SimulatedCall.server, transaction: (transaction, configuration.participant), into: $0)
    }
    output.append(Array(bytes[..<length]))
  }

  /// The answer to a check of the server, as from the owner of `source`.
  func answer(_ datagram: UnsafeRawBufferPointer) -> [UInt8]? {
    var reply = [UInt8](repeating: 0, count: STUNResponder.replyCapacity)
    let outcome = reply.withUnsafeMutableBytes { reply in
      responder.respond(to: datagram, from: SimulatedCall.server, into: reply) {
        $0 == configuration.remote.fragment ? configuration.remote.password : nil
      }
    }
    guard case .accepted(_, let length, _) = outcome else { return nil }
    return Array(reply[..<length])
  }

  /// Encrypts a plain packet and sends it.
  func send(_ plain: [UInt8]) {
    guard let bytes = protect(plain) else { return }
    output.append(bytes)
    guard let header = plain.withUnsafeBytes({ RTPHeader(parsing: $0.bytes) }) else { return }
    let track = tracks.first { $0.ssrc == header.ssrc && $0.description.formats[0].rtxPayloadType == nil }
    track?.datagrams[header.sequenceNumber] = bytes
  }

  func protect(_ plain: [UInt8]) -> [UInt8]? {
    guard let outbound, let header = plain.withUnsafeBytes({ RTPHeader(parsing: $0.bytes) }) else { return nil }
    let plain = numbered(plain, header)
    var bytes = plain + [UInt8](repeating: 0, count: outbound.profile.rtpOverhead)
    let length = bytes.withUnsafeMutableBytes { buffer in
      plain.withUnsafeBytes { plain in
        outbound.protectRTP(
          buffer, headerLength: header.headerLength,
          payload: UnsafeRawBufferPointer(rebasing: plain[header.headerLength...]))
      }
    }
    return length.map { Array(bytes[..<$0]) }
  }

  /// The packet with the next transport-wide number, if it has room for one.
  private func numbered(_ plain: [UInt8], _ header: RTPHeader) -> [UInt8] {
    let element = plain.withUnsafeBytes {
      HeaderExtensions(header)?.element(configuration.extensions.transportSequence, in: $0.bytes)
    }
    guard configuration.extensions.transportSequence != 0, let element else { return plain }
    var packet = plain
    packet[element.offset] = UInt8(transportNumber >> 8)
    packet[element.offset + 1] = UInt8(transportNumber & 0xff)
    departures.append((transportNumber, header.ssrc))
    transportNumber &+= 1
    return packet
  }

  func sendRTCP(_ write: (inout RTCPWriter) -> Void) {
    var bytes = [UInt8](repeating: 0, count: 1100)
    let length = bytes.withUnsafeMutableBytes { buffer in
      var writer = RTCPWriter(buffer)
      write(&writer)
      return writer.length
    }
    sendRTCP(Array(bytes[..<length]))
  }

  /// Encrypts a plain compound and sends it.
  func sendRTCP(_ plain: [UInt8]) {
    guard let outbound else { return }
    var bytes = plain + [UInt8](repeating: 0, count: 100)
    let length = bytes.withUnsafeMutableBytes { outbound.protectRTCP($0, length: plain.count) }
    if let length { output.append(Array(bytes[..<length])) }
  }

  func receive(_ bytes: [UInt8], now: Instant) {
    var bytes = bytes
    bytes.withUnsafeMutableBytes { datagram in
      switch DatagramKind.classify(datagram.bytes) {
      case .stun where datagram[0] == 0:
        checksReceived += 1
        if answersChecks, let reply = answer(UnsafeRawBufferPointer(datagram)) { output.append(reply) }
      case .stun:
        if case .succeeded = checker.handle(UnsafeRawBufferPointer(datagram), from: SimulatedCall.server), !hasStarted {
          hasStarted = true
          apply(session.start(now: now) { output.append([UInt8]($0)) })
        }
      case .dtls:
        apply(session.handle(UnsafeRawBufferPointer(datagram), now: now) { output.append([UInt8]($0)) })
      case .rtp: receiveRTP(datagram, now)
      case .rtcp: receiveRTCP(datagram, now)
      case .unknown: refused += 1
      }
    }
  }

  private func apply(_ outcome: DTLSSession.Progress) {
    switch outcome {
    case .connected(let keys):
      outbound = SRTPSender(profile: keys.profile, master: keys.outbound)
      inbound = SRTPReceiver(profile: keys.profile, master: keys.inbound)
      unlucky = UnluckyReceiver(
        SRTPReceiver(profile: keys.profile, master: keys.inbound), seed: UInt64(configuration.participant))
    case .closed: isClosed = true
    case .none, .failed: break
    }
  }

  private func receiveRTP(_ datagram: UnsafeMutableRawBufferPointer, _ now: Instant) {
    let protected = [UInt8](datagram)
    guard let length = plainLength(inbound?.unprotectRTP(datagram)) else { return }
    var bytes = [UInt8](datagram[..<length])
    unlucky?.receive(protected)
    guard let header = bytes.withUnsafeBytes({ RTPHeader(parsing: $0.bytes) }) else {
      refused += 1
      return
    }
    let extensions = elements(header, bytes)
    noteNumber(of: header, extensions, now: now)
    noteSendTime(extensions, bytes: bytes.count - header.headerLength, now: now)
    bytes.removeLast(header.paddingLength)
    var payload = Array(bytes[header.headerLength...])
    var sequenceNumber = header.sequenceNumber
    var ssrc = header.ssrc
    let slot = configuration.slots.first { $0.rtxSSRC == ssrc }
    if let slot {
      if payload.isEmpty {
        paddings += 1
        return
      }
      sequenceNumber = UInt16(payload[0]) << 8 | UInt16(payload[1])
      payload.removeFirst(2)
      ssrc = slot.ssrc
    }
    guard let stream = streams[ssrc] else {
      refused += 1
      return
    }
    let packet = Self.packet(
      header, payload, of: stream.slot, extensions: extensions, isRetransmission: slot != nil, now)
    streams[ssrc]?.insert(sequenceNumber, packet)
  }

  private func plainLength(_ outcome: Unprotected?) -> Int? {
    switch outcome {
    case .packet(let length): return length
    case .dropped(.replayed): return nil
    case .dropped, nil:
      refused += 1
      return nil
    }
  }

  private static func packet(
    _ header: RTPHeader, _ payload: [UInt8], of slot: SlotDescription, extensions: [UInt8: [UInt8]],
    isRetransmission: Bool, _ now: Instant
  ) -> ReceivedStream.Packet {
    let vp8 = slot.formats[0].codec == "VP8" ? payload.withUnsafeBytes { VP8Descriptor(parsing: $0.bytes) } : nil
    let body = Array(payload.dropFirst(vp8?.length ?? 0))
    let serial = body.dropFirst().prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    return ReceivedStream.Packet(
      timestamp: header.timestamp, marker: header.marker, pictureID: vp8?.pictureID,
      tl0PictureIndex: vp8?.tl0PictureIndex,
      keyIndex: vp8?.keyIndex, serial: serial, body: body, arrival: now, isRetransmission: isRetransmission,
      extensions: extensions, payloadType: header.payloadType)
  }

  private func elements(_ header: RTPHeader, _ bytes: [UInt8]) -> [UInt8: [UInt8]] {
    guard let extensions = HeaderExtensions(header) else { return [:] }
    var found: [UInt8: [UInt8]] = [:]
    bytes.withUnsafeBytes { bytes in
      for id in UInt8(1)...14 {
        if let element = extensions.element(id, in: bytes.bytes) { found[id] = [UInt8](bytes[element.range]) }
      }
    }
    return found
  }

  private func receiveRTCP(_ datagram: UnsafeMutableRawBufferPointer, _ now: Instant) {
    guard let length = plainLength(inbound?.unprotectRTCP(datagram)) else { return }
    if let report = TransportFeedback(parsing: UnsafeRawBufferPointer(rebasing: datagram[..<length])) {
      arrivalReports.append(
        ArrivalReport(
          at: now, length: length, media: report.media, number: report.reportNumber,
          reference: Int64(report.referenceTime) * 64_000, statuses: Array(report)))
    }
    for packet in RTCPCompound(UnsafeRawBufferPointer(rebasing: datagram[..<length])) {
      switch packet {
      case .nack(let nack):
        guard let track = tracks.first(where: { $0.ssrc == nack.media }) else { continue }
        for number in nack.missing {
          if let again = track.retransmission(of: number, configuration.extensions) { send(again) }
          if let again = track.datagrams[number] { output.append(again) }
        }
      case .pictureLoss(_, let media):
        guard let track = tracks.first(where: { $0.ssrc == media }) else { continue }
        if !ignoresPLI { track.wantsKeyFrame = true }
        track.keyFrameRequests.append(now)
      case .fullIntraRequest(let request):
        for entry in request {
          guard let track = tracks.first(where: { $0.ssrc == entry.ssrc }), entry.sequence != track.lastFIR else {
            continue
          }
          track.lastFIR = entry.sequence
          track.wantsKeyFrame = true
          track.fullIntraRequests.append(now)
        }
      case .senderReport(let report): senderReports.append((report, now))
      case .receiverReport(_, let blocks): reports += Array(blocks)
      default: break
      }
    }
  }

  private func askForMissing() {
    for stream in streams.values where stream.slot.formats[0].nack && !stream.missing.isEmpty {
      let missing = Array(stream.missing.prefix(200))
      sendRTCP { $0.nack(sender: 1, media: stream.slot.ssrc, missing: missing.span) }
    }
  }

  private func sendReports(_ now: Instant) {
    sendRTCP { writer in
      for track in tracks where track.isSending {
        writer.senderReport(
          ssrc: track.ssrc, ntp: NTPTimestamp(nanoseconds: now.nanoseconds &+ track.clockOffset),
          rtpTimestamp: track.timestamp, packetCount: track.packetCount, octetCount: 0)
      }
    }
  }
}
