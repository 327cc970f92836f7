import Connections
import Foundation
import Listening
import NIOCore
import STOMP
import Testing
import WireClients

@testable import STOMPFront

/// The requirements of STOMP that can only be tested with real connections. The other suites cover the rest.
@Suite(.timeLimit(.minutes(5))) struct ChecklistTests {
  private static let session = [
    "CONNECT\r\naccept-version:1.2\r\nhost:h\r\npasscode:a\r\n\r\n\0\n",
    "SUBSCRIBE\nid:1\ndestination:/topic/t\nreceipt:s\n\n\0\r\n\n",
    "SEND\ndestination:/topic/t\ncontent-length:3\nreceipt:\\c\n\na\0b\0", "DISCONNECT\nreceipt:d\n\n\0",
  ].joined()

  private func withTopics(_ body: (TestServer) async throws -> Void) async throws {
    try await withServer({
      $0.destinations = ["/topic/", "/queue/"]
      $0.limits.userRequestBurst = 10_000  // logins of one user in quick succession are not refused
    }) { server, _ in try await body(server) }
  }

  /// The list itself is not in this repository; only a reader can check that a test does what its item says.
  @Test func everyItemOfTheListIsATestByItsNumber() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().resolvingSymlinksInPath()
    let name = /^ *(?:@Test\()?"stomp\.md (\d+)(.)/
    var numbers: Set<Int> = []
    for tests in [folder, folder.appending(path: "../ListeningTests"), folder.appending(path: "../STOMPTests")] {
      for file in try FileManager.default.contentsOfDirectory(at: tests, includingPropertiesForKeys: nil)
      where file.pathExtension == "swift" {
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
          guard let match = line.firstMatch(of: name), let number = Int(match.1) else { continue }
          #expect(match.2 == ":", "a test is about one item: \(line)")
          numbers.insert(number)
        }
      }
    }
    #expect(numbers == Set(1...86))
  }

  @Test("stomp.md 5: all frames of a session glued in one packet, over TCP")
  func gluedOverTCP() async throws {
    try await withTopics { server in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send(Self.session)
      let text = await client.rest()
      #expect(text.hasPrefix("CONNECTED\n") && text.contains("RECEIPT\nreceipt-id:s\n\n\0"))
      #expect(text.contains("RECEIPT\nreceipt-id:\\c\n\n\0") && text.hasSuffix("RECEIPT\nreceipt-id:d\n\n\0"))
      #expect(!client.wasReset)
    }
  }

  @Test("stomp.md 5: a session split at every byte, over TCP")
  func splitOverTCP() async throws {
    try await withTopics { server in
      let client = try await TestClient.open(port: server.stompPort)
      for byte in Self.session.utf8.dropLast("DISCONNECT\nreceipt:d\n\n\0".utf8.count) { try await client.send([byte]) }
      var seen: [Frame] = []
      while seen.count < 4, let frame = try await client.frame() { seen.append(frame) }
      #expect(Set(seen.map(\.command)) == [.connected, .receipt, .message])
      #expect(seen.first { $0.command == .message }?.body == ByteBuffer(string: "a\0b"))
    }
  }

  @Test("stomp.md 77: a session split at every byte and glued, over WebSocket", arguments: [0x81, 0x82] as [UInt8])
  func splitOverWebSocket(opcode: UInt8) async throws {
    try await withTopics { server in
      let split = try await TestWebSocket.open(server.httpPort)
      for byte in Self.session.utf8 { try await split.send(opcode, [byte]) }
      let glued = try await TestWebSocket.open(server.httpPort)
      try await glued.send(opcode, Array(Self.session.utf8))
      for socket in [split, glued] {
        var texts: [String] = []
        while case .text(let text)? = try await socket.next() { texts.append(text) }
        #expect(texts.first?.hasPrefix("CONNECTED\n") == true)
        #expect(texts.suffix(1) == ["RECEIPT\nreceipt-id:d\n\n\0"])
        #expect(texts.filter { $0.hasPrefix("RECEIPT") }.count == 3)
      }
    }
  }

  @Test("stomp.md 50: the same id on two connections is two subscriptions")
  func idsAreOfTheirConnection() async throws {
    try await withTopics { server in
      let clients = try await [
        TestClient.connected(to: server.stompPort, token: "a"), TestClient.connected(to: server.stompPort, token: "b"),
      ]
      for client in clients {
        try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/t\nack:client\nreceipt:r\n\n\0")
        try #require(try await client.frame()?.command == .receipt)
      }
      try await clients[0].send("UNSUBSCRIBE\nid:1\nreceipt:u\n\n\0SEND\ndestination:/topic/t\n\nx\0")
      #expect(try await clients[0].frame()?.headers["receipt-id"] == "u")
      let frame = try #require(try await clients[1].frame())
      #expect(frame.headers["subscription"] == "1")
      try await clients[0].send("ACK\nid:\(frame.headers["ack"] ?? "")\n\n\0")
      #expect(try await clients[0].frame()?.command == .error, "another connection's message is not its own")
    }
  }

  @Test("stomp.md 70: connecting and leaving in quick succession leaves nothing behind")
  func rapidConnections() async throws {
    try await withTopics { server in
      for _ in 0..<200 {
        let client = try await TestClient.open(port: server.stompPort)
        try await client.send(Self.session)
        #expect(await client.rest().hasSuffix("RECEIPT\nreceipt-id:d\n\n\0"))
        try await client.close()
      }
      await server.until { $0.connections == 0 }
      #expect(server.statistics.sessions == 0 && server.statistics.endings == [.disconnected: 200])
    }
  }

  @Test("stomp.md 76: CONNECT decides the version, whatever subprotocol was agreed on")
  func connectDecides() async throws {
    try await withTopics { server in
      let socket = try await TestWebSocket.open(server.httpPort, headers: ["Sec-WebSocket-Protocol: v11.stomp"])
      #expect(socket.response.contains("v11.stomp"))
      try await socket.send("CONNECT\naccept-version:1.1,1.2\nhost:h\npasscode:a\n\n\0")
      guard case .text(let text)? = try await socket.next() else { throw CancellationError() }
      #expect(text.contains("\nversion:1.2\n"))
    }
  }

  @Test("stomp.md 78: TEXT when the frame is UTF-8, else BINARY")
  func textOrBinary() async throws {
    try await withTopics { server in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send("SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0")
      try await socket.send(0x82, Array("SEND\ndestination:/topic/t\n\nä\0".utf8))
      try await socket.send(0x82, Array("SEND\ndestination:/topic/t\n\n".utf8) + [0xFF, 0x00])
      guard case .text(let text)? = try await socket.next(), case .binary(let bytes)? = try await socket.next() else {
        throw CancellationError()
      }
      #expect(text.hasSuffix("\n\nä\0") && bytes.suffix(3) == [0x0A, 0xFF, 0x00])
    }
  }

  @Test("stomp.md 79: one frame a message, many at once too")
  func oneFrameAMessage() async throws {
    try await withTopics { server in
      let socket = try await TestWebSocket.connected(server.httpPort)
      let sends = (0..<20).map { "SEND\ndestination:/topic/t\n\n\($0)\0" }.joined()
      try await socket.send("SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0\(sends)")
      for index in 0..<20 {
        guard case .text(let text)? = try await socket.next() else { throw CancellationError() }
        #expect(text.hasPrefix("MESSAGE\n") && text.hasSuffix("\n\n\(index)\0"))
      }
    }
  }

  @Test(
    "stomp.md 80: permessage-deflate is not agreed on, and a compressed frame is a breach",
    arguments: [0xC1, 0xA1, 0x91])
  func reservedBits(first: UInt8) async throws {
    try await withTopics { server in
      let socket = try await TestWebSocket.open(
        server.httpPort, headers: ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"])
      #expect(socket.isOpen && !socket.response.lowercased().contains("sec-websocket-extensions"))
      try await socket.send(first, Array("CONNECT\n\n\0".utf8))
      #expect(try await socket.next() == .close(1_002))
    }
  }

  @Test("stomp.md 85: nothing is evaluated: a selector is an ERROR")
  func selectors() async throws {
    try await withTopics { server in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:T(java.lang.Runtime)\n\n\0")
      #expect(try await client.frame()?.headers["message"] == "selectors are not supported")
    }
  }
}
