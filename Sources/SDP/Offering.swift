package import MediaModel

/// The server's side of a peer connection in which the server makes the offers (RFC 9429), from the first offer to its end. Its peer only receives: a
/// subscriber of a room. The counterpart of `Negotiation`.
///
/// Overview: `add`, `remove` and `replace` decide what the m-lines show; `offer` writes that down, and `apply` takes the answer and returns the configuration
/// for the SFU. `MediaCommand.pin` then says which tracks the slots show.
///
/// Invariants: an m-line keeps its place, mid, kind and SSRCs for life; a line whose stream was removed is inactive until it is used again; a line that an
/// answer rejected stays rejected. The session's id stays and its version rises with each offer. A payload type has the same meaning in all offers, as
/// all m-lines of a bundle must agree on it (RFC 8843 section 9.1).
package struct Offering: Sendable {
  /// An m-line.
  package struct Line: Sendable {
    package let mid: String
    package let kind: MediaKind
    let ssrcs: SSRCs
    /// The stream that it shows; nil while it is inactive.
    package fileprivate(set) var stream: OfferedStream?
    /// A former answer rejected it.
    package fileprivate(set) var isRejected = false
    /// The peer receives it: the last answer accepted it while it had a stream.
    package fileprivate(set) var isAccepted = false
    /// The formats of its last stream.
    var formats: [PayloadFormat]
    /// Those of them that the last answer takes.
    fileprivate(set) var taken: [PayloadFormat] = []
    fileprivate(set) var extensions = HeaderExtensionIDs()

    /// Whether the peer can receive the stream without a new offer.
    fileprivate func carries(_ stream: OfferedStream) -> Bool {
      guard let sent = stream.formats.first else { return false }
      return taken.contains { sent.carries($0) }
    }
  }

  /// The offered part of a line.
  fileprivate struct Offered {
    var isActive: Bool
    var formats: [PayloadFormat]
  }

  /// The most m-lines, as in offers of clients.
  package static let maximumLines = SessionDescription.maximumSections

  package private(set) var lines: [Line] = []
  /// The peer has to get an offer before it receives everything that the lines show.
  package private(set) var isDue = false
  /// The last offer; nil once it is answered.
  private var offered: [Offered]?
  private(set) var local: ICECredentials
  private var fingerprint: CertificateFingerprint?
  private var payloadTypes = OfferedPayloadTypes()
  let sessionID: UInt64
  private(set) var version: UInt64 = 0

  /// An offer waits for its answer.
  package var isPending: Bool { offered != nil }

  /// `generator` must be cryptographic, because the ICE password comes from it.
  package init(using generator: inout some RandomNumberGenerator) {
    local = ICECredentials(using: &generator)
    sessionID = generator.next() >> 2
  }

  // MARK: streams

  /// Shows a stream in an inactive line or in a new one.
  /// - Returns: the line's mid.
  package mutating func add(
    _ stream: OfferedStream, using generator: inout some RandomNumberGenerator
  ) throws(OfferingError) -> String {
    let formats = try formats(of: stream)
    // `??` would lose the type of the error.
    let index: Int
    if let vacancy = vacancy(for: stream) {
      index = vacancy
    } else {
      index = try begin(stream.kind, formats, using: &generator)
    }
    lines[index].stream = stream
    lines[index].formats = formats
    isDue = true
    return lines[index].mid
  }

  /// Shows a stream in the line that the caller chose: one that there is, or the next one.
  package mutating func show(
    _ stream: OfferedStream, in mid: String, using generator: inout some RandomNumberGenerator
  ) throws(OfferingError) {
    guard mid == "\(lines.count)" else { return try replace(mid, with: stream) }
    let index = try begin(stream.kind, try formats(of: stream), using: &generator)
    lines[index].stream = stream
    isDue = true
  }

  /// Leaves a line without a stream: one that there is, or the next one, whose stream ended before it was offered.
  package mutating func idle(
    _ mid: String, _ kind: MediaKind, formats: [PayloadFormat], using generator: inout some RandomNumberGenerator
  ) throws(OfferingError) {
    guard mid == "\(lines.count)" else { return remove(mid) }
    let formats = formats.compactMap { payloadTypes.format(for: $0, of: kind) }
    guard !formats.isEmpty else { throw .noFormat }
    _ = try begin(kind, formats, using: &generator)
    isDue = true
  }

  /// Empties a line.
  package mutating func remove(_ mid: String) {
    guard let index = index(of: mid), lines[index].stream != nil else { return }
    lines[index].stream = nil
    isDue = true
  }

  /// Shows another stream in a line. That needs an offer only if the line is inactive, or if the peer has not taken the stream's format there.
  package mutating func replace(_ mid: String, with stream: OfferedStream) throws(OfferingError) {
    guard let index = index(of: mid), !lines[index].isRejected else { throw .unknownLine }
    guard lines[index].kind == stream.kind else { throw .otherKind }
    let formats = try formats(of: stream)
    if lines[index].stream == nil || !lines[index].carries(stream) { isDue = true }
    lines[index].stream = stream
    lines[index].formats = formats
  }

  /// The next offer has new ICE credentials (RFC 8839 section 4.4.1.1.1).
  package mutating func restartICE(using generator: inout some RandomNumberGenerator) {
    local = ICECredentials(using: &generator)
    isDue = true
  }

  private func index(of mid: String) -> Int? { lines.firstIndex { $0.mid == mid } }

  private mutating func formats(of stream: OfferedStream) throws(OfferingError) -> [PayloadFormat] {
    let formats = stream.formats.compactMap { payloadTypes.format(for: $0, of: stream.kind) }
    guard !formats.isEmpty else { throw .noFormat }
    return formats
  }

  /// The index of an inactive line for the stream: one that can carry it, or any other if there cannot be more lines.
  private func vacancy(for stream: OfferedStream) -> Int? {
    let vacant = lines.indices.filter {
      lines[$0].stream == nil && !lines[$0].isRejected && lines[$0].kind == stream.kind
    }
    return vacant.first { lines[$0].carries(stream) } ?? (lines.count < Self.maximumLines ? nil : vacant.first)
  }

  private mutating func begin(
    _ kind: MediaKind, _ formats: [PayloadFormat], using generator: inout some RandomNumberGenerator
  ) throws(OfferingError) -> Int {
    guard lines.count < Self.maximumLines else { throw .tooManyLines }
    let taken = Set(lines.flatMap { [$0.ssrcs.primary, $0.ssrcs.rtx] })
    lines.append(
      Line(
        mid: "\(lines.count)", kind: kind, ssrcs: SSRCs(avoiding: taken, using: &generator), formats: formats))
    return lines.count - 1
  }

  // MARK: offer and answer

  /// The offer of what the lines show now. It contains all `candidates`, over UDP and optionally also over TCP: nothing is trickled.
  package mutating func offer(
    fingerprint: CertificateFingerprint, candidates: [SocketAddress], tcp: Bool
  ) -> String {
    version += 1
    isDue = false
    offered = lines.map { Offered(isActive: $0.stream != nil, formats: $0.formats) }
    return text(fingerprint: fingerprint, candidates: candidates, tcp: tcp)
  }

  /// Applies the answer to the last offer. An answer that does not fit changes nothing.
  /// - Returns: the peer's configuration, whose slots are the lines that it receives.
  package mutating func apply(
    _ answer: SubscriberAnswer, peer: PeerID, call: CallID, participant: ParticipantNumber
  ) throws(AnswerError) -> PeerConfiguration {
    guard let offered else { throw .notOffered }
    guard answer.sections.count == offered.count else {
      throw .lineCount(offered: offered.count, answered: answer.sections.count)
    }
    if let fingerprint, fingerprint != answer.fingerprint { throw .otherFingerprint }
    var new = lines
    for (index, section) in answer.sections.enumerated() {
      try new[index].take(section, of: offered[index], allowsMixedExtensions: answer.allowsMixedExtensions)
    }
    lines = new
    fingerprint = answer.fingerprint
    self.offered = nil
    return configuration(
      PeerConfiguration(
        peer: peer, call: call, participant: participant, isOnKeyList: false, filling: .pinned, local: local,
        remote: answer.credentials, fingerprint: answer.fingerprint, extensions: HeaderExtensionIDs(), tracks: [],
        slots: []))
  }

  private func configuration(_ configuration: PeerConfiguration) -> PeerConfiguration {
    var configuration = configuration
    for line in lines {
      guard line.isAccepted else {
        if !line.isRejected { configuration.restingSlots.append(line.ssrcs.primary) }
        continue
      }
      configuration.slots.append(
        SlotDescription(
          mid: line.mid, kind: line.kind, ssrc: line.ssrcs.primary, rtxSSRC: line.ssrcs.rtx, formats: line.taken,
          feedback: line.feedback))
      for (_, path) in HeaderExtensionIDs.uris where line.extensions[keyPath: path] != 0 {
        configuration.extensions[keyPath: path] = line.extensions[keyPath: path]
      }
    }
    return configuration
  }
}

