import Calls
import Synchronization

/// Numbers for sessions, none used twice.
final class SessionNumbers: Sendable {
  private let last = Atomic<UInt64>(0)

  func next() -> SessionID { SessionID(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue) }
}
