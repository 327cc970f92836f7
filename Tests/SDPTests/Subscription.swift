import MediaModel
import SDP
import Seeded

/// A server's offers to one subscriber, with default values for everything that does not matter.
struct Subscription {
  var generator = SeededGenerator(seed: 9)
  var offering: Offering
  static let fingerprint = CertificateFingerprint(hash: "sha-256", digest: [UInt8](repeating: 0xab, count: 32))
  static let h264 = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"

  init() { offering = Offering(using: &generator) }

  /// Offers a microphone, a camera with VP8 and one with H.264: the lines that the answers in Vectors are for.
  static func three() throws -> Subscription {
    var subscription = Subscription()
    try subscription.add(audio(of: 1))
    try subscription.add(video(of: 1))
    try subscription.add(video(of: 2, "H264", h264))
    return subscription
  }

  static func audio(of feed: UInt64) -> OfferedStream {
    stream(feed, .audio, [PayloadFormat(payloadType: 109, codec: "opus", clockRate: 48_000, channels: 2)])
  }

  static func video(of feed: UInt64, _ codec: String = "VP8", _ parameters: String = "") -> OfferedStream {
    stream(
      feed, .video,
      [
        PayloadFormat(
          payloadType: 120, codec: codec, clockRate: 90_000, parameters: parameters, rtxPayloadType: 121, nack: true,
          pli: true)
      ])
  }

  private static func stream(_ feed: UInt64, _ kind: MediaKind, _ formats: [PayloadFormat]) -> OfferedStream {
    let track = TrackID(participant: UInt32(feed), index: kind == .audio ? 1 : 2)
    return OfferedStream(
      source: TrackPin(peer: PeerID(rawValue: feed), track: track), kind: kind, formats: formats,
      label: OfferedStream.Label(stream: "\(8_800 + feed)", track: "\(track.index)"))
  }

  @discardableResult
  mutating func add(_ stream: OfferedStream) throws -> String { try offering.add(stream, using: &generator) }

  /// The next offer's text.
  mutating func offer(candidates: [SocketAddress] = [Negotiated.ipv4], tcp: Bool = false) -> String {
    offering.offer(fingerprint: Self.fingerprint, candidates: candidates, tcp: tcp)
  }

  mutating func apply(_ answer: String) throws -> PeerConfiguration {
    try offering.apply(
      SubscriberAnswer(parsing: answer), peer: PeerID(rawValue: 7), call: CallID("room~5501")!, participant: 7)
  }

  /// An offer, and a browser's answer to it.
  @discardableResult
  mutating func exchange(rejecting mids: Set<String> = []) throws -> PeerConfiguration {
    try apply(Self.answer(to: offer(), rejecting: mids))
  }

  /// Answers like a browser that knows all codecs and extensions.
  static func answer(to offer: String, rejecting mids: Set<String> = []) throws -> String {
    let offer = try SessionDescription(parsing: offer)
    var lines = ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", ""]
    var bundle: [Substring] = []
    for section in offer.sections {
      let mid = section.attributes.first("mid")!.value
      let isRejected = section.port == 0 || mids.contains(String(mid))
      if !isRejected { bundle.append(mid) }
      lines += [
        "m=\(section.media) \(isRejected ? 0 : 9) \(section.protocolName) \(section.formats.joined(separator: " "))",
        "c=IN IP4 0.0.0.0", "a=ice-ufrag:/Ms8", "a=ice-pwd:UmAOl/cuh10gyPqcuYUJ76jc",
        "a=fingerprint:sha-256 \(Array(repeating: "0F", count: 32).joined(separator: ":"))", "a=setup:active",
        "a=mid:\(mid)", section.attributes.contains("sendonly") && !isRejected ? "a=recvonly" : "a=inactive",
        "a=rtcp-mux", "a=rtcp-rsize",
      ]
      for name in ["extmap", "rtpmap", "rtcp-fb", "fmtp"] {
        lines += section.attributes.all(name).map { "a=\(name):\($0.value)" }
      }
    }
    lines[4] = "a=group:BUNDLE \(bundle.joined(separator: " "))\r\na=extmap-allow-mixed"
    return lines.joined(separator: "\r\n") + "\r\n"
  }
}
