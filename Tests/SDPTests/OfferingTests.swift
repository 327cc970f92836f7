import MediaModel
import SDP
import Seeded
import Testing

struct OfferingTests {
  @Test func aSmallOfferIsMadeToTheLetter() throws {
    var subscription = Subscription()
    try subscription.add(Subscription.audio(of: 1))
    try subscription.add(Subscription.video(of: 1))
    #expect(subscription.offering.isDue)
    let text = subscription.offer(tcp: true)
    #expect(!subscription.offering.isDue && subscription.offering.isPending)
    let configuration = try subscription.apply(Subscription.answer(to: text))
    let (local, slots) = (configuration.local, configuration.slots)
    let transport = """
      a=ice-ufrag:\(local.fragment)
      a=ice-pwd:\(local.password)
      a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))
      a=setup:actpass
      a=rtcp-mux
      a=rtcp-rsize
      a=sendonly
      a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
      a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
      a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
      """
    let candidates = """
      a=candidate:1 1 udp 2130706431 192.0.2.2 40000 typ host
      a=candidate:2 1 tcp 1520435199 192.0.2.2 40000 typ host tcptype passive
      a=end-of-candidates
      """
    let lines = text.split(separator: "\r\n").filter { !$0.hasPrefix("o=") }
    #expect(
      lines.joined(separator: "\n") == """
        v=0
        s=-
        t=0 0
        a=ice-lite
        a=group:BUNDLE 0 1
        a=extmap-allow-mixed
        m=audio 40000 UDP/TLS/RTP/SAVPF 111
        c=IN IP4 192.0.2.2
        a=mid:0
        \(transport)
        a=extmap:4 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=rtpmap:111 opus/48000/2
        a=rtcp-fb:111 transport-cc
        a=msid:8801 1
        a=ssrc:\(slots[0].ssrc) cname:conclave
        \(candidates)
        m=video 40000 UDP/TLS/RTP/SAVPF 96 97
        c=IN IP4 192.0.2.2
        a=mid:1
        \(transport)
        a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay
        a=extmap:6 urn:3gpp:video-orientation
        a=extmap:7 https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension
        a=rtpmap:96 VP8/90000
        a=rtcp-fb:96 nack
        a=rtcp-fb:96 nack pli
        a=rtcp-fb:96 transport-cc
        a=rtcp-fb:96 goog-remb
        a=rtpmap:97 rtx/90000
        a=fmtp:97 apt=96
        a=msid:8801 2
        a=ssrc-group:FID \(slots[1].ssrc) \(slots[1].rtxSSRC)
        a=ssrc:\(slots[1].ssrc) cname:conclave
        a=ssrc:\(slots[1].rtxSSRC) cname:conclave
        \(candidates)
        """)
  }

  // MARK: answers

  @Test func chromiumsAnswerFillsAllSlots() throws {
    var subscription = try Subscription.three()
    _ = subscription.offer()
    let configuration = try subscription.apply(Vectors.text("chrome156-subscriber-answer"))
    #expect(configuration.filling == .pinned && !configuration.isOnKeyList && configuration.tracks == [])
    #expect(configuration.peer == PeerID(rawValue: 7) && configuration.participant == 7)
    #expect(configuration.remote.fragment == "/Ms8" && configuration.fingerprint.digest.first == 0x80)
    #expect(configuration.slots.map(\.mid) == ["0", "1", "2"])
    #expect(configuration.slots.map(\.kind) == [.audio, .video, .video])
    #expect(configuration.slots.map(\.feedback) == [.packets, .packets, .packets])
    #expect(configuration.slots.map { $0.formats.map(\.payloadType) } == [[111], [96], [102]])
    #expect(configuration.slots.map { $0.formats[0].rtxPayloadType } == [nil, 97, 103])
    #expect(configuration.slots.map { $0.formats[0].nack } == [false, true, true])
    #expect(configuration.slots[2].formats[0].parameters == Subscription.h264)
    let ids = configuration.extensions
    #expect(ids.mid == 1 && ids.sendTime == 2 && ids.transportSequence == 3 && ids.audioLevel == 4)
    #expect(ids.playoutDelay == 5 && ids.videoOrientation == 6 && ids.dependencyDescriptor == 7)
    #expect(ids.rid == 0 && ids.repairedRID == 0)
    #expect(configuration.restingSlots == [])
    #expect(subscription.offering.lines.allSatisfy { $0.isAccepted && !$0.isRejected })
    #expect(!subscription.offering.isPending && !subscription.offering.isDue)
  }

  /// It has no H.264, and no receiver's audio level outside of one direction.
  @Test func firefoxsAnswerLeavesOutTheLineThatItRejects() throws {
    var subscription = try Subscription.three()
    _ = subscription.offer()
    let configuration = try subscription.apply(Vectors.text("firefox153-subscriber-answer"))
    #expect(configuration.slots.map(\.mid) == ["0", "1"])
    #expect(configuration.slots.map(\.feedback) == [.packets, .packets])
    #expect(configuration.extensions.audioLevel == 4 && configuration.extensions.videoOrientation == 0)
    #expect(configuration.restingSlots == [], "a rejected line does not come back")
    #expect(subscription.offering.lines.map(\.isRejected) == [false, false, true])
    #expect(subscription.offering.lines[2].stream?.source.peer == PeerID(rawValue: 2))
  }

  /// It reports a rate and not packets, and announces sources that it never sends.
  @Test func aiortcsAnswerIsReportedByRate() throws {
    var subscription = try Subscription.three()
    _ = subscription.offer()
    let configuration = try subscription.apply(Vectors.text("aiortc116-subscriber-answer"))
    #expect(configuration.slots.map(\.feedback) == [.none, .rate, .rate])
    #expect(configuration.extensions.sendTime == 2 && configuration.extensions.transportSequence == 0)
    #expect(configuration.extensions.dependencyDescriptor == 0)
    #expect(configuration.slots.map { $0.formats[0].rtxPayloadType } == [nil, 97, 103])
  }

  @Test func formatsAreThoseThatTheAnswerTakes() throws {
    var subscription = Subscription()
    var both = Subscription.video(of: 1)
    both.formats += Subscription.video(of: 1, "VP9", "profile-id=0").formats
    both.formats += Subscription.video(of: 1, "AV1").formats
    try subscription.add(both)
    let answer = try Subscription.answer(to: subscription.offer())
    let fewer = answer.replacing("SAVPF 96 97 98 99 100 101", with: "SAVPF 98 99 96 101")
      .replacing("a=rtcp-fb:98 nack\r\n", with: "")
    try #require(fewer != answer)
    let formats = try subscription.apply(fewer).slots[0].formats
    #expect(formats.map(\.codec) == ["VP8", "VP9"], "in the publisher's order")
    #expect(formats.map(\.rtxPayloadType) == [nil, nil], "its types are not taken, or nothing is asked for again")
  }

  /// A client may number formats by itself only where it sends, and the server sends.
  @Test func anOfferedPayloadTypeForAnotherCodecIsNotTaken() throws {
    var subscription = Subscription()
    try subscription.add(Subscription.audio(of: 1))
    try subscription.add(Subscription.video(of: 1))
    let answer = try Subscription.answer(to: subscription.offer())
    let slots = try subscription.apply(answer.replacing("rtpmap:96 VP8", with: "rtpmap:96 VP9")).slots
    #expect(slots.map(\.mid) == ["0"])
    #expect(subscription.offering.lines[1].isRejected)
  }

  @Test func aLineThatTheAnswerHoldsBackRests() throws {
    var subscription = try Subscription.three()
    let answer = try Subscription.answer(to: subscription.offer())
    let held = answer.replacing("a=mid:1\r\na=recvonly", with: "a=mid:1\r\na=inactive")
    let first = try subscription.apply(held)
    #expect(first.slots.map(\.mid) == ["0", "2"] && first.restingSlots.count == 1)
    #expect(!subscription.offering.lines[1].isRejected && !subscription.offering.lines[1].isAccepted)
    let second = try subscription.exchange()
    #expect(second.slots.map(\.mid) == ["0", "1", "2"] && second.slots[1].ssrc == first.restingSlots[0])
  }

  /// Some clients answer sendrecv because they have a track. Nothing that they send belongs to a track here.
  @Test func anAnswerThatAlsoSendsIsReceivedFromNowhere() throws {
    var subscription = try Subscription.three()
    let answer = try Subscription.answer(to: subscription.offer()).replacing("a=recvonly\r\n", with: "")
    let configuration = try subscription.apply(answer)
    #expect(configuration.slots.count == 3 && configuration.tracks == [])
  }

  // MARK: later offers

  @Test func linesKeepTheirPlacesAndSources() throws {
    var subscription = try Subscription.three()
    let first = try subscription.exchange()
    subscription.offering.remove("1")
    #expect(subscription.offering.isDue)
    let offer = subscription.offer()
    let sections = try SessionDescription(parsing: offer).sections
    #expect(sections.map { $0.attributes.first("mid")!.value } == ["0", "1", "2"])
    #expect(sections.map { $0.attributes.contains("inactive") } == [false, true, false])
    #expect(sections[1].port == 40_000, "inactive, and not rejected")
    #expect(!sections[1].attributes.contains("ssrc") && !sections[1].attributes.contains("msid"))
    let second = try subscription.apply(Subscription.answer(to: offer))
    #expect(second.slots == [first.slots[0], first.slots[2]])
    #expect(second.restingSlots == [first.slots[1].ssrc])
    let mid = try subscription.add(Subscription.video(of: 3))
    #expect(mid == "1", "the inactive line is used again")
    let third = try subscription.exchange()
    #expect(third.slots == first.slots && third.restingSlots == [])
  }

  @Test func aLineIsUsedAgainForTheCodecThatItHas() throws {
    var subscription = try Subscription.three()
    try subscription.exchange()
    subscription.offering.remove("1")
    subscription.offering.remove("2")
    try subscription.exchange()
    #expect(try subscription.add(Subscription.video(of: 3, "AV1")) == "3")
    #expect(try subscription.add(Subscription.video(of: 3, "H264", Subscription.h264)) == "2")
    #expect(try subscription.add(Subscription.video(of: 4)) == "1")
    #expect(try subscription.add(Subscription.audio(of: 4)) == "4", "not in the place of another stream")
    let configuration = try subscription.exchange()
    #expect(configuration.slots.map { $0.formats[0].payloadType } == [111, 96, 102, 100, 111])
  }

  @Test func theSessionStaysAndItsVersionRises() throws {
    var subscription = try Subscription.three()
    let origins = try (1...3).map { _ in
      let offer = subscription.offer()
      _ = try subscription.apply(Subscription.answer(to: offer))
      return offer.split(separator: "\r\n")[1].split(separator: " ")
    }
    #expect(origins.map { $0[2] } == ["1", "2", "3"])
    #expect(Set(origins.map { $0[1] }).count == 1)
  }

  /// RFC 3264 section 8.2: its port stays 0.
  @Test func aRejectedLineStaysRejected() throws {
    var subscription = try Subscription.three()
    try subscription.exchange(rejecting: ["0"])
    let mid = try subscription.add(Subscription.audio(of: 1))
    #expect(mid == "3")
    let offer = subscription.offer()
    let description = try SessionDescription(parsing: offer)
    #expect(description.sections.map(\.port) == [0, 40_000, 40_000, 40_000])
    #expect(description.attributes.first("group")?.value == "BUNDLE 1 2 3")
    #expect(description.sections[0].attributes.contains("inactive"))
    let answer = try Subscription.answer(to: offer)
    let revived = answer.replacing("m=audio 0 ", with: "m=audio 9 ").replacing("BUNDLE 1", with: "BUNDLE 0 1")
    #expect(throws: AnswerError.rejectedLine("0")) { try subscription.apply(revived) }
    #expect(try subscription.apply(answer).slots.map(\.mid) == ["1", "2", "3"])
  }

  @Test func changesWhileAnOfferWaitsComeWithTheNext() throws {
    var subscription = try Subscription.three()
    let offer = subscription.offer()
    subscription.offering.remove("2")
    try subscription.add(Subscription.audio(of: 5))
    let first = try subscription.apply(Subscription.answer(to: offer))
    #expect(first.slots.map(\.mid) == ["0", "1", "2"], "as it was offered")
    #expect(subscription.offering.isDue && subscription.offering.lines.map(\.isAccepted) == [true, true, true, false])
    let second = try subscription.exchange()
    #expect(second.slots.map(\.mid) == ["0", "1", "3"])
    #expect(!subscription.offering.isDue)
  }

  @Test func anotherStreamOfTheSameFormatNeedsNoOffer() throws {
    var subscription = try Subscription.three()
    try subscription.exchange()
    try subscription.offering.replace("1", with: Subscription.video(of: 9))
    #expect(!subscription.offering.isDue)
    #expect(subscription.offering.lines[1].stream?.source.peer == PeerID(rawValue: 9))
    // A lower level of the same profile.
    try subscription.offering.replace(
      "2", with: Subscription.video(of: 9, "H264", "packetization-mode=1;profile-level-id=42e00d"))
    #expect(!subscription.offering.isDue)
    try subscription.offering.replace("1", with: Subscription.video(of: 9, "VP9"))
    #expect(subscription.offering.isDue)
    #expect(try subscription.exchange().slots[1].formats.map(\.codec) == ["VP9"])
    subscription.offering.remove("1")
    try subscription.exchange()
    try subscription.offering.replace("1", with: Subscription.video(of: 9, "VP9"))
    #expect(subscription.offering.isDue, "the line was inactive")
    #expect(throws: OfferingError.otherKind) {
      try subscription.offering.replace("0", with: Subscription.video(of: 9))
    }
    #expect(throws: OfferingError.unknownLine) {
      try subscription.offering.replace("9", with: Subscription.video(of: 9))
    }
  }

  @Test func credentialsChangeOnlyOnARestart() throws {
    var subscription = try Subscription.three()
    let first = try subscription.exchange().local
    #expect(try subscription.exchange().local == first)
    subscription.offering.restartICE(using: &subscription.generator)
    #expect(subscription.offering.isDue)
    let offer = subscription.offer()
    #expect(!offer.contains(first.fragment) && !offer.contains(first.password))
    let answer = try Subscription.answer(to: offer).replacing("ufrag:/Ms8", with: "ufrag:next")
    let second = try subscription.apply(answer)
    #expect(second.local != first && second.remote.fragment == "next")
  }

  // MARK: payload types

  /// RFC 8843 section 9.1: a payload type means the same in all m-lines of a bundle.
  @Test func aPayloadTypeHasOneMeaning() throws {
    var subscription = Subscription()
    let levels = ["42e01f", "42e034", "640c34", "42001f"]
    for (feed, level) in levels.enumerated() {
      let parameters = "packetization-mode=1;profile-level-id=\(level)"
      try subscription.add(Subscription.video(of: UInt64(feed), "H264", parameters))
    }
    try subscription.add(Subscription.video(of: 9, "VP9", "profile-id=2"))
    try subscription.add(Subscription.video(of: 9, "vp9"))
    try subscription.add(Subscription.video(of: 9, "H265"))
    let sections = try SessionDescription(parsing: subscription.offer()).sections
    var meanings: [Substring: Set<String>] = [:]
    for section in sections {
      for type in section.formats {
        let lines = (section.attributes.all("rtpmap") + section.attributes.all("fmtp")).map(\.value)
        meanings[type, default: []].insert(lines.filter { $0.hasPrefix("\(type) ") }.joined(separator: " "))
      }
    }
    #expect(meanings.values.allSatisfy { $0.count == 1 }, "\(meanings)")
    #expect(sections.map { $0.formats[0] } == ["102", "102", "104", "102", "98", "106", "108"])
  }

  /// The format parameters of a publisher are a stranger's text.
  @Test(arguments: [
    ("profile-level-id=42e01f;packetization-mode=1;x-secret=1", "profile-level-id=42e01f;packetization-mode=1"),
    ("profile-level-id=42e01f; packetization-mode=1", "profile-level-id=42e01f;packetization-mode=1"),
    ("packetization-mode=1;sprop-parameter-sets=Z0IAH5WoFAFuQA==,aM48gA==", "packetization-mode=1"),
    ("packetization-mode=1;profile-level-id=\(String(repeating: "4", count: 4_000))", "packetization-mode=1"),
    ("packetization-mode=<b>", ""),
  ])
  func onlyKnownParametersAreOffered(_ parameters: String, _ offered: String) throws {
    var subscription = Subscription()
    try subscription.add(Subscription.video(of: 1, "H264", parameters))
    let section = try SessionDescription(parsing: subscription.offer()).sections[0]
    let lines = section.attributes.all("fmtp").map(\.value)
    #expect(lines == (offered.isEmpty ? [] : ["102 \(offered)"]) + ["103 apt=102"])
  }

  @Test func aCodecThatIsNotKnownIsNotOffered() {
    var subscription = Subscription()
    #expect(throws: OfferingError.noFormat) { try subscription.add(Subscription.video(of: 1, "THEORA")) }
    var mixed = Subscription.audio(of: 1)
    mixed.kind = .video
    #expect(throws: OfferingError.noFormat) { try subscription.add(mixed) }
    #expect(subscription.offering.lines.isEmpty && !subscription.offering.isDue)
  }

  @Test func payloadTypesDoNotRunOut() throws {
    var subscription = Subscription()
    var types: Set<Substring> = []
    // 64 decoders: more than there are payload types.
    for profile in 0..<64 {
      do {
        try subscription.add(Subscription.video(of: 1, "VP9", "profile-id=\(profile)"))
      } catch let error as OfferingError {
        #expect(error == .noFormat)
      }
    }
    for section in try SessionDescription(parsing: subscription.offer()).sections { types.formUnion(section.formats) }
    #expect(types.count > 50 && types.allSatisfy { UInt8($0).map { $0 < 64 || (96...127).contains($0) } ?? false })
    #expect(try subscription.add(Subscription.audio(of: 1)).isEmpty == false, "opus has its own")
  }

  // MARK: limits

  @Test func thereAreAtMost64Lines() throws {
    var subscription = Subscription()
    for feed in 0..<64 { try subscription.add(Subscription.video(of: UInt64(feed))) }
    #expect(throws: OfferingError.tooManyLines) { try subscription.add(Subscription.video(of: 70)) }
    try subscription.exchange()
    subscription.offering.remove("20")
    #expect(
      try subscription.add(Subscription.video(of: 70, "H264")) == "20", "with another codec, rather than not at all")
    let slots = try subscription.exchange().slots
    #expect(slots.count == 64 && Set(slots.flatMap { [$0.ssrc, $0.rtxSSRC] }).count == 128)
  }

  @Test(arguments: ["", "two words", "a:b", "line\r\nm=audio", String(repeating: "x", count: 65)])
  func aLabelThatCannotStandInALineIsReplaced(_ label: String) throws {
    var subscription = Subscription()
    var stream = Subscription.audio(of: 1)
    stream.label = OfferedStream.Label(stream: label, track: label)
    try subscription.add(stream)
    let section = try SessionDescription(parsing: subscription.offer()).sections[0]
    #expect(section.attributes.all("msid").map(\.value) == ["slot-0 slot-0"])
  }

  // MARK: answers that do not fit

  @Test(arguments: [
    ("m=video 9 UDP/TLS/RTP/SAVPF 102", "m=audio 9 UDP/TLS/RTP/SAVPF 102", AnswerError.otherLine("2")),
    ("m=video 9 UDP/TLS/RTP/SAVPF 102", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", .otherLine("2")),
    ("a=mid:2", "a=mid:3", .otherLine("2")),
    ("a=extmap:4 ", "a=extmap:9 ", .otherExtension("0")),
    ("a=extmap:6 ", "a=extmap:8 ", .otherExtension("1")),
  ])
  func anAnswerThatDoesNotFitChangesNothing(_ found: String, _ replacement: String, _ error: AnswerError) throws {
    var subscription = try Subscription.three()
    let answer = try Subscription.answer(to: subscription.offer())
    try #require(answer.contains(found))
    let wrong = answer.replacing(found, with: replacement).replacing(
      "BUNDLE 0 1 2", with: found == "a=mid:2" ? "BUNDLE 0 1 3" : "BUNDLE 0 1 2")
    #expect(throws: error) { try subscription.apply(wrong) }
    #expect(subscription.offering.isPending && subscription.offering.lines.allSatisfy { !$0.isAccepted })
    #expect(try subscription.apply(answer).slots.count == 3)
  }

  @Test func anAnswerNeedsItsOffer() throws {
    var subscription = try Subscription.three()
    let answer = try Vectors.text("chrome156-subscriber-answer")
    #expect(throws: AnswerError.notOffered) { try subscription.apply(answer) }
    try subscription.add(Subscription.audio(of: 4))
    _ = subscription.offer()
    #expect(throws: AnswerError.lineCount(offered: 4, answered: 3)) { try subscription.apply(answer) }
  }

  @Test func theCertificateStays() throws {
    var subscription = try Subscription.three()
    try subscription.exchange()
    let answer = try Subscription.answer(to: subscription.offer())
    #expect(throws: AnswerError.otherFingerprint) {
      try subscription.apply(answer.replacing("sha-256 0F", with: "sha-256 0E"))
    }
    #expect(try subscription.apply(answer).slots.count == 3)
  }

  @Test func anAnswerToAnEarlierOfferFitsNoLonger() throws {
    var subscription = try Subscription.three()
    let first = try Subscription.answer(to: subscription.offer())
    try subscription.add(Subscription.audio(of: 4))
    let second = try Subscription.answer(to: subscription.offer())
    #expect(throws: AnswerError.lineCount(offered: 4, answered: 3)) { try subscription.apply(first) }
    #expect(try subscription.apply(second).slots.count == 4)
    #expect(throws: AnswerError.notOffered) { try subscription.apply(second) }
  }
}
