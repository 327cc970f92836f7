import Contract
import MediaModel

/// Writes the JSON Schema (2020-12) of types, derived from what their `init(from:)` reads from a decoder: names, types,
/// and which members may be absent.
///
/// Strings and numbers with special rules, such as ids, are named in `Known`. Enumerations list their cases. Each other
/// type becomes a definition.
final class SchemaWriter {
  typealias Schema = [String: Any]

  private(set) var definitions: [String: Schema] = [:]

  /// The schema of a value: a reference for types with members.
  func schema<Value: Decodable>(of type: Value.Type) throws -> Schema { try look(at: type).schema }

  /// The schema of an object that several types read together.
  func object(_ read: (any Decoder) throws -> Void) throws -> Schema {
    let recorder = Recorder(writer: self)
    try read(recorder)
    return recorder.schema
  }

  /// The schema, and a value for the type's own `init(from:)`.
  fileprivate func look<Value: Decodable>(at type: Value.Type) throws -> (schema: Schema, value: Value) {
    if let known = type as? any Known.Type { return (known.schema, known.example as! Value) }
    if let list = type as? any Container.Type { return (try list.schema(self), list.empty as! Value) }
    if let choice = type as? any (CaseIterable & RawRepresentable).Type {
      let cases = Self.cases(of: choice)
      return (["enum": cases.map(\.text)], cases[0].value as! Value)
    }
    // "Contract.MediaRequest.Track"
    let name = String(reflecting: type).split(separator: ".").dropFirst().joined(separator: ".")
    let recorder = Recorder(writer: self)
    let value = try Value(from: recorder)
    let schema = try adjusted(recorder.schema, of: type)
    definitions[name] = schema
    return (["$ref": "#/$defs/\(name)"], value)
  }

  /// The schema with the rules that the type itself checks.
  private func adjusted(_ schema: Schema, of type: any Decodable.Type) throws -> Schema {
    var schema = schema
    var members = schema["properties"] as? Schema ?? [:]
    switch type {
    case is JoinKey.Type: members["v"] = ["const": JoinKey.version]
    case is Envelope.Type:
      // Its ciphertext is accepted under either name.
      schema["required"] = (schema["required"] as? [String])?.filter { $0 != "ciphertext" }
      schema["anyOf"] = [["required": ["ciphertext"]], ["required": ["encryptedAESKey"]]]
    case is SubscribePush.Type:
      members["subscription"] = ["anyOf": [try self.schema(of: PushSubscription.self), ["type": "null"]]]
    default: return schema
    }
    schema["properties"] = members
    return schema
  }

  private static func cases<Choice: CaseIterable & RawRepresentable>(
    of type: Choice.Type
  ) -> [(text: Any, value: Choice)] { type.allCases.map { ($0.rawValue, $0) } }
}

/// A type whose schema has more than its members.
private protocol Known {
  static var schema: SchemaWriter.Schema { get }
  static var example: Self { get }
}

extension String: Known {
  static var schema: SchemaWriter.Schema { ["type": "string"] }
  static var example: String { "" }
}

extension Bool: Known {
  static var schema: SchemaWriter.Schema { ["type": "boolean"] }
  static var example: Bool { false }
}

extension Double: Known {
  static var schema: SchemaWriter.Schema { ["type": "number"] }
  static var example: Double { 0 }
}

extension Int: Known {
  static var schema: SchemaWriter.Schema { ["type": "integer"] }
  /// A join key of another version is refused.
  static var example: Int { JoinKey.version }
}

extension UInt8: Known {
  static var schema: SchemaWriter.Schema { ["type": "integer", "minimum": 0, "maximum": Int(UInt8.max)] }
  static var example: UInt8 { 1 }
}

extension UInt32: Known {
  static var schema: SchemaWriter.Schema { ["type": "integer", "minimum": 0, "maximum": Int(UInt32.max)] }
  static var example: UInt32 { 1 }
}

extension UInt64: Known {
  /// The protocol's whole numbers are exact in JavaScript.
  static var schema: SchemaWriter.Schema { ["type": "integer", "minimum": 0, "maximum": 1 << 53 - 1] }
  static var example: UInt64 { 1 }
}

extension Timestamp: Known {
  static var schema: SchemaWriter.Schema { ["type": "integer", "description": "Milliseconds since 1970, UTC."] }
  static var example: Timestamp { Timestamp(milliseconds: 1) }
}

