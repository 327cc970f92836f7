import Calls
import Contract
import MediaModel
import SDP

/// The peers of all calls as the control plane knows them: the negotiation and the worker of each, and the answers that wait for that worker.
///
/// ## Overview
/// `negotiate` turns an offer into the worker's configuration and keeps the answer. `configured` releases the answer, because early media then finds its
/// peer. `remove` forgets a peer.
///
/// ## Invariants
/// - Each answer that waits comes out once, from `configured` or as an error from `remove`.
/// - No step looks at other peers.
struct MediaPeers {
  private struct NegotiatedPeer {
    var negotiation: Negotiation
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
  ///   - workers: how many there are, at least 1.
  ///   - fingerprint: of the server's certificate, for the answers.
  ///   - hasTCP: whether the workers take TCP connections too.
  init(workers: Int, fingerprint: CertificateFingerprint, hasTCP: Bool) {
    placement = Placement(workers: workers)
    self.fingerprint = fingerprint
    self.hasTCP = hasTCP
  }

  /// Answers that wait for a worker.
  var waiting: Int { peers.values.reduce(0) { $0 + $1.answers.count } }

  /// The number of the worker that has the peer; nil for a peer that never made an offer, or is gone.
  func worker(of peer: PeerID) -> Int? { placement.worker(of: peer) }

  /// Takes an offer, and keeps its answer until `configured`.
  /// - Parameters:
  ///   - id: the header `request-id` of the session's request.
  ///   - candidates: the addresses of a worker.
  ///   - generator: a cryptographic one; ICE passwords come from it.
  /// - Returns: the configuration, and the number of the worker that gets it.
  mutating func negotiate(
    _ negotiate: Negotiate, for session: SessionID, id: String, candidates: (_ worker: Int) -> [SocketAddress],
    using generator: inout some RandomNumberGenerator
  ) -> (command: MediaCommand, worker: Int) {
    var peer = peers.removeValue(forKey: negotiate.peer) ?? NegotiatedPeer(negotiation: Negotiation(using: &generator))
    let configuration = peer.negotiation.apply(
      negotiate.offer, tracks: negotiate.tracks, codecs: negotiate.codecs, peer: negotiate.peer, call: negotiate.call,
      participant: negotiate.participant, isOnKeyList: negotiate.isOnKeyList, using: &generator)
    let worker = placement.place(negotiate.peer, of: negotiate.call)
    lastRequest += 1
    peer.answers.append(
      Answer(
        request: lastRequest, session: session, id: id,
        sdp: peer.negotiation.answer(fingerprint: fingerprint, candidates: candidates(worker), tcp: hasTCP),
        tracks: negotiate.tracks.map { MediaAnswer.Track(mid: $0.mid, track: $0.track) }))
    peers[negotiate.peer] = peer
    return (.configure(configuration, request: lastRequest), worker)
  }

  /// The worker has confirmed a configuration.
  /// - Returns: the reply to the offer; nil when none waits, as for a peer that is gone.
  mutating func configured(_ peer: PeerID, request: UInt64, slots: SlotMap) -> Delivery? {
    guard let index = peers[peer]?.answers.firstIndex(where: { $0.request == request }),
      let answer = peers[peer]?.answers.remove(at: index)
    else { return nil }
    let body = MediaAnswer(
      sdp: answer.sdp, tracks: answer.tracks, receive: slots.slots.map(Slot.init), rev: slots.revision,
      unsupported: slots.unsupported)
    return .reply(answer.session, id: answer.id, .ok(body))
  }

  /// Forgets a peer.
  /// - Returns: the replies to its offers that no worker will confirm, in their order.
  mutating func remove(_ peer: PeerID) -> [Delivery] {
    placement.remove(peer)
    let answers = peers.removeValue(forKey: peer)?.answers ?? []
    return answers.map { answer in
      let error = RequestError(.callNotJoined, "this participant left the call; rejoin it first")
      return .reply(answer.session, id: answer.id, .failed(error))
    }
  }
}
