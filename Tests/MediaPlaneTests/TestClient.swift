import LinuxIO
import MediaModel
import RTP
import Testing
import Transport

@testable import MediaPlane

/// A participant on a real socket: a microphone, a camera, and slots for a given number of others. The test drives it,
/// without a thread.
final class TestClient {
  static let opus = PayloadFormat(payloadType: 111, codec: "opus", clockRate: 48_000, channels: 2)
  static let vp8 = PayloadFormat(
    payloadType: 96, codec: "VP8", clockRate: 90_000, rtxPayloadType: 97, nack: true, pli: true)

  let number: UInt32
  let configuration: PeerConfiguration
  private(set) var isConnected = false
  /// The payloads of received RTP packets, by payload type.
  private(set) var audio: [[UInt8]] = []
  private(set) var video: [[UInt8]] = []
  var keepsPayloads = true
  private(set) var received = 0

  private let isOverTCP: Bool
  private var connection: TestConnection?
  private let socket: UDPSocket
  private let batch = ReceiveBatch(capacity: 64)
  private let epoll: Epoll
  private let checker: ConnectivityChecker
  private let responder = STUNResponder(role: .controlling)
  private let session: DTLSSession
  private var server = SocketAddress(high: 0, low: 0, port: 0)
  private var sender: SRTPSender?
  private var receiver: SRTPReceiver?
  private var checks: UInt32 = 0
  /// The last sequence number of each stream.
  private var numbers: [UInt32: UInt16] = [:]
  private var nextAudio: UInt16 = 1
  private var nextVideo: UInt16 = 1
  private let memory = UnsafeMutableRawPointer.allocate(byteCount: 65_536, alignment: 64)

