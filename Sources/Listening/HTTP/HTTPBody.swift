package import NIOCore
import Synchronization

/// The body of a request in parts, each with what has arrived since the last one. One task reads it, once.
///
/// While `window` bytes wait to be taken, nothing more is read from the client.
package final class HTTPBody: AsyncSequence, Sendable {
  package typealias Element = ByteBuffer

  /// Bytes that may wait. When the client closes, the bytes that the kernel had accepted before reading paused are added.
  static let window = 256 << 10

  private enum End: Sendable {
    case complete
    case failed(HTTPBodyError)
  }

  private struct State: Sendable {
    var arrived = ByteBuffer()
    var end: End?
    var reader: CheckedContinuation<ByteBuffer?, any Error>?
  }

  private let state = Mutex(State())
  /// Called on the reader's task when it wants a part.
  private let wanted: @Sendable () -> Void

  init(wanted: @escaping @Sendable () -> Void) { self.wanted = wanted }

  package func makeAsyncIterator() -> Iterator { Iterator(body: self) }

  package struct Iterator: AsyncIteratorProtocol {
    fileprivate let body: HTTPBody

    /// nil at the end of the body.
    /// - Throws: `HTTPBodyError`.
    package mutating func next() async throws -> ByteBuffer? { try await body.next() }
  }

  private func next() async throws -> ByteBuffer? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { reader in
        let part = state.withLock { state -> Result<ByteBuffer?, any Error>? in
          precondition(state.reader == nil, "one task reads a body")
          if case .failed(let error) = state.end { return .failure(error) }
          if state.arrived.readableBytes > 0 { return .success(exchange(&state.arrived, with: ByteBuffer())) }
          if case .complete = state.end { return .success(nil) }
          state.reader = reader
          return nil
        }
        wanted()
        if let part { reader.resume(with: part) }
      }
    } onCancel: {
      fail(.cancelled)
    }
  }

  // MARK: On the connection's event loop

  /// - Returns: whether as much waits as may, so that reading has to pause.
  func append(_ part: ByteBuffer) -> Bool {
    let (reader, isFull) = state.withLock { state -> (CheckedContinuation<ByteBuffer?, any Error>?, Bool) in
      guard state.end == nil else { return (nil, false) }
      if let reader = exchange(&state.reader, with: nil) { return (reader, false) }
      if state.arrived.readableBytes == 0 { state.arrived = part } else { state.arrived.writeImmutableBuffer(part) }
      return (nil, state.arrived.readableBytes >= Self.window)
    }
    reader?.resume(returning: part)
    return isFull
  }

  /// All of it has arrived.
  func finish() { end(.complete)?.resume(returning: nil) }

  /// The rest will not come. Nothing that waits is handed out any more.
  func fail(_ error: HTTPBodyError) { end(.failed(error))?.resume(throwing: error) }

  /// Takes effect once.
  private func end(_ end: End) -> CheckedContinuation<ByteBuffer?, any Error>? {
    state.withLock { state in
      guard state.end == nil else { return nil }
      state.end = end
      if case .failed = end { state.arrived = ByteBuffer() }
      return exchange(&state.reader, with: nil)
    }
  }
}

/// Why a body ended before its end.
package enum HTTPBodyError: Error, Sendable {
  case clientGone
  /// It has more bytes than the route takes; the client was told so.
  case tooLarge
  /// The bytes are not HTTP.
  case unreadable
  /// The route has answered already.
  case answered
  /// The task that reads it was cancelled.
  case cancelled
}
