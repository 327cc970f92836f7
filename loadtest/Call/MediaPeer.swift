import ConclaveClient
import LinuxIO
import MediaModel
import Paths
import RTP
import Transport

/// The parts of a participant that a media thread needs.
struct PeerSetup: Sendable {
  /// The participant's index over all calls, from 0.
  var index: Int
  var call: Int
  /// Whether this is the second connection of a participant, over which it receives.
  var isSecond = false
  var local: LocalMedia
  var remote: RemoteMedia
  var certificate: DTLSCertificate
  var cipher: FrameCipher
  /// The tracks that the sending m-lines became, by mid.
  var tracks: [String: TrackKey]
  var videoKbps: Int
  /// The impairment of its path, in both directions; nil without one.
  var impairment: Impairment?
  var seed: UInt64
  /// Whether frames that do not open may come from other clients.
  var hasGuests: Bool
  var progress: PeerProgress
}

/// One participant's media: its socket, ICE, DTLS, SRTP, what it sends and what it receives. Lives on one thread.
final class MediaPeer {
  let setup: PeerSetup
  let socket: UDPSocket
  let statistics: Statistics
  let checker: ConnectivityChecker
  let responder = STUNResponder(role: .controlling)
  let dtls: DTLSSession
  var path = Path.checking(candidate: 0, tries: 0)
  var nextCheck: Instant
  var outbound: SRTPSender?
  var inbound: SRTPReceiver?
  let streams: [SendingStream]
  let slots: [UInt32: ReceivingSlot]
  /// The values of `slots`.
  let receiving: [ReceivingSlot]
  /// RTX streams, by their SSRC.
  let repairs: [UInt32: ReceivingSlot]
  var nextReport: Instant
  /// The arrivals to report to the server; nil where nothing is reported.
  var arrivals: TransportFeedbackRecorder?
  var nextFeedback: Instant
  /// The SSRC of the last packet, since each report has to name a stream.
  var lastMedia: UInt32 = 0
  let output: OutputBuffer
  let surroundings: ReceivingSlot.Surroundings
  /// The slots of `receiving` that wait for a packet or a key.
  private var waiting: [ReceivingSlot] = []
  private(set) var nextTimeout: Instant
  /// The impaired paths from and to the server; nil on a good path.
  private let arriving: ImpairedDatagrams?
  private let leaving: ImpairedDatagrams?
  private var isSilent = false

  enum Path {
    /// The candidates are tried one after the other.
    case checking(candidate: Int, tries: Int)
    case found(SocketAddress)
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  init(
    _ setup: PeerSetup, statistics: Statistics, opened: OpenedFrames, output: OutputBuffer, now: Instant
  ) throws {
    self.setup = setup
    self.statistics = statistics
    self.output = output
    var options = UDPSocket.Options()
    options.bufferSize = 2 << 20
    // A participant sends only to the server.
    options.answersFromSameAddress = false
    socket = try UDPSocket(port: 0, options: options)
    guard
      let checker = ConnectivityChecker(
        role: .controlling, local: setup.local.credentials, remote: setup.remote.credentials,
        tieBreaker: UInt64.random(in: 0...UInt64.max))
    else { throw Failure(description: "the server's ICE credentials are no good") }
    self.checker = checker
    dtls = DTLSSession(
      role: .client, certificate: setup.certificate, remoteFingerprint: setup.remote.fingerprint)
    // Frames of different participants are spread over their interval, as those of real people are.
    let phase = Duration.microseconds(setup.index * 7_919 % 20_000)
    streams = setup.local.tracks.flatMap { track in
      guard let key = setup.tracks[track.mid] else { return [SendingStream]() }
      let counter = FrameCounter()
      return track.encodings.indices.map { rank in
        SendingStream(
          track: track, layer: track.isLayered ? LayerFrames(rank: rank, counter: counter) : nil, key: key,
          cipher: setup.cipher, videoKbps: setup.videoKbps, start: now.advanced(by: phase))
      }
    }
    let received = setup.remote.slots.map { (ReceivingSlot($0), $0) }
    slots = Dictionary(received.map { ($1.ssrc, $0) }) { first, _ in first }
    receiving = Array(slots.values)
    surroundings = ReceivingSlot.Surroundings(
      cipher: setup.cipher, progress: setup.progress, statistics: statistics, opened: opened, hasGuests: setup.hasGuests
    )
    repairs = Dictionary(received.compactMap { slot, description in description.rtxSSRC.map { ($0, slot) } }) {
      first, _ in first
    }
    arriving = setup.impairment.map { ImpairedDatagrams($0, seed: setup.seed) }
    leaving = setup.impairment.map { ImpairedDatagrams($0, seed: ~setup.seed) }
    nextCheck = now
    nextReport = now.advanced(by: .seconds(1))
    arrivals = setup.local.isReporting ? TransportFeedbackRecorder() : nil
    nextFeedback = now
    nextTimeout = now
  }