extension Base64Bytes: Known {
  static var schema: SchemaWriter.Schema {
    [
      "type": "string", "contentEncoding": "base64",
      "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    ]
  }
  static var example: Base64Bytes { Base64Bytes([]) }
}

extension TrackID: Known {
  static var schema: SchemaWriter.Schema { ["type": "string", "pattern": "^[0-9]{1,10}\\.[0-9]{1,3}$"] }
  static var example: TrackID { TrackID(participant: 1, index: 1) }
}

extension RecordingID: Known {
  static var schema: SchemaWriter.Schema {
    ["type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"]
  }
  static var example: RecordingID { RecordingID([UInt8](repeating: 0, count: byteCount))! }
}

extension ReelPage.Segment: Known {
  static var schema: SchemaWriter.Schema {
    ["type": "array", "prefixItems": [Int.schema, Base64Bytes.schema, Int.schema], "minItems": 3]
  }
  static var example: ReelPage.Segment { ReelPage.Segment(byteCount: 112, hash: Base64Bytes([]), start: 0) }
}

extension ProtocolIdentifier {
  fileprivate static var schema: SchemaWriter.Schema {
    ["type": "string", "pattern": "^[A-Za-z0-9._~@+-]{1,128}$"]
  }
  fileprivate static var example: Self { Self(unchecked: "a") }
}

extension UserID: Known {}
extension DeviceID: Known {}
extension CallID: Known {}

extension LinkID: Known {
  static var schema: SchemaWriter.Schema { ["type": "string", "pattern": "^[A-Za-z0-9_-]{21}[AQgw]$"] }
  static var example: LinkID { LinkID(unchecked: String(repeating: "A", count: 22)) }
}

private protocol Container {
  static func schema(_ writer: SchemaWriter) throws -> SchemaWriter.Schema
  static var empty: Self { get }
}

extension Array: Container where Element: Decodable {
  fileprivate static func schema(_ writer: SchemaWriter) throws -> SchemaWriter.Schema {
    ["type": "array", "items": try writer.schema(of: Element.self)]
  }
  fileprivate static var empty: Self { [] }
}

extension Dictionary: Container where Key: ProtocolIdentifier, Value: Decodable {
  fileprivate static func schema(_ writer: SchemaWriter) throws -> SchemaWriter.Schema {
    [
      "type": "object", "propertyNames": try writer.schema(of: Key.self),
      "additionalProperties": try writer.schema(of: Value.self),
    ]
  }
  fileprivate static var empty: Self { [:] }
}

/// A decoder that records what is read from it. Optional members are absent.
private final class Recorder: Decoder {
  let writer: SchemaWriter
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]
  private var properties: SchemaWriter.Schema = [:]
  private var required: Set<String> = []

  struct Unexpected: Error { let type: Any.Type }

  init(writer: SchemaWriter) { self.writer = writer }

  var schema: SchemaWriter.Schema {
    var schema: SchemaWriter.Schema = ["type": "object"]
    if !properties.isEmpty { schema["properties"] = properties }
    if !required.isEmpty { schema["required"] = required.sorted() }
    return schema
  }

  func note<Value: Decodable>(_ type: Value.Type, _ key: any CodingKey, isRequired: Bool) throws -> Value {
    let (schema, value) = try writer.look(at: type)
    properties[key.stringValue] = schema
    if isRequired { required.insert(key.stringValue) }
    return value
  }

  func container<Key>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Members(recorder: self))
  }
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unexpected(type: [Any].self) }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Unexpected(type: Any.self) }
}

private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let recorder: Recorder
  let codingPath: [any CodingKey] = []
  let allKeys: [Key] = []

  func contains(_ key: Key) -> Bool { true }
  func decodeNil(forKey key: Key) -> Bool { true }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try recorder.note(type, key, isRequired: true)
  }
  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
    _ = try recorder.note(type, key, isRequired: false)
    return nil
  }
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try absent(type, key) }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try absent(type, key) }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try absent(type, key) }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try absent(type, key) }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try absent(type, key) }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try absent(type, key) }

  private func absent<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
    _ = try recorder.note(type, key, isRequired: false)
    return nil
  }

  func nestedContainer<NestedKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> { throw Recorder.Unexpected(type: type) }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw Recorder.Unexpected(type: [Any].self)
  }
  func superDecoder() throws -> any Decoder { throw Recorder.Unexpected(type: Any.self) }
  func superDecoder(forKey key: Key) throws -> any Decoder { throw Recorder.Unexpected(type: Any.self) }
}
