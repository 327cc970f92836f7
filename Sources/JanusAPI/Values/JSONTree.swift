/// A JSON value. A request comes as one, because which members it has decides about the error; the shell reads and writes the text.
package enum JSONTree: Hashable, Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([JSONTree])
  case object(JSONObject)
}

/// The members of an object, in their order.
package struct JSONObject: Hashable, Sendable {
  package struct Member: Hashable, Sendable {
    package var name: String
    package var value: JSONTree
    package init(name: String, value: JSONTree) {
      self.name = name
      self.value = value
    }
  }

  package private(set) var members: [Member]

  package init(_ members: [Member] = []) { self.members = members }

  /// The search is linear: `JSONTree.isWider` bounds the members of a request's objects.
  package subscript(name: String) -> JSONTree? { members.first { $0.name == name }?.value }

  /// Appends a member; `nil` appends none.
  mutating func add(_ name: String, _ value: JSONTree?) {
    guard let value else { return }
    members.append(Member(name: name, value: value))
  }
}

extension JSONTree {
  /// Whether an object has more members, or a list more elements, than `limit`.
  func isWider(than limit: Int) -> Bool {
    switch self {
    case .list(let values): values.count > limit || values.contains { $0.isWider(than: limit) }
    case .object(let object):
      object.members.count > limit || object.members.contains { $0.value.isWider(than: limit) }
    default: false
    }
  }

  /// About the bytes of its text.
  var size: Int {
    switch self {
    case .null, .boolean: 5
    case .integer, .number: 16
    case .text(let text): text.utf8.count + 2
    case .list(let values): values.reduce(2) { $0 + $1.size + 1 }
    case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + $1.value.size + 4 }
    }
  }
}

extension JSONTree: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  package init(stringLiteral text: String) { self = .text(text) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(arrayLiteral elements: JSONTree...) { self = .list(elements) }
  package init(dictionaryLiteral elements: (String, JSONTree)...) {
    self = .object(JSONObject(elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
  }

  init(_ number: Int) { self = .integer(Int64(number)) }
  /// Ids are less than 2⁵³.
  init(_ number: UInt64) { self = .integer(Int64(clamping: number)) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, JSONTree)...) {
    self.init(elements.map { Member(name: $0.0, value: $0.1) })
  }
}
