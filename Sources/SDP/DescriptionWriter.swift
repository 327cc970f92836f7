import MediaModel

/// Assembles the lines of an answer or an offer.
struct DescriptionWriter {
  private(set) var text = ""

  mutating func line(_ line: String) {
    text += line
    text += "\r\n"
  }

  /// The lines above the first m= line.
  mutating func begin(session: UInt64, version: UInt64, bundle: [String], allowsMixedExtensions: Bool) {
    line("v=0")
    line("o=- \(session) \(version) IN IP4 127.0.0.1")
    line("s=-")
    line("t=0 0")
    line("a=ice-lite")
    if !bundle.isEmpty { line("a=group:BUNDLE " + bundle.joined(separator: " ")) }
    if allowsMixedExtensions { line("a=extmap-allow-mixed") }
  }

  /// The m= line: with port 0 if it is rejected, else with a real address, or with port 9 if there is none. Never with the 0 of a
  /// bundle-only offer, which would reject it.
  /// - Parameters:
  ///   - formats: of a rejected m-line they have no meaning, but there must be one.
  ///   - bitrate: the most that its sender should send, in bit/s; nil for no limit.
  mutating func opening(
    _ media: String, _ protocolName: String, formats: String, mid: String, isRejected: Bool, at place: SocketAddress?,
    bitrate: Int? = nil
  ) {
    line("m=\(media) \(isRejected ? 0 : place?.port ?? 9) \(protocolName) \(formats)")
    if let place, !isRejected {
      line("c=IN \(place.isIPv4 ? "IP4" : "IP6") \(place.candidateAddress)")
    } else {
      line("c=IN IP4 0.0.0.0")
    }
    if let bitrate {
      // Browsers read one of the two: RFC 8866 section 5.8 and RFC 3890.
      line("b=AS:\(max(1, bitrate / 1_000))")
      line("b=TIAS:\(bitrate)")
    }
    if !mid.isEmpty { line("a=mid:\(mid)") }
  }

  /// In each m-line, as browsers do, although those of the first would suffice. In rejected ones, too: otherwise aiortc refuses the
  /// answer.
  mutating func transport(
    _ credentials: ICECredentials, _ fingerprint: CertificateFingerprint, setup: String, carriesMedia: Bool
  ) {
    line("a=ice-ufrag:\(credentials.fragment)")
    line("a=ice-pwd:\(credentials.password)")
    line("a=fingerprint:\(fingerprint.text)")
    line("a=setup:\(setup)")
    if carriesMedia { line("a=rtcp-mux") }
  }

  /// Host candidates (RFC 8839 section 5.1), the first with the highest priority (RFC 8445 section 5.1.2.1). TCP candidates come after
  /// all UDP candidates (type preference 90, as in browsers), with the direction preference of passive ones (RFC 6544 section 4.2).
  mutating func candidates(_ addresses: [SocketAddress], tcp: Bool) {
    for (index, address) in addresses.enumerated() {
      let priority = 126 << 24 | max(0, 65_535 - index) << 8 | 255
      line("a=candidate:\(index + 1) 1 udp \(priority) \(address.candidateAddress) \(address.port) typ host")
    }
    for (index, address) in addresses.enumerated() where tcp {
      let priority = 90 << 24 | (4 << 13 | max(0, 8_191 - index)) << 8 | 255
      let place = "\(address.candidateAddress) \(address.port)"
      line("a=candidate:\(addresses.count + index + 1) 1 tcp \(priority) \(place) typ host tcptype passive")
    }
    line("a=end-of-candidates")
  }

  /// - Parameters:
  ///   - feedback: the reports that are possible in this m-line.
  ///   - isLayered: the line receives simulcast. Chromium answers a PLI with a key frame of only that layer if requested, else with one of each
  ///     layer (`kCodecParamPerLayerPictureLossIndication` of libwebrtc; its VP8 always has one of each).
  mutating func format(_ format: PayloadFormat, feedback: Set<RateFeedback>, isLayered: Bool = false) {
    let type = format.payloadType
    let channels = format.channels.map { $0 > 1 ? "/\($0)" : "" } ?? ""
    line("a=rtpmap:\(type) \(format.codec)/\(format.clockRate)\(channels)")
    let parameters = [format.parameters, isLayered && format.pli ? "x-google-per-layer-pli=1" : ""]
    let text = parameters.filter { !$0.isEmpty }.joined(separator: ";")
    if !text.isEmpty { line("a=fmtp:\(type) \(text)") }
    if format.nack { line("a=rtcp-fb:\(type) nack") }
    if format.pli { line("a=rtcp-fb:\(type) nack pli") }
    // FIR is only for senders without PLI, which requests the same in fewer bytes.
    if format.fir, !format.pli { line("a=rtcp-fb:\(type) ccm fir") }
    if format.transportFeedback, feedback.contains(.packets) { line("a=rtcp-fb:\(type) transport-cc") }
    if format.remb, feedback.contains(.rate) { line("a=rtcp-fb:\(type) goog-remb") }
    if let rtx = format.rtxPayloadType {
      line("a=rtpmap:\(rtx) rtx/\(format.clockRate)")
      line("a=fmtp:\(rtx) apt=\(type)")
    }
  }

  mutating func sources(_ ssrcs: SSRCs, stream: String, track: String, hasRTX: Bool) {
    line("a=msid:\(stream) \(track)")
    if hasRTX { line("a=ssrc-group:FID \(ssrcs.primary) \(ssrcs.rtx)") }
    line("a=ssrc:\(ssrcs.primary) cname:\(Negotiation.cname)")
    if hasRTX { line("a=ssrc:\(ssrcs.rtx) cname:\(Negotiation.cname)") }
  }
}

extension [PayloadFormat] {
  /// The payload types of the formats, each followed by that of its RTX, as in an m= line.
  var payloadTypes: String {
    flatMap { [$0.payloadType] + ($0.rtxPayloadType.map { [$0] } ?? []) }.map(String.init).joined(separator: " ")
  }

  var haveRTX: Bool { contains { $0.rtxPayloadType != nil } }
}
