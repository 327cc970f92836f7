import MediaModel
import Testing
import Transport

@testable import Forwarding

/// Test peers around a real SFU, in virtual time, over a seeded network. With several workers there is an SFU for each,
/// and peers are assigned to them in turn.
final class SimulatedCall {
  static let server = SocketAddress(ipv4: 0x0a00_0001, port: 5000)
  static let certificate = DTLSCertificate()
  static let name = CallID(unchecked: "call")

  let sfus: [SFU]
  let relays = SimulatedRelays()
  /// One for each SFU; empty if the SFUs carry out handshakes themselves.
  let handshakes: [SimulatedHandshakes]
  let outbox: Outbox
  var network: SimulatedNetwork
  var peers: [TestPeer] = []
  var events: [MediaEvent] = []
  /// How the slots of the peers that join are filled.
  var filling = SlotFilling.ranked
  /// The messages that were sent to the recorder.
  private var recorded: [SimulatedRelays.Relayed] = []
  private(set) var millisecond: UInt64 = 1000
  private var numbers = SentNumbers()
  private var requests: UInt64 = 0

  /// - Parameters:
  ///   - receivers: at most.
  ///   - hasRecorder: there is a way to a recorder, also if there is only one SFU.
  ///   - stepTime: milliseconds for each step of a handshake on another thread; nil: at once, without such a thread.
  init(
    seed: UInt64 = 1, _ conditions: NetworkConditions = .init(), receivers: Int = 64, workers: Int = 1,
    stepTime: UInt64? = nil, hasRecorder: Bool = false, configuration: SFUConfiguration = SFUConfiguration()
  ) {
    outbox = Outbox(chunks: receivers)
    let relays = relays
    let handshakes = stepTime.map { time in (0..<workers).map { _ in SimulatedHandshakes(time: time) } } ?? []
    self.handshakes = handshakes
    sfus = (0..<workers).map { worker in
      SFU(
        configuration: configuration, certificate: Self.certificate, seed: seed,
        address: Self.address(worker),
        relay: workers > 1 || hasRecorder ? SimulatedRelays.Way(from: .worker(Self.address(worker)), relays) : nil,
        handshakes: handshakes.isEmpty ? nil : handshakes[worker])
    }
    network = SimulatedNetwork(seed: seed)
    network.conditions = conditions
  }

  func takeRecorded() -> [SimulatedRelays.Relayed] {
    defer { recorded = [] }
    return recorded
  }

  /// The SFU of the first peer.
  var sfu: SFU { sfus[0] }

  static func address(_ worker: Int) -> WorkerAddress { WorkerAddress(node: Incarnation(4), worker: worker) }

  func worker(of peer: PeerID) -> Int { Int(peer.rawValue - 1) % sfus.count }

  func sfu(of peer: TestPeer) -> SFU { sfus[worker(of: peer.configuration.peer)] }

  func counters(_ count: (SFUCounters) -> UInt64) -> UInt64 { sfus.reduce(0) { $0 + count($1.counters) } }

  var now: Instant { Instant(nanoseconds: millisecond * 1_000_000) }

  /// Adds a participant; the SFU knows its slots and tracks when this returns.
  @discardableResult
  func join(
    _ sources: [TrackSource] = [.microphone, .camera], audioSlots: Int = 4, videoSlots: Int = 4,
    muted: Bool = false, announcesSSRCs: Bool = true, codec: String = "VP8", of name: CallID = SimulatedCall.name
  ) -> TestPeer {
    let peer = TestPeer(
      number: UInt32(peers.count + 1), sources: sources, audioSlots: audioSlots, videoSlots: videoSlots,
      muted: muted, announcesSSRCs: announcesSSRCs, codec: codec)
    peer.configuration.call = name
    add(peer)
    return peer
  }

  private func add(_ peer: TestPeer) {
    peer.configuration.filling = filling
    peers.append(peer)
    configure(peer)
  }

  /// A participant with a simulcast camera of these layers, the lowest first.
  func joinCamera(layers: [String] = ["q", "h", "f"], descriptors: Bool = true) -> TestPeer {
    let peer = TestPeer(
      number: UInt32(peers.count + 1), sources: [.camera], audioSlots: 0, videoSlots: 0, muted: false,
      announcesSSRCs: false, codec: "VP8")
    peer.configuration.extensions.rid = 9
    peer.configuration.extensions.repairedRID = 10
    if descriptors { peer.configuration.extensions.dependencyDescriptor = 11 }
    peer.configuration.tracks[0].rids = layers
    let camera = LayerTrack.Camera()
    let number = peer.configuration.participant * 1000
    peer.tracks = layers.indices.map { rank in
      LayerTrack(
        peer.configuration.tracks[0], ssrc: number + UInt32(rank), rtxSSRC: number + 500 + UInt32(rank), rank: rank,
        camera: camera)
    }
    add(peer)
    return peer
  }

  /// A participant with one slot for video.
  func joinViewer(descriptors: Bool = true) -> TestPeer {
    let peer = TestPeer(
      number: UInt32(peers.count + 1), sources: [], audioSlots: 0, videoSlots: 1, muted: false,
      announcesSSRCs: false, codec: "VP8")
    if descriptors { peer.configuration.extensions.dependencyDescriptor = 12 }
    add(peer)
    return peer
  }

  func wish(_ peer: TestPeer, _ videos: [TrackID: Wishes.Video]) {
    command(.receive(peer.configuration.peer, Wishes(videos: videos)))
  }

