package import NIOCore

/// Writes a streamed answer to one client.
package struct HTTPBodyWriter: Sendable {
  /// The most bytes that are on their way to the kernel at one time.
  static let part = 64 << 10

  private let handler: NIOLoopBound<HTTPHandler>
  private let loop: any EventLoop
  private let number: UInt64

  /// - Parameter number: of the request that is answered.
  init(_ handler: NIOLoopBound<HTTPHandler>, on loop: any EventLoop, number: UInt64) {
    self.handler = handler
    self.loop = loop
    self.number = number
  }

  /// Returns when the kernel has taken the bytes, and so waits for a slow reader. A client that takes none for the time of `httpTimeout` is disconnected.
  /// - Throws: `HTTPStreamError`, or a channel's error, when the client is gone.
  package func write(_ bytes: ByteBuffer) async throws {
    var rest = bytes
    while rest.readableBytes > 0, let part = rest.readSlice(length: min(rest.readableBytes, Self.part)) {
      try await loop.flatSubmit { [loop, handler, number] in
        handler.value.write(part, of: number) ?? loop.makeFailedFuture(HTTPStreamError.clientGone)
      }.get()
    }
  }
}

package enum HTTPStreamError: Error, Sendable {
  case clientGone
  /// It would be more than the length that the client was told.
  case tooLong
}
