/// All faults, in words for the operator; each once.
struct Faults {
  private(set) var texts: [String] = []

  mutating func add(_ text: String) { if !texts.contains(text) { texts.append(text) } }

  /// Keeps the thrown error.
  mutating func take(_ check: () throws(ConfigurationError) -> Void) {
    do throws(ConfigurationError) { try check() } catch { add(error.description) }
  }

  /// The result; nil if there is none, and the fault is kept.
  mutating func value<Value>(_ make: () throws(ConfigurationError) -> Value) -> Value? {
    do throws(ConfigurationError) { return try make() } catch {
      add(error.description)
      return nil
    }
  }

  /// - Throws: one `ConfigurationError` with a line for each fault.
  func throwAny() throws(ConfigurationError) {
    if !texts.isEmpty { throw ConfigurationError(texts.joined(separator: "\n")) }
  }
}
