import NIOCore
import STOMP
import Testing

/// H and I: transactions, receipts, ERROR and the end.
@Suite struct TransactionTests {
  private func send(_ body: String, _ transaction: String) -> String {
    "SEND\ndestination:/a\ntransaction:\(transaction)\n\n\(body)\0"
  }

  @Test(
    "stomp.md 58: begin, commit and abort name a transaction, and begin a new one",
    arguments: [
      "BEGIN\n\n\0", "COMMIT\n\n\0", "ABORT\n\n\0", "BEGIN\ntransaction:\n\n\0",
      "BEGIN\ntransaction:t\n\n\0BEGIN\ntransaction:t\nreceipt:1\n\n\0",
    ])
  func beginCommitAndAbortNameATransaction(text: String) { expectRefusal(of: text) }

  @Test(
    "stomp.md 60: a transaction that is not open is an error",
    arguments: [
      "COMMIT\ntransaction:t\n\n\0", "ABORT\ntransaction:t\n\n\0", "SEND\ndestination:/a\ntransaction:t\n\nx\0",
      "SEND\ndestination:/a\ntransaction:\n\n\0", "ACK\nid:1\ntransaction:t\n\n\0", "NACK\nid:1\ntransaction:t\n\n\0",
      "BEGIN\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0",
      "BEGIN\ntransaction:t\n\n\0ABORT\ntransaction:t\n\n\0SEND\ndestination:/a\ntransaction:t\n\n\0",
    ])
  func aTransactionThatIsNotOpenIsAnError(text: String) { expectRefusal(of: text) }

  private func expectRefusal(of text: String) {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/q\nack:client\n\n\0")
    server.deliver("x", to: "/q", token: 1)
    server.receive(text)
    #expect(server.closed == .violation(.protocolError))
    #expect(server.written.count == 2 && server.sent.isEmpty && server.acknowledged.isEmpty)
  }

  @Test("stomp.md 59: sends appear at commit in order") func sendsAppearAtCommitInOrder() {
    var server = TestServer(.v12)
    server.receive("BEGIN\ntransaction:t\n\n\0" + send("1", "t") + "SEND\ndestination:/a\n\n0\0" + send("2", "t"))
    #expect(server.sent.map { String(buffer: $0.body) } == ["0"])
    server.receive("COMMIT\ntransaction:t\nreceipt:c\n\n\0")
    #expect(server.sent.map { String(buffer: $0.body) } == ["0", "1", "2"])
    #expect(server.written == ["RECEIPT\nreceipt-id:c\n\n\0"])
    server.receive("BEGIN\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0")
    #expect(server.sent.count == 3 && server.closed == nil)
  }

