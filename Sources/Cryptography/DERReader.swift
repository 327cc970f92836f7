/// Reads values in DER (X.690 section 10), as far as public keys and signatures need it: each length in its shortest form, and below 64 KiB.
struct DERReader {
  enum Tag: UInt8 { case integer = 0x02, bitString = 0x03, sequence = 0x30 }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  /// The content of the next value; nil unless it is a whole value of this type.
  mutating func content(_ tag: Tag) -> ArraySlice<UInt8>? {
    var rest = rest
    guard rest.popFirst() == tag.rawValue, let first = rest.popFirst() else { return nil }
    var count = Int(first)
    if first >= 0x80 {
      let bytes = rest.prefix(Int(first & 0x7f))
      guard 1...2 ~= first & 0x7f, bytes.count == first & 0x7f else { return nil }
      count = bytes.reduce(0) { $0 << 8 | Int($1) }
      guard count >= (bytes.count == 1 ? 0x80 : 0x100) else { return nil }
      rest = rest.dropFirst(bytes.count)
    }
    let content = rest.prefix(count)
    guard content.count == count else { return nil }
    self.rest = rest.dropFirst(count)
    return content
  }

  /// An INTEGER that is not negative, without leading zeros; 0 is a single zero.
  mutating func unsignedInteger() -> ArraySlice<UInt8>? {
    guard let content = content(.integer), let first = content.first, first < 0x80 else { return nil }
    guard first == 0, content.count > 1 else { return content }
    let value = content.dropFirst()
    // The zero is only there for a value whose first bit would be read as a sign.
    return value.first.map { $0 >= 0x80 } == true ? value : nil
  }

  /// - Parameter magnitude: in network byte order; leading zeros are left out.
  static func encoded(integer magnitude: some Collection<UInt8>) -> [UInt8] {
    var content = Array(magnitude.drop { $0 == 0 })
    if content.first.map({ $0 >= 0x80 }) ?? true { content.insert(0, at: 0) }
    return encoded(.integer, content)
  }

  /// - Parameter content: less than 256 bytes.
  static func encoded(_ tag: Tag, _ content: [UInt8]) -> [UInt8] {
    precondition(content.count < 256)
    let count = UInt8(content.count)
    return (count < 0x80 ? [tag.rawValue, count] : [tag.rawValue, 0x81, count]) + content
  }
}
