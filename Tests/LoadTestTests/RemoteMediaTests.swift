import ConclaveClient
import LinuxIO
import MediaModel
import SDP
import Seeded
import Testing

@testable import loadtest

/// The participant's offer read by the server, and the server's answer read by the participant.
struct RemoteMediaTests {
  private func answer(to local: LocalMedia) throws -> (text: String, negotiation: Negotiation, PeerConfiguration) {
    let fingerprint = CertificateFingerprint(hash: "sha-256", digest: Array(0..<32))
    let offer = try MediaOffer(parsing: local.offer(fingerprint: fingerprint))
    #expect(offer.fingerprint == fingerprint)
    #expect(offer.credentials == local.credentials)
    var generator = SystemRandomNumberGenerator()
    var negotiation = Negotiation(using: &generator)
    let tracks = local.tracks.enumerated().map {
      NamedTrack(
        mid: $0.element.mid, track: TrackID(participant: 1, index: UInt8($0.offset + 1)),
        source: $0.element.isVideo ? .camera : .microphone, muted: false)
    }
    let configuration = negotiation.apply(
      offer, tracks: tracks, codecs: ["VP8"], peer: PeerID(rawValue: 1), call: CallID("c")!, participant: 1,
      isOnKeyList: true,
      using: &generator)
    let text = negotiation.answer(
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(100..<132)),
      candidates: [
        SocketAddress(ipv4: 0x7f00_0001, port: 4000), SocketAddress(high: 0xfd00 << 48, low: 2, port: 4000),
        SocketAddress(high: 0xfe80 << 48, low: 2, port: 4000),
      ], tcp: true)
    return (text, negotiation, configuration)
  }

  @Test func offerAndAnswerFitTheServers() throws {
    let local = LocalMedia(sendsAudio: true, sendsVideo: true, audioSlots: 2, videoSlots: 3)
    let (text, _, configuration) = try answer(to: local)
    let remote = try RemoteMedia(answer: text)
    #expect(remote.credentials == configuration.local)
    #expect(remote.fingerprint.digest == Array(100..<132))
    // The candidates without the link-local one, which needs a zone.
    #expect(
      remote.candidates == [
        SocketAddress(ipv4: 0x7f00_0001, port: 4000), SocketAddress(high: 0xfd00 << 48, low: 2, port: 4000),
      ])
    #expect(remote.slots.map(\.ssrc) == configuration.slots.map(\.ssrc))
    #expect(remote.slots.map(\.isVideo) == [false, false, true, true, true])
    #expect(remote.slots.map { $0.rtxSSRC != nil } == [false, false, true, true, true])
    #expect(configuration.tracks.map(\.ssrcs) == local.tracks.map { $0.encodings.map(\.ssrc) })
    let camera = local.tracks[1].encodings[0]
    #expect(configuration.tracks[1].rtx == [camera.ssrc: camera.rtxSSRC])
  }

  @Test func aLayeredCameraIsASimulcast() throws {
    let local = LocalMedia(sendsAudio: true, sendsVideo: true, audioSlots: 0, videoSlots: 1, isLayered: true)
    let (text, _, configuration) = try answer(to: local)
    #expect(configuration.tracks[1].rids == CameraLayer.all.map(\.rid))
    #expect(configuration.tracks[1].ssrcs.isEmpty)
    let ids = configuration.extensions
    #expect(ids.rid == LocalMedia.ExtensionID.rid && ids.repairedRID == LocalMedia.ExtensionID.repairedRID)
    #expect(ids.dependencyDescriptor == LocalMedia.ExtensionID.dependencyDescriptor)
    #expect(text.contains("a=simulcast:recv q;h;f"))
    #expect(Set(local.tracks[1].encodings.flatMap { [$0.ssrc, $0.rtxSSRC] }).count == 6)
  }

  /// An offer of a server that only sends, like Janus.
  @Test func anAnswerTakesWhatIsOfferedAndNamesItsOwnSide() throws {
    let offer = """
      v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 192.0.2.1\r\na=sendonly\r\na=mid:7\r\na=ice-ufrag:serv\r\n\
      a=ice-pwd:serversserversserverss\r\na=ice-lite\r\na=fingerprint:sha-256 00:01\r\na=setup:actpass\r\na=rtcp-mux\r\n\
      a=rtpmap:96 VP8/90000\r\na=ssrc-group:FID 5 6\r\na=ssrc:5 cname:janus\r\na=msid:a b\r\n\
      a=candidate:1 1 udp 1 192.0.2.1 4000 typ host\r\na=end-of-candidates\r\n
      """
    let local = LocalMedia(sendsAudio: false, sendsVideo: false, audioSlots: 0, videoSlots: 1)
    let fingerprint = CertificateFingerprint(hash: "sha-256", digest: Array(0..<32))
    let lines = local.answer(offer, fingerprint: fingerprint).split(separator: "\r\n").map(String.init)
    for line in ["m=video 9 UDP/TLS/RTP/SAVPF 96 97", "a=recvonly", "a=mid:7", "a=rtcp-mux", "a=rtpmap:96 VP8/90000"] {
      #expect(lines.contains(line))
    }
    #expect(lines.contains("a=ice-ufrag:\(local.credentials.fragment)") && lines.contains("a=setup:active"))
    #expect(lines.contains { $0.hasPrefix("a=fingerprint:sha-256 00:01:02") })
    let text = lines.joined()
    for foreign in ["sendonly", "serv", "actpass", "ssrc", "msid", "candidate", "ice-lite"] {
      #expect(!text.contains(foreign), "\(foreign) is of the server's side")
    }
  }

  @Test func aCipherWithoutSecrecyOpensTheOthersFramesAlone() throws {
    let sender = FrameCipher(withoutSecrecy: 3, others: [])
    let frame = try sender.seal([1, 2, 3], track: 2)
    let now = MonotonicClock.now()
    for (others, opens) in [([1, 3], true), ([1, 2], false)] as [([UInt32], Bool)] {
      let receiver = FrameCipher(withoutSecrecy: 4, others: others)
      receiver.assign(["0": TrackID(participant: 3, index: 2)], now: now)
      let opened = try? receiver.open(frame, from: .slot("0", now: now))
      #expect(opened.map { $0.0 } == (opens ? [1, 2, 3] : nil))
    }
  }

  @Test func aWatcherOffersSlotsAlone() throws {
    let local = LocalMedia(sendsAudio: false, sendsVideo: false, audioSlots: 1, videoSlots: 0)
    #expect(try RemoteMedia(answer: answer(to: local).text).slots.count == 1)
  }

  @Test func alteredAnswersAreReadOrRefused() throws {
    let seed: UInt64 = 0xa5
    var random = SeededGenerator(seed: seed)
    let text = try answer(to: LocalMedia(sendsAudio: true, sendsVideo: true, audioSlots: 1, videoSlots: 1)).text
    var read = 0
    var refused = 0
    for _ in 0..<3_000 {
      var bytes = Array(text.utf8)
      for _ in 0...random.next() % 8 {
        let place = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: place)
        // Each section repeats credentials, fingerprint and candidates, so only a truncated answer lacks them.
        case 2: bytes.removeSubrange(place...)
        default: bytes.removeSubrange(place..<min(bytes.count, place + Int(random.next() % 80)))
        }
        if bytes.isEmpty { break }
      }
      if (try? RemoteMedia(answer: String(decoding: bytes, as: UTF8.self))) != nil { read += 1 } else { refused += 1 }
    }
    #expect(read > 0 && refused > 0, "seed \(seed): \(read) read, \(refused) refused")
  }

  static let addresses: [(String, SocketAddress?)] = [
    ("127.0.0.1", SocketAddress(ipv4: 0x7f00_0001, port: 1)), ("::1", SocketAddress(high: 0, low: 1, port: 1)),
    ("fd00:0:0:0:0:0:0:2", SocketAddress(high: 0xfd00 << 48, low: 2, port: 1)),
    ("::", SocketAddress(high: 0, low: 0, port: 1)), ("1.2.3", nil), ("1.2.3.400", nil), ("1::2::3", nil),
    ("1:2:3:4:5:6:7:8:9", nil), ("12345::", nil), ("host.local", nil),
  ]

  @Test(arguments: addresses) func anAddressIsRead(_ text: String, _ address: SocketAddress?) {
    #expect(SocketAddress(numeric: text, port: 1) == address)
  }
}
