import MediaModel

extension Offering {
  /// The ids of the header extensions that are offered for a kind of media. They are the same in all offers, so a stream's publisher may use others.
  static func extensions(
    of kind: MediaKind
  ) -> [(path: any WritableKeyPath<HeaderExtensionIDs, UInt8> & Sendable, id: UInt8)] {
    switch kind {
    case .audio: [(\.mid, 1), (\.sendTime, 2), (\.transportSequence, 3), (\.audioLevel, 4)]
    case .video:
      [
        (\.mid, 1), (\.sendTime, 2), (\.transportSequence, 3), (\.playoutDelay, 5), (\.videoOrientation, 6),
        (\.dependencyDescriptor, 7),
      ]
    }
  }

  func text(fingerprint: CertificateFingerprint, candidates: [SocketAddress], tcp: Bool) -> String {
    var writer = DescriptionWriter()
    writer.begin(
      session: sessionID, version: version, bundle: lines.filter { !$0.isRejected }.map(\.mid),
      allowsMixedExtensions: true)
    let place = candidates.first(where: \.isIPv4) ?? candidates.first
    for line in lines {
      writer.opening(
        line.kind.rawValue, "UDP/TLS/RTP/SAVPF", formats: line.formats.payloadTypes, mid: line.mid,
        isRejected: line.isRejected, at: place)
      // The answer decides who begins the handshake, and only the peer may.
      writer.transport(local, fingerprint, setup: "actpass", carriesMedia: true)
      writer.media(of: line)
      if !line.isRejected { writer.candidates(candidates, tcp: tcp) }
    }
    return writer.text
  }
}

extension DescriptionWriter {
  fileprivate mutating func media(of line: Offering.Line) {
    guard !line.isRejected else { return self.line("a=inactive") }
    self.line("a=rtcp-rsize")
    self.line(line.stream == nil ? "a=inactive" : "a=sendonly")
    for (path, id) in Offering.extensions(of: line.kind) {
      guard let uri = HeaderExtensionIDs.uris.first(where: { $0.1 == path })?.0 else { continue }
      self.line("a=extmap:\(id) \(uri)")
    }
    for format in line.formats { self.format(format, feedback: [.packets, .rate]) }
    guard let label = line.stream?.label else { return }
    let own = "slot-\(line.mid)"
    sources(
      line.ssrcs, stream: label.stream.isLabel ? label.stream : own, track: label.track.isLabel ? label.track : own,
      hasRTX: line.formats.haveRTX)
  }
}

extension String {
  /// Whether it can be a word of a=msid (RFC 8830 section 2).
  fileprivate var isLabel: Bool { isToken && utf8.count <= 64 }
}
