package import CallMessages
import Dispatch
import Synchronization
import Testing

extension Storage {
  /// Writes and waits for the result, at most half a minute.
  /// - Parameter token: by default a token that no store refuses.
  package func write(
    _ changes: [StoreChange], as token: FencingToken = FencingToken(number: .max)
  ) throws(StoreError) {
    let failure = Failure()
    let done = DispatchSemaphore(value: 0)
    write(changes, as: token) { error in
      failure.value.withLock { $0 = error }
      done.signal()
    }
    guard done.wait(timeout: .now() + 30) == .success else {
      Issue.record("the database has not answered for 30 s")
      return
    }
    if let error = failure.value.withLock({ $0 }) { throw error }
  }
}

private final class Failure: Sendable { let value = Mutex<StoreError?>(nil) }
