import JSON

/// A JSON value whose members keep their order: for the schema of the configuration, and for comparing configurations.
enum JSONValue: Hashable, Sendable {
  case null
  case boolean(Bool)
  case integer(Int)
  case string(String)
  case array([JSONValue])
  case object([Entry])

  struct Entry: Hashable, Sendable {
    var name: String
    var value: JSONValue

    init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  init(_ text: String?) { self = text.map { .string($0) } ?? .null }

  /// Indented text, without a line end. Arrays and objects that fit into a line are written in one.
  var text: String { text(indent: 0) }

  private func text(indent: Int) -> String {
    let short = compact
    guard short.utf8.count > 100 - indent else { return short }
    let inner = String(repeating: " ", count: indent + 2)
    let outer = String(repeating: " ", count: indent)
    switch self {
    case .array(let values):
      return "[\n" + values.map { inner + $0.text(indent: indent + 2) }.joined(separator: ",\n") + "\n\(outer)]"
    case .object(let entries):
      let lines = entries.map { "\(inner)\(Self.quoted($0.name)): \($0.value.text(indent: indent + 2))" }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
    default: return short
    }
  }

  private var compact: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .string(let value): Self.quoted(value)
    case .array(let values): "[" + values.map(\.compact).joined(separator: ", ") + "]"
    case .object(let entries):
      "{" + entries.map { "\(Self.quoted($0.name)): \($0.value.compact)" }.joined(separator: ", ") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    // Strings can always be encoded.
    String(decoding: (try? JSONCoding.encode(text)) ?? [], as: UTF8.self)
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int) { self = .integer(value) }
  init(booleanLiteral value: Bool) { self = .boolean(value) }
  init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Entry($0.0, $0.1) })
  }
}
