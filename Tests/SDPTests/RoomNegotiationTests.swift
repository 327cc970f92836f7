import MediaModel
import SDP
import Testing

/// A publisher's offer in a room is answered like one in a call, but for three things.
struct RoomNegotiationTests {
  private func publish(_ text: String, bitrate: Int? = nil) throws -> (PeerConfiguration, SessionDescription) {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: text)
    let tracks = offer.sections.enumerated().compactMap { index, section -> NamedTrack? in
      guard case .media(let kind) = section.kind, section.direction == .sendonly || section.direction == .sendrecv
      else { return nil }
      return NamedTrack(
        mid: section.mid, track: TrackID(participant: 4, index: UInt8(index + 1)),
        source: kind == .audio ? .microphone : .camera, muted: false)
    }
    let configuration = peer.negotiation.apply(
      offer, tracks: tracks, codecs: ["H264", "VP8"], peer: PeerID(rawValue: 4), call: CallID("room~1")!,
      participant: 4,
      isOnKeyList: false, filling: .pinned, hasSlots: false, using: &peer.generator)
    let answer = peer.negotiation.answer(
      fingerprint: Subscription.fingerprint, candidates: [Negotiated.ipv4], tcp: false, bitrate: bitrate)
    return (configuration, try SessionDescription(parsing: answer))
  }

  @Test func aPublishersFramesAreNotJudgedAndItsTracksAreNotRanked() throws {
    let (configuration, answer) = try publish(Vectors.text("chrome156-audiovideo"))
    #expect(!configuration.isOnKeyList && configuration.filling == .pinned)
    #expect(configuration.tracks.map(\.source) == [.microphone, .camera] && configuration.slots == [])
    #expect(configuration.tracks[1].formats.first?.codec == "H264")
    #expect(answer.sections.allSatisfy { $0.attributes.contains("recvonly") && !$0.attributes.contains("b") })
  }

  /// Old clients ask for streams on the connection on which they publish.
  @Test func aPublisherReceivesNothing() throws {
    let (configuration, answer) = try publish(Vectors.small)
    #expect(configuration.slots == [] && configuration.restingSlots == [])
    #expect(answer.sections.map { $0.attributes.contains("inactive") } == [false, false, true])
    #expect(answer.sections.map(\.port) == [40_000, 40_000, 40_000])
  }

  /// The lines have a fixed order: c=, b=, a= (RFC 8866 section 5).
  @Test func aLimitOfTheRoomIsToldForEachVideo() throws {
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: Vectors.small))
    let answer = peer.negotiation.answer(
      fingerprint: Subscription.fingerprint, candidates: [Negotiated.ipv4], tcp: false, bitrate: 128_000)
    #expect(answer.contains("c=IN IP4 192.0.2.2\r\nb=AS:128\r\nb=TIAS:128000\r\na=mid:cam\r\n"))
    #expect(answer.split(separator: "\r\n").count { $0.hasPrefix("b=") } == 2, "not for audio, nor where it receives")
  }

  /// Its SSRC must continue if it is used again.
  @Test func aSlotOfAnInactiveLineRests() throws {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let first = peer.apply(offer)
    #expect(first.restingSlots == [])
    var paused = offer
    paused.sections[2].direction = .inactive
    #expect(peer.apply(paused).restingSlots == [first.slots[0].ssrc])
    #expect(peer.apply(offer).restingSlots == [])
    paused.sections[2].direction = .sendonly
    #expect(peer.apply(paused).restingSlots == [first.slots[0].ssrc], "it may receive again")
    paused.sections[2].isRejected = true
    #expect(peer.apply(paused).restingSlots == [])
  }
}
