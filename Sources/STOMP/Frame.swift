package import NIOCore

/// One STOMP frame with decoded headers. The body owns its bytes: a kept frame never retains a read buffer.
package struct Frame: Equatable, Sendable {
  package var command: FrameCommand
  package var headers: Headers
  package var body: ByteBuffer

  package init(_ command: FrameCommand, _ headers: Headers = [:], body: ByteBuffer = ByteBuffer()) {
    self.command = command
    self.headers = headers
    self.body = body
  }

  /// The memory that a frame occupies, in bytes.
  var size: Int { headers.size + body.readableBytes }
}
