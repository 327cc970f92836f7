package import NIOCore

/// Writes frames as the receiver's version wants them, for either side.
package struct FrameEncoder: Sendable {
  /// What is on the wire when there is nothing to say.
  package static let heartBeat = ByteBuffer(bytes: [.lineFeed])

  package var version: Version

  package init(version: Version) { self.version = version }

  /// The frame's bytes. `content-length` is always the body's own; headers that the version can't express are left out.
  package func encode(_ frame: Frame) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(64 + frame.headers.size + 4 * frame.headers.fields.count + frame.body.readableBytes)
    buffer.writeString(frame.command.rawValue)
    buffer.writeInteger(UInt8.lineFeed)
    let coding = HeaderCoding(version: version, command: frame.command)
    for field in frame.headers.fields where field.name != "content-length" {
      coding.encode(field, into: &buffer)
    }
    if frame.command.mayHaveBody {
      buffer.writeString("content-length:\(frame.body.readableBytes)\n")
    }
    buffer.writeInteger(UInt8.lineFeed)
    buffer.writeImmutableBuffer(frame.body)
    buffer.writeInteger(UInt8.null)
    return buffer
  }
}
