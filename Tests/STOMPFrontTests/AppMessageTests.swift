import CallMessages
import Listening
import NIOCore
import STOMP
import Testing
import WireClients

@testable import STOMPFront

/// An app's own messages over connections (protocol section 3).
@Suite(.timeLimit(.minutes(5))) struct AppMessageTests {
  private func withApp(_ body: (TestServer) async throws -> Void) async throws {
    try await withServer({ $0.destinations = ["/topic/", "/queue/", "/exchange/"] }) { server, _ in
      try await body(server)
    }
  }

  @Test(
    "stomp.md 41: a senders headers reach subscribers of all versions, but for secrets and forgeries",
    arguments: Version.allCases)
  func aTopicReachesAllVersions(version: Version) async throws {
    try await withApp { server in
      let reader = try await TestClient.connected(to: server.stompPort, token: "a", version: version)
      let socket = try await TestWebSocket.connected(server.httpPort, token: "b")
      try await reader.send("SUBSCRIBE\nid:7\ndestination:/topic/news\nreceipt:r\n\n\0")
      try #require(try await reader.frame()?.command == .receipt)
      try await socket.send("SUBSCRIBE\nid:8\ndestination:/topic/news\nreceipt:r\n\n\0")
      try #require(try await socket.next() == .text("RECEIPT\nreceipt-id:r\n\n\0"))
      let writer = try await TestClient.connected(to: server.stompPort, token: "c")
      try await writer.send(
        "SEND\ndestination:/topic/news\ncontent-type:text/plain\nx-mood:a\\cb\npasscode:secret\nAuthorization:Bearer x\n"
          + "message-id:forged\nsubscription:forged\nack:forged\nuser-name:forged\nreceipt:1\n\nhello\0")
      #expect(try await writer.frame()?.headers["receipt-id"] == "1")
      let frame = try #require(try await reader.frame())
      #expect(frame.command == .message && String(buffer: frame.body) == "hello")
      let own = Set(["subscription", "message-id", "destination", "content-type", "x-mood", "content-length"])
      #expect(Set(frame.headers.fields.map(\.name)) == own)
      #expect(frame.headers["subscription"] == "7" && frame.headers["destination"] == "/topic/news")
      #expect(frame.headers["x-mood"] == "a:b" && frame.headers["message-id"] == "1")
      guard case .text(let text)? = try await socket.next() else { throw CancellationError() }
      #expect(text.hasPrefix("MESSAGE\nsubscription:8\nmessage-id:1\ndestination:/topic/news\n"))
    }
  }

  @Test("stomp.md 43: the content type is the senders, and none is made up")
  func theContentTypeIsTheSenders() async throws {
    try await withApp { server in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0")
      for type in ["text/plain;charset=utf-8", nil] {
        let line = type.map { "content-type:\($0)\n" } ?? ""
        try await client.send("SEND\ndestination:/topic/t\n\(line)\nxyz\0")
        let frame = try #require(try await client.frame())
        #expect(frame.headers["content-type"] == type && frame.headers["content-length"] == "3")
      }
    }
  }

  @Test("stomp.md 44: order is kept for each publisher")
  func orderIsKeptForEachPublisher() async throws {
    try await withApp { server in
      let reader = try await TestClient.connected(to: server.stompPort, token: "a")
      try await reader.send("SUBSCRIBE\nid:1\ndestination:/topic/n\nreceipt:r\n\n\0")
      try #require(try await reader.frame()?.command == .receipt)
      let writers = try await [
        TestClient.connected(to: server.stompPort, token: "b"), TestClient.connected(to: server.stompPort, token: "c"),
      ]
      for index in 0..<200 {
        for (number, writer) in writers.enumerated() {
          try await writer.send("SEND\ndestination:/topic/n\nw:\(number)\n\n\(index)\0")
        }
      }
      var next = [0, 0]
      for _ in 0..<400 {
        let frame = try #require(try await reader.frame())
        let writer = try #require(frame.headers["w"].flatMap { Int($0) })
        #expect(String(buffer: frame.body) == String(next[writer]))
        next[writer] += 1
      }
    }
  }

  @Test(
    "stomp.md 55: what a broken connection had goes to another",
    arguments: [(Version.v10, "client"), (.v11, "client-individual"), (.v12, "client-individual")])
  func messagesOfABrokenConnectionGoToAnother(version: Version, mode: String) async throws {
    try await withApp { server in
      let first = try await TestClient.connected(to: server.stompPort, token: "a", version: version)
      try await first.send("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:\(mode)\nreceipt:r\n\n\0")
      try #require(try await first.frame()?.command == .receipt)
      for body in ["a", "b", "c"] { try await first.send("SEND\ndestination:/queue/q\n\n\(body)\0") }
      let taken = try #require(try await first.frame())
      let acknowledge = FrameEncoder(version: version).encode(.acknowledge(taken, version: version))
      try await first.send(Array(acknowledge.readableBytesView))
      #expect(try await first.frame().map { String(buffer: $0.body) } == "b")
      #expect(try await first.frame().map { String(buffer: $0.body) } == "c")
      await first.finish()
      let second = try await TestClient.connected(to: server.stompPort, token: "b")
      try await second.send("SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0")
      for body in ["b", "c"] {
        let frame = try #require(try await second.frame())
        #expect(String(buffer: frame.body) == body && frame.headers["redelivered"] == "true")
      }
      // In mode auto they are done when written.
      await server.until { $0.deliveries == 5 }
      await second.finish()
      let third = try await TestClient.connected(to: server.stompPort, token: "c")
      try await third.send("SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0SEND\ndestination:/queue/q\n\nd\0")
      #expect(try await third.frame().map { String(buffer: $0.body) } == "d")
    }
  }

  @Test("stomp.md 53: a nack goes to another")
  func aNackGoesToAnother() async throws {
    try await withApp { server in
      var clients: [TestClient] = []
      for name in ["a", "b"] {
        clients.append(try await TestClient.connected(to: server.stompPort, token: name))
        try await clients[clients.count - 1].send("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nreceipt:r\n\n\0")
        try #require(try await clients[clients.count - 1].frame()?.command == .receipt)
      }
      try await clients[0].send("SEND\ndestination:/queue/q\n\nx\0")
      let refused = try #require(try await clients[0].frame())
      let nack = FrameEncoder(version: .v12).encode(.acknowledge(refused, accepted: false, version: .v12))
      try await clients[0].send(Array(nack.readableBytesView))
      let frame = try #require(try await clients[1].frame())
      #expect(String(buffer: frame.body) == "x" && frame.headers["redelivered"] == "true")
    }
  }

  @Test("stomp.md 59: a transaction is sent and acknowledged at its commit")
  func aTransactionIsSentAndAcknowledgedAtItsCommit() async throws {
    try await withApp { server in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      try await client.send(
        "SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0SUBSCRIBE\nid:2\ndestination:/topic/t\n\n\0"
          + "SEND\ndestination:/queue/q\n\njob\0")
      let job = try #require(try await client.frame())
      try await client.send(
        "BEGIN\ntransaction:t\n\n\0SEND\ndestination:/topic/t\ntransaction:t\n\n1\0"
          + "ACK\nid:\(job.headers["ack"] ?? "")\ntransaction:t\n\n\0SEND\ndestination:/topic/t\ntransaction:t\nreceipt:2\n\n2\0"
      )
      #expect(try await client.frame()?.headers["receipt-id"] == "2")
      #expect(server.statistics.deliveries == 1)
      try await client.send("COMMIT\ntransaction:t\n\n\0")
      for text in ["1", "2"] { #expect(try await client.frame().map { String(buffer: $0.body) } == text) }
      await client.finish()
      let other = try await TestClient.connected(to: server.stompPort, token: "b")
      try await other.send("SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0SEND\ndestination:/queue/q\n\nnext\0")
      #expect(try await other.frame().map { String(buffer: $0.body) } == "next", "the ACK was committed")
    }
  }

  @Test("stomp.md 61: a lost connection aborts its transactions")
  func aLostConnectionAbortsItsTransactions() async throws {
    try await withApp { server in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      try await client.send("BEGIN\ntransaction:t\n\n\0SEND\ndestination:/queue/q\ntransaction:t\nreceipt:1\n\nlost\0")
      #expect(try await client.frame()?.headers["receipt-id"] == "1")
      try await client.close()
      await server.until { $0.sessions == 0 }
      let other = try await TestClient.connected(to: server.stompPort, token: "b")
      try await other.send("SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0SEND\ndestination:/queue/q\n\nkept\0")
      #expect(try await other.frame().map { String(buffer: $0.body) } == "kept")
    }
  }

  @Test func aServiceReachesAUsersDevices() async throws {
    try await withApp { server in
      let phone = try await TestClient.connected(to: server.stompPort, token: "alice@phone")
      let laptop = try await TestClient.connected(to: server.stompPort, token: "alice@laptop")
      let bob = try await TestClient.connected(to: server.stompPort, token: "bob")
      for client in [phone, laptop, bob] { try await client.subscribe("news") }
      let service = try await TestClient.connected(to: server.stompPort, token: "service")
      try await service.send(
        "SEND\ndestination:/user/alice/queue/news\n\nhi\0SEND\ndestination:/user/bob/queue/news\n\nho\0")
      for (client, text) in [(phone, "hi"), (laptop, "hi"), (bob, "ho")] {
        let frame = try #require(try await client.frame())
        #expect(String(buffer: frame.body) == text && frame.headers["destination"] == "/user/queue/news")
      }
      try await bob.send("SEND\ndestination:/user/alice/queue/news\n\nhi\0")
      #expect(try await bob.frame()?.headers["message"] == "only a service may send to a user's queue")
    }
  }

  @Test("stomp.md 73: a fast sender is read more slowly and loses nothing")
  func aFastSenderIsReadMoreSlowlyAndLosesNothing() async throws {
    try await withServer({
      $0.destinations = ["/topic/"]
      ($0.limits.messagesPerSecond, $0.limits.messageBurst) = (1_000, 10)
    }) { server, _ in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let sends = (0..<200).map { "SEND\ndestination:/topic/n\n\n\($0)\0" }.joined()
      let start = ContinuousClock.now
      try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/n\n\n\0\(sends)")
      for index in 0..<200 { #expect(try await client.frame().map { String(buffer: $0.body) } == String(index)) }
      #expect(ContinuousClock.now - start > .milliseconds(150))
    }
  }

  @Test("stomp.md 86: a subscriber that does not read holds up nobody")
  func aSubscriberThatDoesNotReadHoldsUpNobody() async throws {
    try await withServer({
      $0.destinations = ["/topic/"]
      $0.limits.outbound = 256 << 10
    }) { server, _ in
      let stuck = try await TestClient.connected(to: server.stompPort, token: "a")
      let reader = try await TestClient.connected(to: server.stompPort, token: "b")
      for client in [stuck, reader] {
        try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/n\nreceipt:r\n\n\0")
        try #require(try await client.frame()?.command == .receipt)
      }
      try await stuck.channel.setOption(.autoRead, value: false).get()
      let writer = try await TestClient.connected(to: server.stompPort, token: "c")
      let body = String(repeating: "x", count: 100 << 10)
      while server.statistics.endings[.slowReader, default: 0] == 0 {
        try await writer.send("SEND\ndestination:/topic/n\n\n\(body)\0")
        #expect(try await reader.frame()?.body.readableBytes == body.utf8.count)
      }
    }
  }
}
