import MediaModel
import Octets

/// The server's side, from its answer: the part of the SDP that a participant needs.
struct RemoteMedia: Sendable {
  /// A stream that the server sends.
  struct Slot: Sendable {
    var mid: String
    var isVideo: Bool
    var ssrc: UInt32
    /// nil without retransmission.
    var rtxSSRC: UInt32?
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  var credentials: ICECredentials
  var fingerprint: CertificateFingerprint
  /// In the server's order of preference.
  var candidates: [SocketAddress]
  var slots: [Slot]

  init(answer: String) throws {
    var fragment: String?
    var password: String?
    var digest: [UInt8]?
    var candidates: [SocketAddress] = []
    var slots: [Slot] = []
    var section = Section()
    for line in answer.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        slots += section.slot
        section = Section(isVideo: line.hasPrefix("m=video"))
      }
      guard let (name, value) = Self.attribute(line) else { continue }
      switch name {
      case "ice-ufrag": fragment = fragment ?? value
      case "ice-pwd": password = password ?? value
      case "fingerprint": digest = digest ?? Self.digest(value)
      // Repeated in each section of the bundle.
      case "candidate": candidates += Self.candidate(value).filter { !candidates.contains($0) }
      case "mid": section.mid = value
      case "sendonly": section.isSending = true
      case "ssrc": section.add(value)
      case "ssrc-group": section.group(value)
      default: break
      }
    }
    slots += section.slot
    guard let fragment, let password, let digest, !candidates.isEmpty else {
      throw Failure(description: "the answer lacks ICE credentials, a sha-256 fingerprint or candidates")
    }
    credentials = ICECredentials(fragment: fragment, password: password)
    fingerprint = CertificateFingerprint(hash: "sha-256", digest: digest)
    self.candidates = candidates
    self.slots = slots
  }

  private struct Section {
    var isVideo = false
    var mid = ""
    var isSending = false
    var ssrcs: [UInt32] = []
    var pair: (primary: UInt32, rtx: UInt32)?

    mutating func add(_ value: String) {
      if let ssrc = UInt32(value.prefix { $0 != " " }), !ssrcs.contains(ssrc) { ssrcs.append(ssrc) }
    }

    mutating func group(_ value: String) {
      let words = value.split(separator: " ")
      if words.count == 3, words[0] == "FID", let primary = UInt32(words[1]), let rtx = UInt32(words[2]) {
        pair = (primary, rtx)
      }
    }

    var slot: [Slot] {
      guard isSending, let ssrc = pair?.primary ?? ssrcs.first else { return [] }
      return [Slot(mid: mid, isVideo: isVideo, ssrc: ssrc, rtxSSRC: pair?.rtx)]
    }
  }

  private static func attribute(_ line: Substring) -> (name: String, value: String)? {
    guard line.hasPrefix("a=") else { return nil }
    let text = line.dropFirst(2)
    guard let colon = text.firstIndex(of: ":") else { return (String(text), "") }
    return (String(text[..<colon]), String(text[text.index(after: colon)...]))
  }

  private static func digest(_ value: String) -> [UInt8]? {
    let words = value.split(separator: " ")
    guard words.count == 2, words[0].lowercased() == "sha-256" else { return nil }
    return words[1].split(separator: ":").map { UInt8($0, radix: 16) ?? 0 }
  }

  /// `foundation component udp priority address port typ host` (RFC 8839 section 5.1); link-local addresses are useless
  /// without a zone.
  private static func candidate(_ value: String) -> [SocketAddress] {
    let words = value.split(separator: " ")
    guard words.count >= 8, words[1] == "1", words[2].lowercased() == "udp", let port = UInt16(words[5]),
      let address = SocketAddress(numeric: String(words[4]), port: port), !address.isLinkLocal
    else { return [] }
    return [address]
  }
}

extension SocketAddress {
  /// Reads an IPv4 address, or an IPv6 address without a zone.
  init?(numeric text: String, port: UInt16) {
    if !text.contains(":") {
      let bytes = text.split(separator: ".", omittingEmptySubsequences: false).compactMap { UInt8($0) }
      guard bytes.count == 4 else { return nil }
      self.init(ipv4: UInt32(networkOrder: bytes), port: port)
      return
    }
    // "::" stands for the zero groups that are missing from eight.
    let halves = text.split(separator: "::", omittingEmptySubsequences: false)
      .map { $0.split(separator: ":").map { UInt64($0, radix: 16) ?? .max } }
    guard halves.count <= 2 else { return nil }
    var groups = halves[0]
    if halves.count == 2 {
      groups += [UInt64](repeating: 0, count: max(0, 8 - halves[0].count - halves[1].count)) + halves[1]
    }
    guard groups.count == 8, groups.allSatisfy({ $0 <= 0xffff }) else { return nil }
    self.init(
      high: groups[..<4].reduce(0) { $0 << 16 | $1 }, low: groups[4...].reduce(0) { $0 << 16 | $1 }, port: port)
  }
}
