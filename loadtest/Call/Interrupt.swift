import Glibc
import Synchronization

/// SIGINT ends the measuring, not the program: the report still comes.
enum Interrupt {
  private static let came = Atomic(false)

  static var hasCome: Bool { came.load(ordering: .relaxed) }

  static func watch() {
    // Made before the first signal: a handler must not wait for it.
    _ = hasCome
    signal(SIGINT) { _ in Interrupt.came.store(true, ordering: .relaxed) }
  }
}
