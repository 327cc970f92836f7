import NIOCore
import STOMP
import Testing

/// E to G: SEND, MESSAGE, SUBSCRIBE, ACK.
@Suite struct SubscriptionTests {
  @Test("stomp.md 40: send needs a destination", arguments: Version.allCases)
  func sendNeedsADestination(version: Version) {
    var server = TestServer(version)
    server.receive("SEND\nreceipt:1\n\nx\0")
    #expect(server.error == "header destination is missing" && server.last?.headers["receipt-id"] == "1")
  }

  @Test func aDestinationThatIsAllowedOnceTakesOneSubscriptionAtATime() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/once/a\n\n\0SUBSCRIBE\nid:2\ndestination:/once/b\n\n\0")
    server.receive("UNSUBSCRIBE\nid:1\n\n\0SUBSCRIBE\nid:3\ndestination:/once/a\n\n\0")
    #expect(server.subscribed == ["/once/b", "/once/a"] && server.error == nil)
    server.receive("SUBSCRIBE\nid:4\ndestination:/once/b\n\n\0")
    #expect(server.error == "once only")
  }

  @Test("stomp.md 41: message headers are the servers own") func messageHeadersAreTheServersOwn() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/a\nack:client\n\n\0")
    let headers: Headers = ["destination": "/forged", "ack": "9", "subscription": "9", "message-id": "9", "event": "e"]
    server.deliver(SharedMessage(destination: "/a", headers: headers, body: ByteBuffer(string: "x")), token: 1)
    #expect(
      server.written.last
        == "MESSAGE\nsubscription:s\nmessage-id:1\nack:1\ndestination:/a\nevent:e\ncontent-length:1\n\nx\0")
  }

  @Test("stomp.md 42: each message has an ID and an ack of its own") func eachMessageHasAnIDAndAnAckOfItsOwn() {
    var server = TestServer(.v12)
    for id in 1...2 { server.receive("SUBSCRIBE\nid:s\(id)\ndestination:/a\nack:client\n\n\0") }
    for _ in 1...2 { server.deliver("x", to: "/a", token: 1) }
    let frames = server.written.compactMap { try? decode($0).first }
    #expect(frames.map { $0.headers["subscription"] } == ["s1", "s2", "s1", "s2"])
    #expect(Set(frames.map { $0.headers["message-id"] }).count == 4 && Set(frames.map { $0.headers["ack"] }).count == 4)
    #expect(frames.allSatisfy { $0.headers["destination"] == "/a" })
  }

  @Test("stomp.md 42: ack header stands only where an ack is wanted") func ackHeaderStandsOnlyWhereAnAckIsWanted() {
    for (version, mode, expected) in [(Version.v12, "auto", nil), (.v12, "client", "1"), (.v11, "client", nil)] {
      var server = TestServer(version)
      server.receive("SUBSCRIBE\nid:s\ndestination:/a\nack:\(mode)\n\n\0")
      server.deliver("x", to: "/a", token: 1)
      #expect(server.last?.headers["ack"] == expected)
    }
  }

  @Test("stomp.md 42: version 10 names the subscription only if it has an ID")
  func version10NamesTheSubscriptionOnlyIfItHasAnID() {
    var server = TestServer(.v10)
    server.receive("SUBSCRIBE\ndestination:/a\n\n\0SUBSCRIBE\nid:s\ndestination:/b\n\n\0")
    server.deliver("x", to: "/a", token: 1)
    #expect(server.last?.headers["subscription"] == nil)
    server.deliver("x", to: "/b", token: 1)
    #expect(server.last?.headers["subscription"] == "s")
  }

  @Test("stomp.md 44: two subscriptions get two messages with their own acks")
  func twoSubscriptionsGetTwoMessagesWithTheirOwnAcks() {
    var server = TestServer(.v12)
    for id in 1...2 { server.receive("SUBSCRIBE\nid:\(id)\ndestination:/a\nack:client-individual\n\n\0") }
    server.deliver("x", to: "/a", token: 5)
    #expect(server.written.count == 2)
    server.receive("ACK\nid:2\n\n\0NACK\nid:1\n\n\0")
    #expect(server.acknowledged.map(\.token) == [5, 5] && server.acknowledged.map(\.accepted) == [true, false])
  }

  @Test("stomp.md 45: subscriptions need a fresh ID from 11 on") func subscriptionsNeedAFreshIDFrom11On() {
    for (version, text) in [
      (Version.v12, "SUBSCRIBE\ndestination:/a\n\n\0"), (.v11, "SUBSCRIBE\ndestination:/a\n\n\0"),
      (.v12, "SUBSCRIBE\nid:1\ndestination:/a\n\n\0SUBSCRIBE\nid:1\ndestination:/b\n\n\0"),
      (.v10, "SUBSCRIBE\ndestination:/a\n\n\0SUBSCRIBE\ndestination:/a\n\n\0"),
      (.v12, "SUBSCRIBE\nid:1\n\n\0"), (.v12, "SUBSCRIBE\nid:1\ndestination:/a\nselector:a > 1\n\n\0"),
    ] {
      var server = TestServer(version)
      server.receive(text)
      #expect(server.closed == .violation(.protocolError), "\(text)")
    }
  }

  @Test(
    "stomp.md 46: ack modes are those of the version",
    arguments: [
      (Version.v12, "foo", false), (.v12, "client-individual", true), (.v11, "client-individual", true),
      (.v10, "client-individual", false), (.v10, "client", true),
    ])
  func ackModesAreThoseOfTheVersion(version: Version, mode: String, isTaken: Bool) {
    var server = TestServer(version)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nack:\(mode)\n\n\0")
    #expect((server.closed == nil) == isTaken)
  }

  @Test("stomp.md 47: a refused destination is an error without effect")
  func aRefusedDestinationIsAnErrorWithoutEffect() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/no\nreceipt:7\n\n\0")
    #expect(server.error == "not allowed" && server.subscribed.isEmpty)
    #expect(server.written.count == 1 && server.last?.headers["receipt-id"] == "7")
  }

  @Test("stomp.md 48: unsubscribe must match") func unsubscribeMustMatch() {
    var server = TestServer(.v12)
    server.receive("UNSUBSCRIBE\nid:1\n\n\0")
    #expect(server.error == "no such subscription")
    server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\n\n\0UNSUBSCRIBE\ndestination:/a\n\n\0")
    #expect(server.closed == .violation(.protocolError))
    server = TestServer(.v10)
    server.receive("SUBSCRIBE\ndestination:/a\n\n\0UNSUBSCRIBE\ndestination:/a\n\n\0")
    #expect(server.closed == nil && server.subscribed.isEmpty)
  }

  @Test("stomp.md 49: after unsubscribe nothing comes and old acks are void")
  func afterUnsubscribeNothingComesAndOldAcksAreVoid() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nack:client\n\n\0")
    server.deliver("x", to: "/a", token: 1)
    server.receive("UNSUBSCRIBE\nid:1\nreceipt:u\n\n\0")
    server.deliver("x", to: "/a", token: 2)
    #expect(server.last?.command == .receipt)
    server.receive("SUBSCRIBE\nid:1\ndestination:/a\nack:client\n\n\0ACK\nid:1\n\n\0")
    #expect(server.error == "no message waits for this ACK" && server.acknowledged.isEmpty)
  }

  @Test(
    "stomp.md 51: each version acks in its way",
    arguments: [
      (Version.v12, "ACK\nid:1\n\n\0"), (.v11, "ACK\nmessage-id:1\nsubscription:s\n\n\0"),
      (.v10, "ACK\nmessage-id:1\n\n\0"),
    ])
  func eachVersionAcksInItsWay(version: Version, text: String) {
    var server = TestServer(version)
    server.receive("SUBSCRIBE\nid:s\ndestination:/a\nack:client\n\n\0")
    server.deliver("x", to: "/a", token: 77)
    server.receive(text)
    #expect(server.acknowledged.map(\.token) == [77])
  }

  @Test(
    "stomp.md 51: an ack without its versions headers is an error",
    arguments: [
      (Version.v12, "ACK\nmessage-id:1\n\n\0"), (.v12, "ACK\n\n\0"), (.v11, "ACK\nmessage-id:1\n\n\0"),
      (.v11, "ACK\nsubscription:s\n\n\0"), (.v10, "ACK\nid:1\n\n\0"),
    ])
  func anAckWithoutItsVersionsHeadersIsAnError(version: Version, text: String) {
    #expect(isRefused(text, version))
  }

  @Test(
    "stomp.md 54: an ack for no waiting message is an error",
    arguments: [
      (Version.v11, "ACK\nmessage-id:1\nsubscription:other\n\n\0"), (.v12, "ACK\nid:2\n\n\0"),
      (.v12, "ACK\nid:x\n\n\0"), (.v12, "ACK\nid:1\n\n\0ACK\nid:1\n\n\0"),
    ])
  func anAckForNoWaitingMessageIsAnError(version: Version, text: String) {
    #expect(isRefused(text, version))
  }

  @Test("stomp.md 53: version 10 has no nack") func version10HasNoNack() {
    #expect(isRefused("NACK\nmessage-id:1\n\n\0", .v10))
    #expect(!isRefused("NACK\nmessage-id:1\nsubscription:s\n\n\0", .v11) && !isRefused("NACK\nid:1\n\n\0", .v12))
  }

  /// Whether that ends a session in which one message waits for an ACK.
  private func isRefused(_ text: String, _ version: Version) -> Bool {
    var server = TestServer(version)
    server.receive("SUBSCRIBE\nid:s\ndestination:/a\nack:client\n\n\0")
    server.deliver("x", to: "/a", token: 77)
    server.receive(text)
    return server.closed == .violation(.protocolError)
  }

  @Test("stomp.md 54: auto messages take no ack") func autoMessagesTakeNoAck() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/a\n\n\0")
    server.deliver("x", to: "/a", token: 1)
    server.receive("ACK\nid:1\n\n\0")
    #expect(server.closed == .violation(.protocolError))
  }

  @Test("stomp.md 52: client mode is cumulative for its subscription only")
  func clientModeIsCumulativeForItsSubscriptionOnly() {
    var server = twoSubscriptions()
    server.receive("ACK\nid:3\n\n\0")
    #expect(server.acknowledged.map(\.token) == [10, 11] && server.acknowledged.allSatisfy(\.accepted))
    server.receive("ACK\nid:5\n\n\0")
    #expect(server.acknowledged.map(\.token) == [10, 11, 12])
  }

  @Test("stomp.md 53: a nack in client mode is cumulative too") func aNackInClientModeIsCumulativeToo() {
    var server = twoSubscriptions()
    server.receive("NACK\nid:4\n\n\0")
    #expect(server.acknowledged.map(\.token) == [20, 21] && !server.acknowledged.contains(where: \.accepted))
  }

  /// Messages 1 to 5 wait for ACKs, alternating between two subscriptions.
  private func twoSubscriptions() -> TestServer {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:a\ndestination:/a\nack:client\n\n\0SUBSCRIBE\nid:b\ndestination:/b\nack:client\n\n\0")
    for (destination, token) in [("/a", 10), ("/b", 20), ("/a", 11), ("/b", 21), ("/a", 12)] as [(String, UInt64)] {
      server.deliver("x", to: destination, token: token)
    }
    return server
  }

  @Test("stomp.md 52: individual mode counts for one") func individualModeCountsForOne() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:a\ndestination:/a\nack:client-individual\n\n\0")
    for token in 1...3 as ClosedRange<UInt64> { server.deliver("x", to: "/a", token: token) }
    server.receive("ACK\nid:3\n\n\0ACK\nid:1\n\n\0")
    #expect(server.acknowledged.map(\.token) == [3, 1] && server.closed == nil)
  }

  @Test("stomp.md 56: messages without ack are bounded") func messagesWithoutAckAreBounded() {
    var server = TestServer(.v12) { $0.unacknowledged = 3 }
    server.receive("SUBSCRIBE\nid:a\ndestination:/a\nack:client\n\n\0")
    for token in 1...4 as ClosedRange<UInt64> { server.deliver("x", to: "/a", token: token) }
    #expect(server.closed == .violation(.limit) && server.written.count == 4)
  }

  @Test("stomp.md 73: subscriptions are bounded") func subscriptionsAreBounded() {
    var server = TestServer(.v12) { $0.subscriptions = 2 }
    for id in 1...3 { server.receive("SUBSCRIBE\nid:\(id)\ndestination:/a\n\n\0") }
    #expect(server.closed == .violation(.limit) && server.subscribed.count == 2)
  }

  @Test("stomp.md 6: only send may have a body") func onlySendMayHaveABody() {
    for version in Version.allCases {
      var server = TestServer(version)
      server.receive("SUBSCRIBE\nid:1\ndestination:/a\ncontent-length:3\n\na\0b\0SEND\ndestination:/a\n\nx\0")
      #expect((server.closed == nil) == (version == .v10))
      #expect(server.sent.count == (version == .v10 ? 1 : 0))
    }
  }
}
