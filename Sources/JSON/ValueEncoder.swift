/// Appends one value to a text. A class, because a type may request its container more than once and means the same object each time.
///
/// Values are written in the order in which they are encoded, without an intermediate tree. So a nested container ends with the next write to its
/// parent; no type of this project writes to two at the same time.
final class ValueEncoder: Encoder {
  private enum Form {
    /// Nothing is written yet.
    case none
    case object, array
    /// The value is complete.
    case ended
  }

  let text: TextBuffer
  private let parent: ValueEncoder?
  private let key: (any CodingKey)?
  private var form = Form.none
  /// Elements or members written.
  private(set) var count = 0
  /// A nested container that is not ended.
  private var nested: ValueEncoder?
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ text: TextBuffer, parent: ValueEncoder? = nil, key: (any CodingKey)? = nil) {
    self.text = text
    self.parent = parent
    self.key = key
  }

  /// Created only on request: for messages of errors.
  var codingPath: [any CodingKey] {
    var path: [any CodingKey] = []
    var encoder: ValueEncoder? = self
    while let current = encoder {
      if let key = current.key { path.append(key) }
      encoder = current.parent
    }
    return path.reversed()
  }

  /// Ends the value; a type that encoded nothing is null.
  func end() {
    endNested()
    switch form {
    case .none: text.append("null")
    case .object: text.append(UInt8(ascii: "}"))
    case .array: text.append(UInt8(ascii: "]"))
    case .ended: break
    }
    form = .ended
  }

  /// Writes the complete value.
  func whole(_ write: (TextBuffer) -> Void) throws {
    guard case .none = form else { throw unfit("is written twice") }
    write(text)
    form = .ended
  }

  func unfit(_ reason: String) -> EncodingError {
    .invalidValue(0, .init(codingPath: codingPath, debugDescription: reason))
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    open(.object, "{")
    return KeyedEncodingContainer(ObjectEncoding(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    open(.array, "[")
    return ArrayEncoding(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  private func open(_ form: Form, _ bracket: StaticString) {
    guard case .none = self.form else { return }
    self.form = form
    text.append(bracket)
  }

  private func endNested() {
    guard let last = nested else { return }
    nested = nil
    last.end()
  }

  /// Begins a member of the object.
  fileprivate func begin(_ key: some CodingKey) throws {
    endNested()
    guard case .object = form else { throw unfit("is no open object") }
    if count > 0 { text.append(UInt8(ascii: ",")) }
    count += 1
    text.append(quoted: key.stringValue)
    text.append(UInt8(ascii: ":"))
  }

  /// Begins an element of the array.
  fileprivate func begin() throws {
    endNested()
    guard case .array = form else { throw unfit("is no open array") }
    if count > 0 { text.append(UInt8(ascii: ",")) }
    count += 1
  }

  /// Writes a member or element that was begun.
  fileprivate func write<Value: Encodable>(_ value: Value, _ key: any CodingKey) throws {
    for fragments in text.fragments where fragments.type == ObjectIdentifier(Value.self) {
      return try fragments.write(value, to: text)
    }
    let child = ValueEncoder(text, parent: self, key: key)
    try value.encode(to: child)
    child.end()
  }

  /// A begun member or element, as a container. A container that could not begin throws at its first write.
  fileprivate func nest(_ key: any CodingKey, isBegun: Bool) -> ValueEncoder {
    let child = ValueEncoder(text, parent: self, key: key)
    if isBegun { nested = child } else { child.form = .ended }
    return child
  }
}

extension ValueEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { try whole { $0.append("null") } }
  func encode(_ flag: Bool) throws { try whole { $0.append(flag ? "true" : "false") } }
  func encode(_ string: String) throws { try whole { $0.append(quoted: string) } }
  func encode(_ number: Float) throws { try encode(Double(number)) }

  func encode(_ number: Double) throws {
    guard number.isFinite else { throw unfit("is not a finite number") }
    try whole { $0.append(plain: number.description) }
  }

  func encode<Value: Encodable & FixedWidthInteger>(_ number: Value) throws {
    guard let integer = Int64(exactly: number) else { throw unfit("is too large for a JSON integer of 64 bits") }
    try whole { $0.append(integer) }
  }

  func encode<Value: Encodable>(_ value: Value) throws { try value.encode(to: self) }
}

private struct ObjectEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: ValueEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil(forKey key: Key) throws {
    try encoder.begin(key)
    encoder.text.append("null")
  }

  func encode(_ value: String, forKey key: Key) throws {
    try encoder.begin(key)
    encoder.text.append(quoted: value)
  }

  func encode(_ value: Bool, forKey key: Key) throws {
    try encoder.begin(key)
    encoder.text.append(value ? "true" : "false")
  }

  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    try encoder.begin(key)
    try encoder.write(value, key)
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested>
  { nest(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nest(key).unkeyedContainer() }

  private func nest(_ key: Key) -> ValueEncoder { encoder.nest(key, isBegun: (try? encoder.begin(key)) != nil) }

  /// No type here uses inheritance: the members go into this same object.
  func superEncoder() -> any Encoder { encoder }
  func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

private struct ArrayEncoding: UnkeyedEncodingContainer {
  let encoder: ValueEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { encoder.count }

  func encodeNil() throws {
    try encoder.begin()
    encoder.text.append("null")
  }

  func encode<Value: Encodable>(_ value: Value) throws {
    try encoder.begin()
    try encoder.write(value, IndexKey(count - 1))
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    nest().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nest().unkeyedContainer() }

  private func nest() -> ValueEncoder { encoder.nest(IndexKey(count), isBegun: (try? encoder.begin()) != nil) }

  func superEncoder() -> any Encoder { encoder }
}
