import Calls
import Contract
import MediaModel
import SDP

/// The peers of all calls as the control plane knows them: the negotiation and the worker of each, and the answers that wait for that worker.
///
/// ## Overview
/// `negotiate` turns an offer into the worker's configuration and keeps the answer. `configured` releases the answer, because early media then finds its
/// peer. `remove` forgets a peer. The other workers of a call are told about each of its peers that sends tracks.
///
/// ## Invariants
/// - Each waiting answer is returned once, from `configured` or as an error from `remove`.
/// - No step visits other peers, except when a worker joins a call or no longer has peers of it: then it is told about the others, or forgets them.
struct MediaPeers {
  /// A command with the worker that gets it.
  typealias Routed = (command: MediaCommand, worker: WorkerAddress)

  private struct NegotiatedPeer {
    var negotiation: Negotiation
    /// As the worker has it, including later mutes and ends of tracks.
    var configuration: PeerConfiguration?
    /// The worker has confirmed a configuration, so it knows the peer when other workers request its tracks.
    var isConfigured = false
    var isHeld = false
    /// In the order of their requests.
    var answers: [Answer] = []
  }

  private struct Answer {
    var request: UInt64
    var session: SessionID
    var id: String
    var sdp: String
    var tracks: [MediaAnswer.Track]
  }

  private let fingerprint: CertificateFingerprint
  private let hasTCP: Bool
  private var peers: [PeerID: NegotiatedPeer] = [:]
  private var placement: Placement
  private var lastRequest: UInt64 = 0

  /// - Parameters:
  ///   - workers: at least one.
  ///   - callShare: how many peers of one call a worker takes before another worker joins in.
  ///   - fingerprint: of the server's certificate, for the answers.
  ///   - hasTCP: whether the workers also accept TCP connections.
  init(workers: [WorkerAddress], callShare: Int, fingerprint: CertificateFingerprint, hasTCP: Bool) {
    placement = Placement(workers: workers, callShare: callShare)
    self.fingerprint = fingerprint
    self.hasTCP = hasTCP
  }

  /// Answers that wait for a worker.
  var waiting: Int { peers.values.reduce(0) { $0 + $1.answers.count } }

  /// The worker that has the peer; nil for a peer that never made an offer, or is gone.
  func worker(of peer: PeerID) -> WorkerAddress? { placement.worker(of: peer) }

  /// A peer as its worker has it; nil for one that never made an offer, or is gone.
  func description(of id: PeerID) -> (configuration: PeerConfiguration, worker: WorkerAddress, isHeld: Bool)? {
    guard let peer = peers[id], let configuration = peer.configuration, let worker = placement.worker(of: id) else {
      return nil
    }
    return (configuration, worker, peer.isHeld)
  }

  /// Takes an offer, and keeps its answer until `configured`.
  /// - Parameters:
  ///   - id: the header `request-id` of the session's request.
  ///   - candidates: the addresses of a worker.
  ///   - generator: must be cryptographic, because ICE passwords come from it.
  /// - Returns: the configuration for the peer's worker, and what the call's workers need when this one has just joined it.
  mutating func negotiate(
    _ negotiate: Negotiate, for session: SessionID, id: String, candidates: (WorkerAddress) -> [SocketAddress],
    using generator: inout some RandomNumberGenerator
  ) -> [Routed] {
    var peer = peers.removeValue(forKey: negotiate.peer) ?? NegotiatedPeer(negotiation: Negotiation(using: &generator))
    var configuration = peer.negotiation.apply(
      negotiate.offer, tracks: negotiate.tracks, codecs: negotiate.codecs, peer: negotiate.peer, call: negotiate.call,
      participant: negotiate.participant, isOnKeyList: negotiate.isOnKeyList, using: &generator)
    configuration.isGuest = negotiate.isGuest
    configuration.member = negotiate.member
    let before = placement.workers(of: negotiate.call)
    let worker = placement.place(negotiate.peer, of: negotiate.call)
    lastRequest += 1
    peer.configuration = configuration
    peer.answers.append(
      Answer(
        request: lastRequest, session: session, id: id,
        sdp: peer.negotiation.answer(fingerprint: fingerprint, candidates: candidates(worker), tcp: hasTCP),
        tracks: negotiate.tracks.map { MediaAnswer.Track(mid: $0.mid, track: $0.track) }))
    peers[negotiate.peer] = peer
    let configure: Routed = (.configure(configuration, request: lastRequest), worker)
    guard !before.isEmpty, !before.contains(worker) else { return [configure] }
    // The worker joins the call. It is told about the others first, so that the peer's first slot map has their tracks.
    let others = placement.peers(of: negotiate.call, notOn: worker).flatMap { mirror($0, on: worker) }
    return others + [configure] + share(negotiate.call)
  }

