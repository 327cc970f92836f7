/// Bytes of EBML elements (RFC 8794). Sizes have 8 bytes, so that they can be written before they are known.
enum EBML {
  /// The bytes of an element's size.
  static let sizeBytes = 8
  /// A size that is not known yet (RFC 8794 section 6.2).
  static let unknownSize: [UInt8] = [1] + [UInt8](repeating: 0xFF, count: 7)

  /// A whole number in as few bytes as it needs.
  static func number(_ value: UInt64) -> [UInt8] {
    let bytes = eight(value).drop { $0 == 0 }
    return bytes.isEmpty ? [0] : Array(bytes)
  }

  static func eight(_ value: UInt64) -> [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  static func double(_ value: Double) -> [UInt8] { eight(value.bitPattern) }

  static func size(_ count: Int) -> [UInt8] {
    var bytes = eight(UInt64(count))
    bytes[0] = 1
    return bytes
  }

  static func element(_ id: UInt32, _ parts: [UInt8]...) -> [UInt8] {
    let body = parts.joined()
    return number(UInt64(id)) + size(body.count) + body
  }
}
