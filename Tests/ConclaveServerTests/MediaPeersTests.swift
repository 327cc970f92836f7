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
    workers: 2, fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(repeating: 7, count: 32)),
    hasTCP: true)
  private var generator = SystemRandomNumberGenerator()

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
    let (command, worker) = peers.negotiate(
      Negotiate(
        peer: PeerID(rawValue: peer), call: call, participant: ParticipantNumber(peer), isOnKeyList: true,
        offer: offer, tracks: [NamedTrack(mid: "0", track: track, source: .microphone, muted: false)], codecs: ["VP8"]),
      for: SessionID(rawValue: 10 + peer), id: id,
      candidates: { [SocketAddress(ipv4: 0xC000_0201, port: 5_000 + UInt16($0))] }, using: &generator)
    guard case .configure(let configuration, let request) = command else {
      throw Unexpected()
    }
    #expect(configuration.peer == PeerID(rawValue: peer) && configuration.tracks.map(\.track) == [track])
    return (request, worker)
  }

  private struct Unexpected: Error {}

  /// A reply as `session id status`.
  private func text(_ delivery: Delivery?) -> String? {
    guard case .reply(let session, let id, let reply)? = delivery else { return nil }
    switch reply {
    case .ok(let body):
      guard let answer = body as? MediaAnswer else { return "\(session.rawValue) \(id) strange" }
      return "\(session.rawValue) \(id) \(answer.receive.map(\.mid))"
    case .failed(let error): return "\(session.rawValue) \(id) \(error.code.rawValue)"
    }
  }

  @Test mutating func anOfferIsAnsweredWhenTheWorkerHasConfirmed() throws {
    let (request, worker) = try offer(1, id: "a")
    #expect(peers.worker(of: PeerID(rawValue: 1)) == worker && peers.waiting == 1)
    let slot = SlotAssignment(mid: "9", track: TrackID(participant: 2, index: 0), source: .camera)
    let slots = SlotMap(revision: 3, slots: [slot], unsupported: [])
    #expect(text(peers.configured(PeerID(rawValue: 1), request: request + 1, slots: slots)) == nil, "another request")
    #expect(text(peers.configured(PeerID(rawValue: 2), request: request, slots: slots)) == nil, "another peer")
    let reply = peers.configured(PeerID(rawValue: 1), request: request, slots: slots)
    #expect(text(reply) == #"11 a ["9"]"#)
    guard case .reply(_, _, .ok(let body))? = reply, let answer = body as? MediaAnswer else { throw Unexpected() }
    #expect(answer.rev == 3 && answer.tracks.map(\.mid) == ["0"])
    #expect(answer.sdp.contains("192.0.2.1 \(5_000 + worker) "), "the candidate is the worker's")
    #expect(peers.configured(PeerID(rawValue: 1), request: request, slots: slots) == nil, "once")
    #expect(peers.waiting == 0)
  }

  @Test mutating func aPeerThatLeavesFailsItsOwnOffersInOrder() throws {
    _ = try offer(1, id: "a")
    let (other, _) = try offer(2, id: "b")
    let (late, _) = try offer(1, id: "c")
    #expect(peers.remove(PeerID(rawValue: 1)).map(text) == ["11 a call.not-joined", "11 c call.not-joined"])
    #expect(peers.worker(of: PeerID(rawValue: 1)) == nil && peers.waiting == 1)
    let none = SlotMap(revision: 1, slots: [], unsupported: [])
    #expect(peers.configured(PeerID(rawValue: 1), request: late, slots: none) == nil, "the confirmation comes too late")
    #expect(text(peers.configured(PeerID(rawValue: 2), request: other, slots: none)) == "12 b []")
    #expect(peers.remove(PeerID(rawValue: 1)).isEmpty)
  }

  @Test mutating func aPeersNegotiationGoesOnAndItsNextOneIsNew() throws {
    let none = SlotMap(revision: 1, slots: [], unsupported: [])
    func fragment(_ id: String, offered: String) throws -> Substring? {
      let (request, _) = try offer(1, id: id, fragment: offered)
      guard case .reply(_, _, .ok(let body))? = peers.configured(PeerID(rawValue: 1), request: request, slots: none),
        let answer = body as? MediaAnswer
      else { throw Unexpected() }
      return answer.sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=ice-ufrag:") }
    }
    let first = try #require(try fragment("a", offered: "abcd"))
    #expect(try fragment("b", offered: "abcd") == first, "no ICE restart was asked for")
    #expect(try fragment("c", offered: "wxyz") != first, "an ICE restart")
    _ = peers.remove(PeerID(rawValue: 1))
    #expect(try fragment("d", offered: "abcd") != first, "a peer that comes again is a new one")
  }

  @Test mutating func aCallStaysOnOneWorker() throws {
    let one = try offer(1, id: "a").worker
    #expect(try offer(2, id: "b", in: CallID(unchecked: "c2")).worker != one)
    #expect(try offer(3, id: "c").worker == one)
  }
}