  func configure(_ peer: TestPeer) {
    requests += 1
    command(.configure(peer.configuration, request: requests))
    let hosts = Set(peers.map { worker(of: $0.configuration.peer) }).sorted()
    guard hosts.count > 1 else { return }
    for host in hosts { sfus[host].handle(.share(Self.name, workers: hosts.map(Self.address)), now: now, into: outbox) }
  }

  /// Passes a command to the peer's worker, and to the others as far as it concerns them.
  func command(_ command: MediaCommand) {
    guard let peer = command.peer else { return }
    let home = worker(of: peer)
    sfus[home].handle(command, now: now, into: outbox)
    for (other, sfu) in sfus.enumerated() where other != home {
      switch command {
      case .receive, .pin: break
      case .configure(let configuration, _):
        sfu.handle(.mirror(configuration, worker: Self.address(home)), now: now, into: outbox)
      default: sfu.handle(command, now: now, into: outbox)
      }
    }
    flush()
  }

  func mute(_ peer: TestPeer, _ index: Int, _ isMuted: Bool) {
    command(.mute(peer.configuration.peer, peer.configuration.tracks[index].track, isMuted))
  }

  func run(milliseconds: Int) {
    for _ in 0..<milliseconds {
      millisecond += 1
      for datagram in network.arrivals(at: millisecond) {
        if datagram.destination == Self.server {
          receive(datagram.bytes, from: datagram.source)
        } else if let peer = peers.first(where: { $0.address == datagram.destination }) {
          peer.receive(datagram.bytes, now: now)
        }
      }
      for (sfu, handshakes) in zip(sfus, handshakes) {
        while let step = handshakes.next(at: millisecond) {
          sfu.handle(step, now: now, into: outbox)
          flush()
        }
      }
      // A pass leaves the remaining due work to the next one.
      for sfu in sfus {
        for _ in 0..<100 {
          guard let due = sfu.nextTimeout, due <= now else { break }
          sfu.handleTimeout(now: now, into: outbox)
          flush()
        }
      }
      for peer in peers where peer.isPresent {
        peer.tick(now)
        for bytes in peer.takeOutput() {
          let source = peer.spoofedSource ?? peer.address
          network.send(Datagram(bytes: bytes, source: source, destination: Self.server), at: millisecond)
        }
      }
    }
  }

  /// Runs until all peers are connected.
  /// - Parameter seconds: of virtual time, at most.
  func connect(seconds: Int = 6) throws {
    for _ in 0..<50 * seconds {
      if peers.allSatisfy(\.isConnected), sfus.map(\.counters.connected).reduce(0, +) == peers.count { return }
      run(milliseconds: 20)
    }
    try #require(Bool(false), "not connected in \(seconds) s")
  }

  /// The datagrams that the SFU received, while they are recorded.
  var captured: [Datagram]?

  /// Passes a datagram directly to the SFU of the peer with that address, or to the first.
  /// - Parameter age: the time in the kernel's buffer, in nanoseconds.
  func receive(_ bytes: [UInt8], from source: SocketAddress, age: UInt64 = 0) {
    captured?.append(Datagram(bytes: bytes, source: source, destination: Self.server))
    var bytes = bytes
    let owner = peers.first { $0.address == source }
    let sfu = owner.map { self.sfu(of: $0) } ?? self.sfu
    bytes.withUnsafeMutableBytes { sfu.handle($0, from: source, age: age, now: now, into: outbox) }
    flush()
  }

  /// The datagrams that the SFU sent to addresses that are no peer's.
  private(set) var strayed: [Datagram] = []

  private func flush() {
    while let relayed = relays.next() {
      var packet = relayed.packet
      let to: Int
      switch relayed.to {
      case .worker(let address): to = address.worker
      case .recorder:
        recorded.append(relayed)
        continue
      }
      packet.withUnsafeMutableBytes {
        sfus[to].handle(relayed.message, $0, from: relayed.from, now: now, into: outbox)
      }
    }
    for run in outbox.runs {
      var offset = 0
      while offset < run.length {
        let length = min(run.segment, run.length - offset)
        let bytes = [UInt8](UnsafeRawBufferPointer(start: run.base + offset, count: length))
        let datagram = Datagram(bytes: bytes, source: Self.server, destination: run.destination)
        numbers.check(datagram)
        if peers.contains(where: { $0.address == run.destination }) {
          network.send(datagram, at: millisecond)
        } else {
          strayed.append(datagram)
        }
        offset += length
      }
    }
    outbox.reset()
    for sfu in sfus {
      events += sfu.events
      sfu.events.removeAll()
    }
  }
}

extension SimulatedCall {
  /// The newest slot map that the peer was told.
  func slotMap(of peer: TestPeer) -> SlotMap? {
    let maps = events.compactMap { event -> SlotMap? in
      switch event {
      case .configured(peer.configuration.peer, _, let map), .slots(peer.configuration.peer, let map): map
      default: nil
      }
    }
    return maps.last
  }

  /// The track in each slot of the peer.
  func assignment(of peer: TestPeer) -> [String: TrackID] {
    Dictionary(uniqueKeysWithValues: slotMap(of: peer)?.slots.map { ($0.mid, $0.track) } ?? [])
  }

  var speakers: [[ParticipantNumber]] {
    events.compactMap { if case .speakers(_, let list) = $0 { list } else { nil } }
  }
}
