import MediaModel
import SDP
import Testing

/// Parsing of real offers.
struct OfferTests {
  @Test func chromiumWithEverything() throws {
    let offer = try Vectors.offer("chrome156-full")
    #expect(offer.credentials == ICECredentials(fragment: "oOBe", password: "MlApeBCgwo2EFRWe/TVVbD+R"))
    #expect(offer.fingerprint.hash == "sha-256")
    #expect(offer.fingerprint.digest.prefix(3) == [0x9f, 0x69, 0x71])
    #expect(offer.allowsMixedExtensions)
    #expect(offer.bundle == ["0", "1", "2", "3"])
    #expect(offer.sections.map(\.mid) == ["0", "1", "2", "3"])
    #expect(offer.sections.map(\.kind) == [.media(.audio), .media(.video), .media(.video), .application])
    #expect(offer.sections.map(\.isRejected) == [false, false, false, false])
    #expect(offer.sections.map(\.direction) == [.sendonly, .sendonly, .sendonly, .sendrecv])
    #expect(offer.sections[0].ssrcs == [4_196_707_850])
    #expect(offer.sections[1].rids == ["q", "h", "f"])
    #expect(offer.sections[2].ssrcs == [773_106_495])
    #expect(offer.sections[2].rtx == [773_106_495: 917_762_066])
  }

