import Synchronization

/// A configuration that never changes. A connection keeps the one with which it began.
@dynamicMemberLookup
final class FixedConfiguration: Sendable {
  let values: STOMPConfiguration
  let rules: DestinationRules

  init(_ values: STOMPConfiguration) {
    self.values = values
    rules = DestinationRules(prefixes: values.destinations, body: values.limits.body)
  }

  /// Without a key path, because each write reads one of them.
  var limits: STOMPLimits { values.limits }

  subscript<Value>(dynamicMember path: KeyPath<STOMPConfiguration, Value>) -> Value { values[keyPath: path] }
}

/// The current configuration: a reload replaces it.
final class CurrentConfiguration: Sendable {
  private let stored: Mutex<FixedConfiguration>

  init(_ values: STOMPConfiguration) { stored = Mutex(FixedConfiguration(values)) }

  var value: FixedConfiguration { stored.withLock { $0 } }

  func set(_ values: STOMPConfiguration) {
    let next = FixedConfiguration(values)
    stored.withLock { $0 = next }
  }
}
