/// The headers of a frame in order, decoded. If a name is repeated, the first wins and the others are not kept.
package struct Headers: Equatable, Sendable, ExpressibleByDictionaryLiteral {
  package struct Field: Equatable, Sendable {
    package var name: String
    package var value: String
  }

  package private(set) var fields: [Field] = []

  package init() {}

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  /// The value of the first header of this name.
  package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Adds a header unless there is one of this name.
  package mutating func append(_ name: String, _ value: String) {
    guard self[name] == nil else { return }
    fields.append(Field(name: name, value: value))
  }

  /// Adds a header unless its value is nil or there is one of this name.
  package mutating func append(_ name: String, _ value: String?) {
    if let value { append(name, value) }
  }

  /// Bytes of all names and values.
  var size: Int { fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
