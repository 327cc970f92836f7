import NIOCore

/// A WebSocket client that works with raw bytes, so that it can also break the rules (RFC 6455).
package struct TestWebSocket {
  package let client: TestClient
  /// The server's answer to the handshake, without the empty line.
  package let response: String

  package enum Message: Equatable {
    case text(String), binary([UInt8]), pong([UInt8]), close(UInt16)
  }

  package static func open(
    _ port: Int, path: String = "/stomp", headers: [String] = [], tls: Bool = false
  ) async throws -> TestWebSocket {
    let client = try await TestClient.open(port: port, tls: tls)
    let lines =
      [
        "GET \(path) HTTP/1.1", "Host: example.org:8080", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ] + headers
    try await client.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
    var response: [UInt8] = []
    while !response.suffix(4).elementsEqual("\r\n\r\n".utf8), let byte = await client.take(1) { response += byte }
    return TestWebSocket(client: client, response: String(decoding: response.dropLast(4), as: UTF8.self))
  }

  package static func connected(
    _ port: Int, token: String = "alice", tls: Bool = false
  ) async throws -> TestWebSocket {
    let socket = try await open(port, tls: tls)
    try await socket.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:\(token)\n\n\0")
    guard case .text(let text) = try await socket.next(), text.hasPrefix("CONNECTED\n") else {
      throw UnexpectedAnswer()
    }
    return socket
  }

  package var isOpen: Bool { response.hasPrefix("HTTP/1.1 101 ") }

  package func send(_ text: String) async throws { try await send(0x81, Array(text.utf8)) }

  /// `first` is the frame's first byte: FIN, reserved bits and opcode.
  package func send(_ first: UInt8, _ payload: [UInt8], isMasked: Bool = true) async throws {
    var bytes = [first]
    let mask: UInt8 = isMasked ? 0x80 : 0
    switch payload.count {
    case ...125: bytes.append(mask | UInt8(payload.count))
    case ...65_535: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default: bytes += [mask | 127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
    }
    let key: [UInt8] = [1, 2, 3, 4]
    if isMasked { bytes += key }
    bytes += payload.enumerated().map { isMasked ? $1 ^ key[$0 % 4] : $1 }
    try await client.send(bytes)
  }

  /// The next message, nil at the end of the connection.
  package func next() async throws -> Message? {
    guard let head = await client.take(2) else { return nil }
    // No extension, mask or fragment.
    guard head[0] & 0x70 == 0, head[1] & 0x80 == 0, head[0] & 0x80 != 0 else { throw UnexpectedAnswer() }
    var length = Int(head[1])
    if length >= 126 {
      guard let bytes = await client.take(length == 126 ? 2 : 8) else { throw UnexpectedAnswer() }
      length = bytes.reduce(0) { $0 << 8 | Int($1) }
    }
    guard let payload = await client.take(length) else { throw UnexpectedAnswer() }
    switch head[0] & 0x0F {
    case 1:
      guard let text = String(validating: payload, as: UTF8.self) else { throw UnexpectedAnswer() }
      return .text(text)
    case 2: return .binary(payload)
    case 8: return .close(UInt16(payload[0]) << 8 | UInt16(payload[1]))
    default: return .pong(payload)
    }
  }
}
