import CJansson

/// A type whose values represent any JSON value, for bodies whose members are judged one by one. It is read with the strictness of `JSONCoding.decode`.
package protocol AnyJSON {
  static var null: Self { get }
  static func boolean(_ value: Bool) -> Self
  static func integer(_ value: Int64) -> Self
  static func number(_ value: Double) -> Self
  static func text(_ value: String) -> Self
  static func list(_ values: [Self]) -> Self
  /// - Parameter members: in the order of the text, without duplicates.
  static func object(members: [(name: String, value: Self)]) -> Self
}

extension JSONCoding {
  /// Reads an object or an array.
  package static func value<Value: AnyJSON>(
    _ type: Value.Type, from bytes: UnsafeRawBufferPointer
  ) throws(JSONError) -> Value {
    let root = try root(of: bytes)
    defer { json_decref(root) }
    return represent(root)
  }

  private static func represent<Value: AnyJSON>(_ value: UnsafeMutablePointer<json_t>) -> Value {
    switch value.pointee.type {
    case JSON_TRUE: return .boolean(true)
    case JSON_FALSE: return .boolean(false)
    case JSON_INTEGER: return .integer(json_integer_value(value))
    case JSON_REAL: return .number(json_number_value(value))
    case JSON_STRING: return .text(text(json_string_value(value), json_string_length(value)))
    case JSON_ARRAY:
      var values: [Value] = []
      for index in 0..<json_array_size(value) {
        if let element = json_array_get(value, index) { values.append(represent(element)) }
      }
      return .list(values)
    case JSON_OBJECT:
      var members: [(name: String, value: Value)] = []
      members.reserveCapacity(json_object_size(value))
      var iterator = json_object_iter(value)
      while let current = iterator {
        if let name = json_object_iter_key(current), let member = json_object_iter_value(current) {
          members.append((String(cString: name), represent(member)))
        }
        iterator = json_object_iter_next(value, current)
      }
      return .object(members: members)
    default: return .null
    }
  }

  private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self)
  }
}
