import NIOCore
import NIOWebSocket

/// Splits the stream into a client's frames. A violation of RFC 6455 section 5.2 is found in the frame's header, before its payload arrives.
struct WebSocketFrameReader: ByteToMessageDecoder {
  typealias InboundOut = WebSocketFrame

  /// The longest payload of a frame.
  let maximumBytes: Int

  mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
    guard let header = try Header(buffer, maximumBytes: maximumBytes),
      buffer.readableBytes >= header.size + header.length
    else { return .needMoreData }
    buffer.moveReaderIndex(forwardBy: header.size)
    guard let payload = buffer.readSlice(length: header.length) else { return .needMoreData }
    let frame = WebSocketFrame(fin: header.isFinal, opcode: header.opcode, maskKey: header.mask, data: payload)
    context.fireChannelRead(Self.wrapInboundOut(frame))
    return .continue
  }

  private struct Header {
    let isFinal: Bool
    let opcode: WebSocketOpcode
    let mask: WebSocketMaskingKey
    /// The length of the payload.
    let length: Int
    /// The size of the header itself.
    let size: Int

    /// nil while it is incomplete.
    init?(_ buffer: ByteBuffer, maximumBytes: Int) throws(WebSocketBreach) {
      var bytes = buffer
      guard let first = bytes.readInteger(as: UInt8.self), let second = bytes.readInteger(as: UInt8.self) else {
        return nil
      }
      isFinal = first & 0x80 != 0
      let isControl = first & 0x08 != 0
      // No extension is agreed on that gives the reserved bits a meaning, and a client masks everything that it sends
      // (section 5.1).
      guard first & 0x70 == 0, second & 0x80 != 0,
        let opcode = WebSocketOpcode(encodedWebSocketOpcode: first & 0x0F), opcode.isKnown
      else { throw WebSocketBreach(.protocolError) }
      self.opcode = opcode
      let short = second & 0x7F
      // Section 5.5.
      guard !isControl || isFinal && short <= 125 else { throw WebSocketBreach(.protocolError) }
      let announced: UInt64
      switch short {
      case 126:
        guard let long = bytes.readInteger(as: UInt16.self) else { return nil }
        announced = UInt64(long)
        guard announced > 125 else { throw WebSocketBreach(.protocolError) }
      case 127:
        guard let long = bytes.readInteger(as: UInt64.self) else { return nil }
        announced = long
        // The shortest possible form, and the highest bit is 0.
        guard announced > 65_535, announced <= UInt64(Int64.max) else { throw WebSocketBreach(.protocolError) }
      default: announced = UInt64(short)
      }
      guard announced <= UInt64(maximumBytes) else { throw WebSocketBreach(.messageTooLarge) }
      guard let mask = bytes.readBytes(length: 4).flatMap({ WebSocketMaskingKey($0) }) else { return nil }
      self.mask = mask
      length = Int(announced)
      size = buffer.readableBytes - bytes.readableBytes
    }
  }
}

/// A client's violation of RFC 6455 itself; the connection is closed with this code.
struct WebSocketBreach: Error {
  let code: WebSocketErrorCode

  init(_ code: WebSocketErrorCode) { self.code = code }
}

extension WebSocketOpcode {
  fileprivate var isKnown: Bool {
    [.continuation, .text, .binary, .connectionClose, .ping, .pong].contains(self)
  }
}
