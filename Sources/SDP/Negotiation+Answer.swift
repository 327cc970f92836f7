package import MediaModel

extension Negotiation {
  /// The answer to the last applied offer. It contains all `candidates`, over UDP and optionally also over TCP: nothing is trickled.
  package func answer(fingerprint: CertificateFingerprint, candidates: [SocketAddress], tcp: Bool) -> String {
    var writer = AnswerWriter()
    writer.line("v=0")
    writer.line("o=- \(sessionID) \(version) IN IP4 127.0.0.1")
    writer.line("s=-")
    writer.line("t=0 0")
    writer.line("a=ice-lite")
    let accepted = Set(lines.lazy.filter { !$0.isRejected }.map(\.offered.mid))
    let group = bundle.filter { accepted.contains($0) }
    if !group.isEmpty { writer.line("a=group:BUNDLE " + group.joined(separator: " ")) }
    if allowsMixedExtensions { writer.line("a=extmap-allow-mixed") }
    let place = candidates.first(where: \.isIPv4) ?? candidates.first
    for line in lines {
      writer.opening(of: line, at: place)
      writer.transport(of: line, credentials: local, fingerprint: fingerprint)
      writer.media(of: line, extensions: line.extensions(mixed: allowsMixedExtensions))
      // RFC 8843 section 7.3.1 requires them only in the first section of the bundle, but aiortc reads those of the last; all others ignore
      // repetitions.
      if !line.isRejected { writer.candidates(candidates, tcp: tcp) }
    }
    return writer.text
  }
}

extension Negotiation.Line {
  var isRejected: Bool {
    if case .reject = role { true } else { false }
  }

  /// The payload types of the formats, each followed by that of its RTX.
  var payloadTypes: [UInt8] { formats.flatMap { [$0.payloadType] + ($0.rtxPayloadType.map { [$0] } ?? []) } }

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
