import NIOCore
import Seeded
import STOMP
import Testing

/// A message for many: each subscriber gets the same bytes as in a separate frame.
@Suite struct SharedMessageTests {
  @Test("stomp.md 18: a shared message is written for each receivers version", arguments: Version.allCases)
  func readsAsAFrame(version: Version) throws {
    var random = SeededGenerator(seed: 31)
    var server = TestServer(version)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nack:client\n\n\0SUBSCRIBE\nid:a b\ndestination:/b\n\n\0")
    let letters: [Character] = ["a", ":", "\\", "\n", "\r", " ", "ä"]
    for number in 1...200 {
      let value = String((0..<6).map { _ in letters.randomElement(using: &random)! })
      let body = ByteBuffer(bytes: (0..<20).map { _ in UInt8.random(in: 0...2, using: &random) })
      var message = SharedMessage(destination: "/x", headers: ["mood": value], body: body)
      var bytes = ByteBuffer()
      for key in [1, 2] as [UInt64] {
        guard case .written(let isSettled) = server.session.deliver(&message, to: key, token: 9, into: &bytes) else {
          Issue.record("not written")
          return
        }
        #expect(isSettled == (key == 2))
      }
      let frames = try decode(Array(bytes.readableBytesView), version: version)
      let alone = try decode(
        Array(FrameEncoder(version: version).encode(Frame(.message, ["mood": value])).readableBytesView),
        version: version)
      try #require(frames.count == 2)
      #expect(frames.map { $0.headers["mood"] } == [alone[0].headers["mood"], alone[0].headers["mood"]], "seed 31")
      #expect(frames.map(\.body) == [body, body] && frames.allSatisfy { $0.headers["destination"] == "/x" })
      #expect(frames.map { $0.headers["subscription"] } == ["1", "a b"])
      #expect(frames.map { $0.headers["message-id"] } == ["\(2 * number - 1)", "\(2 * number)"])
      #expect(frames.map { $0.headers["ack"] != nil } == [version == .v12, false])
    }
    server.receive(
      version == .v12 ? "ACK\nid:399\n\n\0" : "ACK\nsubscription:1\nmessage-id:399\n\n\0")
    #expect(server.acknowledged.count == 200 && server.acknowledged.allSatisfy { $0.token == 9 })
  }

  @Test("stomp.md 18: a subscribers own number is its own", arguments: Version.allCases)
  func eachReceiverHasItsOwnNumber(version: Version) throws {
    var server = TestServer(version)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nack:client\n\n\0SUBSCRIBE\nid:2\ndestination:/a\n\n\0")
    var message = SharedMessage(destination: "/a", headers: ["event": "x"], body: ByteBuffer(string: "{}"))
    var bytes = ByteBuffer()
    for (key, seq) in [(1, 41), (2, 7), (1, 42)] as [(UInt64, UInt64)] {
      _ = server.session.deliver(&message, to: key, token: seq, seq: seq, redelivered: seq == 7, into: &bytes)
    }
    let frames = try decode(Array(bytes.readableBytesView), version: version)
    #expect(frames.map { $0.headers["seq"] } == ["41", "7", "42"])
    #expect(frames.map { $0.headers["redelivered"] } == [nil, "true", nil])
    #expect(frames.allSatisfy { $0.headers["event"] == "x" && String(buffer: $0.body) == "{}" })
  }

  @Test func aSubscriptionThatIsGoneGetsNothing() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\n\n\0UNSUBSCRIBE\nid:1\n\n\0SUBSCRIBE\nid:1\ndestination:/a\n\n\0")
    var message = SharedMessage(destination: "/x", headers: [:], body: ByteBuffer())
    var bytes = ByteBuffer()
    guard case .unknown = server.session.deliver(&message, to: 1, into: &bytes) else {
      Issue.record("the id is the same, the subscription is not")
      return
    }
    #expect(bytes.readableBytes == 0)
  }
}

/// Subscriptions that the application decides about.
@Suite struct AskedSubscriptionTests {
  @Test func nothingIsDoneBeforeTheAnswerAndTheReceiptComesAfterIt() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/ask\nreceipt:a\n\n\0SEND\ndestination:/a\nreceipt:b\n\n\0")
    #expect(server.asked == ["/ask"] && server.written.isEmpty && server.sent.isEmpty)
    server.perform(server.session.answer(refusal: nil))
    server.pull()
    #expect(server.subscribed == ["/ask"] && server.sent.count == 1)
    #expect(server.written.map { $0.contains("receipt-id:a") } == [true, false])
  }

  @Test func aRefusalEndsTheSession() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/ask\nreceipt:a\n\n\0SEND\ndestination:/a\n\n\0")
    server.perform(server.session.answer(refusal: "not yours"))
    server.pull()
    #expect(server.error == "not yours" && server.last?.headers["receipt-id"] == "a")
    #expect(server.sent.isEmpty && server.session.answer(refusal: nil).isEmpty)
  }

  @Test func anAnswerWithoutQuestionMeansNothing() {
    var server = TestServer()
    #expect(server.session.answer(refusal: "x").isEmpty && !server.session.isClosed)
    server.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
    #expect(server.session.answer(refusal: "x").isEmpty && !server.session.isClosed)
  }
}
