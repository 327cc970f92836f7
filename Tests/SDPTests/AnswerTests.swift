import MediaModel
import SDP
import Testing

struct AnswerTests {
  @Test func smallOffersAnswerToTheLetter() throws {
    var peer = Negotiated()
    let configuration = peer.apply(try MediaOffer(parsing: Vectors.small))
    let slot = configuration.slots[0]
    let transport = """
      a=ice-ufrag:\(configuration.local.fragment)
      a=ice-pwd:\(configuration.local.password)
      a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))
      a=setup:passive
      a=rtcp-mux
      """
    let candidates = """
      a=candidate:1 1 udp 2130706431 192.0.2.2 40000 typ host
      a=candidate:2 1 udp 2130706175 fd00:0:0:0:0:0:0:2 40000 typ host
      a=candidate:3 1 tcp 1520435199 192.0.2.2 40000 typ host tcptype passive
      a=candidate:4 1 tcp 1520434943 fd00:0:0:0:0:0:0:2 40000 typ host tcptype passive
      a=end-of-candidates
      """
    let lines = peer.answer().split(separator: "\r\n").filter { !$0.hasPrefix("o=") }
    #expect(
      lines.joined(separator: "\n") == """
        v=0
        s=-
        t=0 0
        a=ice-lite
        a=group:BUNDLE mic cam slot
        a=extmap-allow-mixed
        m=audio 40000 UDP/TLS/RTP/SAVPF 111
        c=IN IP4 192.0.2.2
        a=mid:mic
        \(transport)
        a=recvonly
        a=rtpmap:111 opus/48000/2
        \(candidates)
        m=video 40000 UDP/TLS/RTP/SAVPF 96 97
        c=IN IP4 192.0.2.2
        a=mid:cam
        \(transport)
        a=recvonly
        a=rtpmap:96 VP8/90000
        a=rtcp-fb:96 nack
        a=rtpmap:97 rtx/90000
        a=fmtp:97 apt=96
        \(candidates)
        m=video 40000 UDP/TLS/RTP/SAVPF 96
        c=IN IP4 192.0.2.2
        a=mid:slot
        \(transport)
        a=sendonly
        a=rtpmap:96 VP8/90000
        a=msid:slot-slot slot-slot
        a=ssrc:\(slot.ssrc) cname:conclave
        \(candidates)
        """)
  }

  @Test func withoutTCPTheCandidatesAreThoseOfUDP() throws {
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: Vectors.small))
    let answer = try SessionDescription(parsing: peer.answer(tcp: false))
    let protocols = answer.sections.flatMap { $0.attributes.all("candidate") }.map { $0.value.split(separator: " ")[2] }
    #expect(Set(protocols) == ["udp"])
  }

  /// RFC 9429 section 5.3.1: one m-line for each, in order, with its mid; nothing that was not offered.
  @Test(arguments: Vectors.offers)
  func mirrorsTheOffer(_ name: String) throws {
    let offered = try SessionDescription(parsing: Vectors.text(name))
    var peer = Negotiated()
    peer.apply(try Vectors.offer(name))
    let answered = try SessionDescription(parsing: peer.answer())
    #expect(answered.sections.map(\.media) == offered.sections.map(\.media))
    for (answer, offer) in zip(answered.sections, offered.sections) {
      #expect(answer.attributes.first("mid")?.value == offer.attributes.first("mid")?.value)
      #expect((answer.port == 0) == (offer.media == "application"))
      // aiortc also needs these in rejected m-lines.
      #expect(answer.attributes.first("setup")?.value == "passive")
      #expect(answer.attributes.contains("ice-ufrag") && answer.attributes.contains("ice-pwd"))
      guard answer.port != 0 else { continue }
      #expect(answer.protocolName == offer.protocolName)
      #expect(Set(answer.formats).isSubset(of: offer.formats))
      for name in ["rtpmap", "rtcp-fb"] {
        let known = Set(offer.attributes.all(name).map(\.value))
        #expect(Set(answer.attributes.all(name).map(\.value)).isSubset(of: known))
      }
      #expect(!answer.attributes.contains("rtcp-rsize") || offer.attributes.contains("rtcp-rsize"))
      let extensions = Set(offer.attributes.all("extmap").map { withoutDirection($0.value) })
      for attribute in answer.attributes.all("extmap") {
        #expect(extensions.contains(withoutDirection(attribute.value)))
      }
    }
    // aiortc reads those of a bundle's last m-line, others those of its first.
    #expect(answered.sections.allSatisfy { $0.attributes.contains("candidate") == ($0.port != 0) })
  }

  @Test func extensionOfferedForOneWayIsAnsweredForItsOtherEnd() throws {
    var peer = Negotiated()
    peer.apply(try Vectors.offer("firefox153-recv"))
    let answer = try SessionDescription(parsing: peer.answer())
    let video = try #require(answer.sections.first { $0.media == "video" })
    let values = video.attributes.all("extmap").map(\.value)
    #expect(values.contains("6/sendonly http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"))
    #expect(values.contains("3 urn:ietf:params:rtp-hdrext:sdes:mid"))
  }

  @Test(arguments: ["chrome156-full", "chrome156-simulcast", "firefox153-full", "firefox153-simulcast"])
  func simulcastIsReceived(_ name: String) throws {
    var peer = Negotiated()
    let configuration = peer.apply(try Vectors.offer(name))
    let sections = try SessionDescription(parsing: peer.answer()).sections
    #expect(sections[1].attributes.all("rid").map(\.value) == ["q recv", "h recv", "f recv"])
    #expect(sections[1].attributes.all("simulcast").map(\.value) == ["recv q;h;f"])
    for suffix in [
      "sdes:mid", "sdes:rtp-stream-id", "repaired-rtp-stream-id", "dependency-descriptor-rtp-header-extension",
    ] {
      #expect(sections[1].attributes.all("extmap").contains { $0.value.hasSuffix(suffix) })
    }
    let perLayer = "x-google-per-layer-pli=1"
    let formats = sections[1].attributes.all("fmtp").map(\.value).filter { !$0.contains("apt=") }
    #expect(!formats.isEmpty && formats.allSatisfy { $0.hasSuffix(perLayer) }, "a key frame of only one layer")
    for other in sections.dropFirst(2) {
      #expect(!other.attributes.contains("simulcast") && !other.attributes.contains("rid"))
      #expect(!other.attributes.all("fmtp").contains { $0.value.contains(perLayer) })
    }
    let track = try #require(configuration.tracks.first { $0.mid == "1" })
    #expect(track.rids == ["q", "h", "f"])
    // The layers' packets are distinguished by RID, even if Firefox announces SSRCs.
    #expect(track.ssrcs == [] && track.rtx == [:])
  }

  /// Then one stream is received, as without simulcast.
  @Test(arguments: [
    ("a=simulcast:send q;h;f", "a=simulcast:recv q;h;f"), ("a=simulcast:send q;h;f", "a=simulcast:send x;y"),
    ("a=simulcast:send q;h;f", "a=simulcast:send"), ("sdes:rtp-stream-id", "sdes:other"),
    ("a=rid:h send\r\na=rid:f send", "a=x"),
  ])
  func simulcastThatCannotBeReceivedIsNotAnswered(_ found: String, _ replacement: String) throws {
    let text = try Vectors.text("chrome156-simulcast")
    try #require(text.contains(found))
    var peer = Negotiated()
    let configuration = peer.apply(try MediaOffer(parsing: text.replacing(found, with: replacement)))
    #expect(configuration.tracks.allSatisfy { $0.rids == [] })
    #expect(!peer.answer().contains("a=simulcast") && !peer.answer().contains("a=rid"))
  }

  @Test(arguments: [
    ("a;b;c;d", ["a", "b", "c"]), ("~a;b,c", ["a", "b"]), ("a;a;b", ["a", "b"]), ("c;nope;a", ["c", "a"]),
  ])
  func atMostThreeDescribedLayersAreTaken(_ layers: String, _ taken: [String]) throws {
    let lines = ["a", "b", "c", "d"].map { "a=rid:\($0) send\r\n" }.joined() + "a=simulcast:send \(layers)"
    let text = try Vectors.text("chrome156-simulcast").replacing("a=simulcast:send q;h;f", with: lines)
    var peer = Negotiated()
    #expect(peer.apply(try MediaOffer(parsing: text)).tracks.last?.rids == taken)
  }

  /// In each m-line that offers both, in either direction.
  @Test(arguments: Vectors.offers)
  func reportsGoBothWays(_ name: String) throws {
    let offered = try SessionDescription(parsing: Vectors.text(name)).sections
    var peer = Negotiated()
    let configuration = peer.apply(try Vectors.offer(name))
    let answered = try SessionDescription(parsing: peer.answer()).sections
    let suffix = "transport-wide-cc-extensions-01"
    var reported = 0
    for (offer, answer) in zip(offered, answered) {
      let hasNumbers = answer.attributes.all("extmap").contains { $0.value.hasSuffix(suffix) }
      let formats = answer.attributes.all("rtcp-fb").filter { $0.value.hasSuffix(" transport-cc") }.map(\.value)
      let isOffered =
        offer.attributes.all("extmap").contains { $0.value.hasSuffix(suffix) }
        && offer.attributes.all("rtcp-fb").contains { $0.value.hasSuffix(" transport-cc") }
      let isUsed = answer.attributes.contains("recvonly") || answer.attributes.contains("sendonly")
      #expect(hasNumbers == (isUsed && isOffered))
      #expect(formats.isEmpty == !hasNumbers)
      if hasNumbers { reported += 1 }
      let slot = configuration.slots.first { answer.attributes.first("mid")?.value == Substring($0.mid) }
      if let slot { #expect((slot.feedback == .packets) == hasNumbers) }
    }
    #expect((configuration.extensions.transportSequence != 0) == (reported > 0))
    let browser = name.hasPrefix("chrome") || name.hasPrefix("firefox")
    #expect((reported > 0) == browser)
  }

  /// aiortc reports no packets.
  @Test func aReceiverThatEstimatesItsRateGetsTheTimeOfSending() throws {
    var peer = Negotiated()
    let configuration = peer.apply(
      try MediaOffer(parsing: Vectors.text("aiortc116-offer").replacing("a=sendrecv", with: "a=recvonly")))
    let answer = peer.answer()
    let slots = configuration.slots.filter { $0.kind == .video }
    #expect(!slots.isEmpty && slots.allSatisfy { $0.feedback == .rate })
    #expect(configuration.extensions.sendTime != 0)
    #expect(answer.contains("goog-remb") && answer.contains("abs-send-time"))
  }

  @Test func chromiumsCameraAndMicrophoneAreReported() throws {
    var peer = Negotiated()
    #expect(peer.apply(try Vectors.offer("chrome156-audiovideo")).extensions.transportSequence == 3)
    let sections = try SessionDescription(parsing: peer.answer()).sections
    let line = "3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    #expect(sections[0].attributes.all("rtcp-fb").map(\.value) == ["111 transport-cc"])
    #expect(sections[1].attributes.all("rtcp-fb").map(\.value) == ["96 nack", "96 nack pli", "96 transport-cc"])
    for section in sections { #expect(section.attributes.all("extmap").contains { $0.value == line }) }
  }

  /// Chromium omits the descriptor for a whole stream if its longer form may not be mixed with the shorter one.
  @Test func theDependencyDescriptorNeedsMixedExtensions() throws {
    let text = try Vectors.text("chrome156-simulcast")
    var peer = Negotiated()
    #expect(peer.apply(try MediaOffer(parsing: text)).extensions.dependencyDescriptor == 12)
    let without = try MediaOffer(parsing: text.replacing("a=extmap-allow-mixed\r\n", with: ""))
    #expect(peer.apply(without).extensions.dependencyDescriptor == 0)
    #expect(!peer.answer().contains("dependency-descriptor"))
  }

  /// A receiver gets the descriptor where its slot offers it.
  @Test func aSlotThatOffersTheDependencyDescriptorGetsIt() throws {
    let line = "a=extmap:9 https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
    let text = Vectors.small.replacing("a=mid:slot\n", with: "a=mid:slot\n\(line)\n")
    var peer = Negotiated()
    #expect(peer.apply(try MediaOffer(parsing: text)).extensions.dependencyDescriptor == 9)
    let sections = try SessionDescription(parsing: peer.answer()).sections
    #expect(sections.last?.attributes.all("extmap").map(\.value) == [line.dropFirst("a=extmap:".count)])
  }

  @Test func slotAnnouncesItsSourcesWithRTX() throws {
    var peer = Negotiated()
    let slot = try #require(peer.apply(try Vectors.offer("chrome156-recv")).slots.first { $0.kind == .video })
    let answer = try SessionDescription(parsing: peer.answer())
    let section = try #require(answer.sections.first { $0.attributes.first("mid")?.value == slot.mid[...] })
    #expect(section.attributes.first("ssrc-group")?.value == "FID \(slot.ssrc) \(slot.rtxSSRC)")
    #expect(
      section.attributes.all("ssrc").map(\.value) == ["\(slot.ssrc) cname:conclave", "\(slot.rtxSSRC) cname:conclave"])
    #expect(section.attributes.first("msid")?.value == "slot-\(slot.mid) slot-\(slot.mid)")
  }

  @Test func unnamedSectionIsInactive() throws {
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: Vectors.small), tracks: [])
    let answer = try SessionDescription(parsing: peer.answer())
    #expect(answer.sections.map { $0.attributes.contains("inactive") } == [true, true, false])
    #expect(answer.sections.map(\.port) == [40_000, 40_000, 40_000])
  }

  @Test func rejectedFirstSectionLeavesTheBundleToTheNext() throws {
    var peer = Negotiated()
    var offer = try MediaOffer(parsing: Vectors.small)
    offer.sections[0].formats = []
    peer.apply(offer)
    let answer = try SessionDescription(parsing: peer.answer())
    #expect(answer.attributes.first("group")?.value == "BUNDLE cam slot")
    #expect(answer.sections.map(\.port) == [0, 40_000, 40_000])
    #expect(answer.sections.map { $0.attributes.contains("candidate") } == [false, true, true])
  }

  @Test func bundleKeepsTheOffersOrder() throws {
    var peer = Negotiated()
    let text = Vectors.small.replacing("BUNDLE mic cam slot", with: "BUNDLE slot cam mic").replacing(
      "a=mid:slot\n", with: "a=mid:slot\n" + Vectors.transport)
    peer.apply(try MediaOffer(parsing: text))
    let answer = try SessionDescription(parsing: peer.answer())
    #expect(answer.attributes.first("group")?.value == "BUNDLE slot cam mic")
  }

  @Test func addressesAreThoseOfTheCandidates() throws {
    var peer = Negotiated()
    peer.apply(try MediaOffer(parsing: Vectors.small))
    #expect(peer.answer(candidates: [Negotiated.ipv6]).contains("c=IN IP6 fd00:0:0:0:0:0:0:2\r\n"))
    #expect(peer.answer(candidates: []).contains("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\n"))
  }

  @Test func versionRisesWithEachOffer() throws {
    var peer = Negotiated()
    let offer = try MediaOffer(parsing: Vectors.small)
    let origins = (1...3).map { _ in
      peer.apply(offer)
      return peer.answer().split(separator: "\r\n")[1].split(separator: " ")
    }
    #expect(origins.map { $0[2] } == ["1", "2", "3"])
    #expect(Set(origins.map { $0[1] }).count == 1)
  }

  private func withoutDirection(_ extmap: Substring) -> String {
    let words = extmap.split(separator: " ")
    return words[0].prefix { $0 != "/" } + " " + words[1]
  }
}
