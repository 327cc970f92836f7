import Glibc
import Synchronization

/// The first SIGINT or SIGTERM ends the test at once, with a report; the second ends the program.
enum Interrupt {
  private static let came = Atomic(false)

  static var hasCome: Bool { came.load(ordering: .relaxed) }

  static func watch() {
    // Initialized before the first signal, since a signal handler must not wait for the initialization.
    _ = hasCome
    for number in [SIGINT, SIGTERM] {
      signal(number) { _ in
        Interrupt.came.store(true, ordering: .relaxed)
        signal(SIGINT, SIG_DFL)
        signal(SIGTERM, SIG_DFL)
      }
    }
  }

  private static let pollInterval = Duration.milliseconds(20)

  /// Runs `body`, and returns when it is done or the test is interrupted. In the latter case `body` keeps running,
  /// since a request cannot be cancelled.
  static func orEnd(of body: @escaping @Sendable () async -> Void) async {
    let end = Flag()
    Task {
      await body()
      end.isSet.store(true, ordering: .releasing)
    }
    while !end.isSet.load(ordering: .acquiring), !hasCome { try? await Task.sleep(for: pollInterval) }
  }

  private final class Flag: Sendable {
    let isSet = Atomic(false)
  }
}
