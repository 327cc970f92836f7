/// One member of an object of the configuration: its name, what it accepts, and where it is stored.
struct ConfigurationMember<Section: Sendable>: Sendable {
  typealias Path<Value> = any WritableKeyPath<Section, Value> & Sendable

  let name: String
  /// One sentence, for the schema.
  let summary: String
  /// A running server takes a new value (SIGHUP).
  private(set) var isLive = false
  private(set) var isRequired = false
  let read: @Sendable (inout Section, KeyedDecodingContainer<MemberName>, MemberName) throws -> Void
  let value: @Sendable (Section) -> JSONValue
  /// The schema of its values.
  private let shape: [JSONValue.Entry]
  /// Adds what is wrong with the value. Its argument is the member's path.
  fileprivate(set) var check: @Sendable (Section, String, inout Faults) -> Void = { _, _, _ in }
  /// The values of an object; nil for other members.
  fileprivate(set) var facts: @Sendable (Section, String, Bool) -> [ConfigurationFact]? = { _, _, _ in nil }

  /// Takes the value of another section.
  fileprivate(set) var copy: @Sendable (inout Section, Section) -> Void = { _, _ in }
  /// Takes from another section those values within it that a running server accepts.
  fileprivate(set) var copyLive: @Sendable (inout Section, Section) -> Void = { _, _ in }

  private init(
    _ name: String, _ summary: String, _ shape: [JSONValue.Entry],
    read: @escaping @Sendable (inout Section, KeyedDecodingContainer<MemberName>, MemberName) throws -> Void,
    value: @escaping @Sendable (Section) -> JSONValue
  ) {
    self.name = name
    self.summary = summary
    self.shape = shape
    self.read = read
    self.value = value
  }

  private init<Value>(
    _ name: String, _ path: Path<Value>, _ summary: String, _ shape: [JSONValue.Entry],
    read: @escaping @Sendable (inout Section, KeyedDecodingContainer<MemberName>, MemberName) throws -> Void,
    value: @escaping @Sendable (Section) -> JSONValue
  ) {
    self.init(name, summary, shape, read: read, value: value)
    copy = { $0[keyPath: path] = $1[keyPath: path] }
  }

  /// The same, for a member whose new value a running server accepts.
  var live: Self {
    var member = self
    member.isLive = true
    return member
  }

  /// The same, for a required member of its object.
  var required: Self {
    var member = self
    member.isRequired = true
    return member
  }

  func schema(_ defaults: Section) -> [JSONValue.Entry] {
    let described = [JSONValue.Entry("description", .string(summary))] + shape
    let isObject = facts(defaults, name, false) != nil
    let value = value(defaults)
    return isRequired || isObject || value == .null ? described : described + [.init("default", value)]
  }
}

extension ConfigurationMember {
  static func integer(_ name: String, _ path: Path<Int>, _ range: ClosedRange<Int>, _ summary: String) -> Self {
    var member = Self(
      name, path, summary,
      [
        .init("type", "integer"), .init("minimum", .integer(range.lowerBound)),
        .init("maximum", .integer(range.upperBound)),
      ],
      read: { section, container, key in
        let wanted = "take a number from \(range.lowerBound) to \(range.upperBound), without quotes"
        if let value = try container.value(Int.self, key, wanted) { section[keyPath: path] = value }
      },
      value: { .integer($0[keyPath: path]) })
    member.check = { section, name, faults in
      let value = section[keyPath: path]
      guard !range.contains(value) else { return }
      faults.add("\(name): \(value) is out of range; take \(range.lowerBound) to \(range.upperBound)")
    }
    return member
  }

  static func flag(_ name: String, _ path: Path<Bool>, _ summary: String) -> Self {
    Self(
      name, path, summary, [.init("type", "boolean")],
      read: { section, container, key in
        let value = try container.value(Bool.self, key, "take true or false, without quotes")
        if let value { section[keyPath: path] = value }
      },
      value: { .boolean($0[keyPath: path]) })
  }