  @Test("stomp.md 59: abort discards sends and acks") func abortDiscardsSendsAndAcks() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/q\nack:client\n\n\0BEGIN\ntransaction:t\n\n\0")
    server.deliver("x", to: "/q", token: 1)
    server.receive(send("1", "t") + "ACK\nid:1\ntransaction:t\n\n\0ABORT\ntransaction:t\n\n\0")
    #expect(server.sent.isEmpty && server.acknowledged.isEmpty)
    server.receive("ACK\nid:1\n\n\0")
    #expect(server.acknowledged.map(\.token) == [1])
  }

  @Test("stomp.md 57: acks take part in a transaction") func acksTakePartInATransaction() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/q\nack:client\n\n\0BEGIN\ntransaction:t\n\n\0")
    server.deliver("x", to: "/q", token: 1)
    server.receive("NACK\nid:1\ntransaction:t\n\n\0")
    #expect(server.acknowledged.isEmpty)
    server.receive("COMMIT\ntransaction:t\n\n\0")
    #expect(server.acknowledged.map(\.accepted) == [false])
  }

  @Test("stomp.md 62: a commit that fails does nothing") func aCommitThatFailsDoesNothing() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/q\nack:client\n\n\0BEGIN\ntransaction:t\n\n\0")
    server.deliver("x", to: "/q", token: 1)
    server.receive(send("1", "t") + "ACK\nid:1\ntransaction:t\n\n\0ACK\nid:1\n\n\0")
    #expect(server.acknowledged.count == 1)
    server.receive("COMMIT\ntransaction:t\nreceipt:c\n\n\0")
    #expect(server.sent.isEmpty && server.acknowledged.count == 1)
    #expect(server.closed == .violation(.protocolError) && server.last?.headers["receipt-id"] == "c")
  }

  @Test("stomp.md 61: open transactions are aborted at the end") func openTransactionsAreAbortedAtTheEnd() {
    var server = TestServer(.v12)
    server.receive(
      "BEGIN\ntransaction:t\n\n\0" + send("1", "t") + "DISCONNECT\nreceipt:d\n\n\0COMMIT\ntransaction:t\n\n\0")
    #expect(server.sent.isEmpty && server.closed == .disconnected)
  }

  @Test("stomp.md 62: transactions are bounded") func transactionsAreBounded() {
    var server = TestServer(.v12)
    for i in 1...9 { server.receive("BEGIN\ntransaction:\(i)\n\n\0") }
    #expect(server.closed == .violation(.limit))
    server = TestServer(.v12)
    server.receive("BEGIN\ntransaction:t\n\n\0" + String(repeating: send("x", "t"), count: 101))
    #expect(server.closed == .violation(.limit))
    server = TestServer(.v12) { $0.transactionBytes = 1_000 }
    server.receive("BEGIN\ntransaction:t\n\n\0BEGIN\ntransaction:u\n\n\0")
    let body = String(repeating: "x", count: 450)
    server.receive(send(body, "t") + send(body, "u"))
    #expect(server.closed == nil)
    server.receive(send(body, "t"))
    #expect(server.closed == .violation(.limit))
  }

  @Test("stomp.md 63: every client frame may have a receipt")
  func everyClientFrameMayHaveAReceipt() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/q\nack:client\nreceipt:1\n\n\0")
    server.deliver("x", to: "/q", token: 1)
    server.receive(
      "SEND\ndestination:/a\nreceipt:2\n\n\0BEGIN\ntransaction:t\nreceipt:3\n\n\0"
        + "SEND\ndestination:/a\ntransaction:t\nreceipt:4\n\n\0ACK\nid:1\nreceipt:5\n\n\0COMMIT\ntransaction:t\nreceipt:6\n\n\0"
        + "BEGIN\ntransaction:t\n\n\0ABORT\ntransaction:t\nreceipt:7\n\n\0")
    server.deliver("y", to: "/q", token: 2)
    server.receive("NACK\nid:2\nreceipt:8\n\n\0UNSUBSCRIBE\nid:s\nreceipt:9\n\n\0DISCONNECT\nreceipt:10\n\n\0")
    let receipts = server.written.filter { $0.hasPrefix("RECEIPT") }
    #expect(receipts == (1...10).map { "RECEIPT\nreceipt-id:\($0)\n\n\0" })
    #expect(server.closed == .disconnected)
  }

  @Test("stomp.md 64: receipts come in the order of their frames, whatever was asked for first")
  func receiptsComeInTheOrderOfTheirFrames() {
    var server = TestServer(.v12)
    server.receive(
      "SUBSCRIBE\nid:1\ndestination:/ask\nreceipt:c\n\n\0SEND\ndestination:/a\nreceipt:b\n\n\0"
        + "BEGIN\ntransaction:t\nreceipt:a\n\n\0")
    #expect(server.written.isEmpty, "the first is not done yet")
    server.perform(server.session.answer(refusal: nil))
    server.pull()
    #expect(server.written == ["c", "b", "a"].map { "RECEIPT\nreceipt-id:\($0)\n\n\0" })
  }

  @Test("stomp.md 65: a send in a transaction has its receipt when it is taken in")
  func aSendInATransactionHasItsReceiptWhenItIsTakenIn() {
    var server = TestServer(.v12)
    server.receive("BEGIN\ntransaction:t\n\n\0SEND\ndestination:/a\ntransaction:t\nreceipt:r\n\n\0")
    #expect(server.written == ["RECEIPT\nreceipt-id:r\n\n\0"] && server.sent.isEmpty)
  }

  @Test("stomp.md 63: receipt IDs come back byte for byte") func receiptIDsComeBackByteForByte() {
    for (version, id) in [(Version.v12, #"a\r\n\c\\ ä "#), (.v11, #" a\n\c\\"#), (.v10, #"a\n:b"#)] {
      var server = TestServer(version)
      server.receive("SEND\ndestination:/a\nreceipt:\(id)\n\n\0")
      #expect(server.written == ["RECEIPT\nreceipt-id:\(id)\n\n\0"])
    }
  }

  @Test("stomp.md 67: after an error the session is over", arguments: Version.allCases)
  func afterAnErrorTheSessionIsOver(version: Version) {
    var server = TestServer(version)
    server.receive("SEND\ndestination:/no\n\n\0SEND\ndestination:/a\nreceipt:b\n\n\0")
    #expect(server.closed == .violation(.protocolError) && server.session.isClosed)
    #expect(
      server.session.handle(Frame(.send, ["destination": "/a", "receipt": "c"]), admission: .allowed, now: 1).isEmpty)
    #expect(server.written.count == 1 && server.sent.isEmpty)
  }

  @Test("stomp.md 66: a failed frame gets an error instead of its receipt", arguments: Version.allCases)
  func aFailedFrameGetsAnErrorInsteadOfItsReceipt(version: Version) {
    var server = TestServer(version)
    server.receive("SEND\ndestination:/no\nreceipt:a\n\nsecret\0")
    #expect(server.written.count == 1 && server.error == "not allowed")
    #expect(server.last?.headers["receipt-id"] == "a" && server.last?.headers["content-type"] == "text/plain")
    #expect(server.last?.headers["content-length"] == String(server.last?.body.readableBytes ?? -1))
    #expect(!server.written[0].contains("secret"))
  }

  @Test("stomp.md 68: after disconnect nothing is heard") func afterDisconnectNothingIsHeard() {
    var server = TestServer(.v12)
    server.receive("SEND\ndestination:/a\n\n1\0DISCONNECT\nreceipt:1\n\n\0")
    #expect(server.sent.count == 1 && server.written == ["RECEIPT\nreceipt-id:1\n\n\0"])
    let actions = server.session.handle(
      Frame(.send, ["destination": "/a", "receipt": "2"]), admission: .allowed, now: 1)
    #expect(actions.isEmpty && server.session.nextDeadline == nil)
    #expect(server.session.handle(FrameError(.noColon)).isEmpty)
    #expect(server.session.fail(Violation(.closedByServer, "x")).isEmpty)
  }

  @Test("stomp.md 68: disconnect without receipt just closes") func disconnectWithoutReceiptJustCloses() {
    var server = TestServer(.v12)
    server.receive("DISCONNECT\n\n\0")
    #expect(server.written.isEmpty && server.closed == .disconnected)
  }

  @Test("stomp.md 71: the servers commands are refused", arguments: ["CONNECTED", "MESSAGE", "RECEIPT", "ERROR"])
  func theServersCommandsAreRefused(command: String) {
    var server = TestServer(.v12)
    server.receive("\(command)\n\n\0")
    #expect(server.closed == .violation(.protocolError))
  }

  @Test("stomp.md 66: broken bytes end the session with the receipt") func brokenBytesEndTheSessionWithTheReceipt() {
    var server = TestServer(.v12)
    server.receive("SEND\nreceipt:r\ndestination:/a\nbad\n\n\0")
    #expect(server.error == "header line without a colon" && server.last?.headers["receipt-id"] == "r")
  }
}
