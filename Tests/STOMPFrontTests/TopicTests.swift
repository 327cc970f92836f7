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

/// `/topic/calls/{id}` and `/topic/service/…`: the control plane decides and publishes.
@Suite(.timeLimit(.minutes(5))) struct TopicTests {
  private func call() throws -> CallID { try #require(CallID("c1")) }

  private func publish(_ server: TestServer, _ session: SessionID, epoch: UInt32, id: UInt64) throws {
    let message = EventMessage(
      at: Timestamp(milliseconds: 5), call: try call(), body: .switchKeys(SwitchKeys(epoch: epoch)))
    server.deliver(.publish(session, .call(try call()), messageID: id, message))
  }

  private func asked(_ sink: StubSink) async throws -> String {
    try await sink.first {
      if case .subscribe(_, .call(let call), let mode) = $0, call == CallID("c1") { "\(mode)" } else { nil }
    }
  }

  @Test func aSubscriptionWaitsForItsAdmission() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let session = try await sink.session()
      try await client.send(
        "SUBSCRIBE\nid:7\ndestination:/topic/calls/c1\nack:client\nreceipt:s\n\n\0"
          + "SEND\ndestination:/app/calls/list\nrequest-id:1\nreceipt:r\n\n\0")
      #expect(try await asked(sink) == "client")
      // Nothing after it is handled before the answer.
      #expect(server.statistics.requests == 0)
      server.deliver(.admission(session, .serviceCalls, refusal: nil))
      #expect(try await client.frame()?.headers["receipt-id"] == "s")
      #expect(try await client.frame()?.headers["receipt-id"] == "r")
      // It is asked once: a second answer would count for the next question.
      #expect(sink.all.count { if case .subscribe(_, .call, _) = $0 { true } else { false } } == 1)
      try publish(server, session, epoch: 3, id: 1)
      let frame = try #require(try await client.frame())
      #expect(frame.headers["destination"] == "/topic/calls/c1" && frame.headers["subscription"] == "7")
      #expect(frame.headers["event"] == "keys.switch" && frame.headers["seq"] == nil && frame.headers["ack"] != nil)
      #expect(String(buffer: frame.body).contains("\"epoch\":3"))
      try await client.send("UNSUBSCRIBE\nid:7\n\n\0")
      try await sink.first { if case .unsubscribe(session, .call) = $0 { () } else { nil } }
      try publish(server, session, epoch: 4, id: 2)
      await server.until { $0.drops[.notSubscribed] == 1 }
    }
  }

  @Test func aRefusalIsAnErrorWithTheReceipt() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let session = try await sink.session()
      try await client.send("SUBSCRIBE\nid:7\ndestination:/topic/calls/c1\nreceipt:s\n\n\0SEND\ndestination:/x\n\n\0")
      _ = try await asked(sink)
      server.deliver([
        .admission(session, .serviceCalls, refusal: "this call is not yours"),
        .admission(session, .serviceCalls, refusal: nil),
      ])
      let frame = try #require(try await client.frame())
      #expect(frame.command == .error && frame.headers["receipt-id"] == "s")
      #expect(frame.headers["message"] == "this call is not yours")
      #expect(try await client.frame() == nil)
      #expect(sink.disconnects == 1)
    }
  }

  @Test func twoSubscriptionsGetTwoMessagesAndTheControlPlaneHearsOfTheLastOnesEnd() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let session = try await sink.session()
      for id in 1...2 {
        try await client.send("SUBSCRIBE\nid:\(id)\ndestination:/topic/calls/c1\nreceipt:s\n\n\0")
        _ = try await asked(sink)
        server.deliver(.admission(session, .serviceCalls, refusal: nil))
        #expect(try await client.frame()?.command == .receipt)
      }
      try publish(server, session, epoch: 3, id: 1)
      #expect(try await [client.frame(), client.frame()].map { $0?.headers["subscription"] } == ["1", "2"])
      try await client.send("UNSUBSCRIBE\nid:1\nreceipt:u\n\n\0")
      #expect(try await client.frame()?.command == .receipt)
      #expect(!sink.all.contains { if case .unsubscribe = $0 { true } else { false } })
      try await client.send("UNSUBSCRIBE\nid:2\n\n\0")
      try await sink.first { if case .unsubscribe(session, .call) = $0 { () } else { nil } }
    }
  }

  @Test func eventsOfASubscriptionAreForItAlone() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let session = try await sink.session()
      for id in 1...2 {
        try await client.send("SUBSCRIBE\nid:\(id)\ndestination:/topic/calls/c1\nreceipt:s\n\n\0")
        _ = try await asked(sink)
        server.deliver(.admission(session, .serviceCalls, refusal: nil))
        #expect(try await client.frame()?.command == .receipt)
        try publish(server, session, epoch: 3, id: 0)
        #expect(try await client.frame()?.headers["subscription"] == "\(id)")
      }
      try publish(server, session, epoch: 4, id: 1)
      #expect(try await [client.frame(), client.frame()].map { $0?.headers["subscription"] } == ["1", "2"])
    }
  }

  @Test func oneEventIsSharedByManySubscribersOfAllVersions() async throws {
    try await withServer { server, sink in
      var deliveries: [Delivery] = []
      var clients: [TestClient] = []
      for version in Version.allCases {
        let client = try await TestClient.connected(
          to: server.stompPort, token: "v\(version.rawValue)", version: version)
        let session = try await sink.session()
        try await client.send("SUBSCRIBE\nid:1\ndestination:/topic/calls/c1\nreceipt:s\n\n\0")
        _ = try await asked(sink)
        server.deliver(.admission(session, .serviceCalls, refusal: nil))
        try #require(try await client.frame()?.command == .receipt)
        clients.append(client)
        for epoch in [1, 2] as [UInt32] {
          let message = EventMessage(
            at: Timestamp(milliseconds: 5), call: try call(), body: .switchKeys(SwitchKeys(epoch: epoch)))
          deliveries.append(.publish(session, .call(try call()), messageID: UInt64(epoch), message))
        }
      }
      server.deliver(deliveries)
      for client in clients {
        for epoch in 1...2 {
          let frame = try #require(try await client.frame())
          #expect(String(buffer: frame.body).contains("\"epoch\":\(epoch)"))
        }
      }
    }
  }

  @Test func aClientThatGoesWhileAskedIsGone() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "a")
      let session = try await sink.session()
      try await client.send("SUBSCRIBE\nid:7\ndestination:/topic/service/calls\n\n\0")
      try await sink.first { if case .subscribe(_, .serviceCalls, _) = $0 { () } else { nil } }
      try await client.close()
      await server.until { $0.sessions == 0 }
      server.deliver(.admission(session, .serviceCalls, refusal: nil))
      await server.until { $0.drops[.sessionGone] == 1 }
    }
  }
}