  /// - Parameter rules: further rules of the schema for the text.
  static func text(
    _ name: String, _ path: Path<String>, _ summary: String, _ rules: [JSONValue.Entry] = [.init("minLength", 1)]
  ) -> Self {
    Self(
      name, path, summary, [.init("type", "string")] + rules,
      read: { section, container, key in
        let value = try container.value(String.self, key, "take a text in double quotes")
        if let value { section[keyPath: path] = value }
      },
      value: { .string($0[keyPath: path]) })
  }

  /// A required text.
  static func requiredText(
    _ name: String, _ path: Path<String>, _ summary: String, _ rules: [JSONValue.Entry] = [.init("minLength", 1)]
  ) -> Self {
    Self(
      name, path, summary, [.init("type", "string")] + rules,
      read: { section, container, key in section[keyPath: path] = try container.decode(String.self, forKey: key) },
      value: { .string($0[keyPath: path]) }
    ).required
  }

  static func text(
    _ name: String, _ path: Path<String?>, _ summary: String, _ rules: [JSONValue.Entry] = [.init("minLength", 1)]
  ) -> Self {
    Self(
      name, path, summary, [.init("type", "string")] + rules,
      read: { section, container, key in
        section[keyPath: path] = try container.value(String.self, key, "take a text in double quotes")
      },
      value: { JSONValue($0[keyPath: path]) })
  }

  /// - Parameters:
  ///   - rules: the schema's rules for each text.
  ///   - count: how many texts there may be.
  static func list(
    _ name: String, _ path: Path<[String]>, _ summary: String, _ rules: [JSONValue.Entry] = [.init("minLength", 1)],
    count: ClosedRange<Int>? = nil
  ) -> Self {
    let bounds = count.map {
      [JSONValue.Entry("minItems", .integer($0.lowerBound)), .init("maxItems", .integer($0.upperBound))]
    }
    return Self(
      name, path, summary,
      [.init("type", "array"), .init("items", .object([.init("type", "string")] + rules))] + (bounds ?? []),
      read: { section, container, key in
        let value = try container.value([String].self, key, "take a list of texts, as [\"a\", \"b\"]")
        if let value { section[keyPath: path] = value }
      },
      value: { .array($0[keyPath: path].map { .string($0) }) })
  }

