import MediaModel

extension PayloadFormat {
  /// Formats without a medium of their own: repair, silence and key presses.
  private static let auxiliary: Set<String> = ["rtx", "red", "ulpfec", "flexfec-03", "cn", "telephone-event"]

  /// The section's media formats in its order of preference. Malformed ones count as not offered and are ignored.
  static func parse(_ section: SessionDescription.Section) -> [PayloadFormat] {
    let maps = table(section.attributes.all("rtpmap"))
    let parameters = table(section.attributes.all("fmtp"))
    let feedback = Set(section.attributes.all("rtcp-fb").map(\.value))
    var formats: [PayloadFormat] = []
    var rtx: [UInt8: UInt8] = [:]
    for word in section.formats {
      // 64 to 95 would be taken for RTCP (RFC 5761 section 4).
      guard let type = UInt8(word), type < 64 || (96...127).contains(type), let map = maps[type],
        !formats.contains(where: { $0.payloadType == type })
      else { continue }
      let fields = map.split(separator: "/", omittingEmptySubsequences: false)
      guard fields.count >= 2, fields[0].isToken, let clockRate = UInt32(fields[1]), clockRate > 0 else { continue }
      let text = parameters[type].map(String.init) ?? ""
      if fields[0].lowercased() == "rtx", let original = Self.original(of: text) {
        rtx[original] = rtx[original] ?? type
      }
      guard !auxiliary.contains(fields[0].lowercased()), text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) })
      else { continue }
      formats.append(
        PayloadFormat(
          payloadType: type, codec: String(fields[0]), clockRate: clockRate,
          channels: section.media == "audio" ? fields.dropFirst(2).first.flatMap { UInt8($0) } ?? 1 : nil,
          parameters: text, nack: !feedback.isDisjoint(with: ["\(type) nack", "* nack"]),
          pli: !feedback.isDisjoint(with: ["\(type) nack pli", "* nack pli"]),
          fir: !feedback.isDisjoint(with: ["\(type) ccm fir", "* ccm fir"]),
          transportFeedback: !feedback.isDisjoint(with: ["\(type) transport-cc", "* transport-cc"]),
          remb: !feedback.isDisjoint(with: ["\(type) goog-remb", "* goog-remb"])))
    }
    for i in formats.indices { formats[i].rtxPayloadType = rtx[formats[i].payloadType] }
    return formats
  }

  /// Values of "PT value" by payload type; the first one wins.
  private static func table(_ attributes: [SessionDescription.Attribute]) -> [UInt8: Substring] {
    var table: [UInt8: Substring] = [:]
    for attribute in attributes {
      let words = attribute.value.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let type = UInt8(words[0]), table[type] == nil else { continue }
      table[type] = words[1]
    }
    return table
  }

  /// The payload type that an RTX format repairs: "apt=96" (RFC 4588 section 8.6).
  private static func original(of parameters: String) -> UInt8? {
    for parameter in parameters.split(separator: ";") {
      let parameter = parameter.drop { $0 == " " }
      if parameter.hasPrefix("apt=") { return UInt8(parameter.dropFirst(4)) }
    }
    return nil
  }
}
