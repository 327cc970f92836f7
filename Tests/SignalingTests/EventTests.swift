import Calls
import Contract
import MediaModel
import NIOCore
import Signaling
import STOMP
import Testing

/// Protocol section 3: events, acknowledgements, and clients that do not read.
@Suite(.timeLimit(.minutes(1))) struct EventTests {
  @Test func anEventCarriesItsNameAndNumber() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice@phone")
      let session = try await sink.session()
      try await client.subscribe("events", id: "e", ack: "client-individual")
      server.event(session, seq: 7)
      server.event(session, seq: 8, redelivered: true, epoch: 2)
      let first = try #require(try await client.frame())
      #expect(
        first.headers == [
          "subscription": "e", "message-id": "1", "ack": "1", "destination": "/user/queue/events",
          "content-type": "application/json", "event": "keys.switch", "seq": "7",
          "content-length": String(first.body.readableBytes),
        ])
      #expect(String(buffer: first.body) == #"{"at":5,"call":"c1","epoch":1}"#)
      let second = try #require(try await client.frame())
      #expect(second.headers["redelivered"] == "true" && second.headers["seq"] == "8")
      #expect(String(buffer: second.body).hasSuffix(#""epoch":2}"#))
    }
  }

  @Test(arguments: Version.allCases, [true, false])
  func acknowledgementsReachTheSinkBySequenceNumber(version: Version, accepted: Bool) async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice", version: version)
      let session = try await sink.session()
      try await client.subscribe("events", ack: "client")
      server.event(session, seq: 41)
      let message = try #require(try await client.frame())
      let isAccepted = accepted || version == .v10
      let answer = Frame.acknowledge(message, accepted: isAccepted, version: version)
      try await client.send(Array(FrameEncoder(version: version).encode(answer).readableBytesView))
      let (seq, wasAccepted) = try await sink.first { command -> (UInt64, Bool)? in
        if case .acknowledge(session, let seq, let accepted) = command { (seq, accepted) } else { nil }
      }
      #expect(seq == 41 && wasAccepted == isAccepted)
    }
  }

  @Test func oneMessageReachesManyAndMissesWhoIsGone() async throws {
    try await withServer { server, sink in
      var clients: [(TestClient, SessionID)] = []
      for i in 0..<20 {
        let client = try await TestClient.connected(to: server.stompPort, token: "user\(i)")
        clients.append((client, try await sink.session()))
        try await client.subscribe("events")
      }
      let message = EventMessage(at: Timestamp(milliseconds: 5), call: nil, body: .switchKeys(SwitchKeys(epoch: 9)))
      let other = EventMessage(at: Timestamp(milliseconds: 6), call: nil, body: .switchKeys(SwitchKeys(epoch: 10)))
      var deliveries: [Calls.Effect] = []
      for (_, session) in clients {
        deliveries.append(.event(session, EventDelivery(seq: 1, redelivered: false, messageID: 4, message: message)))
      }
      for (_, session) in clients {
        deliveries.append(.event(session, EventDelivery(seq: 2, redelivered: false, messageID: 0, message: other)))
      }
      deliveries.append(.close(SessionID(rawValue: 12_345), reason: "x"))
      server.deliver(deliveries)
      for (client, _) in clients {
        #expect(try await client.frame().map { String(buffer: $0.body) } == #"{"at":5,"epoch":9}"#)
        #expect(try await client.frame().map { String(buffer: $0.body) } == #"{"at":6,"epoch":10}"#)
      }
      #expect(server.statistics.drops == [.sessionGone: 1])
    }
  }

  @Test("stomp.md 73: a client that does not read is closed and nobody else waits")
  func aClientThatDoesNotReadIsClosedAndNobodyElseWaits() async throws {
    try await withServer({ $0.outboundBytes = 256 << 10 }) { server, sink in
      let slow = try await TestClient.connected(to: server.stompPort, token: "slow")
      let slowSession = try await sink.session()
      let quick = try await TestClient.connected(to: server.stompPort, token: "quick")
      let quickSession = try await sink.session()
      try await slow.subscribe("replies")
      try await quick.subscribe("replies")
      try await slow.channel.setOption(.autoRead, value: false).get()
      let answer = String(repeating: "x", count: 100_000)
      while server.statistics.endings[.slowReader] == nil {
        server.deliver([.reply(slowSession, id: "1", .ok([answer])), .reply(quickSession, id: "2", .ok(["y"]))])
        #expect(try await quick.frame()?.headers["request-id"] == "2")
      }
      let gone = try await sink.first { if case .disconnect(let session) = $0 { session } else { nil } }
      #expect(gone == slowSession && server.statistics.sessions == 1)
    }
  }

  @Test("stomp.md 69: an error arrives though the server has not read all")
  func anErrorArrivesThoughTheServerHasNotReadAll() async throws {
    try await withServer { server, _ in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.send(Array("NONSENSE\n\n\0".utf8) + [UInt8](repeating: 0x41, count: 2 << 20))
      let frame = try await client.frame()
      #expect(frame?.command == .error && frame?.headers["message"] == "unknown command")
      #expect(try await client.frame() == nil)
      #expect(!client.wasReset && server.statistics.endings == [.protocolError: 1])
    }
  }

  @Test func aClientThatClosesItsHalfOrBreaksIsGone() async throws {
    try await withServer { server, sink in
      let half = try await TestClient.connected(to: server.stompPort, token: "a")
      try await half.channel.close(mode: .output)
      #expect(try await half.frame() == nil)
      let broken = try await TestClient.connected(to: server.stompPort, token: "b")
      try await broken.close()
      await server.until { $0.endings == [.gone: 2] && $0.connections == 0 && $0.sessions == 0 }
      #expect(sink.disconnects == 2)
    }
  }

  @Test("stomp.md 35: the server beats, and misses the clients beats")
  func heartBeatsGoBothWays() async throws {
    try await withServer({ $0.heartBeatMilliseconds = 100 }) { server, _ in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:a\nheart-beat:100,100\n\n\0")
      // The server beats, misses the client's beats, and says so.
      let text = await client.rest()
      let end = try #require(text.firstRange(of: "ERROR\n"))
      #expect(text[..<end.lowerBound].hasSuffix("\0\n") || text[..<end.lowerBound].hasSuffix("\n\n"))
      #expect(text[end.lowerBound...].contains("message:no heart-beat"))
      #expect(server.statistics.endings == [.heartBeatMissing: 1])
    }
  }

  @Test func stoppingTellsAllClients() async throws {
    try await withServer { server, _ in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      await server.stop()
      #expect(try await client.frame()?.headers["message"] == "the server is shutting down")
      #expect(try await client.frame() == nil)
    }
  }
}