  static func choice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
    _ name: String, _ path: Path<Value>, _ summary: String
  ) -> Self {
    let names = Value.allCases.map(\.rawValue)
    return Self(
      name, path, summary, [.init("enum", .array(names.map { .string($0) }))],
      read: { section, container, key in
        let wanted = "take one of \(names.joined(separator: ", ")), in double quotes"
        guard let text = try container.value(String.self, key, wanted) else { return }
        guard let value = Value(rawValue: text) else { throw container.fault(key, "\"\(text)\" is none; \(wanted)") }
        section[keyPath: path] = value
      },
      value: { .string($0[keyPath: path].rawValue) })
  }

  /// A value with a special form.
  static func value<Value: Decodable & Sendable>(
    _ name: String, _ path: Path<Value>, _ summary: String, _ shape: [JSONValue.Entry],
    json: @escaping @Sendable (Value) -> JSONValue
  ) -> Self {
    Self(
      name, path, summary, shape,
      read: { section, container, key in
        if container.contains(key) { section[keyPath: path] = try container.decode(Value.self, forKey: key) }
      },
      value: { json($0[keyPath: path]) })
  }

  static func section<Value: ConfigurationSection>(_ name: String, _ path: Path<Value>, _ summary: String) -> Self {
    var member = Self(
      name, path, summary, Value.schema,
      read: { section, container, key in
        if let decoder = try container.object(key) { section[keyPath: path] = try Value(reading: decoder) }
      },
      value: { _ in .null })
    member.check = { section, name, faults in section[keyPath: path].checkMembers(name + ".", &faults) }
    member.facts = { section, name, isLive in section[keyPath: path].facts(name + ".", isLive: isLive) }
    member.copyLive = { $0[keyPath: path].takeLive($1[keyPath: path]) }
    return member
  }

  /// An object that may be absent.
  static func section<Value: ConfigurationSection>(_ name: String, _ path: Path<Value?>, _ summary: String) -> Self {
    var member = Self(
      name, path, summary, Value.schema,
      read: { section, container, key in
        section[keyPath: path] = try container.object(key).map(Value.init(reading:))
      },
      value: { _ in .null })
    member.check = { section, name, faults in section[keyPath: path]?.checkMembers(name + ".", &faults) }
    member.facts = { section, name, isLive in section[keyPath: path]?.facts(name + ".", isLive: isLive) }
    member.copyLive = { if let new = $1[keyPath: path] { $0[keyPath: path]?.takeLive(new) } }
    return member
  }

  /// Objects by names that the operator chooses.
  static func map<Value: ConfigurationSection>(
    _ name: String, _ path: Path<[String: Value]>, _ summary: String
  ) -> Self {
    var member = Self(
      name, path, summary, [.init("type", "object"), .init("additionalProperties", .object(Value.schema))],
      read: { section, container, key in
        guard let decoder = try container.object(key) else { return }
        let values = try decoder.container(keyedBy: MemberName.self)
        for key in values.allKeys {
          section[keyPath: path][key.stringValue] = try Value(reading: values.superDecoder(forKey: key))
        }
      },
      value: { section in
        let values = section[keyPath: path].sorted { $0.key < $1.key }
        return .object(
          values.map { name, value in
            .init(name, .object(value.facts().map { .init($0.path, $0.value) }))
          })
      })
    member.check = { section, name, faults in
      for (key, value) in section[keyPath: path].sorted(by: { $0.key < $1.key }) {
        value.checkMembers("\(name).\(key).", &faults)
      }
    }
    return member
  }

  /// A secret in a file, or given directly: two members, of which only one may be set.
  static func secret(_ path: Path<Secret?>, _ summary: String) -> [Self] {
    let shape = [JSONValue.Entry("type", "string"), .init("minLength", 1)]
    let file = Self(
      "secretFile", path, "The file with \(summary).", shape,
      read: { section, container, key in
        section[keyPath: path] = try container.value(String.self, key, "take a path in double quotes").map(Secret.file)
      },
      value: { if case .file(let file)? = $0[keyPath: path] { .string(file) } else { .null } })
    let text = Self(
      "secret", path, "In place of secretFile: \(summary).", shape,
      read: { section, container, key in
        guard let text = try container.value(String.self, key, "take a text in double quotes") else { return }
        guard section[keyPath: path] == nil else {
          throw container.fault(key, "and secretFile are both set; take one")
        }
        section[keyPath: path] = .text(text)
      },
      value: { if case .text(let text)? = $0[keyPath: path] { .string(text) } else { .null } })
    return [file, text]
  }

  /// For editors, which find the schema by it.
  static var schemaAddress: Self {
    Self(
      "$schema", "The address of this schema, for editors; the server does not read it.", [.init("type", "string")],
      read: { _, container, key in _ = try container.value(String.self, key, "take a text in double quotes") },
      value: { _ in .null })
  }
}

extension KeyedDecodingContainer<MemberName> {
  /// nil if it is absent or null.
  /// - Parameter wanted: what to do about a value of another type.
  fileprivate func value<Value: Decodable>(
    _ type: Value.Type, _ key: MemberName, _ wanted: String
  ) throws -> Value? {
    do {
      return try decodeIfPresent(type, forKey: key)
    } catch DecodingError.typeMismatch(_, let context) where context.codingPath.count == codingPath.count + 1 {
      throw fault(key, wanted)
    }
  }

  /// The object of this name; nil if it is absent or null.
  fileprivate func object(_ key: MemberName) throws -> (any Decoder)? {
    guard contains(key), try !decodeNil(forKey: key) else { return nil }
    return try superDecoder(forKey: key)
  }

  fileprivate func fault(_ key: MemberName, _ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: codingPath + [key], debugDescription: reason))
  }
}
