import Foundation
import MediaModel
import SDP
import Seeded

/// Real offers (Vectors/*.sdp): Chromium 156, Firefox 153, aiortc 1.16, GStreamer 1.22.
enum Vectors {
  static let offers = [
    "aiortc116-offer", "chrome156-audio", "chrome156-audiovideo", "chrome156-extall", "chrome156-full",
    "chrome156-recv", "chrome156-screen", "chrome156-simulcast", "chrome156-video", "firefox153-audio",
    "firefox153-audiovideo", "firefox153-full", "firefox153-recv", "firefox153-screen", "firefox153-simulcast",
    "firefox153-video", "gst122-offer",
  ]

  static func text(_ name: String) throws -> String {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors")
    return try String(decoding: Data(contentsOf: folder.appending(path: "\(name).sdp")), as: UTF8.self)
  }

  static func offer(_ name: String) throws -> MediaOffer { try MediaOffer(parsing: text(name)) }

  /// The shortest possible offer: one microphone on line 7, one camera on line 12, one slot on line 20.
  static let small = """
    v=0
    o=- 1 1 IN IP4 127.0.0.1
    s=-
    t=0 0
    a=group:BUNDLE mic cam slot
    a=extmap-allow-mixed
    m=audio 9 UDP/TLS/RTP/SAVPF 111
    a=mid:mic
    a=sendonly
    a=rtcp-mux
    a=rtpmap:111 opus/48000/2
    m=video 0 UDP/TLS/RTP/SAVPF 96 97
    a=bundle-only
    a=mid:cam
    a=sendonly
    a=rtpmap:96 VP8/90000
    a=rtcp-fb:96 nack
    a=rtpmap:97 rtx/90000
    a=fmtp:97 apt=96
    m=video 0 UDP/TLS/RTP/SAVPF 96
    a=bundle-only
    a=mid:slot
    a=recvonly
    a=rtpmap:96 VP8/90000

    """.replacing("a=mid:mic\n", with: "a=mid:mic\n" + transport)

  static let transport = """
    a=ice-ufrag:abcd
    a=ice-pwd:0123456789012345678901
    a=fingerprint:sha-256 \(Array(repeating: "0F", count: 32).joined(separator: ":"))
    a=setup:actpass

    """
}

/// A negotiation with default values for everything that does not matter.
struct Negotiated {
  var generator = SeededGenerator(seed: 7)
  var negotiation: Negotiation
  var configuration: PeerConfiguration?

  init() { negotiation = Negotiation(using: &generator) }

  /// Names each sending section a camera or microphone unless `tracks` says otherwise.
  @discardableResult
  mutating func apply(_ offer: MediaOffer, tracks: [NamedTrack]? = nil, codecs: [String] = ["VP8"]) -> PeerConfiguration
  {
    let named = offer.sections.enumerated().compactMap { index, section -> NamedTrack? in
      guard case .media(let kind) = section.kind, section.direction == .sendonly || section.direction == .sendrecv
      else { return nil }
      return NamedTrack(
        mid: section.mid, track: TrackID(participant: 1, index: UInt8(index + 1)),
        source: kind == .audio ? .microphone : .camera, muted: false)
    }
    let configuration = negotiation.apply(
      offer, tracks: tracks ?? named, codecs: codecs, peer: PeerID(rawValue: 1), call: CallID("call")!, participant: 1,
      isOnKeyList: true, using: &generator)
    self.configuration = configuration
    return configuration
  }

  func answer(candidates: [SocketAddress] = [Self.ipv4, Self.ipv6], tcp: Bool = true) -> String {
    negotiation.answer(
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: [UInt8](repeating: 0xab, count: 32)),
      candidates: candidates, tcp: tcp)
  }

  static let ipv4 = SocketAddress(ipv4: 0xc000_0202, port: 40_000)
  static let ipv6 = SocketAddress(high: 0xfd00 << 48, low: 2, port: 40_000)
}
