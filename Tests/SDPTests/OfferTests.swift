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
          payloadType: 96, codec: "VP8", clockRate: 90_000, rtxPayloadType: 97, nack: true, pli: true,
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
        PayloadFormat(payloadType: 96, codec: "VP8", clockRate: 90_000, pli: true, transportFeedback: true)
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
}
