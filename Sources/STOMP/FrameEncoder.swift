package import NIOCore

/// Writes frames as the receiver's version requires, for either side.
package struct FrameEncoder: Sendable {
  /// The byte that keeps an idle connection alive.
  package static let heartBeat = ByteBuffer(bytes: [.lineFeed])

  package var version: Version

  package init(version: Version) { self.version = version }

  /// The frame's bytes. `content-length` is always that of the body; headers that the version cannot express are
  /// omitted.
  package func encode(_ frame: Frame) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(64 + frame.headers.size + 4 * frame.headers.fields.count + frame.body.readableBytes)
    buffer.writeString(frame.command.rawValue)
    buffer.writeInteger(UInt8.lineFeed)
    write(frame.headers, frame.body, of: frame.command, into: &buffer)
    return buffer
  }

  /// All but the command.
  func tail(headers: Headers, body: ByteBuffer, of command: FrameCommand) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(32 + headers.size + 4 * headers.fields.count + body.readableBytes)
    write(headers, body, of: command, into: &buffer)
    return buffer
  }

  private func write(_ headers: Headers, _ body: ByteBuffer, of command: FrameCommand, into buffer: inout ByteBuffer) {
    let coding = HeaderCoding(version: version, command: command)
    for field in headers.fields where field.name != "content-length" {
      coding.encode(field, into: &buffer)
    }
    if command.mayHaveBody { buffer.writeString("content-length:\(body.readableBytes)\n") }
    buffer.writeInteger(UInt8.lineFeed)
    buffer.writeImmutableBuffer(body)
    buffer.writeInteger(UInt8.null)
  }
}
