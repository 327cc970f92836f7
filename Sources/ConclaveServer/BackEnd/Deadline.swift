import MediaModel

/// The time limit was exceeded.
struct DeadlineExceeded: Error {}

/// Waits for `work` no longer than `limit`. Work that takes longer is cancelled, and the caller does not wait for its end.
///
/// The deadline of AsyncHTTPClient ends with the answer's head. A body may arrive byte by byte for as long as the other side likes, so all requests to
/// other servers whose response body is read use this function.
func within<Value: Sendable>(
  _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let (results, first) = AsyncThrowingStream.makeStream(of: Value.self, bufferingPolicy: .bufferingOldest(1))
  let working = Task {
    do {
      first.yield(try await work())
      first.finish()
    } catch {
      first.finish(throwing: error)
    }
  }
  let clock = Task {
    guard (try? await Task.sleep(for: limit)) != nil else { return }
    first.finish(throwing: DeadlineExceeded())
  }
  defer {
    working.cancel()
    clock.cancel()
  }
  for try await value in results { return value }
  throw CancellationError()
}
