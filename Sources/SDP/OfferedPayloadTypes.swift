import MediaModel

/// The payload types of one peer connection's offers: one for each decoder that a stream needs.
struct OfferedPayloadTypes: Sendable {
  private struct Codec {
    var name: String
    /// The payload type of its first format; nil for the next free one.
    var type: UInt8?
    /// The format parameters that receivers need to know. Others are not repeated: they are a publisher's text.
    var parameters: Set<String>
  }

  private static let codecs = [
    Codec(name: "opus", type: 111, parameters: ["useinbandfec", "stereo", "sprop-stereo"]),
    Codec(name: "VP8", type: 96, parameters: []),
    Codec(name: "VP9", type: 98, parameters: ["profile-id"]),
    Codec(name: "AV1", type: 100, parameters: ["profile", "level-idx", "tier"]),
    Codec(
      name: "H264", type: 102, parameters: ["profile-level-id", "packetization-mode", "level-asymmetry-allowed"]),
    Codec(name: "H265", type: nil, parameters: ["profile-id", "tier-flag", "level-id", "tx-mode"]),
  ]
  /// The dynamic types (RFC 3551 section 6), then those that are unassigned; 64 to 95 would be taken for RTCP (RFC 5761 section 4).
  private static let types = Array(UInt8(96)...127) + Array(UInt8(35)...63)

  private var formats: [CodecProfile: PayloadFormat] = [:]
  private var taken: Set<UInt8> = []

  /// A publisher's format as it is offered; nil for a codec that cannot be offered, or if all payload types are taken.
  mutating func format(for source: PayloadFormat, of kind: MediaKind) -> PayloadFormat? {
    if let known = formats[source.profile] { return known }
    guard let codec = Self.codecs.first(where: { $0.name.lowercased() == source.codec.lowercased() }),
      (codec.name == "opus") == (kind == .audio), let type = take(codec.type)
    else { return nil }
    let isVideo = kind == .video
    let rtx = isVideo ? take(type == codec.type ? type + 1 : nil) : nil
    let format = PayloadFormat(
      payloadType: type, codec: codec.name, clockRate: source.clockRate, channels: source.channels,
      parameters: parameters(of: source, as: codec), rtxPayloadType: rtx, nack: isVideo, pli: isVideo,
      transportFeedback: true, remb: isVideo)
    formats[source.profile] = format
    return format
  }

  /// The wished type, or the next one that is free and that no other codec begins with.
  private mutating func take(_ wished: UInt8?) -> UInt8? {
    let kept = Self.codecs.compactMap(\.type).flatMap { [$0, $0 + 1] }
    let isFree = wished.map { !taken.contains($0) } ?? false
    let free = isFree ? wished : Self.types.first { !taken.contains($0) && !kept.contains($0) }
    if let free { taken.insert(free) }
    return free
  }

  private func parameters(of source: PayloadFormat, as codec: Codec) -> String {
    source.parameters.split(separator: ";").map { $0.drop { $0 == " " } }
      .filter { item in
        let pair = item.split(separator: "=", maxSplits: 1)
        return pair.count == 2 && codec.parameters.contains(pair[0].lowercased())
          && (1...8).contains(pair[1].utf8.count) && pair[1].utf8.allSatisfy { $0.isLetterOrDigit }
      }
      .joined(separator: ";")
  }
}

extension UInt8 {
  fileprivate var isLetterOrDigit: Bool {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }
}
