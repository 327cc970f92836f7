package import MediaModel

extension Negotiation {
  /// The answer to the last applied offer. It contains all `candidates`, over UDP and optionally also over TCP: nothing is trickled.
  /// - Parameter bitrate: the most that the peer should send of a video, in bit/s; nil for no limit.
  package func answer(
    fingerprint: CertificateFingerprint, candidates: [SocketAddress], tcp: Bool, bitrate: Int? = nil
  ) -> String {
    var writer = DescriptionWriter()
    let accepted = Set(lines.lazy.filter { !$0.isRejected }.map(\.offered.mid))
    writer.begin(
      session: sessionID, version: version, bundle: bundle.filter { accepted.contains($0) },
      allowsMixedExtensions: allowsMixedExtensions)
    let place = candidates.first(where: \.isIPv4) ?? candidates.first
    for line in lines {
      writer.opening(of: line, at: place, bitrate: bitrate)
      writer.transport(local, fingerprint, setup: "passive", carriesMedia: line.offered.kind != .application)
      writer.media(of: line, extensions: line.extensions(mixed: allowsMixedExtensions))
      // RFC 8843 section 7.3.1 requires them only in the first section of the bundle, but aiortc reads those of the last; all others ignore
      // repetitions.
      if !line.isRejected { writer.candidates(candidates, tcp: tcp) }
    }
    return writer.text
  }
}

extension DescriptionWriter {
  fileprivate mutating func opening(of line: Negotiation.Line, at place: SocketAddress?, bitrate: Int?) {
    let media: String
    let formats: String
    var limit: Int?
    switch line.offered.kind {
    case .application:
      media = "application"
      // Before RFC 8841 the format was a port.
      formats = line.offered.protocolName == "DTLS/SCTP" ? "5000" : "webrtc-datachannel"
    case .media(let kind):
      media = kind.rawValue
      formats = line.isRejected ? "\(line.offered.formats.first?.payloadType ?? 0)" : line.formats.payloadTypes
      if case .receive = line.role, kind == .video { limit = bitrate }
    }
    opening(
      media, line.offered.protocolName, formats: formats, mid: line.offered.mid, isRejected: line.isRejected, at: place,
      bitrate: limit)
  }

  /// - Parameter extensions: those negotiated in it.
  fileprivate mutating func media(
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
    for format in line.formats { self.format(format, feedback: [line.feedback], isLayered: !line.layers.isEmpty) }
    for rid in line.layers { self.line("a=rid:\(rid) recv") }
    if !line.layers.isEmpty { self.line("a=simulcast:recv \(line.layers.joined(separator: ";"))") }
    guard case .send(let ssrcs) = line.role else { return }
    // A separate stream for each slot, because the tracks of two slots need not belong together.
    let stream = "slot-\(line.offered.mid)"
    sources(ssrcs, stream: stream, track: stream, hasRTX: line.formats.haveRTX)
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
}

extension Negotiation.Line {
  var isRejected: Bool {
    if case .reject = role { true } else { false }
  }

  /// The reports of this m-line's receiver. Our transport-wide number must fit into the short form of header extensions. Rates are reported only by
  /// receivers of video: the server does not estimate any for publishers.
  var feedback: RateFeedback {
    let id = offered.extensions.transportSequence
    switch role {
    case .receive where id != 0, .send where (1...14).contains(id):
      if formats.contains(where: \.transportFeedback) { return .packets }
    default: break
    }
    if case .send = role, offered.kind == .media(.video), formats.contains(where: \.remb) { return .rate }
    return .none
  }

  /// The extensions that are negotiated in this m-line, by URI.
  /// - Parameter allowsMixedExtensions: both forms of header extensions may stand in one stream (RFC 8285 section 4.1.2).
  func extensions(mixed allowsMixedExtensions: Bool) -> [(
    String, any WritableKeyPath<HeaderExtensionIDs, UInt8> & Sendable
  )] {
    HeaderExtensionIDs.uris.filter { _, path in
      guard offered.extensions[keyPath: path] != 0 else { return false }
      switch path {
      case \.mid, \.audioLevel, \.videoOrientation, \.playoutDelay: return true
      // Browsers drop the extension from the whole stream if its longer form may not occur beside the shorter one.
      case \.dependencyDescriptor: return allowsMixedExtensions && offered.kind == .media(.video)
      case \.rid, \.repairedRID: return !offered.rids.isEmpty
      case \.transportSequence: return feedback == .packets
      case \.sendTime: return feedback == .rate && (1...14).contains(offered.extensions.sendTime)
      default: return false
      }
    }
  }
}
