import NIOCore

/// Escapes of header lines, which depend on the version, and on the command, because CONNECT and CONNECTED have none.
struct HeaderCoding {
  private let escapes: [(letter: UInt8, octet: UInt8)]
  private let version: Version
  private let isConnect: Bool

  init(version: Version, command: FrameCommand) {
    escapes = command.isEscaped ? version.escapes : []
    self.version = version
    isConnect = !command.isEscaped
  }

  /// Reads one line. The first colon splits: an unescaped one in a value violates the grammar, but is generally
  /// accepted.
  func decode(_ line: ByteBufferView) throws(FrameError) -> Headers.Field {
    guard let colon = line.firstIndex(of: .colon) else { throw FrameError(.noColon) }
    guard colon > line.startIndex else { throw FrameError(.emptyHeaderName) }
    if version.refusesBareCarriageReturn, !isConnect, line.contains(.carriageReturn) {
      throw FrameError(.bareCarriageReturn)
    }
    let field = Headers.Field(
      name: try text(of: line[line.startIndex..<colon]), value: try text(of: line[(colon + 1)...]))
    return version.trimsHeaders && !isConnect ? field.trimmed : field
  }

  private func text(of bytes: ByteBufferView) throws(FrameError) -> String {
    guard !escapes.isEmpty, bytes.contains(.backslash) else { return try utf8(bytes) }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var isEscape = false
    for byte in bytes {
      if isEscape {
        guard let escape = escapes.first(where: { $0.letter == byte }) else { throw FrameError(.badEscape) }
        decoded.append(escape.octet)
        isEscape = false
      } else if byte == .backslash {
        isEscape = true
      } else {
        decoded.append(byte)
      }
    }
    guard !isEscape else { throw FrameError(.badEscape) }
    return try utf8(decoded)
  }

  private func utf8(_ bytes: some Collection<UInt8>) throws(FrameError) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw FrameError(.notUTF8) }
    return text
  }

  /// Appends the line with its LF; nothing if the version cannot express the header, because a raw line feed would let its value forge other
  /// headers.
  func encode(_ field: Headers.Field, into buffer: inout ByteBuffer) {
    guard isExpressible(field.name), isExpressible(field.value), !field.name.isEmpty else { return }
    if escapes.isEmpty, field.name.utf8.contains(.colon) { return }
    write(field.name, into: &buffer)
    buffer.writeInteger(UInt8.colon)
    write(field.value, into: &buffer)
    buffer.writeInteger(UInt8.lineFeed)
  }

  private func isExpressible(_ text: String) -> Bool {
    text.utf8.allSatisfy { byte in
      switch byte {
      case .null: false
      case .lineFeed, .carriageReturn: isPlain(byte) || escapes.contains { $0.octet == byte }
      default: true
      }
    } && (escapes.contains { $0.octet == .carriageReturn } || text.utf8.last != .carriageReturn)
  }

  /// In 1.0 and 1.1 a CR inside a header is an ordinary octet.
  private func isPlain(_ byte: UInt8) -> Bool { byte == .carriageReturn && !version.refusesBareCarriageReturn }

  private func write(_ text: String, into buffer: inout ByteBuffer) {
    for byte in text.utf8 {
      if let escape = escapes.first(where: { $0.octet == byte }) {
        buffer.writeInteger(UInt8.backslash)
        buffer.writeInteger(escape.letter)
      } else {
        buffer.writeInteger(byte)
      }
    }
  }
}

extension Headers.Field {
  fileprivate var trimmed: Headers.Field {
    Headers.Field(name: String(name.trimmingBlanks), value: String(value.trimmingBlanks))
  }
}

extension Headers {
  var trimmed: Headers {
    var headers = Headers()
    for field in fields.map(\.trimmed) { headers.append(field.name, field.value) }
    return headers
  }
}