  init(
    _ number: UInt32, server certificate: DTLSCertificate, slots: Int, call: String = "call", overTCP: Bool = false,
    isSender: Bool = true, filling: SlotFilling = .ranked
  ) throws {
    self.number = number
    isOverTCP = overTCP
    let own = DTLSCertificate()
    let local = ICECredentials(fragment: "server\(number)", password: "a-password-of-the-server-\(number)")
    let remote = ICECredentials(fragment: "client\(number)", password: "a-password-of-the-client-\(number)")
    checker = try #require(
      ConnectivityChecker(role: .controlling, local: remote, remote: local, tieBreaker: UInt64(number)))
    session = DTLSSession(role: .client, certificate: own, remoteFingerprint: certificate.fingerprint)
    socket = try UDPSocket(port: 0)
    epoll = try Epoll()
    try epoll.add(socket.descriptor, token: 0)
    func track(_ index: UInt8, _ source: TrackSource, _ format: PayloadFormat, rtx: Bool) -> UpTrackDescription {
      let ssrc = number * 1_000 + UInt32(index)
      return UpTrackDescription(
        track: TrackID(participant: number, index: index), source: source, mid: "\(index)", muted: false,
        formats: [format], ssrcs: [ssrc], rtx: rtx ? [ssrc: ssrc + 500] : [:])
    }
    func slot(_ index: Int, _ kind: MediaKind, _ format: PayloadFormat) -> SlotDescription {
      let ssrc = number * 1_000_000 + UInt32(index)
      return SlotDescription(
        mid: "\(10 + index)", kind: kind, ssrc: ssrc, rtxSSRC: ssrc + 500_000, formats: [format])
    }
    configuration = PeerConfiguration(
      peer: PeerID(rawValue: UInt64(number)), call: try #require(CallID(call)), participant: number, isOnKeyList: false,
      filling: filling, local: local,
      remote: remote, fingerprint: own.fingerprint, extensions: HeaderExtensionIDs(),
      tracks: isSender ? [track(1, .microphone, Self.opus, rtx: false), track(2, .camera, Self.vp8, rtx: true)] : [],
      slots: (0..<slots).flatMap { [slot($0, .audio, Self.opus), slot(100 + $0, .video, Self.vp8)] })
  }

  deinit { memory.deallocate() }

  /// Sends the first check; the answers trigger everything else.
  func start(_ server: SocketAddress) {
    self.server = server
    if isOverTCP { connection = try? TestConnection(port: server.port) }
    check()
  }

  /// Closes the TCP connection and opens a new one.
  func reconnect() {
    connection = nil
    start(server)
  }

  /// Sends a connectivity check, which is answered.
  func check() {
    checks += 1
    let length = checker.makeCheck(
      of: server, transaction: (UInt64(number), checks),
      into: UnsafeMutableRawBufferPointer(start: memory, count: 1_024))
    send(length, segment: length)
  }

  /// Handles what has arrived, after waiting at most this long for something.
  func receive(waiting nanoseconds: UInt64 = 0) {
    if let connection {
      for var datagram in connection.receive(milliseconds: Int32(nanoseconds / 1_000_000)) {
        datagram.withUnsafeMutableBytes { handle($0) }
      }
      return
    }
    guard !epoll.wait(nanoseconds: nanoseconds).isEmpty else { return }
    repeat {
      socket.receive(into: batch)
      for datagram in batch.datagrams { handle(datagram.bytes) }
    } while batch.isFull
  }

  /// Sends an audio packet with this payload, or a run of them.
  func sendAudio(_ payload: [UInt8], count: Int = 1) {
    var length = 0
    for _ in 0..<count {
      length += write(payload, type: 111, track: 1, sequence: nextAudio, at: memory + length)
      nextAudio &+= 1
    }
    send(length, segment: length / count)
  }

  /// Sends a frame of `packets` equal VP8 packets, as one run. Their payloads are the descriptor and header of VP8,
  /// then `byte`s.
  func sendVideo(packets: Int, byte: UInt8, size: Int = 1_000) {
    var length = 0
    var segment = 0
    for index in 0..<packets {
      // S bit in the first packet of a frame; P bit 0: a key frame (RFC 7741 4.2 and 4.3).
      let payload = [index == 0 ? 0x10 : 0, 0] + [UInt8](repeating: byte, count: size)
      segment = write(
        payload, type: 96, track: 2, sequence: nextVideo, at: memory + length, isLast: index == packets - 1)
      nextVideo &+= 1
      length += segment
    }
    send(length, segment: segment)
  }

  /// Sends any bytes to the server.
  func sendRaw(_ bytes: [UInt8]) {
    memory.copyMemory(from: bytes, byteCount: bytes.count)
    send(bytes.count, segment: bytes.count)
  }

  private func write(
    _ payload: [UInt8], type: UInt8, track: UInt32, sequence: UInt16, at start: UnsafeMutableRawPointer,
    isLast: Bool = true
  ) -> Int {
    let packet = UnsafeMutableRawBufferPointer(start: start, count: 2_048)
    RTPHeader.write(
      marker: isLast, payloadType: type, sequenceNumber: sequence, timestamp: UInt32(sequence) * 960,
      ssrc: number * 1_000 + track, into: packet)
    return payload.withUnsafeBytes { sender?.protectRTP(packet, headerLength: 12, payload: $0) } ?? 0
  }

  private func send(_ length: Int, segment: Int) {
    guard length > 0 else { return }
    if let connection {
      for start in stride(from: 0, to: length, by: segment) {
        connection.send(UnsafeRawBufferPointer(start: memory + start, count: min(segment, length - start)))
      }
      return
    }
    let run = DatagramRun(base: memory, length: length, segment: segment, destination: server)
    withUnsafePointer(to: run) { socket.send(UnsafeBufferPointer(start: $0, count: 1)) }
  }

  private func handle(_ datagram: UnsafeMutableRawBufferPointer) {
    let bytes = UnsafeRawBufferPointer(datagram)
    switch DatagramKind.classify(bytes.bytes) {
    case .stun:
      if bytes[0] == 0 { return answer(bytes) }
      if case .succeeded = checker.handle(bytes, from: server), checks == 1 {
        finish(session.start(now: MonotonicClock.now()) { sendRaw(Array($0)) })
      }
    case .dtls: finish(session.handle(bytes, now: MonotonicClock.now()) { sendRaw(Array($0)) })
    case .rtp:
      guard case .packet(let length) = receiver?.unprotectRTP(datagram),
        let header = RTPHeader(parsing: UnsafeRawBufferPointer(rebasing: bytes[..<length]).bytes)
      else { return }
      received += 1
      checkNumber(of: header)
      guard keepsPayloads else { return }
      let payload = Array(bytes[header.payloadRange])
      if header.payloadType == 111 { audio.append(payload) } else { video.append(payload) }
    case .rtcp, .unknown: break
    }
  }

  /// Checks that two consecutive packets of a stream are never more than 1,024 numbers apart, since a receiver guesses
  /// the upper half of their indices (RFC 3711 section 3.3.1). The loopback keeps their order.
  private func checkNumber(of header: RTPHeader) {
    if let before = numbers.updateValue(header.sequenceNumber, forKey: header.ssrc) {
      let step = SequenceNumber.distance(from: before, to: header.sequenceNumber)
      if abs(step) > 1_024 { Issue.record("\(step) numbers lie between two packets of stream \(header.ssrc)") }
    }
  }

  /// Answers a check of the server.
  private func answer(_ check: UnsafeRawBufferPointer) {
    var reply = [UInt8](repeating: 0, count: STUNResponder.replyCapacity)
    let outcome = reply.withUnsafeMutableBytes { reply in
      responder.respond(to: check, from: server, into: reply) {
        $0 == configuration.remote.fragment ? configuration.remote.password : nil
      }
    }
    if case .accepted(_, let length, _) = outcome { sendRaw(Array(reply[..<length])) }
  }

  private func finish(_ outcome: DTLSSession.Progress) {
    guard case .connected(let keys) = outcome else { return }
    sender = SRTPSender(profile: keys.profile, master: keys.outbound)
    receiver = SRTPReceiver(profile: keys.profile, master: keys.inbound)
    isConnected = true
  }
}

extension MediaWorkers {
  func loopback(_ worker: Int) -> SocketAddress { SocketAddress(ipv4: 0x7f00_0001, port: port(of: worker)) }

  /// Connects clients of one call, each on the next worker.
  func connect(_ clients: [TestClient], _ log: EventLog) throws {
    func home(_ client: TestClient) -> Int { Int(client.number - 1) % workers }
    for client in clients {
      submit(.configure(client.configuration, request: UInt64(client.number)), worker: home(client))
    }
    try #require(eventually { log.configured.count == clients.count })
    for client in clients {
      let others = Set(clients.filter { $0.configuration.call == client.configuration.call }.map(home))
      for other in others where other != home(client) {
        submit(.mirror(client.configuration, worker: addresses[home(client)]), worker: other)
      }
    }
    for client in clients { client.start(loopback(home(client))) }
    let areConnected = eventually({ clients.allSatisfy(\.isConnected) && log.connected.count == clients.count }) {
      for client in clients { client.receive(waiting: 1_000_000) }
    }
    try #require(areConnected)
  }
}
