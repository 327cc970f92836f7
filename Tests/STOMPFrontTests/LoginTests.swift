import CallMessages
import Listening
import MediaModel
import STOMP
import STOMPFront
import Testing
import WireClients

/// Protocol section 2.
@Suite(.timeLimit(.minutes(5))) struct LoginTests {
  private let refusal =
    "ERROR\nmessage:Bad CONNECT: authentication failed\ncontent-type:text/plain\ncontent-length:34\n\n"
    + "Bad CONNECT: authentication failed\0"

  @Test func connectedCarriesWhatTheProtocolNames() async throws {
    try await withServer({ $0.serverName = "conclave/1.2.3" }) { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.1,1.2\nhost:h\npasscode:alice@phone\nheart-beat:0,0\n\n\0")
      let frame = try #require(try await client.frame())
      let session = try await sink.session()
      #expect(session == SessionID(1, of: Incarnation(3)), "the header names the connection, not the server's run")
      #expect(frame.command == .connected)
      #expect(
        frame.headers == [
          "version": "1.2", "session": "1", "server": "conclave/1.2.3",
          "heart-beat": "10000,10000", "user-name": "alice", "device": "phone",
        ])
      #expect(server.statistics.sessions == 1)
    }
  }

  @Test(arguments: [
    ("passcode:alice@phone", "alice", "phone", true), ("passcode:alice\ndevice:tablet", "alice", "tablet", true),
    ("passcode:alice@phone\ndevice:tablet", "alice", "phone", true),
    ("Authorization:Bearer alice@phone", "alice", "phone", true),
    ("passcode:alice@phone\nlogin:alice", "alice", "phone", true),
    ("passcode:alice@phone\nlogin:device-phone", "alice", "phone", true),
    ("passcode:alice@phone\nlogin:", "alice", "phone", true),
    ("passcode:service\ndevice:backend", "service", "backend", false),
  ])
  func identitiesComeFromTokenAndConnect(headers: String, user: String, device: String, canRegister: Bool) async throws
  {
    try await withServer { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.2\nhost:h\n\(headers)\n\n\0")
      #expect(try await client.frame()?.headers["device"] == device)
      let identity = try await sink.first { if case .connect(_, let identity) = $0 { identity } else { nil } }
      #expect(identity.device == Device(user: UserID(user)!, device: DeviceID(device)!))
      #expect(identity.canRegister == canRegister && identity.isService == (user == "service"))
    }
  }

  @Test func aDeviceWithoutANameGetsOneButMayNotRegister() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:alice\n\n\0")
      let device = try #require(try await client.frame()?.headers["device"])
      #expect(DeviceID(device) != nil)
      let identity = try await sink.first { if case .connect(_, let identity) = $0 { identity } else { nil } }
      #expect(identity.device.device.text == device && !identity.canRegister && identity.name == "Name of alice")
    }
  }

  @Test(arguments: [
    "", "passcode:bad\n", "passcode:expired\n", "passcode:alice\ndevice:a b\n", "passcode:alice\ndevice:\n",
    "passcode:alice\nlogin:bob\n", "passcode:alice@phone\nlogin:device-tablet\n", "Authorization:Basic alice\n",
  ])
  func othersAreRefusedInTheSameWords(headers: String) async throws {
    try await withServer { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.2\nhost:h\n\(headers)\n\0")
      #expect(await client.rest() == refusal)
      #expect(sink.all.isEmpty && server.statistics.endings == [.authenticationFailed: 1])
    }
  }

  @Test func theEndOfTheTokenEndsTheConnection() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "short")
      #expect(try await client.frame()?.headers["message"] == "token expired")
      #expect(try await client.frame() == nil)
      try await sink.first { if case .disconnect = $0 { () } else { nil } }
    }
  }

  @Test(arguments: ["", "CONN", "CONNECT\naccept-version:1.2\nhost:h\npasscode:never\n\n\0"])
  func aClientThatIsNotLoggedInInTimeIsClosed(text: String) async throws {
    try await withServer({ $0.limits.connectTime = .milliseconds(100) }) { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      if !text.isEmpty { try await client.send(text) }
      #expect(try await client.frame()?.command == .error)
      #expect(try await client.frame() == nil)
      #expect(sink.all.isEmpty && server.statistics.endings == [.connectTimeout: 1])
    }
  }

  @Test("stomp.md 31: frames behind connect are done after it")
  func framesBehindConnectAreDoneAfterIt() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send(
        "CONNECT\naccept-version:1.2\nhost:h\npasscode:alice\n\n\0"
          + "SUBSCRIBE\nid:1\ndestination:/user/queue/events\nack:client\n\n\0DISCONNECT\nreceipt:7\n\n\0")
      #expect(try await client.frame()?.command == .connected)
      #expect(try await client.frame() == Frame(.receipt, ["receipt-id": "7"]))
      #expect(try await client.frame() == nil)
      let commands = sink.all
      guard commands.count == 3, case .connect(let a, _) = commands[0],
        case .subscribe(let b, .events, .client) = commands[1],
        case .disconnect(let c) = commands[2]
      else {
        Issue.record("connect, subscribe and disconnect were expected")
        return
      }
      #expect(a == b && b == c && server.statistics.endings == [.disconnected: 1])
    }
  }

  @Test(arguments: Version.allCases)
  func allVersionsAreSpoken(version: Version) async throws {
    try await withServer { server, _ in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice", version: version)
      try await client.subscribe("events")
      try await client.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await client.frame()?.command == .receipt)
    }
  }

  @Test func aNewerConnectionReplacesTheOlder() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice@phone")
      server.deliver(.close(try await sink.session(), reason: "replaced by a newer connection"))
      let frame = try await client.frame()
      #expect(frame?.command == .error && frame?.headers["message"] == "replaced by a newer connection")
      #expect(try await client.frame() == nil)
      #expect(sink.disconnects == 1)
    }
  }

  @Test func aClientThatGoesBeforeTheAnswerIsNotLetIn() async throws {
    let (release, answer) = AsyncStream<Void>.makeStream()
    try await withServer(authenticator: StubAuthenticator(release: release)) { server, sink in
      let client = try await TestClient.open(port: server.stompPort)
      try await client.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:late\n\n\0")
      await server.until { $0.framesIn == 1 }
      try await client.close()
      await server.until { $0.connections == 0 }
      answer.finish()
      _ = try await TestClient.connected(to: server.stompPort, token: "alice")
      let first = try await sink.first { if case .connect(_, let identity) = $0 { identity.device.user } else { nil } }
      #expect(first == UserID("alice") && server.statistics.sessions == 1)
    }
  }

  @Test("stomp.md 73: too many connections are refused")
  func tooManyConnectionsAreRefused() async throws {
    try await withServer({ $0.limits.connections = 1 }) { server, _ in
      let first = try await TestClient.connected(to: server.stompPort, token: "alice")
      let second = try await TestClient.open(port: server.stompPort)
      #expect(await second.rest() == "")
      #expect(server.statistics.drops == [.connectionsFull: 1])
      try await first.close()
      await server.until { $0.connections == 0 }
      _ = try await TestClient.connected(to: server.stompPort, token: "alice")
    }
  }
}