  /// The packets that this peer sent and received while the test measured. Layers are not counted as sent, since each
  /// receiver gets only one of them.
  var traffic: PeerTraffic {
    var received: [TrackKey: Traffic] = [:]
    for slot in receiving {
      for (key, traffic) in slot.received {
        received[key, default: Traffic(isVideo: traffic.isVideo)].frames += traffic.frames
        received[key, default: Traffic(isVideo: traffic.isVideo)].packets += traffic.packets
      }
    }
    return PeerTraffic(
      index: setup.index, call: setup.call,
      sent: Dictionary(uniqueKeysWithValues: streams.filter { !$0.track.isLayered }.map { ($0.key, $0.traffic) }),
      received: received
    )
  }

  /// The numbers of frames that this peer received and opened.
  var count: StayCount {
    receiving.reduce(into: StayCount()) { $0.merge($1.stay) }
  }

  /// Handles all datagrams that have arrived.
  func receive(into batch: ReceiveBatch) {
    repeat {
      socket.receive(into: batch)
      let now = MonotonicClock.now()
      if isSilent { continue }
      for datagram in batch.datagrams {
        if let arriving {
          arriving.send(UnsafeRawBufferPointer(datagram.bytes), datagram.source, now: now)
        } else {
          // This program may read late, so the server's latency is measured up to the datagram's arrival in the socket.
          handle(datagram.bytes, from: datagram.source, now: now.advanced(by: .nanoseconds(-Int64(datagram.age))))
        }
      }
    } while batch.isFull
    // Frames that just came may have left holes or wait for keys.
    schedule()
    flush()
  }

  /// Sends what is due.
  func handleTimeout(now: Instant, isMeasuring: Bool) {
    while let arrived = arriving?.takeArrived(now) { handle(arrived.bytes, from: arrived.address, now: now) }
    check(now)
    keepHandshakeGoing(now)
    if outbound != nil {
      for stream in streams {
        stream.advance(now, isMeasuring: isMeasuring)
        while let packet = stream.takeDue(now) { send(packet.bytes, headerLength: packet.headerLength) }
      }
      for slot in waiting where slot.nextTimeout.map({ $0 <= now }) ?? false {
        let missing = slot.handleTimeout(now, surroundings)
        if !missing.isEmpty { ask(for: missing, of: slot) }
      }
      waiting.removeAll { $0.nextTimeout == nil }
      if nextReport <= now { report(now) }
      if arrivals?.isDue ?? false, nextFeedback <= now { reportArrivals(now) }
    }
    schedule()
    flush()
    sendOn(now)
  }

  /// Adds the slot to those with a timeout, if it has one.
  func watch(_ slot: ReceivingSlot) {
    if slot.nextTimeout != nil, !waiting.contains(where: { $0 === slot }) { waiting.append(slot) }
  }

  private func schedule() {
    guard !isSilent else { return nextTimeout = Instant(nanoseconds: .max) }
    var next = nextCheck
    if let due = arriving?.nextDue { next = min(next, due) }
    if let due = leaving?.nextDue { next = min(next, due) }
    if let due = dtls.nextTimeout { next = min(next, due) }
    if outbound != nil {
      next = min(next, nextReport)
      if arrivals?.isDue ?? false { next = min(next, nextFeedback) }
      for stream in streams { next = min(next, stream.nextTimeout) }
      for slot in waiting { if let due = slot.nextTimeout { next = min(next, due) } }
    }
    nextTimeout = next
  }

  func flush() {
    guard case .found(let address) = path, !output.isEmpty else { return output.removeAll() }
    statistics.tally.bytesSent += UInt64(output.byteCount)
    transmit(to: address)
  }

  /// Sends the output on the peer's path.
  func transmit(to address: SocketAddress) {
    guard let leaving else { return output.send(through: socket, to: address) }
    let now = MonotonicClock.now()
    output.forEach { leaving.send($0, address, now: now) }
    output.removeAll()
    if let due = leaving.nextDue { nextTimeout = min(nextTimeout, due) }
  }

  /// Sends the datagrams that have passed the impaired path.
  private func sendOn(_ now: Instant) {
    guard let leaving else { return }
    var target: SocketAddress?
    while let datagram = leaving.takeArrived(now) {
      if let target, target != datagram.address || output.room == nil { output.send(through: socket, to: target) }
      target = datagram.address
      guard let room = output.room, datagram.bytes.count <= room.count else { continue }
      room.copyMemory(from: UnsafeRawBufferPointer(datagram.bytes))
      output.append(datagram.bytes.count)
    }
    if let target { output.send(through: socket, to: target) }
    schedule()
  }

  /// Datagrams that the impaired path dropped in both directions, and how many of them for lack of memory.
  var impaired: (dropped: UInt64, withoutRoom: UInt64) {
    let paths = [arriving, leaving].compactMap { $0 }
    return paths.reduce(into: (0, 0)) { sum, path in
      sum.dropped += UInt64(path.dropped)
      sum.withoutRoom += UInt64(path.withoutRoom)
    }
  }

  /// Sends only the layers of a track that receivers want.
  func want(_ layers: [SimulcastLayer], of key: TrackKey) {
    for stream in streams where stream.key == key && stream.track.isLayered {
      stream.isWanted = layers.first { $0.rid == stream.rid }?.isActive ?? true
    }
  }

  /// Ends the peer without telling the server, like a device that has vanished.
  func silence() {
    isSilent = true
    schedule()
  }
}
