import CJansson

/// Builds one jansson value. A class, for a type may ask for its container more than once and means the same object each time.
final class ValueEncoder: Encoder {
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }
  /// Owned here until `take()`.
  private var value: UnsafeMutablePointer<json_t>?

  init(codingPath: [any CodingKey]) { self.codingPath = codingPath }

  func release() {
    if let value { json_decref(value) }
    value = nil
  }

  /// Hands the value and its ownership to the caller; a type that encoded nothing is null.
  func take() -> UnsafeMutablePointer<json_t> {
    defer { value = nil }
    return value ?? json_null()
  }

  func set(_ new: UnsafeMutablePointer<json_t>?) throws {
    release()
    guard let new else {
      throw EncodingError.invalidValue(
        0, .init(codingPath: codingPath, debugDescription: "is not a finite number or valid text"))
    }
    value = new
  }

  func text() throws -> [UInt8] {
    let flags = Int(JSON_COMPACT) | Int(JSON_ENCODE_ANY)
    var capacity = 1024
    while true {
      var size = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
        size = json_dumpb(value, buffer.baseAddress, capacity, flags)
        count = min(size, capacity)
      }
      guard size > 0 else { throw JSONError(reason: "cannot be written as JSON") }
      if size <= capacity { return bytes }
      capacity = size
    }
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if value == nil { value = json_object() }
    return KeyedEncodingContainer(ObjectEncoding(encoder: self, object: value))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if value == nil { value = json_array() }
    return ArrayEncoding(encoder: self, array: value)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { try set(json_null()) }
  func encode(_ flag: Bool) throws { try set(flag ? json_true() : json_false()) }
  func encode(_ number: Double) throws { try set(json_real(number)) }
  func encode(_ number: Float) throws { try set(json_real(Double(number))) }

  func encode(_ text: String) throws {
    var text = text
    try set(
      text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { json_stringn_nocheck($0.baseAddress, $0.count) }
      })
  }

  func encode<Value: Encodable & FixedWidthInteger>(_ number: Value) throws {
    guard let integer = json_int_t(exactly: number) else {
      throw EncodingError.invalidValue(
        number, .init(codingPath: codingPath, debugDescription: "is too large for a JSON integer of 64 bits"))
    }
    try set(json_integer(integer))
  }

  func encode<Value: Encodable>(_ value: Value) throws { try value.encode(to: self) }
}

private struct ObjectEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: ValueEncoder
  let object: UnsafeMutablePointer<json_t>?
  var codingPath: [any CodingKey] { encoder.codingPath }

  private func member(_ key: some CodingKey, _ write: (ValueEncoder) throws -> Void) throws {
    let child = ValueEncoder(codingPath: codingPath + [key])
    defer { child.release() }
    try write(child)
    json_object_set_new_nocheck(object, key.stringValue, child.take())
  }

  func encodeNil(forKey key: Key) throws { try member(key) { try $0.encodeNil() } }
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try member(key) { try value.encode(to: $0) } }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested>
  {
    let nested = json_object()
    json_object_set_new_nocheck(object, key.stringValue, nested)
    return KeyedEncodingContainer(ObjectEncoding<Nested>(encoder: encoder, object: nested))
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    let nested = json_array()
    json_object_set_new_nocheck(object, key.stringValue, nested)
    return ArrayEncoding(encoder: encoder, array: nested)
  }

  /// No type here inherits: the members go into this very object.
  func superEncoder() -> any Encoder { encoder }
  func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

private struct ArrayEncoding: UnkeyedEncodingContainer {
  let encoder: ValueEncoder
  let array: UnsafeMutablePointer<json_t>?
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { json_array_size(array) }

  init(encoder: ValueEncoder, array: UnsafeMutablePointer<json_t>?) {
    self.encoder = encoder
    self.array = array
  }

  func encodeNil() throws { json_array_append_new(array, json_null()) }

  func encode<Value: Encodable>(_ value: Value) throws {
    let child = ValueEncoder(codingPath: codingPath + [IndexKey(count)])
    defer { child.release() }
    try value.encode(to: child)
    json_array_append_new(array, child.take())
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    let nested = json_object()
    json_array_append_new(array, nested)
    return KeyedEncodingContainer(ObjectEncoding<Nested>(encoder: encoder, object: nested))
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let nested = json_array()
    json_array_append_new(array, nested)
    return ArrayEncoding(encoder: encoder, array: nested)
  }

  func superEncoder() -> any Encoder { encoder }
}
