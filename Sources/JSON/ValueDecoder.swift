import CJansson

/// One value of a parsed text; `JSONCoding.decode` keeps the root alive while decoders of its members are in use.
struct ValueDecoder: Decoder {
  let value: UnsafeMutablePointer<json_t>
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard value.pointee.type == JSON_OBJECT else { throw mismatch([String: Any].self, "an object is wanted") }
    return KeyedDecodingContainer(ObjectDecoding(decoder: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard value.pointee.type == JSON_ARRAY else { throw mismatch([Any].self, "an array is wanted") }
    return ArrayDecoding(decoder: self)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func mismatch(_ type: Any.Type, _ wanted: String) -> DecodingError {
    .typeMismatch(type, .init(codingPath: codingPath, debugDescription: wanted))
  }

  func member(_ key: some CodingKey) throws -> ValueDecoder {
    guard let member = json_object_get(value, key.stringValue) else {
      throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "is missing"))
    }
    return ValueDecoder(value: member, codingPath: codingPath + [key])
  }
}

extension ValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value.pointee.type == JSON_NULL }

  func decode(_ type: Bool.Type) throws -> Bool {
    switch value.pointee.type {
    case JSON_TRUE: return true
    case JSON_FALSE: return false
    default: throw mismatch(type, "true or false is wanted")
    }
  }

  func decode(_ type: String.Type) throws -> String {
    guard value.pointee.type == JSON_STRING, let text = json_string_value(value) else {
      throw mismatch(type, "a string is wanted")
    }
    let bytes = UnsafeRawBufferPointer(start: text, count: json_string_length(value))
    return String(decoding: bytes, as: UTF8.self)
  }

  func decode(_ type: Double.Type) throws -> Double {
    guard value.pointee.type == JSON_REAL || value.pointee.type == JSON_INTEGER else {
      throw mismatch(type, "a number is wanted")
    }
    return json_number_value(value)
  }

  func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }

  func decode<Value: Decodable & FixedWidthInteger>(_ type: Value.Type) throws -> Value { try integer(type) }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try type.init(from: self) }

  func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws -> Value {
    guard value.pointee.type == JSON_INTEGER, let exact = Value(exactly: json_integer_value(value)) else {
      throw mismatch(type, "an integer from \(Value.min) to \(Value.max) is wanted")
    }
    return exact
  }
}

private struct ObjectDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: ValueDecoder
  var codingPath: [any CodingKey] { decoder.codingPath }

  var allKeys: [Key] {
    var keys: [Key] = []
    var iterator = json_object_iter(decoder.value)
    while let current = iterator {
      if let name = json_object_iter_key(current), let key = Key(stringValue: String(cString: name)) {
        keys.append(key)
      }
      iterator = json_object_iter_next(decoder.value, current)
    }
    return keys
  }

  func contains(_ key: Key) -> Bool { json_object_get(decoder.value, key.stringValue) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try decoder.member(key).decodeNil() }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try type.init(from: decoder.member(key))
  }
  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
    -> KeyedDecodingContainer<Nested>
  { try decoder.member(key).container(keyedBy: type) }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder.member(key).unkeyedContainer()
  }
  func superDecoder() throws -> any Decoder { decoder }
  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder.member(key) }
}

private struct ArrayDecoding: UnkeyedDecodingContainer {
  let decoder: ValueDecoder
  var currentIndex = 0
  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { json_array_size(decoder.value) }
  var isAtEnd: Bool { currentIndex >= json_array_size(decoder.value) }

  init(decoder: ValueDecoder) { self.decoder = decoder }

  private func element() throws -> ValueDecoder {
    let path = codingPath + [IndexKey(currentIndex)]
    guard let element = json_array_get(decoder.value, currentIndex) else {
      throw DecodingError.valueNotFound(Any.self, .init(codingPath: path, debugDescription: "is missing"))
    }
    return ValueDecoder(value: element, codingPath: path)
  }

  mutating func decodeNil() throws -> Bool {
    guard try element().decodeNil() else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let value = try type.init(from: element())
    currentIndex += 1
    return value
  }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    let container = try element().container(keyedBy: type)
    currentIndex += 1
    return container
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try element().unkeyedContainer()
    currentIndex += 1
    return container
  }

  mutating func superDecoder() throws -> any Decoder {
    let element = try element()
    currentIndex += 1
    return element
  }
}

struct IndexKey: CodingKey {
  let index: Int
  init(_ index: Int) { self.index = index }
  init?(stringValue: String) { nil }
  init?(intValue: Int) { index = intValue }
  var stringValue: String { String(index) }
  var intValue: Int? { index }
}
