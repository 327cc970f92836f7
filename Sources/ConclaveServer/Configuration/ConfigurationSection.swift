/// An object of the configuration. Its declaration in `members` is complete: reading, checking, the schema, and which values a reload accepts follow from
/// it.
protocol ConfigurationSection: Sendable {
  /// All members have their defaults.
  init()

  static var members: [ConfigurationMember<Self>] { get }

  /// Further rules of the object, in JSON Schema.
  static var schemaRules: [JSONValue.Entry] { get }
}

/// A member of the configuration with its value.
struct ConfigurationFact: Hashable {
  /// As `listen.http`.
  var path: String
  var value: JSONValue
  /// A running server accepts a new value (SIGHUP).
  var isLive: Bool
}

/// The name of a member of any object.
struct MemberName: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }
  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
  init(_ name: String) { stringValue = name }
}

extension ConfigurationSection {
  static var schemaRules: [JSONValue.Entry] { [] }

  /// An undeclared member is refused, so that a mistyped one is reported and not ignored.
  init(reading decoder: any Decoder) throws {
    self.init()
    let container = try decoder.container(keyedBy: MemberName.self)
    let names = Self.members.map(\.name)
    for key in container.allKeys where !names.contains(key.stringValue) {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath + [key],
          debugDescription:
            "is not an option; there are \(names.filter { !$0.hasPrefix("$") }.sorted().joined(separator: ", "))"))
    }
    for member in Self.members { try member.read(&self, container, MemberName(member.name)) }
  }

  /// Adds the values that are out of range.
  /// - Parameter path: of this object; empty, or with a point at its end.
  func checkMembers(_ path: String = "", _ faults: inout Faults) {
    for member in Self.members { member.check(self, path + member.name, &faults) }
  }

  /// All values; those of nested objects with their own paths.
  func facts(_ path: String = "", isLive: Bool = false) -> [ConfigurationFact] {
    Self.members.flatMap { member in
      let name = path + member.name
      let live = isLive || member.isLive
      return member.facts(self, name, live) ?? [ConfigurationFact(path: name, value: member.value(self), isLive: live)]
    }
  }

  /// Takes from another section the values that a running server accepts.
  mutating func takeLive(_ new: Self) {
    for member in Self.members {
      if member.isLive { member.copy(&self, new) } else { member.copyLive(&self, new) }
    }
  }

  /// JSON Schema, draft 7.
  static var schema: [JSONValue.Entry] {
    let defaults = Self()
    let properties = members.map { JSONValue.Entry($0.name, .object($0.schema(defaults))) }
    var schema = [
      JSONValue.Entry("type", "object"), .init("additionalProperties", false), .init("properties", .object(properties)),
    ]
    let required = members.filter(\.isRequired).map { JSONValue.string($0.name) }
    if !required.isEmpty { schema.append(.init("required", .array(required))) }
    return schema + schemaRules
  }
}

extension Configuration {
  /// The JSON Schema of the file, for editors and for the Helm chart.
  package static var schemaText: String {
    let head: [JSONValue.Entry] = [
      .init("$schema", "http://json-schema.org/draft-07/schema#"), .init("title", "Configuration of Conclave"),
    ]
    return JSONValue.object(head + schema).text
  }

  /// The differences from the other configuration.
  /// - Returns: the paths that a running server accepts, and those that take effect only at its next start; each in
  ///   order.
  func changes(to new: Configuration) -> (live: [String], waiting: [String]) {
    let (old, new) = (Dictionary(facts()), Dictionary(new.facts()))
    let changed = Set(old.keys).union(new.keys).filter { old[$0]?.value != new[$0]?.value }.sorted()
    // An object that was added or removed is named, and its members are not.
    let named = changed.filter { path in !changed.contains { path.hasPrefix($0 + ".") } }
    let live = named.filter { old[$0]?.isLive == true || new[$0]?.isLive == true }
    return (live, named.filter { !live.contains($0) })
  }
}

extension [String: ConfigurationFact] {
  fileprivate init(_ facts: [ConfigurationFact]) {
    self.init(facts.map { ($0.path, $0) }) { first, _ in first }
  }
}
