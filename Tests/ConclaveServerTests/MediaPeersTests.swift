import Calls
import Contract
import MediaModel
import SDP
import Testing

@testable import ConclaveServer

private let call = CallID(unchecked: "c1")

/// Offers in, configurations and replies out, without a worker.
struct MediaPeersTests {
  private var peers = MediaPeers(
    workers: addresses(2), callShare: 2,
    fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(repeating: 7, count: 32)),
    hasTCP: true)
  private var generator = SystemRandomNumberGenerator()

  /// The other commands of the last offer.
  private var toOthers: [String] = []

  /// A peer offers a microphone. Returns the number that the worker gets.
  private mutating func offer(_ peer: UInt64, id: String, fragment: String = "abcd", in call: CallID = call) throws
    -> (request: UInt64, worker: Int)
  {
    let offer = MediaOffer(
      credentials: ICECredentials(fragment: fragment, password: "secret"),
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(repeating: 1, count: 32)),
      extensions: HeaderExtensionIDs(), allowsMixedExtensions: false,
      sections: [
        MediaOffer.Section(
          mid: "0", kind: .media(.audio), direction: .sendonly,
          formats: [PayloadFormat(payloadType: 111, codec: "opus", clockRate: 48_000, channels: 2)])
      ])
    let track = TrackID(participant: ParticipantNumber(peer), index: 0)
    let commands = peers.negotiate(
      Negotiate(
        peer: PeerID(rawValue: peer), call: call, participant: ParticipantNumber(peer), isOnKeyList: true,
        isGuest: peer % 2 == 0, member: Int(peer) / 2, offer: offer,
        tracks: [NamedTrack(mid: "0", track: track, source: .microphone, muted: false)], codecs: ["VP8"]),
      for: SessionID(rawValue: 10 + peer), id: id,
      candidates: { [SocketAddress(ipv4: 0xC000_0201, port: 5_000 + UInt16($0.worker))] }, using: &generator)
    let configures = commands.compactMap { command, worker in
      if case .configure(let configuration, let request) = command { (configuration, request, worker) } else { nil }
    }
    try #require(configures.count == 1)
    let (configuration, request, worker) = configures[0]
    toOthers = commands.map(text).filter { !$0.contains("configure") }
    #expect(configuration.peer == PeerID(rawValue: peer) && configuration.tracks.map(\.track) == [track])
    #expect(configuration.isGuest == (peer % 2 == 0))
    return (request, worker.worker)
  }

  private struct Unexpected: Error {}

  /// A command as `worker: content`.
  private func text(_ routed: MediaPeers.Routed) -> String {
    let what =
      switch routed.command {
      case .configure(let configuration, _): "configure \(configuration.peer.rawValue)"
      case .mirror(let configuration, let home):
        "mirror \(configuration.peer.rawValue) of \(home.worker)"
          + (configuration.tracks.contains(where: \.muted) ? " muted" : "")
      case .share(_, let workers): "share \(workers.map(\.worker))"
      case .remove(let peer): "remove \(peer.rawValue)"
      case .hold(let peer, let isHeld): "hold \(peer.rawValue) \(isHeld)"
      case .mute(let peer, _, let isMuted): "mute \(peer.rawValue) \(isMuted)"
      case .removeTrack(let peer, _): "end a track of \(peer.rawValue)"
      case .receive(let peer, _): "receive \(peer.rawValue)"
      case .pin(let peer, let pins): "pin \(peer.rawValue) \(pins.map(\.mid))"
      }
    return "\(routed.worker.worker): \(what)"
  }

  /// A reply as `session id status`.
  private func text(_ delivery: Delivery?) -> String? {
    guard case .reply(let session, let id, let reply)? = delivery else { return nil }
    switch reply {
    case .ok(.media(let answer)): return "\(session.rawValue) \(id) \(answer.receive.map(\.mid))"
    case .ok: return "\(session.rawValue) \(id) strange"
    case .failed(let error): return "\(session.rawValue) \(id) \(error.code.rawValue)"
    }
  }

  @Test mutating func anOfferIsAnsweredWhenTheWorkerHasConfirmed() throws {
    let (request, worker) = try offer(1, id: "a")
    #expect(peers.worker(of: PeerID(rawValue: 1))?.worker == worker && peers.waiting == 1)
    let slot = SlotAssignment(mid: "9", track: TrackID(participant: 2, index: 0), source: .camera)
    let slots = SlotMap(revision: 3, slots: [slot], unsupported: [])
    #expect(
      text(peers.configured(PeerID(rawValue: 1), request: request + 1, slots: slots)?.reply) == nil, "another request")
    #expect(text(peers.configured(PeerID(rawValue: 2), request: request, slots: slots)?.reply) == nil, "another peer")
    let reply = peers.configured(PeerID(rawValue: 1), request: request, slots: slots)?.reply
    #expect(text(reply) == #"11 a ["9"]"#)
    guard case .reply(_, _, .ok(.media(let answer)))? = reply else { throw Unexpected() }
    #expect(answer.rev == 3 && answer.tracks.map(\.mid) == ["0"])
    #expect(answer.sdp.contains("192.0.2.1 \(5_000 + worker) "), "the candidate is the worker's")
    #expect(peers.configured(PeerID(rawValue: 1), request: request, slots: slots) == nil, "once")
    #expect(peers.waiting == 0)
  }

  @Test mutating func aPeerThatLeavesFailsItsOwnOffersInOrder() throws {
    _ = try offer(1, id: "a")
    let (other, _) = try offer(2, id: "b")
    let (late, _) = try offer(1, id: "c")
    #expect(peers.remove(PeerID(rawValue: 1)).replies.map(text) == ["11 a call.not-joined", "11 c call.not-joined"])
    #expect(peers.worker(of: PeerID(rawValue: 1)) == nil && peers.waiting == 1)
    let none = SlotMap(revision: 1, slots: [], unsupported: [])
    #expect(peers.configured(PeerID(rawValue: 1), request: late, slots: none) == nil, "the confirmation comes too late")
    #expect(text(peers.configured(PeerID(rawValue: 2), request: other, slots: none)?.reply) == "12 b []")
    #expect(peers.remove(PeerID(rawValue: 1)).replies.isEmpty)
  }

  @Test mutating func aPeersNegotiationGoesOnAndItsNextOneIsNew() throws {
    let none = SlotMap(revision: 1, slots: [], unsupported: [])
    func fragment(_ id: String, offered: String) throws -> Substring? {
      let (request, _) = try offer(1, id: id, fragment: offered)
      guard
        case .reply(_, _, .ok(.media(let answer)))? = peers.configured(
          PeerID(rawValue: 1), request: request, slots: none)?.reply
      else { throw Unexpected() }
      return answer.sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=ice-ufrag:") }
    }
    let first = try #require(try fragment("a", offered: "abcd"))
    #expect(try fragment("b", offered: "abcd") == first, "no ICE restart was asked for")
    #expect(try fragment("c", offered: "wxyz") != first, "an ICE restart")
    _ = peers.remove(PeerID(rawValue: 1))
    #expect(try fragment("d", offered: "abcd") != first, "a peer that comes again is a new one")
  }

  @Test mutating func aCallStaysOnOneWorkerUntilThatHasItsShare() throws {
    let one = try offer(1, id: "a").worker
    #expect(try offer(2, id: "b", in: CallID(unchecked: "c2")).worker != one)
    #expect(try offer(3, id: "c").worker == one)
    #expect(toOthers == [])
    #expect(try offer(4, id: "d").worker != one)
  }

  /// A worker that joins is told the current state of the peers that the other one has confirmed, and of others when
  /// they are confirmed. Later changes go to both.
  @Test mutating func theWorkersOfACallKnowItsPeers() throws {
    let (one, two, three) = (PeerID(rawValue: 1), PeerID(rawValue: 2), PeerID(rawValue: 3))
    let track = TrackID(participant: 1, index: 0)
    let none = SlotMap(revision: 1, slots: [], unsupported: [])
    for peer in [one, two] {
      let (request, _) = try offer(peer.rawValue, id: "a")
      #expect(peers.configured(peer, request: request, slots: none)?.commands.isEmpty == true)
    }
    #expect(peers.route(.mute(one, track, true)).map(text) == ["0: mute 1 true"])
    #expect(peers.route(.hold(two, true)).map(text) == ["0: hold 2 true"])
    let (request, worker) = try offer(3, id: "b")
    #expect(worker == 1)
    #expect(Set(toOthers[0...2]) == ["1: mirror 1 of 0 muted", "1: mirror 2 of 0", "1: hold 2 true"])
    #expect(toOthers[3...] == ["0: share [0, 1]", "1: share [0, 1]"])
    #expect(peers.configured(three, request: request, slots: none)?.commands.map(text) == ["0: mirror 3 of 1"])
    let (later, _) = try offer(1, id: "c")
    #expect(toOthers == [], "before the worker has confirmed")
    #expect(peers.configured(one, request: later, slots: none)?.commands.map(text) == ["1: mirror 1 of 0"])
    #expect(peers.route(.mute(one, track, false)).map(text) == ["0: mute 1 false", "1: mute 1 false"])
    #expect(peers.route(.removeTrack(three, track)).map(text) == ["0: end a track of 3", "1: end a track of 3"])
    #expect(peers.route(.receive(one, Wishes())).map(text) == ["0: receive 1"])
    #expect(peers.route(.remove(one)).map(text) == ["0: remove 1", "1: remove 1"])
    #expect(peers.remove(one).commands.isEmpty)
    #expect(peers.route(.mute(one, track, true)).isEmpty)
    // The second worker no longer has a peer of the call.
    #expect(peers.route(.remove(three)).map(text) == ["0: remove 3", "1: remove 3"])
    #expect(peers.remove(three).commands.map(text) == ["1: remove 2", "0: share [0]"])
  }
}
