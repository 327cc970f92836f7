package import MediaModel

/// The server's side of one peer connection's offers and answers (RFC 9429), from its first offer to its end.
///
/// Overview: `apply` takes an offer and returns the configuration for the SFU; `answer` writes the answer to the latest one.
///
/// Invariants: a remaining m-line keeps its SSRCs for life; the answer has the offer's m-lines in the offer's order; the server's
/// ICE credentials change exactly when the peer's do (an ICE restart, RFC 8839 section 4.4.1.1.1).
package struct Negotiation: Sendable {
  /// The answer to one m-line.
  struct Line: Sendable {
    /// The server's use of the m-line.
    enum Role: Sendable { case reject, idle, receive, send(SSRCs) }

    var offered: MediaOffer.Section
    var formats: [PayloadFormat]
    var role: Role

    /// The simulcast layers that the server receives; empty if one stream is sent. Layers are distinguished by their ids in MID and RID.
    var layers: [String] {
      guard case .receive = role, offered.rids.count > 1, offered.extensions.mid != 0, offered.extensions.rid != 0
      else {
        return []
      }
      return offered.rids
    }
  }

  /// The CNAME of every stream that the server sends, in a=ssrc and in RTCP's SDES: they share one clock.
  package static let cname = "conclave"

  private(set) var local: ICECredentials
  private var remote: ICECredentials?
  let sessionID: UInt64
  private(set) var version: UInt64 = 0
  private(set) var lines: [Line] = []
  private(set) var allowsMixedExtensions = false
  /// The offer's BUNDLE group.
  private(set) var bundle: [String] = []
  private var sources: [String: SSRCs] = [:]

  /// `generator` must be cryptographic, because the ICE password comes from it.
  package init(using generator: inout some RandomNumberGenerator) {
    local = ICECredentials(using: &generator)
    sessionID = generator.next() >> 2
  }

  /// Applies the next offer of the peer. `tracks` names the sending m-lines, `codecs` the video codecs of the call's policy, best
  /// first.
  ///
  /// An m-line without a common codec is answered as rejected and appears neither in the configuration's tracks nor in its slots.
  /// - Parameters:
  ///   - isOnKeyList: in a call, whether its device has keys. In a room it is false: the server knows nothing about the encryption of frames there.
  ///   - filling: `.pinned` in a room.
  ///   - hasSlots: whether the peer receives. Otherwise its recvonly m-lines are inactive, as for a publisher in a room.
  package mutating func apply(
    _ offer: MediaOffer, tracks: [NamedTrack], codecs: [String], peer: PeerID, call: CallID,
    participant: ParticipantNumber, isOnKeyList: Bool, filling: SlotFilling = .ranked, hasSlots: Bool = true,
    using generator: inout some RandomNumberGenerator
  ) -> PeerConfiguration {
    if let remote, remote != offer.credentials { local = ICECredentials(using: &generator) }
    remote = offer.credentials
    version += 1
    allowsMixedExtensions = offer.allowsMixedExtensions
    bundle = offer.bundle
    keepSources(of: offer)
    var configuration = PeerConfiguration(
      peer: peer, call: call, participant: participant, isOnKeyList: isOnKeyList, filling: filling, local: local,
      remote: offer.credentials, fingerprint: offer.fingerprint, extensions: HeaderExtensionIDs(), tracks: [], slots: []
    )
    lines = []
    for section in offer.sections {
      let line = line(
        for: section, tracks: tracks, codecs: codecs, offer: offer, hasSlots: hasSlots, using: &generator)
      lines.append(line)
      add(line, tracks: tracks, to: &configuration)
    }
    let sending = Set(configuration.slots.map(\.ssrc))
    configuration.restingSlots = sources.values.map(\.primary).filter { !sending.contains($0) }.sorted()
    return configuration
  }

  private mutating func line(
    for section: MediaOffer.Section, tracks: [NamedTrack], codecs: [String], offer: MediaOffer, hasSlots: Bool,
    using generator: inout some RandomNumberGenerator
  ) -> Line {
    let formats = section.formats(acceptedOf: codecs)
    guard !section.isRejected, case .media = section.kind, !formats.isEmpty else {
      return Line(offered: section, formats: [], role: .reject)
    }
    var line = Line(offered: section, formats: formats, role: .idle)
    switch section.direction {
    case .recvonly where hasSlots:
      line.role = .send(sources(for: section.mid, avoiding: offer, using: &generator))
    case .sendonly, .sendrecv:
      if tracks.contains(where: { $0.mid == section.mid }) { line.role = .receive }
    case .recvonly, .inactive: break
    }
    return line
  }

  private func add(_ line: Line, tracks: [NamedTrack], to configuration: inout PeerConfiguration) {
    guard case .media(let kind) = line.offered.kind else { return }
    switch line.role {
    case .reject, .idle: return
    case .receive:
      guard let track = tracks.first(where: { $0.mid == line.offered.mid }) else { return }
      configuration.tracks.append(
        UpTrackDescription(
          track: track.track, source: track.source, mid: track.mid, muted: track.muted, formats: line.formats,
          ssrcs: line.layers.isEmpty ? line.offered.ssrcs : [], rtx: line.layers.isEmpty ? line.offered.rtx : [:],
          rids: line.layers))
    case .send(let ssrcs):
      configuration.slots.append(
        SlotDescription(
          mid: line.offered.mid, kind: kind, ssrc: ssrcs.primary, rtxSSRC: ssrcs.rtx, formats: line.formats,
          feedback: line.feedback))
    }
    for (_, path) in line.extensions(mixed: allowsMixedExtensions) {
      configuration.extensions[keyPath: path] = line.offered.extensions[keyPath: path]
    }
  }

  /// Forgets the sources of m-lines that have ended, so that the table does not grow with the number of offers.
  private mutating func keepSources(of offer: MediaOffer) {
    let living = Set(offer.sections.lazy.filter { !$0.isRejected }.map(\.mid))
    sources = sources.filter { living.contains($0.key) }
  }

  private mutating func sources(
    for mid: String, avoiding offer: MediaOffer, using generator: inout some RandomNumberGenerator
  ) -> SSRCs {
    if let known = sources[mid] { return known }
    var taken: Set<UInt32> = []
    for section in offer.sections { taken.formUnion(section.ssrcs + section.rtx.values) }
    for ssrcs in sources.values { taken.formUnion([ssrcs.primary, ssrcs.rtx]) }
    let new = SSRCs(avoiding: taken, using: &generator)
    sources[mid] = new
    return new
  }
}

extension MediaOffer.Section {
  /// The offered formats that the server accepts: Opus for audio, `codecs` for video in their order. The formats of one codec that most receivers
  /// decode come first, because a sender uses the first format of the answer for all receivers. RTX is accepted only with NACK.
  func formats(acceptedOf codecs: [String]) -> [PayloadFormat] {
    let accepted: [PayloadFormat]
    switch kind {
    case .application: return []
    case .media(.audio):
      accepted = formats.filter { $0.codec.lowercased() == "opus" && $0.clockRate == 48_000 && $0.channels == 2 }
    case .media(.video):
      accepted = codecs.flatMap { codec in
        let offered = formats.filter { $0.codec.lowercased() == codec.lowercased() && $0.clockRate == 90_000 }
        // Stable: a sort by two keys.
        return offered.enumerated().sorted {
          ($0.element.profile.rarity, $0.offset) < ($1.element.profile.rarity, $1.offset)
        }
        .map(\.element)
      }
    }
    return accepted.map { format in
      var format = format
      if !format.nack { format.rtxPayloadType = nil }
      return format
    }
  }
}
