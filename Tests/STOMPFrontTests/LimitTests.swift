import CallMessages
import Connections
import Contract
import Listening
import MediaModel
import NIOCore
import STOMP
import Testing
import WireClients

@testable import STOMPFront

/// No stranger and no user can deny service to others (protocol section 10).
@Suite(.timeLimit(.minutes(5))) struct LimitTests {
  @Test func silentConnectionsOfAStrangerShutOutNobody() async throws {
    try await withServer({ $0.limits.connections = 8 }) { server, _ in
      var silent: [TestClient] = []
      for _ in 0..<20 { silent.append(try await TestClient.open(port: server.stompPort)) }
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.subscribe("replies")
      #expect(await silent[0].rest() == "", "the oldest made room")
      #expect((server.statistics.drops[.connectionsFull] ?? 0) >= 13)
      for _ in 0..<20 { silent.append(try await TestClient.open(port: server.stompPort)) }
      try await client.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await client.frame()?.headers["receipt-id"] == "1", "who has logged in stays")
    }
  }

  @Test func anAddressHasABoundUnlessItIsAProxys() async throws {
    func drops(proxies: AddressList) async throws -> UInt64 {
      var drops: UInt64 = 0
      try await withServer({
        $0.limits.addressConnectionsBeforeLogin = 3
        $0.proxies = proxies
      }) { server, _ in
        var silent: [TestClient] = []
        for _ in 0..<5 { silent.append(try await TestClient.open(port: server.stompPort)) }
        await server.until { $0.accepted >= 5 }
        drops = server.statistics.drops[.addressConnectionsFull, default: 0]
        _ = try await TestClient.connected(to: server.stompPort, token: "alice")
      }
      return drops
    }
    #expect(try await drops(proxies: try #require(AddressList([]))) == 2)
    #expect(try await drops(proxies: .loopback) == 0)
  }

  @Test func oneTokenOpensSoManyConnectionsAndOthersAreLetIn() async throws {
    try await withServer({ $0.limits.userConnections = 2 }) { server, _ in
      var clients: [TestClient] = []
      for device in 1...2 {
        clients.append(try await TestClient.connected(to: server.stompPort, token: "alice@d\(device)"))
      }
      let third = try await TestClient.open(port: server.stompPort)
      try await third.send("CONNECT\naccept-version:1.2\nhost:h\npasscode:alice@d3\n\n\0")
      let error = try await third.frame()
      #expect(error?.command == .error)
      #expect(error?.headers["message"] == "this user has too many connections: close some first")
      _ = try await TestClient.connected(to: server.stompPort, token: "bob")
      _ = try await TestClient.connected(to: server.stompPort, token: "service")
      try await clients[0].close()
      await server.until { $0.endings[.gone] != nil }
      _ = try await TestClient.connected(to: server.stompPort, token: "alice@d3")
      #expect(server.statistics.drops == [.userConnectionsFull: 1])
    }
  }

  @Test func requestsOfAllDevicesOfAUserCountTogether() async throws {
    try await withServer({ ($0.limits.userRequestsPerSecond, $0.limits.userRequestBurst) = (1, 20) }) { server, sink in
      let start = ContinuousClock.now
      let one = try await TestClient.connected(to: server.stompPort, token: "alice@d1")
      let other = try await TestClient.connected(to: server.stompPort, token: "alice@d2")
      let bob = try await TestClient.connected(to: server.stompPort, token: "bob")
      for client in [one, other, bob] { try await client.subscribe("replies") }
      for client in [one, other] {
        for _ in 0..<30 { try await client.send("SEND\ndestination:/app/calls/c/leave\nrequest-id:1\n\n{}\0") }
      }
      await server.until { $0.requests == 60 }
      // Two logins and two subscriptions are 12 of the 20; one comes each second.
      let most = 8 + UInt64((ContinuousClock.now - start) / .seconds(1)) + 1
      let refused = server.statistics.drops[.userRateLimited, default: 0]
      #expect(refused >= 60 - min(most, 60) && refused <= 52)
      #expect(try await other.frame().map { String(buffer: $0.body) }?.contains("rate.limited") == true)
      try await bob.send("SEND\ndestination:/app/calls/c/leave\nrequest-id:bob\n\n{}\0")
      try await sink.first { if case .request(_, "bob", _) = $0 { () } else { nil } }
    }
  }

  @Test func aRequestCostsWhatItAsksFor() async throws {
    try await withServer({ ($0.limits.userRequestsPerSecond, $0.limits.userRequestBurst) = (1, 60) }) { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.subscribe("replies")
      let callees = (0..<100).map { #""c\#($0)""# }.joined(separator: ",")
      let invite = "SEND\ndestination:/app/calls/c/invite\nrequest-id:1\n\n{\"callees\":[\(callees)]}\0"
      try await client.send(invite)
      try await sink.first { if case .request(_, _, .calls(.call(_, .invite))) = $0 { () } else { nil } }
      try await client.send(invite)
      #expect(try await client.frame().map { String(buffer: $0.body) }?.contains("rate.limited") == true)
    }
  }

  /// The control plane charges events from its own thread, at once: requests queued behind them are refused, too.
  @Test func aUserWhoseRequestsCausedTooMuchIsRefusedOnEachConnection() async throws {
    try await withServer({ ($0.limits.userEvents, $0.limits.userEventBurst) = (1_000, 50_000) }) { server, sink in
      let one = try await TestClient.connected(to: server.stompPort, token: "alice@d1")
      let session = try await sink.session()
      let other = try await TestClient.connected(to: server.stompPort, token: "alice@d2")
      let bob = try await TestClient.connected(to: server.stompPort, token: "bob")
      let bobs = try await sink.first { command -> SessionID? in
        if case .connect(let id, let who) = command, who.device.user.text == "bob" { id } else { nil }
      }
      try await other.subscribe("replies")
      #expect(server.refusal(session) == nil)
      server.charge(UserID(unchecked: "alice"), EventCharge(count: 1, bytes: 100_000))
      let refusal = try #require(server.refusal(session))
      #expect(refusal.code == .rateLimited && (1...51_000).contains(refusal.retryAfterMs ?? 0))
      #expect(server.refusal(bobs) == nil)
      try await other.send("SEND\ndestination:/app/calls/c/leave\nrequest-id:1\n\n{}\0")
      #expect(try await other.frame().map { String(buffer: $0.body) }?.contains("rate.limited") == true)
      try await one.send("SUBSCRIBE\nid:1\ndestination:/user/queue/events\n\n\0")
      #expect(try await one.frame()?.command == .error)
      #expect(server.statistics.drops[.userEventsFull] == 3)
      try await bob.send("SEND\ndestination:/app/calls/c/leave\nrequest-id:bob\n\n{}\0")
      try await sink.first { if case .request(_, "bob", _) = $0 { () } else { nil } }
    }
  }

  /// Each end of a connection makes the server write to everybody who watches the user or is in the user's calls.
  @Test func aUserWhoComesAndGoesTooOftenIsNotLetInAgain() async throws {
    try await withServer({ ($0.limits.userEvents, $0.limits.userEventBurst) = (1_000, 50_000) }) { server, _ in
      for device in ["d1", "d2"] {
        let client = try await TestClient.connected(to: server.stompPort, token: "alice@\(device)")
        try await client.channel.close()
        server.charge(UserID(unchecked: "alice"), EventCharge(count: 1, bytes: 40_000))
      }
      let again = try await TestClient.open(port: server.stompPort)
      try await again.send("CONNECT\naccept-version:1.2\nhost:x\npasscode:alice@d3\n\n\0")
      #expect(try await again.frame()?.command == .error)
      #expect(server.statistics.drops[.userLoginsFull] == 1)
      _ = try await TestClient.connected(to: server.stompPort, token: "bob")
    }
  }

  @Test func subscriptionsOfAllDevicesOfAUserCountTogether() async throws {
    try await withServer({
      $0.destinations = ["/topic/"]
      $0.limits.userSubscriptions = 3
    }) { server, _ in
      let one = try await TestClient.connected(to: server.stompPort, token: "alice@d1")
      let other = try await TestClient.connected(to: server.stompPort, token: "alice@d2")
      func subscribe(_ client: TestClient, _ id: Int) async throws -> FrameCommand? {
        try await client.send("SUBSCRIBE\nid:\(id)\ndestination:/topic/t\(id)\nreceipt:r\n\n\0")
        return try await client.frame()?.command
      }
      for id in 1...2 { #expect(try await subscribe(one, id) == .receipt) }
      #expect(try await subscribe(other, 1) == .receipt)
      try await one.send("UNSUBSCRIBE\nid:1\nreceipt:u\n\n\0")
      #expect(try await one.frame()?.command == .receipt)
      #expect(try await subscribe(other, 2) == .receipt)
      #expect(try await subscribe(other, 3) == .error)
      #expect(server.statistics.drops == [.userSubscriptionsFull: 1])
      // The connection's share is free again.
      for id in 3...4 { #expect(try await subscribe(one, id) == .receipt) }
    }
  }

  @Test func unfinishedFramesAndTransactionsOfAllDevicesOfAUserCountTogether() async throws {
    try await withServer({
      $0.destinations = ["/topic/"]
      $0.limits.userInbound = 1 << 20
    }) { server, _ in
      let body = String(repeating: "x", count: 200_000)
      let begun = "SEND\ndestination:/topic/t\ncontent-length:250000\n\n" + body
      let staged = "BEGIN\ntransaction:t\n\n\0SEND\ndestination:/topic/t\ntransaction:t\nreceipt:r\n\n\(body)\0"
      var clients: [TestClient] = []
      for device in 1...5 {
        let client = try await TestClient.connected(to: server.stompPort, token: "alice@d\(device)")
        try await client.send(device.isMultiple(of: 2) ? staged : begun)
        if device.isMultiple(of: 2) { #expect(try await client.frame()?.command == .receipt) }
        clients.append(client)
      }
      let bob = try await TestClient.connected(to: server.stompPort, token: "bob")
      try await bob.send(staged)
      #expect(try await bob.frame()?.command == .receipt, "another user has a share of its own")
      let last = try await TestClient.connected(to: server.stompPort, token: "alice@d6")
      try await last.send(staged)
      #expect(try await last.frame()?.command == .error)
      #expect(server.statistics.drops[.userInboundFull] == 1)
      // Frames that are complete, abandoned or gone no longer count.
      try await clients[1].send("ABORT\ntransaction:t\nreceipt:a\n\n\0")
      #expect(try await clients[1].frame()?.command == .receipt)
      try await clients[0].close()
      await server.until { $0.sessions == 5 }
      let next = try await TestClient.connected(to: server.stompPort, token: "alice@d7")
      try await next.send(staged)
      #expect(try await next.frame()?.command == .receipt)
    }
  }

  @Test func theSlowestOfAllIsCutFirst() async throws {
    try await withServer({ $0.limits.totalOutbound = 1 << 20 }) { server, sink in
      var sessions: [SessionID] = []
      for user in ["slow", "slower"] {
        let client = try await TestClient.connected(to: server.stompPort, token: user)
        sessions.append(try await sink.session())
        try await client.subscribe("replies")
        try await client.channel.setOption(.autoRead, value: false).get()
      }
      let quick = try await TestClient.connected(to: server.stompPort, token: "quick")
      let quickSession = try await sink.session()
      try await quick.subscribe("replies")
      let answer = CallLink(link: String(repeating: "x", count: 50_000), expiresAt: Timestamp(milliseconds: 1))
      var written = server.statistics.framesOut
      while server.statistics.endings[.backlogFull] == nil {
        server.deliver([
          .reply(sessions[0], id: "1", .ok(.link(answer))), .reply(sessions[1], id: "1", .ok(.link(answer))),
          .reply(sessions[1], id: "1", .ok(.link(answer))), .reply(quickSession, id: "2", .ok(.nothing)),
        ])
        try #require(try await quick.frame()?.headers["request-id"] == "2")
        // The connections are on different loops. Neither may fall behind because its loop does not run.
        written += 4
        await server.until { $0.framesOut >= written || $0.endings[.backlogFull] != nil }
      }
      let gone = try await sink.first { if case .disconnect(let session) = $0 { session } else { nil } }
      #expect(gone == sessions[1] && server.statistics.sessions == 2)
      await server.until { $0.backlogBytes < 1 << 20 }
    }
  }

  @Test func repliesThatAUserDoesNotReadCountForAllItsConnections() async throws {
    try await withServer({ $0.limits.userOutbound = 1 << 20 }) { server, sink in
      var sessions: [SessionID] = []
      for device in 1...4 {
        let client = try await TestClient.connected(to: server.stompPort, token: "alice@d\(device)")
        sessions.append(try await sink.session())
        try await client.subscribe("replies")
        try await client.channel.setOption(.autoRead, value: false).get()
      }
      let quick = try await TestClient.connected(to: server.stompPort, token: "quick")
      let quickSession = try await sink.session()
      try await quick.subscribe("replies")
      let answer = CallLink(link: String(repeating: "x", count: 50_000), expiresAt: Timestamp(milliseconds: 1))
      while server.statistics.endings[.userBacklogFull] == nil {
        server.deliver(
          sessions.map { .reply($0, id: "1", .ok(.link(answer))) } + [.reply(quickSession, id: "2", .ok(.link(answer)))]
        )
        try #require(try await quick.frame()?.headers["request-id"] == "2")
      }
      #expect(server.statistics.endings[.slowReader] == nil)
    }
  }
}