  /// The state of a peer for a worker that does not have it. That worker ignores a peer without tracks, unless it knew some
  /// of its tracks.
  private func mirror(_ id: PeerID, on worker: WorkerAddress) -> [Routed] {
    guard let home = placement.worker(of: id), home != worker, let peer = peers[id], peer.isConfigured,
      let configuration = peer.configuration
    else { return [] }
    return [(.mirror(configuration, worker: home), worker)] + (peer.isHeld ? [(.hold(id, true), worker)] : [])
  }

  private func share(_ call: CallID) -> [Routed] {
    let workers = placement.workers(of: call)
    return workers.map { (.share(call, workers: workers), $0) }
  }

  /// The workers to which a command about a peer is sent: the peer's own, and the others of its call. None for a peer that never made an offer, or is gone.
  mutating func route(_ command: MediaCommand) -> [Routed] {
    guard let id = command.peer, let worker = placement.worker(of: id), let call = peers[id]?.configuration?.call else {
      return []
    }
    note(command, of: id)
    switch command {
    case .receive, .pin: return [(command, worker)]
    default: return placement.workers(of: call).map { (command, $0) }
    }
  }

  private mutating func note(_ command: MediaCommand, of peer: PeerID) {
    switch command {
    case .mute(_, let track, let isMuted):
      guard let index = peers[peer]?.configuration?.tracks.firstIndex(where: { $0.track == track }) else { return }
      peers[peer]?.configuration?.tracks[index].muted = isMuted
    case .removeTrack(_, let track): peers[peer]?.configuration?.tracks.removeAll { $0.track == track }
    case .hold(_, let isHeld): peers[peer]?.isHeld = isHeld
    case .configure, .remove, .receive, .pin, .mirror, .share: break
    }
  }

  /// The worker has confirmed a configuration.
  /// - Returns: the reply to the offer, and what the call's other workers need; nil if no reply waits, as for a peer that is gone.
  mutating func configured(
    _ peer: PeerID, request: UInt64, slots: SlotMap
  ) -> (reply: Delivery, commands: [Routed])? {
    guard let index = peers[peer]?.answers.firstIndex(where: { $0.request == request }),
      let answer = peers[peer]?.answers.remove(at: index), let call = peers[peer]?.configuration?.call
    else { return nil }
    peers[peer]?.isConfigured = true
    let body = MediaAnswer(
      sdp: answer.sdp, tracks: answer.tracks, receive: slots.slots.map(Slot.init), rev: slots.revision,
      unsupported: slots.unsupported)
    let commands = placement.workers(of: call).flatMap { mirror(peer, on: $0) }
    return (.reply(answer.session, id: answer.id, .ok(.media(body))), commands)
  }

  /// Forgets a peer.
  /// - Returns: the replies to its offers that no worker will confirm, in order; and what the workers need if its own worker no longer has a peer of the call.
  mutating func remove(_ peer: PeerID) -> (replies: [Delivery], commands: [Routed]) {
    var commands: [Routed] = []
    if let (call, worker) = placement.remove(peer), !placement.workers(of: call).contains(worker) {
      commands = placement.peers(of: call, notOn: worker).map { (.remove($0), worker) } + share(call)
    }
    let answers = peers.removeValue(forKey: peer)?.answers ?? []
    let replies = answers.map { answer in
      let error = RequestError(.callNotJoined, "this participant left the call; rejoin it first")
      return Delivery.reply(answer.session, id: answer.id, .failed(error))
    }
    return (replies, commands)
  }
}
