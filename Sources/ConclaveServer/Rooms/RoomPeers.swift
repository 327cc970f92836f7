import JanusAPI
import MediaModel
import SDP

/// The peers of all rooms: the negotiation and the worker of each. A room stays on one worker.
///
/// An answer is released when the worker has confirmed the configuration, because early media then finds its peer.
struct RoomPeers {
  typealias Routed = (command: MediaCommand, worker: WorkerAddress)

  private enum Description {
    case publisher(Negotiation, PeerConfiguration)
    case subscriber(Offering, call: CallID, pins: [String: LinePin])
  }

  private let fingerprint: CertificateFingerprint
  private let hasTCP: Bool
  private var peers: [PeerID: Description] = [:]
  private var placement: Placement
  /// The results that wait for a worker, by the worker's request.
  private var waiting: [UInt64: (peer: PeerID, number: UInt64, result: RoomMediaResult)] = [:]
  private var lastRequest: UInt64 = 0

  init(workers: [WorkerAddress], fingerprint: CertificateFingerprint, hasTCP: Bool) {
    placement = Placement(workers: workers, callShare: .max)
    self.fingerprint = fingerprint
    self.hasTCP = hasTCP
  }

  var count: Int { peers.count }

  /// A publisher's offer.
  /// - Parameter generator: must be cryptographic, because ICE passwords come from it.
  mutating func negotiate(
    _ offer: PublisherNegotiation, candidates: (WorkerAddress) -> [SocketAddress],
    using generator: inout some RandomNumberGenerator
  ) -> Routed {
    var negotiation = Negotiation(using: &generator)
    if case .publisher(let known, _) = peers[offer.peer] { negotiation = known }
    let configuration = negotiation.apply(
      offer.offer, tracks: offer.tracks, codecs: offer.codecs, peer: offer.peer, call: offer.call,
      participant: offer.participant, isOnKeyList: false, filling: .pinned, hasSlots: false, using: &generator)
    let worker = placement.place(offer.peer, of: offer.call)
    let sdp = negotiation.answer(
      fingerprint: fingerprint, candidates: candidates(worker), tcp: hasTCP, bitrate: offer.bitrate)
    peers[offer.peer] = .publisher(negotiation, configuration)
    let answer = PublisherAnswer(sdp: sdp, tracks: configuration.tracks)
    return configure(configuration, worker, offer.number, .negotiated(.success(answer)))
  }

  private mutating func configure(
    _ configuration: PeerConfiguration, _ worker: WorkerAddress, _ number: UInt64, _ result: RoomMediaResult
  ) -> Routed {
    lastRequest += 1
    waiting[lastRequest] = (configuration.peer, number, result)
    return (.configure(configuration, request: lastRequest), worker)
  }

  /// The server's offer to a subscriber.
  mutating func offer(
    _ wanted: SubscriberOffer, candidates: (WorkerAddress) -> [SocketAddress],
    using generator: inout some RandomNumberGenerator
  ) throws(OfferingError) -> String {
    var offering = Offering(using: &generator)
    if case .subscriber(let known, _, _) = peers[wanted.peer] { offering = known }
    var pins: [String: LinePin] = [:]
    for line in wanted.lines {
      pins[line.mid] = line.pin
      guard let pin = line.pin, let stream = offered(pin, line) else {
        try offering.idle(line.mid, line.kind, formats: [line.format], using: &generator)
        continue
      }
      try offering.show(stream, in: line.mid, using: &generator)
    }
    if wanted.restartsICE { offering.restartICE(using: &generator) }
    let worker = placement.place(wanted.peer, of: wanted.call)
    let sdp = offering.offer(fingerprint: fingerprint, candidates: candidates(worker), tcp: hasTCP)
    peers[wanted.peer] = .subscriber(offering, call: wanted.call, pins: pins)
    return sdp
  }

  /// nil if the publisher is gone meanwhile.
  private func offered(_ pin: LinePin, _ line: SubscriberOffer.Line) -> OfferedStream? {
    guard case .publisher(_, let configuration) = peers[pin.publisher],
      let track = configuration.tracks.first(where: { $0.track == pin.track })
    else { return nil }
    let words = line.label.split(separator: " ", maxSplits: 1).map(String.init)
    return OfferedStream(
      source: TrackPin(peer: pin.publisher, track: pin.track), kind: line.kind, formats: track.formats,
      label: OfferedStream.Label(stream: words.first ?? "", track: words.last ?? ""))
  }

  /// A subscriber's answer.
  mutating func apply(_ answer: SubscriberAnswer, of peer: PeerID, number: UInt64) throws(AnswerError) -> [Routed] {
    guard case .subscriber(var offering, let call, let pins) = peers[peer], let worker = placement.worker(of: peer)
    else { throw .notOffered }
    let configuration = try offering.apply(answer, peer: peer, call: call, participant: 0)
    peers[peer] = .subscriber(offering, call: call, pins: pins)
    let refused = Set(offering.lines.filter(\.isRejected).map(\.mid))
    return [
      configure(configuration, worker, number, .answered(.success(refused))), (.pin(peer, Self.slots(pins)), worker),
    ]
  }

  mutating func pin(_ peer: PeerID, _ pins: [String: LinePin]) -> Routed? {
    guard case .subscriber(let offering, let call, _) = peers[peer], let worker = placement.worker(of: peer) else {
      return nil
    }
    peers[peer] = .subscriber(offering, call: call, pins: pins)
    return (.pin(peer, Self.slots(pins)), worker)
  }

  private static func slots(_ pins: [String: LinePin]) -> [SlotPin] {
    pins.sorted { $0.key < $1.key }.map { mid, pin in
      SlotPin(
        mid: mid, source: TrackPin(peer: pin.publisher, track: pin.track), isPaused: pin.isPaused,
        ceiling: LayerCeiling(spatial: pin.highestLayer, temporal: pin.highestTemporal))
    }
  }

  func mute(_ peer: PeerID, _ track: TrackID, _ isMuted: Bool) -> Routed? {
    placement.worker(of: peer).map { (.mute(peer, track, isMuted), $0) }
  }

  mutating func remove(_ peer: PeerID) -> Routed? {
    peers[peer] = nil
    waiting = waiting.filter { $0.value.peer != peer }
    return placement.remove(peer).map { (.remove(peer), $0.worker) }
  }

  /// A worker has confirmed a configuration.
  mutating func configured(request: UInt64) -> (number: UInt64, result: RoomMediaResult)? {
    waiting.removeValue(forKey: request).map { ($0.number, $0.result) }
  }
}
