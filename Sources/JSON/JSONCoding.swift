import CJansson

/// JSON as the protocol requires it. It is read by jansson: duplicate keys refused, depth limited, 64-bit integers exact, unknown members
/// ignored.
package enum JSONCoding {
  /// The maximum nesting of arrays and objects.
  package static let maximumDepth = 64

  /// - Returns: compact UTF-8 text of `value` without a NUL byte.
  /// - Throws: `JSONError` if `value` cannot be written, for example a number that is not finite.
  package static func encode(_ value: some Encodable) throws(JSONError) -> [UInt8] {
    try encode(value, to: TextBuffer())
  }

  /// - Throws: `JSONError` with the member that is missing or of the wrong type, never with the input's text.
  package static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: UnsafeRawBufferPointer
  ) throws(JSONError) -> Value {
    let root = try root(of: bytes)
    defer { json_decref(root) }
    do {
      return try type.init(from: ValueDecoder(value: root, codingPath: []))
    } catch {
      throw JSONError(error)
    }
  }

  /// - Returns: the parsed text, which the caller releases.
  static func root(of bytes: UnsafeRawBufferPointer) throws(JSONError) -> UnsafeMutablePointer<json_t> {
    guard depth(of: bytes) <= maximumDepth else {
      throw JSONError(reason: "nested deeper than \(maximumDepth); flatten it")
    }
    var failure = json_error_t()
    let flags = Int(JSON_REJECT_DUPLICATES)
    guard let root = json_loadb(bytes.baseAddress, bytes.count, flags, &failure) else {
      throw JSONError(refusal: failure)
    }
    return root
  }

  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws(JSONError) -> Value {
    do {
      return try bytes.withUnsafeBytes { try decode(type, from: $0) }
    } catch {
      throw error as? JSONError ?? JSONError(error)
    }
  }

  /// jansson's own limit is 2,048, so brackets outside of strings are counted before it recurses.
  private static func depth(of bytes: UnsafeRawBufferPointer) -> Int {
    var depth = 0
    var deepest = 0
    var inString = false
    var escaped = false
    for byte in bytes {
      if inString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          inString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): inString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        deepest = max(deepest, depth)
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      default: break
      }
    }
    return deepest
  }
}

/// Why a value could not be read or written.
package struct JSONError: Error, Equatable {
  /// The member concerned, as a dotted path ("callees.0"), if known.
  package var field: String?
  package var reason: String
  /// How many bytes of the text were read until the fault, if it is a fault of the text.
  package var offset: Int?

  package init(field: String? = nil, reason: String) {
    self.field = field
    self.reason = reason
  }

  init(_ error: any Error) {
    switch error {
    case let error as JSONError: self = error
    case DecodingError.keyNotFound(let key, let context):
      self.init(path: context.codingPath + [key], reason: "is missing")
    // The standard library's message for an enum's unknown value repeats the value.
    case DecodingError.dataCorrupted(let context) where context.debugDescription.hasPrefix("Cannot initialize"):
      self.init(path: context.codingPath, reason: "is none of the values that the protocol names")
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
      DecodingError.dataCorrupted(let context):
      self.init(path: context.codingPath, reason: context.debugDescription)
    case EncodingError.invalidValue(_, let context):
      self.init(path: context.codingPath, reason: context.debugDescription)
    default: self.init(reason: "cannot be read or written as JSON")
    }
  }

  /// The fault in the text. The parser's own message is never used, because it repeats the input.
  init(refusal: json_error_t) {
    let place = "at byte \(refusal.position)"
    switch withUnsafePointer(to: refusal, json_error_code) {
    case json_error_duplicate_key: self.init(reason: "a member stands twice \(place)")
    case json_error_numeric_overflow: self.init(reason: "a number does not fit 64 bits \(place)")
    case json_error_null_character, json_error_null_byte_in_key: self.init(reason: "a string holds U+0000 \(place)")
    case json_error_invalid_utf8: self.init(reason: "not UTF-8 \(place)")
    default: self.init(reason: "not JSON \(place)")
    }
    offset = max(0, Int(refusal.position))
  }

  private init(path: [any CodingKey], reason: String) {
    let field = path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    self.init(field: field.isEmpty ? nil : field, reason: reason)
  }
}
