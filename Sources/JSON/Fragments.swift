/// The texts of values of one type that occur in one text after another, in the same order and mostly unchanged: a call's members in its state. A value
/// that equals the one at its place in the text before is not encoded again.
package final class Fragments<Value: Encodable & Equatable> {
  private var known: [(value: Value, text: [UInt8])] = []
  private var next = 0
  /// How often a value was encoded.
  package private(set) var encodings = 0

  package init() {}

  /// Bytes of the texts.
  package private(set) var size = 0

  fileprivate func begin() { next = 0 }
}

/// A `Fragments` of any type.
protocol FragmentWriter: AnyObject {
  var type: ObjectIdentifier { get }
  func write(_ value: any Encodable, to text: TextBuffer) throws
}

extension Fragments: FragmentWriter {
  var type: ObjectIdentifier { ObjectIdentifier(Value.self) }

  func write(_ value: any Encodable, to text: TextBuffer) throws {
    guard let value = value as? Value else { throw JSONError(reason: "is of another type") }
    defer { next += 1 }
    if next < known.count, known[next].value == value { return text.append(known[next].text) }
    let start = text.count
    let encoder = ValueEncoder(text)
    try value.encode(to: encoder)
    encoder.end()
    encodings += 1
    let written = Array(text.bytes[start...])
    size += written.count
    if next < known.count {
      size -= known[next].text.count
      known[next] = (value, written)
    } else {
      known.append((value, written))
    }
  }
}

extension JSON {
  /// As `encode`, with the texts of those values in `fragments` that have not changed.
  package static func encode<Value>(
    _ value: some Encodable, reusing fragments: Fragments<Value>
  ) throws(JSONError) -> [UInt8] {
    fragments.begin()
    let text = TextBuffer(fragments)
    text.reserve(fragments.size + 1_024)
    return try encode(value, to: text)
  }

  static func encode(_ value: some Encodable, to text: TextBuffer) throws(JSONError) -> [UInt8] {
    do {
      let root = ValueEncoder(text)
      try value.encode(to: root)
      root.end()
      return text.bytes
    } catch {
      throw JSONError(error)
    }
  }

  /// Text that `encode` made before; encoded, it is that text.
  package struct Text: Encodable, Sendable {
    private let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package func encode(to encoder: any Encoder) throws {
      guard let encoder = encoder as? ValueEncoder else { throw JSONError(reason: "is JSON already") }
      try encoder.whole { $0.append(bytes) }
    }
  }
}