  @Test func chromiumsFormats() throws {
    let sections = try Vectors.offer("chrome156-full").sections
    #expect(
      sections[0].formats.first
        == PayloadFormat(
          payloadType: 111, codec: "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
          transportFeedback: true))
    #expect(sections[0].formats.map(\.codec) == ["opus", "G722", "PCMU", "PCMA"])
    #expect(
      sections[1].formats.first
        == PayloadFormat(
          payloadType: 96, codec: "VP8", clockRate: 90_000, rtxPayloadType: 97, nack: true, pli: true, fir: true,
          transportFeedback: true, remb: true))
    #expect(
      sections[1].formats.map(\.codec) == ["VP8", "H264", "H264", "H264", "H264", "H264", "H264", "AV1", "VP9", "VP9"])
    #expect(sections[1].formats.map(\.rtxPayloadType) == [97, 103, 107, 109, 115, 117, 40, 46, 99, 101])
  }

  @Test func chromiumsExtensions() throws {
    let offer = try Vectors.offer("chrome156-full")
    var all = HeaderExtensionIDs()
    all.audioLevel = 1
    all.mid = 4
    all.videoOrientation = 13
    all.playoutDelay = 5
    all.rid = 10
    all.repairedRID = 11
    all.dependencyDescriptor = 12
    all.transportSequence = 3
    all.sendTime = 2
    #expect(offer.extensions == all)
    #expect(offer.sections[0].extensions.audioLevel == 1)
    #expect(offer.sections[0].extensions.videoOrientation == 0)
    #expect(try Vectors.offer("chrome156-extall").extensions.audioLevel == 18)
  }

  @Test func firefoxWithBundleOnlySections() throws {
    let offer = try Vectors.offer("firefox153-full")
    #expect(offer.credentials.fragment == "bc47408f")
    #expect(offer.fingerprint.digest.prefix(2) == [0xbd, 0x00])
    #expect(offer.allowsMixedExtensions)
    // The second video has port 0 and a=bundle-only.
    #expect(offer.sections.map(\.isRejected) == [false, false, false, false])
    #expect(offer.sections.map(\.direction) == [.sendonly, .sendonly, .sendonly, .sendrecv])
    #expect(offer.sections[1].ssrcs == [676_989_884, 1_686_595_705, 881_992_235])
    #expect(offer.sections[1].rtx[1_686_595_705] == 863_172_685)
    #expect(offer.sections[1].formats.map(\.codec) == ["VP8", "VP9", "AV1"])
    #expect(offer.sections[1].formats.map(\.rtxPayloadType) == [124, 125, 100])
    #expect(!offer.sections[0].takesReducedSizeRTCP)
    #expect(offer.sections[1].takesReducedSizeRTCP)
  }

  @Test func extensionsCountOnlyForTheWayThatMediaFlows() throws {
    // Firefox offers to receive playout-delay, and to send RIDs.
    let sending = try Vectors.offer("firefox153-full").sections[1]
    #expect(sending.extensions.playoutDelay == 0)
    #expect(sending.extensions.rid == 9)
    #expect(sending.oneWayExtensions == [8, 9, 10])
    let receiving = try Vectors.offer("firefox153-recv").sections[1]
    #expect(receiving.extensions.playoutDelay == 6)
    #expect(receiving.oneWayExtensions == [6])
  }

  @Test func aiortc() throws {
    let offer = try Vectors.offer("aiortc116-offer")
    #expect(offer.credentials == ICECredentials(fragment: "souc", password: "HXgsjCYAkKjnxDrDAxxGRw"))
    // The first of sha-256, sha-384 and sha-512.
    #expect(offer.fingerprint.hash == "sha-256")
    #expect(!offer.allowsMixedExtensions)
    #expect(offer.sections.map(\.direction) == [.sendrecv, .sendrecv])
    #expect(offer.sections[1].rtx == [351_838_136: 3_814_156_749])
    #expect(!offer.sections[1].takesReducedSizeRTCP)
  }

  @Test func gstreamer() throws {
    let offer = try Vectors.offer("gst122-offer")
    #expect(offer.credentials.fragment == "EJ17rUbw1YVYB0uv9AIJc6enND5wdL1g")
    #expect(offer.sections.map(\.mid) == ["video0", "audio1"])
    #expect(offer.sections.map(\.isRejected) == [false, false])
    #expect(
      offer.sections[0].formats == [
        PayloadFormat(payloadType: 96, codec: "VP8", clockRate: 90_000, pli: true, fir: true, transportFeedback: true)
      ])
    #expect(offer.sections[1].formats.first?.codec == "OPUS")
  }

  @Test(arguments: Vectors.offers)
  func everyOfferIsTaken(_ name: String) throws {
    let offer = try Vectors.offer(name)
    for section in offer.sections where section.kind != .application {
      #expect(!section.formats.isEmpty)
      #expect(section.extensions.mid != 0 || name.hasPrefix("gst"))
    }
    #expect(offer.fingerprint.digest.count == 32)
  }

  @Test func lineEndsWithoutCarriageReturnAreTaken() throws {
    let text = try Vectors.text("chrome156-full")
    #expect(try MediaOffer(parsing: text.replacing("\r\n", with: "\n")) == MediaOffer(parsing: text))
  }

  @Test func portZeroWithoutBundleOnlyIsRejected() throws {
    let offer = try MediaOffer(parsing: Vectors.small.replacing("a=bundle-only\na=mid:slot\n", with: "a=mid:slot\n"))
    #expect(offer.sections.map(\.isRejected) == [false, false, true])
    #expect(offer.bundle == ["mic", "cam"])
  }

  @Test func transportAboveTheFirstSectionIsTaken() throws {
    let text = Vectors.small.replacing(Vectors.transport, with: "").replacing(
      "a=extmap-allow-mixed\n", with: Vectors.transport)
    let offer = try MediaOffer(parsing: text)
    #expect(offer.credentials.fragment == "abcd")
    #expect(!offer.allowsMixedExtensions)
  }

  @Test func transportIsThatOfTheGroupsFirstSection() throws {
    let other = Vectors.transport.replacing("abcd", with: "efgh")
    let text = Vectors.small.replacing("BUNDLE mic cam slot", with: "BUNDLE cam slot mic").replacing(
      "a=mid:cam\n", with: "a=mid:cam\n" + other)
    let offer = try MediaOffer(parsing: text)
    #expect(offer.credentials.fragment == "efgh")
    #expect(offer.bundle == ["cam", "slot", "mic"])
  }

  @Test func payloadTypesThatLookLikeRTCPAreLeftOut() throws {
    let text = Vectors.small.replacing("SAVPF 96 97", with: "SAVPF 72 96 97 96").replacing(
      "a=rtpmap:96", with: "a=rtpmap:72 VP9/90000\na=rtpmap:96")
    #expect(try MediaOffer(parsing: text).sections[1].formats.map(\.payloadType) == [96])
  }

  /// RFC 9429 section 5.1.2. The answer repeats the name.
  @Test(arguments: [
    "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP",
    "RTP/AVPF",
    "RTP/AVP",
  ])
  func everyProtocolOfJSEPIsAccepted(name: String) throws {
    let sdp = Vectors.small.replacing("m=audio 9 UDP/TLS/RTP/SAVPF", with: "m=audio 9 \(name)")
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: sdp))
    let answer = peer.answer()
    #expect(answer.contains(" \(name) 111\r\n"))
    #expect(answer.contains(" UDP/TLS/RTP/SAVPF 96"))
  }

  /// Before RFC 8841 the format was a port.
  @Test(arguments: [
    ("UDP/DTLS/SCTP webrtc-datachannel", "UDP/DTLS/SCTP webrtc-datachannel"), ("DTLS/SCTP 5000", "DTLS/SCTP 5000"),
    ("TCP/DTLS/SCTP webrtc-datachannel", "TCP/DTLS/SCTP webrtc-datachannel"),
  ])
  func dataIsRejectedUnderItsOwnProtocol(offered: String, answered: String) throws {
    let sdp =
      Vectors.small.replacing("mic cam slot\n", with: "mic cam slot data\n")
      + "m=application 9 \(offered)\na=mid:data\n"
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: sdp))
    #expect(peer.answer().contains("m=application 0 \(answered)\r\n"))
  }

  @Test func aMidMayBeAUUID() throws {
    let mid = "0b0e6a3c-1f5c-4f55-9a5e-1a2b3c4d5e6f"
    let offer = try MediaOffer(
      parsing: Vectors.small.replacing("a=mid:cam", with: "a=mid:\(mid)").replacing("mic cam", with: "mic \(mid)"))
    #expect(offer.sections[1].mid == mid)
  }

  /// RFC 8285 section 5: an answer may leave an extension out, and then it is not used.
  @Test func anExtensionUnderAnotherIDInALaterSendingSectionIsLeftOut() throws {
    let mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
    let level = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    let orientation = "urn:3gpp:video-orientation"
    let sdp = Vectors.small.replacing("a=mid:mic\n", with: "a=mid:mic\na=extmap:1 \(mid)\na=extmap:2 \(level)\n")
      .replacing("a=mid:cam\n", with: "a=mid:cam\na=extmap:3 \(mid)\na=extmap:2 \(orientation)\n")
    let offer = try MediaOffer(parsing: sdp)
    #expect(offer.extensions.mid == 1)
    #expect(offer.extensions.audioLevel == 2)
    #expect(offer.extensions.videoOrientation == 0)
    #expect(offer.sections[1].extensions == HeaderExtensionIDs())
    // The server writes one id for all of a peer's slots.
    let receiving = sdp.replacing("a=mid:slot\n", with: "a=mid:slot\na=extmap:4 \(mid)\n")
    #expect(throws: SDPError.self) { try MediaOffer(parsing: receiving) }
  }

  /// RFC 8843 section 9.2: without a=ssrc and MID the payload type identifies the m-line.
  @Test func streamsThatCannotBeToldApartAreRefused() throws {
    let two = Vectors.small.replacing("a=mid:slot\na=recvonly", with: "a=mid:slot\na=sendonly")
    let error = #expect(throws: SDPError.self) { try MediaOffer(parsing: two) }
    #expect(error?.line == 16)
    #expect(error?.reason.contains("sdes:mid") == true)
    let named = two.replacing("a=mid:cam\n", with: "a=mid:cam\na=ssrc:1 cname:x\n")
    #expect(throws: SDPError.self) { try MediaOffer(parsing: named) }
    #expect(throws: Never.self) {
      try MediaOffer(parsing: named.replacing("a=mid:slot\n", with: "a=mid:slot\na=ssrc:2 cname:x\n"))
    }
    #expect(throws: Never.self) {
      try MediaOffer(
        parsing: two.replacing("a=mid:slot\na=sendonly\na=rtpmap:96", with: "a=mid:slot\na=sendonly\na=rtpmap:98")
          .replacing("m=video 0 UDP/TLS/RTP/SAVPF 96\n", with: "m=video 0 UDP/TLS/RTP/SAVPF 98\n"))
    }
  }
}
