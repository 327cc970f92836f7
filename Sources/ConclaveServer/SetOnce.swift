import Synchronization

/// A value that is set once, after its users were created: the planes and the signaling server know each other.
final class SetOnce<Value: Sendable>: Sendable {
  private let stored = Mutex<Value?>(nil)

  /// nil until it is set.
  var value: Value? { stored.withLock { $0 } }

  func set(_ value: Value) { stored.withLock { $0 = value } }
}
