import MediaModel

/// Assembles an answer's lines.
struct AnswerWriter {
  private(set) var text = ""

  mutating func line(_ line: String) {
    text += line
    text += "\r\n"
  }

  /// The m= line: with port 0 if it is rejected, else with a real address, or with port 9 if there is none. Never with the 0 of a
  /// bundle-only offer, which would reject it.
  mutating func opening(of line: Negotiation.Line, at place: SocketAddress?) {
    let port = line.isRejected ? 0 : place?.port ?? 9
    switch line.offered.kind {
    case .application:
      // Before RFC 8841 the format was a port.
      let format = line.offered.protocolName == "DTLS/SCTP" ? "5000" : "webrtc-datachannel"
      self.line("m=application \(port) \(line.offered.protocolName) \(format)")
    case .media(let kind):
      // The format of a rejected m-line has no meaning, but there must be one.
      let known = line.isRejected ? [line.offered.formats.first?.payloadType ?? 0] : line.payloadTypes
      let formats = known.map(String.init).joined(separator: " ")
      self.line("m=\(kind.rawValue) \(port) \(line.offered.protocolName) \(formats)")
    }
    if let place, !line.isRejected {
      self.line("c=IN \(place.isIPv4 ? "IP4" : "IP6") \(place.candidateAddress)")
    } else {
      self.line("c=IN IP4 0.0.0.0")
    }
    if !line.offered.mid.isEmpty { self.line("a=mid:\(line.offered.mid)") }
  }

  /// In each m-line, as browsers do, although those of the first would suffice. In rejected ones, too: otherwise aiortc refuses the
  /// answer.
  mutating func transport(
    of line: Negotiation.Line, credentials: ICECredentials, fingerprint: CertificateFingerprint
  ) {
    self.line("a=ice-ufrag:\(credentials.fragment)")
    self.line("a=ice-pwd:\(credentials.password)")
    self.line("a=fingerprint:\(fingerprint.text)")
    self.line("a=setup:passive")
    if line.offered.kind != .application { self.line("a=rtcp-mux") }
  }

  /// - Parameter extensions: those negotiated in it.
  mutating func media(
    of line: Negotiation.Line,
    extensions: [(String, any WritableKeyPath<HeaderExtensionIDs, UInt8> & Sendable)]
  ) {
    if line.offered.takesReducedSizeRTCP, !line.isRejected { self.line("a=rtcp-rsize") }
    switch line.role {
    case .reject: return self.line("a=inactive")
    case .idle: self.line("a=inactive")
    case .receive: self.line("a=recvonly")
    case .send: self.line("a=sendonly")
    }
    for (uri, path) in extensions {
      self.line("a=extmap:\(extensionID(line.offered.extensions[keyPath: path], in: line)) \(uri)")
    }
    for format in line.formats { self.format(format, feedback: line.feedback, isLayered: !line.layers.isEmpty) }
    for rid in line.layers { self.line("a=rid:\(rid) recv") }
    if !line.layers.isEmpty { self.line("a=simulcast:recv \(line.layers.joined(separator: ";"))") }
    if case .send(let ssrcs) = line.role { sources(ssrcs, of: line) }
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

  /// An extension that was offered for one direction is answered for the opposite one (RFC 8285 section 6).
  private func extensionID(_ id: UInt8, in line: Negotiation.Line) -> String {
    guard line.offered.oneWayExtensions.contains(id) else { return "\(id)" }
    switch line.role {
    case .reject, .idle: return "\(id)/inactive"
    case .receive: return "\(id)/recvonly"
    case .send: return "\(id)/sendonly"
    }
  }

  /// - Parameter isLayered: the line receives simulcast. Chromium answers a PLI with a key frame of only that layer if requested, else with one of each
  ///   layer (`kCodecParamPerLayerPictureLossIndication` of libwebrtc; its VP8 always has one of each).
  private mutating func format(_ format: PayloadFormat, feedback: RateFeedback, isLayered: Bool) {
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
    switch feedback {
    case .packets where format.transportFeedback: line("a=rtcp-fb:\(type) transport-cc")
    case .rate where format.remb: line("a=rtcp-fb:\(type) goog-remb")
    default: break
    }
    if let rtx = format.rtxPayloadType {
      line("a=rtpmap:\(rtx) rtx/\(format.clockRate)")
      line("a=fmtp:\(rtx) apt=\(type)")
    }
  }

  /// A separate stream for each slot, because the tracks of two slots need not belong together.
  private mutating func sources(_ ssrcs: Negotiation.SSRCs, of line: Negotiation.Line) {
    let stream = "slot-\(line.offered.mid)"
    self.line("a=msid:\(stream) \(stream)")
    let hasRTX = line.formats.contains { $0.rtxPayloadType != nil }
    if hasRTX { self.line("a=ssrc-group:FID \(ssrcs.primary) \(ssrcs.rtx)") }
    self.line("a=ssrc:\(ssrcs.primary) cname:\(Negotiation.cname)")
    if hasRTX { self.line("a=ssrc:\(ssrcs.rtx) cname:\(Negotiation.cname)") }
  }
}
