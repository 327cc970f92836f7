/// Bytes that travel as base64 (RFC 4648 section 4, with padding; anything else is refused). It has no description: envelopes, keys and metadata never reach a log.
package struct Base64Bytes: Hashable, Sendable, Codable {
  package var bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// nil when `text` is not canonical base64 with padding.
  package init?(base64 text: String) {
    let characters = Array(text.utf8)
    guard characters.count % 4 == 0 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(characters.count / 4 * 3)
    for start in stride(from: 0, to: characters.count, by: 4) {
      let group = characters[start..<start + 4]
      let padding = start + 4 == characters.count ? group.reversed().prefix { $0 == UInt8(ascii: "=") }.count : 0
      guard padding <= 2 else { return nil }
      var word: UInt32 = 0
      for character in group.dropLast(padding) {
        guard let value = value(of: character) else { return nil }
        word = word << 6 | UInt32(value)
      }
      word <<= UInt32(6 * padding)
      // Bits after the last byte must be zero, or two texts would mean the same bytes (RFC 4648 section 3.5).
      guard word & ((1 << UInt32(8 * padding)) - 1) == 0 else { return nil }
      for i in 0..<3 - padding { bytes.append(UInt8(truncatingIfNeeded: word >> UInt32(16 - 8 * i))) }
    }
    self.bytes = bytes
  }

  package var base64: String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var word: UInt32 = 0
      for byte in group { word = word << 8 | UInt32(byte) }
      word <<= UInt32(8 * (3 - group.count))
      for i in 0...group.count { text.append(alphabet[Int(word >> UInt32(18 - 6 * i) & 63)]) }
      for _ in 0..<3 - group.count { text.append(UInt8(ascii: "=")) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Base64Bytes(base64: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "base64 with padding is wanted (RFC 4648 section 4)")
    }
    self = value
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(base64)
  }
}

extension Base64Bytes: CustomStringConvertible { package var description: String { "bytes" } }

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

private func value(of character: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
  case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
  case UInt8(ascii: "+"): 62
  case UInt8(ascii: "/"): 63
  default: nil
  }
}
