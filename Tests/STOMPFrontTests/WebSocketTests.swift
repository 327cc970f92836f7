import CallMessages
import Connections
import Listening
import NIOCore
import STOMPFront
import Testing
import WireClients

/// Protocol section 1: STOMP over WebSocket.
@Suite(.timeLimit(.minutes(5))) struct WebSocketTests {
  @Test("stomp.md 75: without a subprotocol offered none is answered") func noSubprotocolIsMadeUp() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server.httpPort)
      #expect(socket.isOpen && !socket.response.lowercased().contains("sec-websocket-protocol"))
    }
  }

  @Test(
    "stomp.md 82: the endpoints upgrade",
    arguments: ["/stomp", "/stomp/", "/stomp/websocket", "/ws", "/ws/", "/stomp?token=1"])
  func theEndpointsUpgrade(path: String) async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server.httpPort, path: path)
      #expect(socket.isOpen)
      #expect(socket.response.lowercased().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="))
    }
  }

  @Test(
    "stomp.md 75: the highest subprotocol is chosen",
    arguments: [
      ("v10.stomp, v11.stomp, v12.stomp", "v12.stomp"), ("v11.stomp,v10.stomp", "v11.stomp"),
      ("v10.stomp", "v10.stomp"),
      ("mqtt", nil), ("mqtt, v11.stomp", "v11.stomp"),
    ])
  func theHighestSubprotocolIsChosen(offered: String, chosen: String?) async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(
        server.httpPort,
        headers: ["Sec-WebSocket-Protocol: \(offered)", "Sec-WebSocket-Extensions: permessage-deflate"])
      let line = socket.response.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-protocol:") }
      #expect(socket.isOpen && line?.split(separator: " ").last.map(String.init) == chosen)
      #expect(!socket.response.lowercased().contains("deflate"))
    }
  }

  @Test("stomp.md 77: message boundaries mean nothing")
  func messageBoundariesMeanNothing() async throws {
    try await withServer { server, sink in
      let socket = try await TestWebSocket.connected(server.httpPort)
      // One frame over two messages and a fragmented third; text and binary; then three frames in one message.
      try await socket.send("SUBSCRIBE\nid:1\ndesti")
      try await socket.send(0x82, Array("nation:/user/queue/replies\nrec".utf8))
      try await socket.send(0x01, Array("eipt:".utf8))
      try await socket.send(0x89, Array("hi".utf8))
      try await socket.send(0x80, Array("1\n\n\0\n".utf8))
      #expect(try await socket.next() == .pong(Array("hi".utf8)))
      #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:1\n\n\0"))
      try await socket.send(
        "BEGIN\ntransaction:t\nreceipt:2\n\n\0\nABORT\ntransaction:t\nreceipt:3\n\n\0SEND\ndestination:/app/x/y\nrequest-id:ä\n\n\0"
      )
      #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:2\n\n\0"))
      #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:3\n\n\0"))
      guard case .text(let reply) = try await socket.next() else {
        Issue.record("a text message was expected")
        return
      }
      #expect(reply.hasPrefix("MESSAGE\n") && reply.contains("request-id:ä\n") && reply.hasSuffix("}}\0"))
    }
  }

  @Test("stomp.md 39: heart beats are messages of their own")
  func heartBeatsAreMessagesOfTheirOwn() async throws {
    try await withServer({ $0.heartBeatMilliseconds = 50 }) { server, _ in
      let socket = try await TestWebSocket.open(server.httpPort)
      try await socket.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:a\nheart-beat:0,50\n\n\0")
      _ = try await socket.next()
      #expect(try await socket.next() == .text("\n"))
    }
  }

  @Test("stomp.md 80: an error comes before the close")
  func anErrorComesBeforeTheClose() async throws {
    for (text, code) in [
      ("NONSENSE\n\n\0", 1_002), ("CONNECT\naccept-version:1.2\npasscode:bad\n\n\0", 1_008),
      ("CONNECT\naccept-version:9\n\n\0", 1_002),
    ] as [(String, UInt16)] {
      try await withServer { server, _ in
        let socket = try await TestWebSocket.open(server.httpPort)
        try await socket.send(text)
        guard case .text(let error) = try await socket.next() else {
          Issue.record("an ERROR was expected")
          return
        }
        #expect(error.hasPrefix("ERROR\n"))
        #expect(try await socket.next() == .close(code))
        try await socket.send(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)])
        #expect(try await socket.next() == nil)
      }
    }
  }

  @Test("stomp.md 68: disconnect closes normally after the receipt")
  func disconnectClosesNormallyAfterTheReceipt() async throws {
    try await withServer { server, sink in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:1\n\n\0"))
      #expect(try await socket.next() == .close(1_000))
      #expect(server.statistics.endings == [.disconnected: 1] && sink.disconnects == 1)
    }
  }

  @Test func aClientThatDoesNotAnswerTheCloseIsCutOff() async throws {
    try await withServer({ $0.linger = .milliseconds(50) }) { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send("DISCONNECT\n\n\0")
      #expect(try await socket.next() == .close(1_000))
      #expect(try await socket.next() == nil)
    }
  }

  @Test func theClientsCloseIsAnswered() async throws {
    for (payload, code) in [
      ([0x03, 0xE9], 1_001), ([], 1_000), ([0x03, 0xE8, 0x68, 0x69], 1_000), ([0x0F, 0xA0], 4_000),
      // Codes that must not be sent or are not assigned, half a code, and a reason that is not UTF-8.
      ([0x03, 0xED], 1_002), ([0x03, 0xEC], 1_002), ([0x03, 0xF7], 1_002), ([0, 0], 1_002), ([0xFF, 0xFF], 1_002),
      ([0x13, 0x88], 1_002), ([0x03], 1_002), ([0x03, 0xE8, 0xFF], 1_007),
    ] as [([UInt8], UInt16)] {
      try await withServer { server, sink in
        let socket = try await TestWebSocket.connected(server.httpPort)
        try await socket.send(0x88, payload)
        #expect(try await socket.next() == .close(code))
        #expect(try await socket.next() == nil)
        try await sink.first { if case .disconnect = $0 { () } else { nil } }
      }
    }
  }

  @Test(
    arguments: [
      (0x81, [0xFF, 0xFE], true, 1_007), (0x81, [0x61], false, 1_002), (0xC1, [0x61], true, 1_002),
      (0x80, [0x61], true, 1_002),
      (0x83, [0x61], true, 1_002), (0x09, [0x61], true, 1_002),
    ] as [(UInt8, [UInt8], Bool, UInt16)])
  func breachesOfWebSocketCloseIt(first: UInt8, payload: [UInt8], isMasked: Bool, code: UInt16) async throws {
    try await withServer { server, sink in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send(first, payload, isMasked: isMasked)
      #expect(try await socket.next() == .close(code))
      #expect(try await socket.next() == nil)
      try await sink.first { if case .disconnect = $0 { () } else { nil } }
    }
  }

  @Test(
    "RFC 6455 section 5.2: a length is in its shortest form",
    arguments: [
      ([0x82, 0xFE, 0, 125], 1_002), ([0x82, 0xFE, 0, 5], 1_002), ([0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1_002),
      ([0x82, 0xFF] + [UInt8](repeating: 0xFF, count: 8), 1_002),
      ([0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 7), 1_009), ([0x82, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0], 1_009),
      // A control frame must have a short length; this is detected before its payload arrives.
      ([0x89, 0xFE, 0, 126], 1_002), ([0x88, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0], 1_002), ([0x09, 0x80], 1_002),
      ([0x8B, 0x80], 1_002), ([0x82, 0x05], 1_002),
    ] as [([UInt8], UInt16)])
  func lengthsAreInTheirShortestForm(header: [UInt8], code: UInt16) async throws {
    try await withServer { server, sink in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.client.send(header)
      #expect(try await socket.next() == .close(code))
      try await sink.first { if case .disconnect = $0 { () } else { nil } }
    }
  }

  @Test func theLongestShortAndTheShortestLongLengthsAreTaken() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      for count in [125, 126, 65_535, 65_536] {
        try await socket.send(0x82, [UInt8](repeating: 0x0A, count: count))
        try await socket.send(0x89, [UInt8(count & 0x7F)])
        #expect(try await socket.next() == .pong([UInt8(count & 0x7F)]))
      }
    }
  }

  /// If the server closed while more bytes arrive, the kernel would send a reset and destroy the Close frame.
  @Test func aBreachIsToldToAClientThatGoesOnSending() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.client.send([0x82, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4])
      for _ in 0..<20 { try await socket.client.send([UInt8](repeating: 0, count: 100_000)) }
      #expect(try await socket.next() == .close(1_009))
      #expect(try await socket.next() == nil)
      #expect(!socket.client.wasReset)
    }
  }

  /// Reverse proxies keep their connections and send a handshake on any of them.
  @Test func aConnectionThatCarriedRequestsBecomesAWebSocket() async throws {
    try await withServer { server, _ in
      let client = try await TestClient.open(port: server.httpPort)
      let handshake =
        "GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
      for path in ["/a", "/b"] {
        try await client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = await client.bytes { String(buffer: $0).hasSuffix("\r\n\r\n\(path)") }
      }
      // Pipelined after a request, with the first frame right after it.
      let connect = Array("CONNECT\naccept-version:1.2\nhost:h\npasscode:a\n\n\0".utf8)
      let frame = [0x81, 0x80 | UInt8(connect.count), 0, 0, 0, 0] + connect
      try await client.send(Array(("GET /c HTTP/1.1\r\nHost: h\r\n\r\n" + handshake).utf8) + frame)
      let answer = String(buffer: await client.bytes { String(buffer: $0).contains("CONNECTED\n") })
      #expect(answer.contains("\r\n\r\n/cHTTP/1.1 101 "))
      await server.until { $0.sessions == 1 }
    }
  }

  @Test func aSecondMessageInsideAFragmentedOneIsABreach() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send(0x01, [0x61])
      try await socket.send(0x81, [0x61])
      #expect(try await socket.next() == .close(1_002))
    }
  }

  @Test("stomp.md 80: the sum of fragments is bounded")
  func theSumOfFragmentsIsBounded() async throws {
    try await withServer({ ($0.limits.body, $0.limits.keysBody) = (1 << 10, 1 << 10) }) { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      let fragment = [UInt8](repeating: 0x0A, count: 100 << 10)
      try await socket.send(0x02, fragment)
      for _ in 0..<5 { try await socket.send(0x00, fragment) }
      #expect(try await socket.next() == .close(1_009))
    }
  }

  @Test("stomp.md 80: the number of fragments is bounded", arguments: [(1_024, false), (1_025, true)])
  func theNumberOfFragmentsIsBounded(count: Int, isTooLarge: Bool) async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.connected(server.httpPort)
      try await socket.send(0x02, [0x0A])
      for _ in 0..<(count - 2) { try await socket.send(0x00, []) }
      try await socket.send(0x80, Array("BEGIN\ntransaction:t\nreceipt:1\n\n\0".utf8))
      #expect(try await socket.next() == (isTooLarge ? .close(1_009) : .text("RECEIPT\nreceipt-id:1\n\n\0")))
    }
  }

  @Test("stomp.md 72: before login little is taken")
  func beforeLoginLittleIsTaken() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server.httpPort)
      // Part of one WebSocket frame of 200,000 bytes: the frame decoder alone would wait for all of it.
      try await socket.client.send(
        [0x82, 0xFF, 0, 0, 0, 0, 0, 3, 13, 64, 1, 2, 3, 4] + [UInt8](repeating: 0, count: 150_000))
      #expect(try await socket.next() == nil)
      await server.until { $0.endings == [.gone: 1] }
    }
  }
}
