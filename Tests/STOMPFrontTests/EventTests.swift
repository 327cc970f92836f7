import CallMessages
import Connections
import Contract
import Listening
import MediaModel
import NIOCore
import STOMP
import STOMPFront
import Testing
import WireClients

/// Protocol section 3: events, acknowledgements, and clients that do not read.
@Suite(.timeLimit(.minutes(5))) struct EventTests {
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
          "subscription": "e", "message-id": "1", "ack": "1", "seq": "7", "destination": "/user/queue/events",
          "content-type": "application/json", "event": "keys.switch",
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
        if case .acknowledge(session, let seqs, let accepted) = command { (seqs.first ?? 0, accepted) } else { nil }
      }
      #expect(seq == 41 && wasAccepted == isAccepted)
    }
  }

  /// Acknowledgements that arrive together are one command; a NACK between them, and a request after them, keep their
  /// order.
  @Test func acknowledgementsKeepTheirOrderAmongCommands() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice@phone")
      let session = try await sink.session()
      try await client.subscribe("events", id: "e", ack: "client-individual")
      var bytes: [UInt8] = []
      let encoder = FrameEncoder(version: .v12)
      for seq in UInt64(1)...5 {
        server.event(session, seq: seq)
        let message = try #require(try await client.frame())
        bytes += encoder.encode(.acknowledge(message, accepted: seq != 4, version: .v12)).readableBytesView
      }
      bytes += Array("SEND\ndestination:/app/calls/list\nrequest-id:1\n\n{}\0".utf8)
      try await client.send(bytes)
      _ = try await sink.first { if case .request = $0 { () } else { nil } }
      let told = sink.all.compactMap { command -> String? in
        switch command {
        case .acknowledge(session, let seqs, let accepted): "\(accepted) \(seqs)"
        case .request: "request"
        default: nil
        }
      }
      #expect(told == ["true [1, 2, 3]", "false [4]", "true [5]", "request"])
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
      var deliveries: [Delivery] = []
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

  /// When many devices get an event that needs no immediate reaction, it waits for the next frame on its connection, or
  /// for a moment.
  @Test func eventsOfALargeCallLeaveTogetherAndInOrder() async throws {
    let crowd = 64
    let rounds: UInt64 = 10
    try await withServer { server, sink in
      var clients: [(client: TestClient, session: SessionID)] = []
      for number in 0..<crowd {
        let client = try await TestClient.connected(to: server.stompPort, token: "user\(number)")
        clients.append((client, try await sink.session()))
        try await client.subscribe("events")
      }
      let member = MemberState(user: UserID("alice")!, name: nil, state: .joined, participants: [])
      let message = EventMessage(
        at: Timestamp(milliseconds: 5), call: CallID("c1"), body: .member(MemberChange(member: member, cause: .joined)))
      func tell(_ seq: UInt64, to receivers: some Sequence<(client: TestClient, session: SessionID)>) {
        server.deliver(
          receivers.map {
            .event($0.session, EventDelivery(seq: seq, redelivered: false, messageID: seq, message: message))
          })
      }
      let before = server.statistics.flushes
      for seq in 1...rounds { tell(seq, to: clients) }
      server.event(clients[0].session, seq: rounds + 1)
      for (number, client) in clients.enumerated() {
        for seq in 1...(number == 0 ? rounds + 1 : rounds) {
          #expect(try await client.client.frame()?.headers["seq"] == String(seq))
        }
      }
      let writes = server.statistics.flushes - before
      #expect(writes < UInt64(crowd) * rounds / 2, "\(writes) writes for \(UInt64(crowd) * rounds) events")
      // In a small call each event is sent separately.
      let few = clients.prefix(crowd - 1)
      let start = server.statistics.flushes
      for seq in rounds + 2...2 * rounds { tell(seq, to: few) }
      for client in few {
        for seq in rounds + 2...2 * rounds { #expect(try await client.client.frame()?.headers["seq"] == String(seq)) }
      }
      #expect(server.statistics.flushes - start == UInt64(few.count) * (rounds - 1))
    }
  }

  @Test("stomp.md 73: a client that does not read is closed and nobody else waits")
  func aClientThatDoesNotReadIsClosedAndNobodyElseWaits() async throws {
    try await withServer({ $0.limits.outbound = 256 << 10 }) { server, sink in
      let slow = try await TestClient.connected(to: server.stompPort, token: "slow")
      let slowSession = try await sink.session()
      let quick = try await TestClient.connected(to: server.stompPort, token: "quick")
      let quickSession = try await sink.session()
      try await slow.subscribe("replies")
      try await quick.subscribe("replies")
      try await slow.channel.setOption(.autoRead, value: false).get()
      let answer = CallLink(link: String(repeating: "x", count: 100_000), expiresAt: Timestamp(milliseconds: 1))
      while server.statistics.endings[.slowReader] == nil {
        server.deliver([.reply(slowSession, id: "1", .ok(.link(answer))), .reply(quickSession, id: "2", .ok(.nothing))])
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
      let listener = try await TestClient.open(port: server.stompPort)
      try await listener.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:a\nheart-beat:0,100\n\n\0")
      let heard = await listener.bytes { String(buffer: $0).contains("\0\n\n") }
      #expect(String(buffer: heard).hasPrefix("CONNECTED\n"))
      try await listener.close()
      await server.until { $0.endings == [.gone: 1] }
      let silent = try await TestClient.open(port: server.stompPort)
      try await silent.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:a\nheart-beat:100,0\n\n\0")
      #expect(await silent.rest().contains("ERROR\nmessage:no heart-beat"))
      #expect(server.statistics.endings == [.gone: 1, .heartBeatMissing: 1])
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
