import CallMessages
import Contract
import JSON
import Listening
import MediaModel
import NIOCore
import STOMP
import STOMPFront
import Testing
import WireClients

/// Protocol section 3: requests and replies.
@Suite(.timeLimit(.minutes(5))) struct RequestTests {
  private func send(_ destination: String, _ body: String, id: String? = "r1") -> String {
    "SEND\ndestination:\(destination)\n" + (id.map { "request-id:\($0)\n" } ?? "") + "\n\(body)\0"
  }

  @Test func aRequestReachesTheSinkAndItsReplyTheClient() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice@phone")
      try await client.subscribe("replies", id: "q")
      try await client.send(send("/app/calls/c1/decline", #"{"reason":"busy","unknown":1}"#, id: "a:b"))
      let (session, id, reason) = try await sink.first { command -> (SessionID, String, String?)? in
        if case .request(let session, let id, .calls(.call(_, .decline(let body)))) = command {
          (session, id, body.reason)
        } else {
          nil
        }
      }
      #expect(id == "a:b" && reason == "busy")
      server.deliver(.reply(session, id: id, .ok(.totals(Totals(calls: 3, seconds: 7)))))
      let reply = try #require(try await client.frame())
      #expect(reply.command == .message && String(buffer: reply.body) == #"{"calls":3,"seconds":7}"#)
      #expect(
        reply.headers == [
          "subscription": "q", "message-id": "1", "destination": "/user/queue/replies",
          "content-type": "application/json", "request-id": "a:b", "status": "ok", "content-length": "23",
        ])
    }
  }

  @Test func anEmptyBodyIsAnEmptyObject() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.send(send("/app/calls/c1/decline", "") + send("/app/calls/list", " {} "))
      try await sink.first { if case .request(_, _, .calls(.call(_, .decline))) = $0 { () } else { nil } }
      try await sink.first { if case .request(_, _, .calls(.list)) = $0 { () } else { nil } }
    }
  }

  @Test(
    arguments: [
      ("/app/nothing/here", "{}", "request.unknown", nil), ("/app/calls", "{}", "request.unknown", nil),
      ("/app/calls/c1/explode", "{}", "request.unknown", nil), ("/app/calls/c 1/leave", "{}", "request.unknown", nil),
      ("/app/calls/start", "{", "request.invalid", nil), ("/app/calls/start", "[]", "request.invalid", nil),
      ("/app/calls/list", "[]", "request.invalid", nil), ("/app/calls/list", "null", "request.invalid", nil),
      ("/app/calls/start", #"{"callees":[]}"#, "request.invalid", "media"),
      ("/app/calls/start", #"{"callees":["ok","no good"],"media":"video"}"#, "request.invalid", "callees.1"),
      ("/app/calls/list", #"{"a":1,"a":2}"#, "request.invalid", nil),
    ] as [(String, String, String, String?)])
  func badRequestsGetAnErrorAndTheConnectionStays(
    destination: String, body: String, code: String, field: String?
  ) async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.subscribe("replies")
      try await client.send(send(destination, body))
      let error = try await client.error()
      #expect(error.status == "error" && error.requestID == "r1" && error.code == code && error.field == field)
      try await client.send(send("/app/calls/list", "{}"))
      try await sink.first { if case .request = $0 { () } else { nil } }
    }
  }

  @Test(arguments: [nil, "", String(repeating: "x", count: 65)])
  func aRequestNeedsAnID(id: String?) async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.subscribe("replies")
      try await client.send(send("/app/calls/list", "{}", id: id))
      let error = try await client.error()
      #expect(error.requestID == nil && error.code == "request.invalid" && error.field == "request-id")
    }
  }

  @Test func largeBodiesAreForKeysOnly() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.subscribe("replies")
      let blanks = String(repeating: " ", count: 300 << 10)
      try await client.send(send("/app/calls/c1/leave", "{\(blanks)}"))
      #expect(try await client.error().code == "request.too-large")
      try await client.send(send("/app/calls/c1/keys", "{\(blanks)\"epoch\":2,\"envelopes\":[]}"))
      try await sink.first { if case .request(_, _, .calls(.inCall(_, .keys))) = $0 { () } else { nil } }
      try await client.send("SEND\ndestination:/app/calls/c1/keys\nrequest-id:1\nreceipt:9\ncontent-length:1048577\n\n")
      let frame = try await client.frame()
      #expect(frame?.command == .error && frame?.headers["message"] == "body too long")
      #expect(frame?.headers["receipt-id"] == "9")
      #expect(server.statistics.endings == [.limit: 1])
    }
  }

  @Test func requestsBeyondTheRateAreAnsweredWithTheTimeToWait() async throws {
    try await withServer({ ($0.limits.requestsPerSecond, $0.limits.requestBurst) = (1, 4) }) { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      // All at once, since a second later one more is allowed. The subscription takes one, too.
      let subscribe = "SUBSCRIBE\nid:1\ndestination:/user/queue/replies\n\n\0"
      try await client.send(subscribe + (1...5).map { send("/app/calls/list", "{}", id: "\($0)") }.joined())
      let error = try await client.error()
      #expect(error.code == "rate.limited" && error.requestID == "4")
      #expect((1...1_000).contains(error.retryAfterMs ?? 0))
      #expect(try await client.error().requestID == "5")
      #expect(server.statistics.drops[.rateLimited] == 2 && server.statistics.requests == 5)
    }
  }

  @Test("stomp.md 73: subscriptions count against the rate")
  func subscriptionsCountAgainstTheRate() async throws {
    try await withServer({ ($0.limits.requestsPerSecond, $0.limits.requestBurst) = (1, 1) }) { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      // At once, since a second later one more is allowed.
      try await client.send(
        "SUBSCRIBE\nid:1\ndestination:/user/queue/replies\nreceipt:1\n\n\0"
          + "SUBSCRIBE\nid:2\ndestination:/user/queue/events\nreceipt:2\n\n\0")
      #expect(try await client.frame()?.command == .receipt)
      #expect(try await client.frame()?.command == .error)
      #expect(try await client.frame() == nil)
      #expect(!sink.all.contains { if case .subscribe(_, .events, _) = $0 { true } else { false } })
    }
  }

  @Test(arguments: [
    "SUBSCRIBE\nid:1\ndestination:/topic/x\n\n\0", "SUBSCRIBE\nid:1\ndestination:/topic/calls/x/y\n\n\0",
    "SUBSCRIBE\nid:1\ndestination:/user/bob/queue/events\n\n\0",
    "SUBSCRIBE\nid:1\ndestination:/user/queue/events/\n\n\0",
    "SUBSCRIBE\nid:1\ndestination:/user/queue/events\n\n\0SUBSCRIBE\nid:2\ndestination:/user/queue/events\n\n\0",
    "SEND\ndestination:/user/bob/queue/events\n\n\0", "SEND\ndestination:/topic/calls/x\n\n\0",
    "SEND\ndestination:/app\n\n\0",
    "SEND\ndestination:/app/\n\n\0", "SEND\ndestination:/app//calls/list\n\n\0",
    "SEND\ndestination:/app/../app/calls/list\n\n\0",
    "SEND\ndestination:app/calls/list\n\n\0",
  ])
  func otherDestinationsAreAnError(text: String) async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.send(text)
      #expect(try await client.frame()?.command == .error)
      #expect(try await client.frame() == nil)
      #expect(!sink.all.contains { if case .request = $0 { true } else { false } })
    }
  }

  @Test func requestsOfATransactionComeAtItsCommit() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.send(
        "BEGIN\ntransaction:t\n\n\0SEND\ndestination:/app/calls/list\nrequest-id:1\ntransaction:t\nreceipt:a\n\n\0")
      #expect(try await client.frame()?.headers["receipt-id"] == "a")
      #expect(server.statistics.requests == 0)
      try await client.send("COMMIT\ntransaction:t\nreceipt:b\n\n\0")
      #expect(try await client.frame()?.headers["receipt-id"] == "b")
      #expect(server.statistics.requests == 1)
    }
  }

  @Test func aReplyWithoutSubscriptionIsDroppedAndCounted() async throws {
    try await withServer { server, sink in
      let client = try await TestClient.connected(to: server.stompPort, token: "alice")
      try await client.send(send("/app/x/y", "{}") + "DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await client.frame()?.command == .receipt)
      #expect(server.statistics.drops == [.notSubscribed: 1, .invalidRequest: 1])
    }
  }
}

struct ErrorSeen: Sendable {
  var status: String?
  var requestID: String?
  var code: String
  var field: String?
  var retryAfterMs: Int?
}

extension TestClient {
  /// The next frame, read as a reply with an error.
  func error() async throws -> ErrorSeen {
    let frame = try #require(try await frame())
    let error = try JSONCoding.decode(ErrorReply.self, from: Array(frame.body.readableBytesView)).error
    return ErrorSeen(
      status: frame.headers["status"], requestID: frame.headers["request-id"], code: error.code.rawValue,
      field: error.field, retryAfterMs: error.retryAfterMs)
  }
}
