import ConclaveClient
import MediaModel
import Transport

/// One participant's side of its connection, as in its offer.
struct LocalMedia: Sendable {
  enum PayloadType {
    static let opus: UInt8 = 111
    static let vp8: UInt8 = 96
    static let rtx: UInt8 = 97
  }

  enum ExtensionID {
    static let mid: UInt8 = 1
    static let audioLevel: UInt8 = 2
    static let transportSequence: UInt8 = 3
    static let rid: UInt8 = 4
    static let repairedRID: UInt8 = 5
    static let dependencyDescriptor: UInt8 = 6
  }

  /// A sending m-line.
  struct Track: Sendable {
    var mid: String
    var source: MediaSource
    /// One, or one for each of `CameraLayer.all`.
    var encodings: [Encoding]
    var isVideo: Bool { source == .camera }
    var isLayered: Bool { encodings.count > 1 }
  }

  /// A stream of a sending m-line.
  struct Encoding: Sendable {
    var ssrc: UInt32
    var rtxSSRC: UInt32
  }

  var credentials: ICECredentials
  var tracks: [Track]
  /// Slots to receive in.
  var audioSlots: Int
  var videoSlots: Int
  /// Whether it sends transport-wide feedback, by which the server estimates its path.
  var isReporting: Bool
  /// Cameras are sent in layers, with dependency descriptors.
  var isLayered: Bool

  init(
    sendsAudio: Bool, sendsVideo: Bool, audioSlots: Int, videoSlots: Int, isReporting: Bool = false,
    isLayered: Bool = false
  ) {
    self.isReporting = isReporting
    self.isLayered = isLayered
    credentials = ICECredentials(fragment: Self.randomText(8), password: Self.randomText(24))
    self.audioSlots = audioSlots
    self.videoSlots = videoSlots
    tracks = []
    for source in (sendsAudio ? [MediaSource.microphone] : []) + (sendsVideo ? [.camera] : []) {
      let ssrc = UInt32.random(in: 1...0x7fff_ff00)
      let count = source == .camera && isLayered ? CameraLayer.all.count : 1
      let encodings = (0..<UInt32(count)).map { Encoding(ssrc: ssrc + $0, rtxSSRC: ssrc + $0 ^ 0x8000_0000) }
      tracks.append(Track(mid: "\(tracks.count)", source: source, encodings: encodings))
    }
  }

  /// The characters of ICE credentials (RFC 8839 section 5.4).
  private static func randomText(_ count: Int) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return String((0..<count).map { _ in letters.randomElement()! })
  }

  /// The SDP offer: what a browser would offer, without the lines that the server does not read.
  /// - Parameter setup: the offered role in DTLS (RFC 8842).
  func offer(fingerprint: CertificateFingerprint, setup: String = "actpass") -> String {
    var mids = tracks.map(\.mid)
    for _ in 0..<audioSlots + videoSlots { mids.append("\(mids.count)") }
    var lines = [
      "v=0", "o=- \(UInt32.random(in: 1...0x7fff_ffff)) 1 IN IP4 127.0.0.1", "s=-", "t=0 0",
      "a=group:BUNDLE " + mids.joined(separator: " "), "a=msid-semantic: WMS",
    ]
    lines += transport(fingerprint, setup: setup)
    // Dependency descriptors may need two-byte headers (RFC 8285 section 6).
    if isLayered { lines.append("a=extmap-allow-mixed") }
    for track in tracks {
      lines += Self.section(mid: track.mid, isVideo: track.isVideo, direction: "sendonly")
      lines.append("a=msid:- \(track.mid)")
      lines += track.isLayered ? Self.layers : Self.sources(of: track)
    }
    for (index, mid) in mids[tracks.count...].enumerated() {
      let isVideo = index >= audioSlots
      lines += Self.section(mid: mid, isVideo: isVideo, direction: "recvonly")
      if isVideo, isLayered { lines.append(Self.dependencyDescriptor) }
      guard isReporting else { continue }
      lines += [
        "a=extmap:\(ExtensionID.transportSequence) http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
        "a=rtcp-fb:\(isVideo ? PayloadType.vp8 : PayloadType.opus) transport-cc",
      ]
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }

  /// The answer to an offer of a server that only sends: it accepts everything.
  func answer(_ offer: String, fingerprint: CertificateFingerprint) -> String {
    let serverOnly = ["ssrc", "msid", "candidate", "end-of-candidates", "ice-", "fingerprint", "setup"]
    var lines: [String] = []
    for line in offer.split(whereSeparator: \.isNewline) {
      guard !serverOnly.contains(where: { line.hasPrefix("a=\($0)") }) else { continue }
      lines.append(line == "a=sendonly" ? "a=recvonly" : String(line))
      if line.hasPrefix("a=mid:") { lines += transport(fingerprint, setup: "active") }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }

  private func transport(_ fingerprint: CertificateFingerprint, setup: String) -> [String] {
    let digest = fingerprint.digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
    return [
      "a=ice-ufrag:\(credentials.fragment)", "a=ice-pwd:\(credentials.password)", "a=ice-options:trickle",
      "a=fingerprint:\(fingerprint.hash) " + digest.joined(separator: ":"), "a=setup:\(setup)",
    ]
  }

  private static let dependencyDescriptor =
    "a=extmap:\(ExtensionID.dependencyDescriptor) https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"

  /// Layers are identified by their ids, so their SSRCs are not announced (RFC 8853).
  private static var layers: [String] {
    let rids = CameraLayer.all.map(\.rid)
    return [
      "a=extmap:\(ExtensionID.rid) urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
      "a=extmap:\(ExtensionID.repairedRID) urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
      dependencyDescriptor,
    ] + rids.map { "a=rid:\($0) send" } + ["a=simulcast:send " + rids.joined(separator: ";")]
  }

  private static func sources(of track: Track) -> [String] {
    let encoding = track.encodings[0]
    guard track.isVideo else { return ["a=ssrc:\(encoding.ssrc) cname:loadtest"] }
    return ["a=ssrc-group:FID \(encoding.ssrc) \(encoding.rtxSSRC)"]
      + [encoding.ssrc, encoding.rtxSSRC].map { "a=ssrc:\($0) cname:loadtest" }
  }

  private static func section(mid: String, isVideo: Bool, direction: String) -> [String] {
    let head = [
      "m=" + (isVideo ? "video" : "audio") + " 9 UDP/TLS/RTP/SAVPF "
        + (isVideo ? "\(PayloadType.vp8) \(PayloadType.rtx)" : "\(PayloadType.opus)"),
      "c=IN IP4 0.0.0.0", "a=mid:\(mid)", "a=\(direction)", "a=rtcp-mux", "a=rtcp-rsize",
      "a=extmap:\(ExtensionID.mid) urn:ietf:params:rtp-hdrext:sdes:mid",
    ]
    guard isVideo else {
      return head + [
        "a=extmap:\(ExtensionID.audioLevel) urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "a=rtpmap:\(PayloadType.opus) opus/48000/2", "a=fmtp:\(PayloadType.opus) minptime=10;useinbandfec=1",
      ]
    }
    return head + [
      "a=rtpmap:\(PayloadType.vp8) VP8/90000", "a=rtcp-fb:\(PayloadType.vp8) nack",
      "a=rtcp-fb:\(PayloadType.vp8) nack pli", "a=rtpmap:\(PayloadType.rtx) rtx/90000",
      "a=fmtp:\(PayloadType.rtx) apt=\(PayloadType.vp8)",
    ]
  }
}
