import MediaModel
import SDP
import Testing

struct NegotiationTests {
  @Test func configuresTracksAndSlots() throws {
    var peer = Negotiated()
    let configuration = peer.apply(try MediaOffer(parsing: Vectors.small))
    #expect(configuration.tracks.map(\.mid) == ["mic", "cam"])
    #expect(
      configuration.tracks.map(\.track) == [TrackID(participant: 1, index: 1), TrackID(participant: 1, index: 2)])
    #expect(configuration.tracks[1].formats.map(\.rtxPayloadType) == [97])
    #expect(configuration.slots.map(\.mid) == ["slot"])
    #expect(configuration.slots[0].kind == .video)
    #expect(configuration.remote.fragment == "abcd")
    #expect(configuration.local.fragment.utf8.count == 8)
    #expect(configuration.local.password.utf8.count == 24)
  }

  @Test func sourcesOfTheOfferReachTheTrack() throws {
    var peer = Negotiated()
    let configuration = peer.apply(try Vectors.offer("firefox153-audiovideo"))
    let video = try #require(configuration.tracks.first { $0.source == .camera })
    #expect(video.ssrcs.count == 1)
    #expect(video.rtx.keys.first == video.ssrcs.first)
  }

  @Test func slotKeepsItsSourcesForLife() throws {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let first = peer.apply(offer).slots
    var paused = offer
    paused.sections[2].direction = .inactive
    #expect(peer.apply(paused).slots == [])
    #expect(peer.apply(offer).slots == first)
    #expect(first[0].ssrc != first[0].rtxSSRC)
  }

  @Test func slotThatIsOverGetsNewSources() throws {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let first = peer.apply(offer).slots
    var stopped = offer
    stopped.sections[2].isRejected = true
    peer.apply(stopped)
    #expect(peer.apply(offer).slots[0].ssrc != first[0].ssrc)
  }

  @Test func slotsNeverTakeThePeersOwnSources() throws {
    // The same seed makes the same slot SSRCs, which the second offer now claims for the peer.
    var first = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let slot = first.apply(offer).slots[0]
    var claiming = offer
    claiming.sections[1].ssrcs = [slot.ssrc]
    claiming.sections[1].rtx = [slot.ssrc: slot.rtxSSRC]
    var second = Negotiated()
    let other = second.apply(claiming).slots[0]
    #expect(Set([slot.ssrc, slot.rtxSSRC]).isDisjoint(with: [other.ssrc, other.rtxSSRC]))
  }

  @Test func localCredentialsChangeWithThePeersAlone() throws {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let first = peer.apply(offer).local
    #expect(peer.apply(offer).local == first)
    let restart = try MediaOffer(parsing: Vectors.small.replacing("ufrag:abcd", with: "ufrag:wxyz"))
    let second = peer.apply(restart).local
    #expect(second.fragment != first.fragment)
    #expect(second.password != first.password)
    #expect(peer.apply(restart).local == second)
  }

  @Test func onlyNamedSectionsSend() throws {
    var peer = Negotiated()
    let microphone = NamedTrack(
      mid: "mic", track: TrackID(participant: 1, index: 1), source: .microphone, muted: true)
    let stranger = NamedTrack(
      mid: "slot", track: TrackID(participant: 1, index: 2), source: .camera, muted: false)
    let configuration = peer.apply(try MediaOffer(parsing: Vectors.small), tracks: [microphone, stranger])
    #expect(configuration.tracks.map(\.mid) == ["mic"])
    #expect(configuration.tracks[0].muted)
    #expect(configuration.slots.map(\.mid) == ["slot"])
  }

  @Test func codecsFollowThePolicysOrder() throws {
    var peer = Negotiated()
    let configuration = peer.apply(try Vectors.offer("chrome156-video"), codecs: ["AV1", "vp8"])
    #expect(configuration.tracks[0].formats.map(\.codec) == ["AV1", "VP8"])
  }

  @Test func sectionWithoutACommonCodecIsNeitherTrackNorSlot() throws {
    var peer = Negotiated()
    let configuration = peer.apply(try MediaOffer(parsing: Vectors.small), codecs: ["H264"])
    #expect(configuration.tracks.map(\.mid) == ["mic"])
    #expect(configuration.slots == [])
  }

  @Test func extensionsAreThoseInUse() throws {
    var peer = Negotiated()
    let extensions = peer.apply(try Vectors.offer("chrome156-audiovideo")).extensions
    #expect(extensions.mid == 4)
    #expect(extensions.audioLevel == 1)
    #expect(extensions.videoOrientation == 13)
    #expect(extensions.playoutDelay == 5)
    #expect(extensions.rid == 0)
  }

  @Test func rtxNeedsNACK() throws {
    let text = Vectors.small.replacing("a=rtcp-fb:96 nack\n", with: "")
    var peer = Negotiated()
    #expect(peer.apply(try MediaOffer(parsing: text)).tracks[1].formats.map(\.rtxPayloadType) == [nil])
  }

  /// A sender uses the first format of the answer for all receivers, and the profile that most decode is Constrained Baseline.
  @Test func theFormatThatMostReceiversDecodeIsAnsweredFirst() throws {
    let formats = [
      (100, "profile-level-id=640c34;packetization-mode=1"), (101, "profile-level-id=42e01f;packetization-mode=0"),
      (102, "profile-level-id=42e034;packetization-mode=1"), (103, "profile-level-id=4d001f;packetization-mode=1"),
    ]
    let lines = formats.map { "a=rtpmap:\($0.0) H264/90000\na=fmtp:\($0.0) \($0.1)\n" }.joined()
    let sdp = Vectors.small.replacing(
      "m=video 0 UDP/TLS/RTP/SAVPF 96 97", with: "m=video 0 UDP/TLS/RTP/SAVPF 100 101 102 103"
    )
    .replacing("a=mid:cam\n", with: "a=mid:cam\n" + lines)
    var peer = Negotiated()
    let configuration = peer.apply(try MediaOffer(parsing: sdp), codecs: ["H264"])
    #expect(configuration.tracks[1].formats.map(\.payloadType) == [102, 101, 100, 103])
  }

  @Test func firIsAnsweredToASenderWithoutPLI() throws {
    var peer = Negotiated()
    let fir = Vectors.small.replacing("a=rtcp-fb:96 nack\n", with: "a=rtcp-fb:96 nack\na=rtcp-fb:96 ccm fir\n")
    #expect(peer.apply(try MediaOffer(parsing: fir)).tracks[1].formats[0].fir)
    #expect(peer.answer().contains("a=rtcp-fb:96 ccm fir\r\n"))
    peer.apply(try MediaOffer(parsing: fir.replacing("ccm fir\n", with: "ccm fir\na=rtcp-fb:96 nack pli\n")))
    #expect(!peer.answer().contains("ccm fir"))
  }
}
