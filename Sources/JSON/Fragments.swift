/// The texts of values of one type that occur in one text after another and are mostly unchanged: a call's members in its state, the devices on a list. A
/// value that equals the one last written with its id is not encoded again.
package final class Fragments<Value: Encodable & Equatable, ID: Hashable>: FragmentWriter {
  private let id: (Value) -> ID
  private let maximumCount: Int
  private var known: [ID: (value: Value, text: [UInt8])] = [:]
  /// How often a value was encoded.
  package private(set) var encodings = 0

  /// - Parameters:
  ///   - id: distinguishes the values of one text.
  ///   - maximumCount: how many values are remembered; above it all are forgotten.
  package init(maximumCount: Int = .max, id: @escaping (Value) -> ID) {
    self.id = id
    self.maximumCount = maximumCount
    super.init(Value.self)
  }

  /// Bytes of the texts.
  package private(set) var size = 0

  override func write(_ value: any Encodable, to text: TextBuffer) throws {
    guard let value = value as? Value else { throw JSONError(reason: "is of another type") }
    let id = id(value)
    let old = known[id]
    if let old, old.value == value { return text.append(old.text) }
    let start = text.count
    let encoder = ValueEncoder(text)
    try value.encode(to: encoder)
    encoder.end()
    encodings += 1
    let written = Array(text.bytes[start...])
    if old == nil, known.count >= maximumCount {
      known.removeAll()
      size = 0
    }
    size += written.count - (old?.text.count ?? 0)
    known[id] = (value, written)
  }
}

/// A `Fragments` of any type.
package class FragmentWriter {
  let type: ObjectIdentifier

  fileprivate init(_ type: Any.Type) { self.type = ObjectIdentifier(type) }

  func write(_ value: any Encodable, to text: TextBuffer) throws { throw JSONError(reason: "is of no known type") }
}

extension JSONCoding {
  /// As `encode`, with the texts of those values in `fragments` that have not changed.
  /// - Parameter capacity: approximate number of bytes of the text.
  package static func encode(
    _ value: some Encodable, reusing fragments: FragmentWriter..., capacity: Int = 1_024
  ) throws(JSONError) -> [UInt8] {
    let text = TextBuffer(fragments)
    text.reserve(capacity)
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
}
