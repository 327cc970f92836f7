import Calls
import MediaModel
import Signaling
import STOMP
import Testing

/// Protocol section 1: STOMP over WebSocket.
@Suite(.timeLimit(.minutes(1))) struct WebSocketTests {
  @Test("stomp.md 75: without a subprotocol offered none is answered") func noSubprotocolIsMadeUp() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server)
      #expect(socket.isOpen && !socket.response.lowercased().contains("sec-websocket-protocol"))
    }
  }

  @Test(
    "stomp.md 82: the endpoints upgrade",
    arguments: ["/stomp", "/stomp/websocket", "/ws", "/ws/", "/stomp?token=1"])
  func theEndpointsUpgrade(path: String) async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server, path: path)
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
        server, headers: ["Sec-WebSocket-Protocol: \(offered)", "Sec-WebSocket-Extensions: permessage-deflate"])
      let line = socket.response.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-protocol:") }
      #expect(socket.isOpen && line?.split(separator: " ").last.map(String.init) == chosen)
      #expect(!socket.response.lowercased().contains("deflate"))
    }
  }

  @Test(
    "stomp.md 81: pages of other sites are refused",
    arguments: [
      (nil, true), ("http://example.org:8080", true), ("https://example.org:8080", true),
      ("http://EXAMPLE.org:8080", true),
      ("http://example.org", false), ("http://evil.org:8080", false), ("null", false), ("https://app.example", true),
      ("http://example.org:8080.evil.org", false),
    ])
  func pagesOfOtherSitesAreRefused(origin: String?, isAllowed: Bool) async throws {
    try await withServer({ $0.origins = .sameHost(also: ["https://app.example"]) }) { server, _ in
      let socket = try await TestWebSocket.open(server, headers: origin.map { ["Origin: \($0)"] } ?? [])
      #expect(socket.isOpen == isAllowed)
      if !isAllowed { #expect(socket.response.hasPrefix("HTTP/1.1 403 ")) }
      #expect(server.statistics.drops[.foreignOrigin] == (isAllowed ? nil : 1))
    }
  }

  @Test("stomp.md 81: any origin can be configured")
  func anyOriginCanBeConfigured() async throws {
    try await withServer({ $0.origins = .any }) { server, _ in
      let socket = try await TestWebSocket.open(server, headers: ["Origin: http://evil.org"])
      #expect(socket.isOpen)
    }
  }

  @Test("stomp.md 77: message boundaries mean nothing")
  func messageBoundariesMeanNothing() async throws {
    try await withServer { server, sink in
      let socket = try await TestWebSocket.connected(server)
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
      let socket = try await TestWebSocket.open(server)
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
        let socket = try await TestWebSocket.open(server)
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
      let socket = try await TestWebSocket.connected(server)
      try await socket.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:1\n\n\0"))
      #expect(try await socket.next() == .close(1_000))
      #expect(server.statistics.endings == [.disconnected: 1] && sink.disconnects == 1)
    }
  }

  @Test func whoDoesNotAnswerTheCloseIsCutOff() async throws {
    try await withServer({ $0.linger = .milliseconds(50) }) { server, _ in
      let socket = try await TestWebSocket.connected(server)
      try await socket.send("DISCONNECT\n\n\0")
      #expect(try await socket.next() == .close(1_000))
      #expect(try await socket.next() == nil)
    }
  }

  @Test func theClientsCloseIsAnswered() async throws {
    for (payload, code) in [([0x03, 0xE9], 1_001), ([], 1_000), ([0x03, 0xED], 1_002)] as [([UInt8], UInt16)] {
      try await withServer { server, sink in
        let socket = try await TestWebSocket.connected(server)
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
      let socket = try await TestWebSocket.connected(server)
      try await socket.send(first, payload, isMasked: isMasked)
      #expect(try await socket.next() == .close(code))
      #expect(try await socket.next() == nil)
      try await sink.first { if case .disconnect = $0 { () } else { nil } }
    }
  }

  @Test func aSecondMessageInsideAFragmentedOneIsABreach() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.connected(server)
      try await socket.send(0x01, [0x61])
      try await socket.send(0x81, [0x61])
      #expect(try await socket.next() == .close(1_002))
    }
  }

  @Test("stomp.md 80: the sum of fragments is bounded")
  func theSumOfFragmentsIsBounded() async throws {
    try await withServer({ ($0.requestBody, $0.keysBody) = (1 << 10, 1 << 10) }) { server, _ in
      let socket = try await TestWebSocket.connected(server)
      let fragment = [UInt8](repeating: 0x0A, count: 100 << 10)
      try await socket.send(0x02, fragment)
      for _ in 0..<5 { try await socket.send(0x00, fragment) }
      #expect(try await socket.next() == .close(1_009))
    }
  }

  @Test("stomp.md 72: before login little is taken")
  func beforeLoginLittleIsTaken() async throws {
    try await withServer { server, _ in
      let socket = try await TestWebSocket.open(server)
      // Part of one WebSocket frame of 200,000 bytes: the frame decoder alone would wait for all of it.
      try await socket.client.send(
        [0x82, 0xFF, 0, 0, 0, 0, 0, 3, 13, 64, 1, 2, 3, 4] + [UInt8](repeating: 0, count: 150_000))
      #expect(try await socket.next() == nil)
      await server.until { $0.endings == [.gone: 1] }
    }
  }
}
