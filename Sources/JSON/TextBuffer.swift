/// A growing JSON text.
final class TextBuffer {
  private(set) var bytes: [UInt8] = []
  /// Texts of earlier values, of one type each.
  let fragments: [FragmentWriter]

  init(_ fragments: [FragmentWriter] = []) { self.fragments = fragments }

  var count: Int { bytes.count }

  func reserve(_ count: Int) { bytes.reserveCapacity(count) }

  func append(_ byte: UInt8) { bytes.append(byte) }

  func append(_ text: StaticString) {
    bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  func append(_ text: [UInt8]) { bytes += text }

  func append(_ text: ArraySlice<UInt8>) { bytes += text }

  /// Text without characters that JSON escapes.
  func append(plain text: String) { bytes.append(contentsOf: text.utf8) }

  func append(_ number: Int64) {
    // "-9223372036854775808" has 20 digits and signs.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var place = digits.count
    var rest = number.magnitude
    repeat {
      place -= 1
      digits[place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    } while rest > 0
    if number < 0 { bytes.append(UInt8(ascii: "-")) }
    for i in place..<digits.count { bytes.append(digits[i]) }
  }

  /// A string (RFC 8259 section 7). Only characters that must be escaped are.
  func append(quoted text: String) {
    var text = text
    bytes.append(UInt8(ascii: "\""))
    text.withUTF8 { utf8 in
      var first = 0
      for i in utf8.indices {
        let byte = utf8[i]
        guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
        bytes.append(contentsOf: utf8[first..<i])
        escape(byte)
        first = i + 1
      }
      bytes.append(contentsOf: utf8[first...])
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private func escape(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): append("\\\"")
    case UInt8(ascii: "\\"): append("\\\\")
    case 0x08: append("\\b")
    case 0x09: append("\\t")
    case 0x0a: append("\\n")
    case 0x0c: append("\\f")
    case 0x0d: append("\\r")
    default:
      append("\\u00")
      append(plain: byte < 0x10 ? "0" : "1")
      append(Self.digits[Int(byte & 15)])
    }
  }

  private static let digits = Array("0123456789ABCDEF".utf8)
}
