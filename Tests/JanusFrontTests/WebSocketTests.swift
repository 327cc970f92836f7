import JanusAPI
import JanusFront
import Testing
import WireClients

@Suite struct WebSocketTests {
  private func text(_ socket: TestWebSocket) async throws -> String {
    guard case .text(let text) = try await socket.next() else { throw NoText() }
    return text
  }

  @Test func aClientHasToOfferTheSubprotocolAndGetsIt() async throws {
    try await withRooms { rooms in
      for (port, path) in [(rooms.roomPort, "/"), (rooms.roomPort, "/janus"), (rooms.httpPort, "/janus")] {
        let without = try await TestWebSocket.open(port, path: path)
        #expect(without.response.hasPrefix("HTTP/1.1 400 "))
        let socket = try await TestWebSocket.open(
          port, path: path, headers: ["Sec-WebSocket-Protocol: janus-protocol"])
        #expect(socket.isOpen && socket.response.lowercased().contains("sec-websocket-protocol: janus-protocol"))
        try await socket.client.close()
      }
    }
  }

  @Test func requestsAreAnsweredInTheirOrder() async throws {
    try await withRooms { rooms in
      let socket = try await rooms.socket()
      for number in 0..<20 { try await socket.send(#"{"janus":"ping","transaction":"\#(number)"}"#) }
      for number in 0..<20 { #expect(try await text(socket) == #"{"janus":"pong","transaction":"\#(number)"}"#) }
      try await socket.send("[1")
      #expect(try await text(socket).contains(#""code":454"#))
      try await socket.send(#"{"janus":"ping","janus":"ping","transaction":"t"}"#)
      #expect(try await text(socket).contains(#""code":454"#))
    }
  }

  @Test func requestsWaitWhileTheSecretsOfOneAreJudged() async throws {
    try await withRooms(isOpen: false) { rooms in
      let socket = try await rooms.socket()
      try await socket.send(#"{"janus":"create","token":"slow","transaction":"1"}"#)
      try await socket.send(#"{"janus":"create","transaction":"2"}"#)
      try await socket.send(#"{"janus":"create","apisecret":"secret","transaction":"3"}"#)
      #expect(try await text(socket).hasPrefix(#"{"janus":"success","transaction":"1""#))
      let refusal = try await text(socket)
      #expect(refusal.contains(#""transaction":"2""#) && refusal.contains(#""code":403"#))
      #expect(try await text(socket).hasPrefix(#"{"janus":"success","transaction":"3""#))
    }
  }

  @Test func aCloseFrameAndALostConnectionAreToldApart() async throws {
    try await withRooms { rooms in
      let polite = try await rooms.socket()
      try await polite.send(0x88, [0x03, 0xE8])
      #expect(try await polite.next() == .close(1_000))
      while rooms.rooms.endings.isEmpty { await Task.yield() }
      #expect(rooms.rooms.endings == [.closed])
      let lost = try await rooms.socket()
      try await lost.send(#"{"janus":"ping","transaction":"t"}"#)
      _ = try await text(lost)
      try await lost.client.close()
      while rooms.rooms.endings.count < 2 { await Task.yield() }
      #expect(rooms.rooms.endings == [.closed, .broken] && rooms.clients.sockets == 0)
    }
  }

  @Test func aStrangerMaySendOnlyALogin() async throws {
    try await withRooms(isOpen: false, { $0.bytesBeforeLogin = 256 }) { rooms in
      let socket = try await rooms.socket()
      try await socket.send(String(repeating: " ", count: 300))
      #expect(try await socket.next() == nil)
      let known = try await rooms.socket()
      try await known.send(#"{"janus":"create","apisecret":"secret","transaction":"t"}"#)
      _ = try await text(known)
      try await known.send(#"{"janus":"ping","transaction":"\#(String(repeating: "x", count: 250))"}"#)
      #expect(try await text(known).contains("pong"))
    }
  }

  @Test func aMessageThatIsTooLongEndsTheConnection() async throws {
    try await withRooms({ $0.messageBytes = 1_000 }) { rooms in
      let socket = try await rooms.socket()
      try await socket.send(String(repeating: " ", count: 1_001))
      #expect(try await socket.next() == .close(1_009))
      while rooms.rooms.endings.isEmpty { await Task.yield() }
      #expect(rooms.rooms.endings == [.broken])
    }
  }
}

private struct NoText: Error {}
