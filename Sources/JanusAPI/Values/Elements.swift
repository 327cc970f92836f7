/// Reads the members of a request's object. A member that is null counts as missing, and members that nobody reads are ignored, as in Janus.
struct Elements {
  /// The part of the API whose codes a missing or wrong member has.
  enum Owner { case core, room }

  let object: JSONObject
  let owner: Owner

  init(_ object: JSONObject, of owner: Owner) {
    self.object = object
    self.owner = owner
  }

  subscript(name: String) -> JSONTree? {
    let value = object[name]
    return value == .null ? nil : value
  }

  func missing(_ name: String) -> JanusError {
    JanusError(owner == .core ? .missingElement : .roomMissingElement, "Missing mandatory element (\(name))")
  }

  func invalid(_ name: String, _ wanted: String) -> JanusError {
    JanusError(
      owner == .core ? .invalidElement : .roomInvalidElement, "Invalid element type (\(name) should be \(wanted))")
  }

  func required<Value>(_ name: String, _ value: Value?) throws(JanusError) -> Value {
    guard let value else { throw missing(name) }
    return value
  }

  /// - Parameter limit: the most bytes.
  func text(_ name: String, limit: Int = 256) throws(JanusError) -> String? {
    guard let value = self[name] else { return nil }
    guard case .text(let text) = value else { throw invalid(name, "a string") }
    guard text.utf8.count <= limit else { throw invalid(name, "a string of at most \(limit) bytes") }
    return text
  }

  func boolean(_ name: String) throws(JanusError) -> Bool? {
    guard let value = self[name] else { return nil }
    guard case .boolean(let flag) = value else { throw invalid(name, "a boolean") }
    return flag
  }

  /// The member that is there, of several names for the same.
  func first<Value>(
    of names: [String], _ read: (Elements) -> (String) throws(JanusError) -> Value?
  ) throws(JanusError) -> Value? {
    for name in names { if let value = try read(self)(name) { return value } }
    return nil
  }

  /// 0 or more, as Janus has it.
  func count(_ name: String) throws(JanusError) -> Int? {
    guard let value = self[name] else { return nil }
    guard case .integer(let number) = value, (0...Int64(Int32.max)).contains(number) else {
      throw invalid(name, "a positive integer")
    }
    return Int(number)
  }

  /// The id of a session or handle.
  func number(_ name: String) throws(JanusError) -> UInt64? {
    guard let value = self[name] else { return nil }
    guard case .integer(let number) = value, let id = UInt64(exactly: number), PluginID.numbers.contains(id) else {
      throw invalid(name, "a positive integer")
    }
    return id
  }

  func id(_ name: String, _ kind: PluginIDKind) throws(JanusError) -> PluginID? {
    guard let value = self[name] else { return nil }
    switch (kind, value) {
    case (.numbers, .integer(let number)):
      if let id = PluginID(number: number) { return id }
      throw invalid(name, "a positive integer")
    case (.numbers, _): throw invalid(name, "a positive integer")
    case (.strings, .text(let text)):
      if let id = PluginID(text: text) { return id }
      throw invalid(name, "1 to 64 bytes of A-Z a-z 0-9 . _ ~ @ + -")
    case (.strings, _): throw invalid(name, "a string")
    }
  }

  func list(_ name: String) throws(JanusError) -> [JSONTree]? {
    guard let value = self[name] else { return nil }
    guard case .list(let values) = value else { throw invalid(name, "an array") }
    return values
  }

  func texts(_ name: String, limit: Int = 256) throws(JanusError) -> [String]? {
    guard let values = try list(name) else { return nil }
    var texts: [String] = []
    for value in values {
      guard case .text(let text) = value, text.utf8.count <= limit else {
        throw invalid(name, "an array of strings of at most \(limit) bytes")
      }
      texts.append(text)
    }
    return texts
  }

  func objects(_ name: String) throws(JanusError) -> [Elements]? {
    guard let values = try list(name) else { return nil }
    var objects: [Elements] = []
    for value in values {
      guard case .object(let object) = value else { throw invalid(name, "an array of objects") }
      objects.append(Elements(object, of: owner))
    }
    return objects
  }

  /// A comma-separated list of codecs.
  /// - Parameter known: the codecs that may stand in it.
  func codecs(_ name: String, known: [String]) throws(JanusError) -> [String]? {
    guard let text = try text(name) else { return nil }
    var codecs: [String] = []
    for part in text.split(separator: ",") {
      let codec = part.filter { $0 != " " }.lowercased()
      guard known.contains(codec) else {
        throw JanusError(
          .roomInvalidElement, "Invalid element (\(name) can only be or contain \(known.joined(separator: ", ")))")
      }
      if !codecs.contains(codec) { codecs.append(codec) }
    }
    guard !codecs.isEmpty else { throw invalid(name, "a codec") }
    return codecs
  }
}