extension Offering.Line {
  /// Applies the answer to the line. Formats are compared by payload type and codec, not by their parameters: a client may answer H.264 with another
  /// level.
  fileprivate mutating func take(
    _ section: MediaOffer.Section, of offered: Offering.Offered, allowsMixedExtensions: Bool
  ) throws(AnswerError) {
    // A rejected section may be empty.
    guard section.kind == .media(kind), section.mid == mid || section.isRejected && section.mid.isEmpty else {
      throw .otherLine(mid)
    }
    // RFC 3264 section 6: what the offer rejects stays rejected.
    guard section.isRejected || !isRejected else { throw .rejectedLine(mid) }
    taken = offered.formats.compactMap { $0.answered(by: section.formats) }
    extensions = HeaderExtensionIDs()
    isRejected = section.isRejected || offered.isActive && taken.isEmpty
    // Only recvonly and inactive answer sendonly, but sendrecv is harmless: the peer has no tracks.
    let isReceived = section.direction == .recvonly || section.direction == .sendrecv
    isAccepted = offered.isActive && isReceived && !isRejected
    guard isAccepted else { return }
    for (path, id) in Offering.extensions(of: kind) {
      let answered = section.extensions[keyPath: path]
      guard answered == 0 || answered == id else { throw .otherExtension(mid) }
      // Browsers drop the extension from the whole stream if its longer form may not occur beside the shorter one.
      if path != \.dependencyDescriptor || allowsMixedExtensions { extensions[keyPath: path] = answered }
    }
  }

