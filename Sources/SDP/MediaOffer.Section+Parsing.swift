import MediaModel

extension MediaOffer.Section {
  /// How many sources a section may announce: 3 layers with RTX are 6.
  private static let maximumSources = 32
  private static let maximumLayers = 3
  /// The longest element of the longer form of header extensions (RFC 8285 section 4.3).
  private static let maximumMid = 255
  /// The protocols that an offer may name for media over DTLS-SRTP, and for data (RFC 9429 section 5.1.2). The name says nothing about the
  /// transport; a fingerprint is required in any case.
  private static let mediaProtocols: Set<Substring> = [
    "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "TCP/TLS/RTP/SAVPF",
    "TCP/TLS/RTP/SAVP",
    "RTP/SAVPF", "RTP/SAVP", "RTP/AVPF", "RTP/AVP",
  ]
  private static let dataProtocols: Set<Substring> = ["UDP/DTLS/SCTP", "TCP/DTLS/SCTP", "DTLS/SCTP"]

  /// The direction may stand above the first m= line (RFC 8866 section 6.7).
  init(parsing section: SessionDescription.Section, in description: SessionDescription) throws(SDPError) {
    let attributes = section.attributes
    let isRejected = section.port == 0 && !attributes.contains("bundle-only")
    let kind: Kind
    switch section.media {
    case "audio": kind = .media(.audio)
    case "video": kind = .media(.video)
    case "application": kind = .application
    default: throw SDPError(line: section.line, "only audio, video and application can stand in an m= line")
    }
    let mid = try Self.mid(of: section, isRejected: isRejected)
    let direction = Self.direction(attributes) ?? Self.direction(description.attributes) ?? .sendrecv
    let known = kind == .application ? Self.dataProtocols : Self.mediaProtocols
    guard isRejected || known.contains(section.protocolName) else {
      let names = kind == .application ? "UDP/DTLS/SCTP" : "UDP/TLS/RTP/SAVPF or another of RFC 9429 section 5.1.2"
      throw SDPError(line: section.line, "its protocol is not known: it must be \(names)")
    }
    let protocolName =
      known.contains(section.protocolName)
      ? String(section.protocolName) : kind == .application ? "UDP/DTLS/SCTP" : "UDP/TLS/RTP/SAVPF"
    guard kind != .application, !isRejected else {
      self.init(
        mid: mid, kind: kind, protocolName: protocolName, isRejected: isRejected, direction: direction,
        formats: PayloadFormat.parse(section))
      return
    }
    let sources = try Self.sources(attributes)
    let (extensions, oneWay) = HeaderExtensionIDs.parse(attributes, direction: direction)
    self.init(
      mid: mid, kind: kind, protocolName: protocolName, direction: direction, formats: PayloadFormat.parse(section),
      ssrcs: sources.primary, rtx: sources.rtx, rids: Self.rids(attributes), extensions: extensions,
      oneWayExtensions: oneWay, takesReducedSizeRTCP: attributes.contains("rtcp-rsize"))
  }

  private static func mid(
    of section: SessionDescription.Section, isRejected: Bool
  ) throws(SDPError) -> String {
    guard let mid = section.attributes.first("mid") else {
      // A rejected section may be empty.
      if isRejected { return "" }
      throw SDPError(line: section.line, "it has no a=mid: give each m= line one")
    }
    guard mid.value.isToken, mid.value.utf8.count <= maximumMid else {
      throw SDPError(line: mid.line, "a mid must be 1 to \(maximumMid) letters, digits or other token characters")
    }
    return String(mid.value)
  }

  private static func direction(_ attributes: [SessionDescription.Attribute]) -> MediaOffer.Direction? {
    for attribute in attributes {
      if let direction = MediaOffer.Direction(rawValue: String(attribute.name)) { return direction }
    }
    return nil
  }

  /// a=ssrc (RFC 5576), without the sources that a=ssrc-group:FID declares as RTX of another.
  private static func sources(
    _ attributes: [SessionDescription.Attribute]
  ) throws(SDPError) -> (primary: [UInt32], rtx: [UInt32: UInt32]) {
    var rtx: [UInt32: UInt32] = [:]
    for group in attributes.all("ssrc-group") {
      let words = group.value.split(separator: " ")
      guard words.first == "FID" else { continue }
      guard words.count == 3, let primary = UInt32(words[1]), let repair = UInt32(words[2]), primary != repair else {
        throw SDPError(line: group.line, "a=ssrc-group:FID must name a source and its RTX source")
      }
      rtx[primary] = repair
    }
    var primary: [UInt32] = []
    for attribute in attributes.all("ssrc") {
      guard let ssrc = UInt32(attribute.value.prefix { $0 != " " }) else {
        throw SDPError(line: attribute.line, "a=ssrc must begin with a number of 32 bits")
      }
      if !primary.contains(ssrc), !rtx.values.contains(ssrc) { primary.append(ssrc) }
      guard primary.count + rtx.count <= maximumSources else {
        throw SDPError(line: attribute.line, "there are over \(maximumSources) sources in one m= line")
      }
    }
    return (primary, rtx.filter { primary.contains($0.key) })
  }

  /// The streams of a=simulcast:send (RFC 8853 section 5.1), the first alternative of each, that an a=rid:… send describes (RFC 8851).
  private static func rids(_ attributes: [SessionDescription.Attribute]) -> [String] {
    let described = attributes.all("rid").compactMap { attribute -> Substring? in
      let words = attribute.value.split(separator: " ", maxSplits: 2)
      return words.count >= 2 && words[1] == "send" && words[0].isRestrictionID ? words[0] : nil
    }
    let words = attributes.first("simulcast")?.value.split(separator: " ") ?? []
    guard let place = words.firstIndex(of: "send"), place + 1 < words.count else { return [] }
    var rids: [String] = []
    for stream in words[place + 1].split(separator: ";") {
      // "~" marks a stream that begins paused.
      let rid = stream.prefix { $0 != "," }.drop { $0 == "~" }
      if described.contains(rid), !rids.contains(String(rid)) { rids.append(String(rid)) }
    }
    return Array(rids.prefix(maximumLayers))
  }
}

extension Substring {
  /// Whether it is a restriction id that fits into a one-byte header extension element (RFC 8852 section 3).
  fileprivate var isRestrictionID: Bool {
    (1...16).contains(utf8.count)
      && utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 || $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a }
  }
}
