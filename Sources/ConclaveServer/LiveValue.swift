import Synchronization

/// A value that a reload of the configuration may change.
final class LiveValue<Value: Sendable>: Sendable {
  private let stored: Mutex<Value>

  init(_ value: Value) { stored = Mutex(value) }

  var value: Value { stored.withLock { $0 } }

  func set(_ value: Value) { stored.withLock { $0 = value } }
}