  /// The reports that the peer sends about the line.
  fileprivate var feedback: RateFeedback {
    if extensions.transportSequence != 0, taken.contains(where: \.transportFeedback) { return .packets }
    return kind == .video && taken.contains(where: \.remb) ? .rate : .none
  }
}

extension PayloadFormat {
  /// The part of an offered format that an answer takes; nil if it takes none.
  fileprivate func answered(by formats: [PayloadFormat]) -> PayloadFormat? {
    guard
      let answer = formats.first(where: {
        $0.payloadType == payloadType && $0.codec.lowercased() == codec.lowercased() && $0.clockRate == clockRate
      })
    else { return nil }
    var format = self
    format.nack = nack && answer.nack
    format.pli = pli && answer.pli
    format.fir = fir && answer.fir
    format.transportFeedback = transportFeedback && answer.transportFeedback
    format.remb = remb && answer.remb
    if !format.nack || answer.rtxPayloadType != rtxPayloadType { format.rtxPayloadType = nil }
    return format
  }
}

/// A stream that cannot be offered.
package enum OfferingError: Error, Hashable, Sendable {
  case tooManyLines
  /// The stream has no format that the server can offer.
  case noFormat
  /// There is no such line, or it was rejected.
  case unknownLine
  /// The line is for the other kind of media.
  case otherKind
}

extension OfferingError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .tooManyLines:
      "this peer connection has \(Offering.maximumLines) m-lines: end a subscription, or use a second peer connection"
    case .noFormat: "the stream has no codec that can be offered: publish it with Opus, VP8, VP9, AV1 or H.264"
    case .unknownLine: "this peer connection has no m-line with that mid: name one of the last offer"
    case .otherKind: "the m-line with that mid is for another kind of media: name one for the same kind"
    }
  }
}

/// An answer that does not fit the offer. It is read without faults: those are `SDPError`s.
package enum AnswerError: Error, Hashable, Sendable {
  /// No offer waits for an answer.
  case notOffered
  case lineCount(offered: Int, answered: Int)
  /// The mid or kind of this offered line is another one in the answer.
  case otherLine(String)
  /// The answer accepts a line that the offer rejects.
  case rejectedLine(String)
  /// The line has an extension under another id.
  case otherExtension(String)
  /// The peer's certificate is not the one of its former answers.
  case otherFingerprint
}

extension AnswerError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notOffered: "no offer waits for an answer: answer each offer once"
    case .lineCount(let offered, let answered):
      "the answer has \(answered) m= lines and the offer \(offered): answer the last offer"
    case .otherLine(let mid): "the m= line \(mid) has another a=mid or kind in the answer: answer the last offer"
    case .rejectedLine(let mid): "the m= line \(mid) was rejected before: answer it with port 0"
    case .otherExtension(let mid): "the m= line \(mid) has an a=extmap with another id in the answer: keep the ids"
    case .otherFingerprint: "the answer has another a=fingerprint than before: begin a new peer connection"
    }
  }
}
