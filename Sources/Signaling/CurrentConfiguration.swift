import Synchronization

/// A configuration that never changes. A connection keeps the one with which it began.
@dynamicMemberLookup
final class FixedConfiguration: Sendable {
  let values: SignalingServer.Configuration
  let rules: DestinationRules

  init(_ values: SignalingServer.Configuration) {
    self.values = values
    rules = DestinationRules(prefixes: values.destinations, body: values.limits.body)
  }

  /// Without a key path, because each write reads one of them.
  var limits: SignalingServer.Limits { values.limits }

  subscript<Value>(dynamicMember path: KeyPath<SignalingServer.Configuration, Value>) -> Value { values[keyPath: path] }
}

/// The current configuration: a reload replaces it.
final class CurrentConfiguration: Sendable {
  private let stored: Mutex<FixedConfiguration>

  init(_ values: SignalingServer.Configuration) { stored = Mutex(FixedConfiguration(values)) }

  var value: FixedConfiguration { stored.withLock { $0 } }

  func set(_ values: SignalingServer.Configuration) {
    let next = FixedConfiguration(values)
    stored.withLock { $0 = next }
  }
}
