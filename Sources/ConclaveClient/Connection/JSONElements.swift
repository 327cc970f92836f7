import NIOCore
import Octets

/// The elements of one array in a JSON text, and the text with that array emptied: large bodies differ little from each other, so their parts are decoded
/// separately. It only finds where the parts are; their decoder validates them.
struct JSONElements {
  let rest: ByteBuffer
  let elements: [ByteBuffer]
  private let text: ByteBuffer
  private let places: [Range<Int>]

  /// nil unless `path` leads through objects to an array and every name on it occurs once.
  init?(of text: ByteBuffer, at path: [String]) {
    let found = text.withUnsafeReadableBytes { bytes -> Scanner.Array? in
      var scanner = Scanner()
      return scanner.array(path[...], in: bytes.bytes)
    }
    guard let found else { return nil }
    let start = text.readerIndex
    func slice(_ range: Range<Int>) -> ByteBuffer? { text.getSlice(at: start + range.lowerBound, length: range.count) }
    guard var rest = slice(0..<found.content.lowerBound),
      var end = slice(found.content.upperBound..<text.readableBytes)
    else { return nil }
    rest.writeBuffer(&end)
    self.rest = rest
    self.text = text
    places = found.elements
    elements = places.compactMap(slice)
  }

  /// The text from the first of some elements to the last.
  func text(of elements: Range<Int>) -> ByteBuffer? {
    guard let first = places[elements].first, let last = places[elements].last else { return nil }
    return text.getSlice(at: text.readerIndex + first.lowerBound, length: last.upperBound - first.lowerBound)
  }

  /// A position in a text, which is passed to each step: a type that may be stored cannot contain a span.
  private struct Scanner {
    /// Positions in the text.
    struct Array {
      /// The text between the brackets.
      var content: Range<Int>
      var elements: [Range<Int>]
    }

    private var index = 0

    private func next(in text: RawSpan) -> UInt8? { index < text.byteCount ? text[index] : nil }

    private mutating func skipBlanks(in text: RawSpan) {
      while let byte = next(in: text), byte == 0x20 || (0x09...0x0d).contains(byte) { index += 1 }
    }

    /// Whether this byte comes next, after white space; then it is consumed.
    private mutating func take(_ character: Unicode.Scalar, in text: RawSpan) -> Bool {
      skipBlanks(in: text)
      guard next(in: text) == UInt8(ascii: character) else { return false }
      index += 1
      return true
    }

    /// The array to which `path` leads in the object that begins here.
    mutating func array(_ path: ArraySlice<String>, in text: RawSpan) -> Array? {
      guard let wanted = path.first else { return elements(in: text) }
      guard take("{", in: text) else { return nil }
      var found: Array?
      repeat {
        guard let name = string(in: text), take(":", in: text) else { return nil }
        if name.count == wanted.utf8.count, zip(name, wanted.utf8).allSatisfy({ text[$0] == $1 }) {
          guard found == nil, let array = array(path.dropFirst(), in: text) else { return nil }
          found = array
        } else {
          // An escape may spell a name a second time.
          guard !name.contains(where: { text[$0] == UInt8(ascii: "\\") }), skipValue(in: text) else { return nil }
        }
      } while take(",", in: text)
      return take("}", in: text) ? found : nil
    }

    private mutating func elements(in text: RawSpan) -> Array? {
      guard take("[", in: text) else { return nil }
      let start = index
      var elements: [Range<Int>] = []
      if take("]", in: text) { return Array(content: start..<index - 1, elements: []) }
      repeat {
        skipBlanks(in: text)
        let begin = index
        guard skipValue(in: text) else { return nil }
        elements.append(begin..<index)
      } while take(",", in: text)
      return take("]", in: text) ? Array(content: start..<index - 1, elements: elements) : nil
    }

    /// The range of a string's content.
    private mutating func string(in text: RawSpan) -> Range<Int>? {
      guard take("\"", in: text) else { return nil }
      let start = index
      while let byte = next(in: text) {
        if byte == UInt8(ascii: "\"") {
          index += 1
          return start..<index - 1
        }
        index += byte == UInt8(ascii: "\\") ? 2 : 1
      }
      return nil
    }

    private mutating func skipValue(in text: RawSpan) -> Bool {
      skipBlanks(in: text)
      let start = index
      var depth = 0
      while let byte = next(in: text) {
        switch byte {
        case UInt8(ascii: "\""):
          guard string(in: text) != nil else { return false }
          if depth == 0 { return true }
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          depth += 1
          index += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          // The end of the enclosing value.
          if depth == 0 { return index > start }
          depth -= 1
          index += 1
          if depth == 0 { return true }
        case UInt8(ascii: ","):
          if depth == 0 { return index > start }
          index += 1
        default: index += 1
        }
      }
      return false
    }
  }
}
