package import NIOCore

/// Cuts a stream of bytes into frames, for either side.
///
/// ## Contract
/// `append` what arrived, then call `next` until it returns nil or throws; after an error the decoder yields nothing more. A peer chooses
/// where its packets end, so each byte is examined once however the stream is split, and limits are checked before a line or body is
/// complete. The `version` applies to the frame whose headers are read next: set it as soon as CONNECT has been answered.
package struct FrameDecoder: Sendable {
  package var version: Version
  package var limits: FrameLimits

  private var buffer = ByteBuffer()
  /// Readable bytes that were already searched and do not contain the end.
  private var scanned = 0
  private var state: State = .between

  private enum State {
    case between
    case head(Head)
    /// `length` is the announced length; nil reads up to the first NUL.
    case body(Frame, length: Int?)
    case failed
  }

  private struct Head {
    var command: FrameCommand
    var headers = Headers()
    var lines = 0
    var bytes = 0
  }

  package init(version: Version = .v10, limits: FrameLimits = FrameLimits()) {
    self.version = version
    self.limits = limits
  }

  /// Bytes held that have not become frames yet.
  package var bufferedBytes: Int { buffer.readableBytes }

  /// Appends all readable bytes.
  package mutating func append(_ bytes: inout ByteBuffer) {
    if case .failed = state { return bytes.moveReaderIndex(to: bytes.writerIndex) }
    if buffer.readableBytes == 0 {
      buffer = bytes
      bytes.moveReaderIndex(to: bytes.writerIndex)
    } else {
      // Moves at most as many bytes as have been consumed, so the cost stays linear.
      if buffer.readerIndex > buffer.readableBytes { buffer.discardReadBytes() }
      buffer.writeBuffer(&bytes)
    }
  }

  /// The next whole frame; nil if more bytes are needed.
  package mutating func next() throws(FrameError) -> Frame? {
    do {
      while true {
        switch exchange(&state, with: .failed) {
        case .between:
          guard try beginFrame() else { return nil }
        case .head(let head):
          guard try readHeaders(head) else { return nil }
        case .body(let frame, let length):
          return try readBody(of: frame, length: length)
        case .failed:
          return nil
        }
      }
    } catch {
      state = .failed
      buffer = ByteBuffer()
      throw error
    }
  }

  /// Skips what may occur between frames (EOLs are heart-beats, stray NULs are tolerated) and reads the command line. False if more bytes are needed.
  private mutating func beginFrame() throws(FrameError) -> Bool {
    if scanned == 0 {
      let first = buffer.readableBytesView.firstIndex { $0 != .lineFeed && $0 != .carriageReturn && $0 != .null }
      buffer.moveReaderIndex(to: first ?? buffer.writerIndex)
      // A TLS handshake record: the only wrong protocol that gets a specific error.
      if buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) == 0x16 { throw FrameError(.tls) }
    }
    guard let line = try nextLine(limit: limits.command, error: .commandTooLong, receipt: nil) else {
      state = .between
      return false
    }
    guard let command = FrameCommand(rawValue: String(decoding: line, as: UTF8.self)) else {
      throw FrameError(.unknownCommand)
    }
    state = .head(Head(command: command))
    return true
  }

  /// Reads header lines up to the empty one. False if more bytes are needed.
  private mutating func readHeaders(_ unfinished: Head) throws(FrameError) -> Bool {
    var head = unfinished
    while true {
      let receipt = head.headers["receipt"]
      guard let line = try nextLine(limit: limits.headerLine, error: .headerLineTooLong, receipt: receipt) else {
        state = .head(head)
        return false
      }
      guard !line.isEmpty else { break }
      head.lines += 1
      head.bytes += line.count
      guard head.lines <= limits.headers else { throw FrameError(.tooManyHeaders, receipt: receipt) }
      guard head.bytes <= limits.head else { throw FrameError(.headTooLong, receipt: receipt) }
      do {
        let field = try HeaderCoding(version: version, command: head.command).decode(line)
        head.headers.append(field.name, field.value)
      } catch {
        throw FrameError(error.reason, receipt: receipt)
      }
    }
    // Only a 1.0 client omits accept-version, and only 1.0 pads.
    if head.command == .connect || head.command == .stomp, head.headers["accept-version"] == nil {
      head.headers = head.headers.trimmed
    }
    let length = try contentLength(of: head.headers)
    state = .body(Frame(head.command, head.headers), length: length)
    return true
  }

  private func contentLength(of headers: Headers) throws(FrameError) -> Int? {
    guard let text = headers["content-length"] else { return nil }
    guard let length = decimal(text) else { throw FrameError(.badContentLength, receipt: headers["receipt"]) }
    guard length <= limits.body else { throw FrameError(.bodyTooLong, receipt: headers["receipt"]) }
    return length
  }

  private mutating func readBody(of head: Frame, length: Int?) throws(FrameError) -> Frame? {
    var frame = head
    let end: Int
    if let length {
      guard buffer.readableBytes > length else {
        state = .body(frame, length: length)
        return nil
      }
      guard buffer.getInteger(at: buffer.readerIndex + length, as: UInt8.self) == .null else {
        throw FrameError(.bodyNotTerminated, receipt: frame.headers["receipt"])
      }
      end = length
    } else {
      let bytes = buffer.readableBytesView.dropFirst(scanned)
      let null = bytes.firstIndex(of: .null)
      scanned = (null ?? bytes.endIndex) - buffer.readerIndex
      guard scanned <= limits.body else { throw FrameError(.bodyTooLong, receipt: frame.headers["receipt"]) }
      guard null != nil else {
        state = .body(frame, length: nil)
        return nil
      }
      end = scanned
    }
    frame.body = ByteBuffer(bytes: buffer.readableBytesView.prefix(end))
    consume(end + 1)
    state = .between
    return frame
  }

  /// The next line without its LF or CR LF; nil if it is incomplete.
  private mutating func nextLine(
    limit: Int, error: FrameError.Reason, receipt: String?
  ) throws(FrameError) -> ByteBufferView? {
    let bytes = buffer.readableBytesView.dropFirst(scanned)
    guard let end = bytes.firstIndex(where: { $0 == .lineFeed || $0 == .null }) else {
      scanned = buffer.readableBytes
      // One more for a CR that may turn out to be part of the line's end.
      guard scanned <= limit + 1 else { throw FrameError(error, receipt: receipt) }
      return nil
    }
    guard bytes[end] == .lineFeed else { throw FrameError(.nullInHead, receipt: receipt) }
    var line = buffer.readableBytesView[buffer.readerIndex..<end]
    consume(line.count + 1)
    if line.last == .carriageReturn { line = line.dropLast() }
    guard line.count <= limit else { throw FrameError(error, receipt: receipt) }
    return line
  }

  private mutating func consume(_ count: Int) {
    buffer.moveReaderIndex(forwardBy: count)
    scanned = 0
    // An idle connection holds no buffer.
    if buffer.readableBytes == 0 { buffer = ByteBuffer() }
  }
}
