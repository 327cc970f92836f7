import MediaModel
import RTP
import Transport

@testable import Forwarding

/// A whole SFU with three connected peers that the input controls. Each part is one step: its first byte says who acts,
/// how, and how much time has passed.
func driveSFU(_ input: UnsafeMutableRawBufferPointer) {
  let world = SFUWorld()
  for part in input.parts where !part.isEmpty {
    world.step(part[0], UnsafeMutableRawBufferPointer(rebasing: part.dropFirst()))
  }
}

private let certificate = DTLSCertificate()
private let key = SRTPMasterKey(key: [UInt8](repeating: 7, count: 16), salt: [UInt8](repeating: 9, count: 12))
/// One for all inputs: its memory is large.
private nonisolated(unsafe) let outbox = Outbox(chunks: 8)

private final class SFUWorld {
  private struct Sender {
    let configuration: PeerConfiguration
    let address: SocketAddress
    let protection: SRTPSender
    let checker: ConnectivityChecker
  }

  private let sfu: SFU
  private var senders: [Sender] = []
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var checks: UInt64 = 0
  private let stranger = SocketAddress(ipv4: 0xc633_6401, port: 666)

  init() {
    var configuration = SFUConfiguration()
    configuration.videoHistory = 32
    configuration.audioHistory = 8
    sfu = SFU(configuration: configuration, certificate: certificate, seed: 1)
    outbox.reset()
    for number in UInt32(1)...3 { connect(Self.peer(number)) }
    drain()
  }

  /// One sender without keys, whose frames are plain; one whose frames are SFrames; one with only a slot of each kind.
  private static func peer(_ number: UInt32) -> PeerConfiguration {
    var extensions = HeaderExtensionIDs()
    extensions.mid = 1
    extensions.audioLevel = 2
    extensions.rid = 3
    extensions.repairedRID = 4
    extensions.dependencyDescriptor = 5
    extensions.transportSequence = 6
    extensions.sendTime = 7
    let video = PayloadFormat(
      payloadType: 96, codec: number == 2 ? "AV1" : "VP8", clockRate: 90_000, rtxPayloadType: 97, nack: true, pli: true)
    let others = ["VP8", "AV1"].enumerated().map { index, codec in
      PayloadFormat(
        payloadType: UInt8(96 + 2 * index), codec: codec, clockRate: 90_000, rtxPayloadType: UInt8(97 + 2 * index),
        nack: true, pli: true)
    }
    let opus = PayloadFormat(payloadType: 111, codec: "opus", clockRate: 48_000, channels: 2)
    let tracks = [
      UpTrackDescription(
        track: TrackID(participant: number, index: 1), source: .microphone, mid: "0", muted: false, formats: [opus],
        ssrcs: [number << 8], rtx: [:]),
      UpTrackDescription(
        track: TrackID(participant: number, index: 2), source: .camera, mid: "1", muted: false, formats: [video],
        ssrcs: number == 1 ? [] : [number << 8 | 1], rtx: number == 1 ? [:] : [number << 8 | 1: number << 8 | 2],
        rids: number == 1 ? ["q", "h", "f"] : []),
    ]
    let slots = [MediaKind.audio, .video, .video].enumerated().map { index, kind in
      SlotDescription(
        mid: "s\(index)", kind: kind, ssrc: number << 16 | UInt32(index), rtxSSRC: number << 16 | 0x80 | UInt32(index),
        formats: kind == .audio ? [opus] : others, feedback: [.none, .packets, .rate][Int(number % 3)])
    }
    return PeerConfiguration(
      peer: PeerID(rawValue: UInt64(number)), call: CallID("c1")!, participant: number, isOnKeyList: number == 2,
      local: ICECredentials(fragment: "near\(number)", password: "the password of the server.\(number)"),
      remote: ICECredentials(fragment: "far\(number)", password: "the password of the browser.\(number)"),
      fingerprint: certificate.fingerprint, extensions: extensions, tracks: number == 3 ? [] : tracks, slots: slots)
  }

  /// Puts the peer into the state after a handshake: with keys, on a proven path.
  private func connect(_ configuration: PeerConfiguration) {
    sfu.handle(.configure(configuration, request: 1), now: now, into: outbox)
    let address = SocketAddress(ipv4: 0xc000_0200 | configuration.participant, port: 4_000)
    guard let peer = sfu.peersByID[configuration.peer] else { fatalError("a configured peer is unknown") }
    let pair = CandidatePair(peer, address, now: now)
    sfu.paths.addresses.insert(pair)
    peer.pairs.append(pair)
    peer.transport.sender = SRTPSender(profile: .aeadAES128GCM, master: key)
    peer.inbound = SRTPReceiver(profile: .aeadAES128GCM, master: key)
    peer.connectionState = .silent
    sfu.paths.prove(pair, now: now)
    guard peer.connectionState == .connected else { fatalError("a proven path connects") }
    senders.append(
      Sender(
        configuration: configuration, address: address,
        protection: SRTPSender(profile: .aeadAES128GCM, master: key),
        checker: ConnectivityChecker(
          role: .controlling, local: configuration.remote, remote: configuration.local, tieBreaker: 1)!))
  }

  /// - Parameter how: the actor in bits 0 and 1, the act in bits 2 to 4, the time since the last step in bits 5 to 7.
  func step(_ how: UInt8, _ bytes: UnsafeMutableRawBufferPointer) {
    now = now.advanced(by: .milliseconds([0, 1, 5, 20, 120, 600, 2_500, 11_000][Int(how >> 5)]))
    // A pass leaves the remaining due work to the next one.
    for _ in 0..<100 {
      guard let due = sfu.nextTimeout, due <= now else { break }
      sfu.handleTimeout(now: now, into: outbox)
      drain()
    }
    let actor = Int(how & 3)
    guard actor < senders.count else { return receive(bytes, from: stranger) }
    let sender = senders[actor]
    switch how >> 2 & 7 {
    case 0: receive(bytes, from: sender.address)
    case 1, 2, 3: sendRTP(bytes, sender)
    case 4, 5: sendRTCP(bytes, sender)
    case 6: check(bytes.first ?? 0, sender)
    default: command(bytes, sender)
    }
    drain()
  }

  private func receive(_ bytes: UnsafeMutableRawBufferPointer, from source: SocketAddress) {
    sfu.handle(bytes, from: source, now: now, into: outbox)
  }

  /// An authentic packet with any content.
  private func sendRTP(_ plain: UnsafeMutableRawBufferPointer, _ sender: Sender) {
    guard plain.count >= 12, plain.count <= 1_400 else { return }
    if RTPHeader(parsing: plain.bytes) == nil { plain[0] = 0x80 }
    let header = RTPHeader(parsing: plain.bytes)?.headerLength ?? 12
    withUnsafeTemporaryAllocation(byteCount: plain.count + sender.protection.profile.rtpOverhead, alignment: 8) {
      room in
      room.copyMemory(from: UnsafeRawBufferPointer(plain))
      let length = sender.protection.protectRTP(
        room, headerLength: header, payload: UnsafeRawBufferPointer(rebasing: plain[header...]))
      guard let length else { return }
      receive(UnsafeMutableRawBufferPointer(rebasing: room[..<length]), from: sender.address)
    }
  }

  private func sendRTCP(_ plain: UnsafeMutableRawBufferPointer, _ sender: Sender) {
    guard plain.count >= 8, plain.count <= 1_400 else { return }
    plain[0] = plain[0] & 0x3f | 0x80
    plain[1] = 192 | plain[1] & 31
    withUnsafeTemporaryAllocation(byteCount: plain.count + sender.protection.profile.rtcpOverhead, alignment: 8) {
      room in
      room.copyMemory(from: UnsafeRawBufferPointer(plain))
      guard let length = sender.protection.protectRTCP(room, length: plain.count) else { return }
      receive(UnsafeMutableRawBufferPointer(rebasing: room[..<length]), from: sender.address)
    }
  }

  /// A check by the peer from one of its addresses.
  private func check(_ place: UInt8, _ sender: Sender) {
    checks += 1
    let address =
      place < 128 ? sender.address : SocketAddress(ipv4: 0xcb00_7100 | UInt32(place & 15), port: UInt16(place >> 4))
    withUnsafeTemporaryAllocation(byteCount: ConnectivityChecker.checkCapacity, alignment: 8) { room in
      let length = sender.checker.makeCheck(of: address, transaction: (checks, 1), into: room)
      receive(UnsafeMutableRawBufferPointer(rebasing: room[..<length]), from: address)
    }
  }

  private func command(_ bytes: UnsafeMutableRawBufferPointer, _ sender: Sender) {
    let argument = bytes.count > 1 ? bytes[1] : 0
    let peer = sender.configuration.peer
    let track = TrackID(participant: UInt32(argument >> 4 & 3), index: argument & 3)
    let command: MediaCommand
    switch (bytes.first ?? 0) & 7 {
    case 0: command = .mute(peer, track, argument & 8 != 0)
    case 1: command = .hold(peer, argument & 1 != 0)
    case 2:
      let video = Wishes.Video(
        maxHeight: argument & 4 != 0 ? Int(argument) << 3 : nil, priority: Int(argument & 7),
        isPaused: argument & 8 != 0)
      command = .receive(peer, Wishes(lastN: Int(argument & 3), videos: [track: video]))
    case 3: command = .removeTrack(peer, track)
    case 4: command = .remove(peer)
    default:
      var configuration = sender.configuration
      if argument & 1 != 0 { configuration.restingSlots = [configuration.slots.removeLast().ssrc] }
      if argument & 2 != 0, !configuration.tracks.isEmpty { configuration.tracks.removeFirst() }
      if argument & 4 != 0 { configuration.extensions = HeaderExtensionIDs() }
      command = .configure(configuration, request: 2)
    }
    sfu.handle(command, now: now, into: outbox)
  }

  /// Reads everything that will be sent. A stranger gets nothing but answers to checks.
  private func drain() {
    for run in outbox.runs {
      let bytes = UnsafeRawBufferPointer(start: run.base, count: run.length)
      sum &+= bytes.reduce(0) { $0 &+ Int($1) }
      precondition(run.destination != stranger || bytes.first == 1)
    }
    outbox.reset()
    sfu.events.removeAll()
  }
}
