import NIOCore
import STOMP
import Testing

/// C: connecting.
@Suite struct ConnectTests {
  @Test("stomp.md 22: both commands connect", arguments: ["CONNECT", "STOMP"])
  func bothCommandsConnect(command: String) {
    var server = TestServer()
    server.receive("\(command)\naccept-version:1.2\nhost:h\n\n\0SEND\ndestination:/a\n\n\0")
    #expect(server.last?.command == .connected && server.sent.count == 1)
  }

  @Test("stomp.md 25: connected carries version, session, server and heart beat", arguments: Version.allCases)
  func connectedCarriesItsHeaders(version: Version) {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:\(version.rawValue)\nhost:h\n\n\0")
    let beat = version == .v10 ? "0,0" : "10000,10000"
    let text =
      "CONNECTED\nversion:\(version.rawValue)\nsession:s1\nserver:conclave/1\nheart-beat:\(beat)\n"
      + "user-name:alice\ndevice:phone\n\n\0"
    #expect(server.written == [text])
  }

  @Test(
    "stomp.md 23: the highest common version is taken",
    arguments: [
      ("1.0,1.1,1.2", Version.v12), ("1.0, 1.1, 1.2", .v12), ("1.1,1.0", .v11), (" 1.0 ", .v10), ("1.2,9.9", .v12),
    ])
  func theHighestCommonVersionIsTaken(offered: String, chosen: Version) {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:\(offered)\nhost:h\n\n\0")
    #expect(server.session.version == chosen)
    #expect(server.last?.headers["version"] == chosen.rawValue)
  }

  @Test("stomp.md 23: no header means 10") func noHeaderMeans10() {
    var server = TestServer()
    server.receive("CONNECT\n\n\0")
    #expect(server.last?.headers["version"] == "1.0" && server.last?.headers["heart-beat"] == "0,0")
  }

  @Test("stomp.md 24: no common version is an error that names ours", arguments: ["9.9", "", "1.3,2.0"])
  func noCommonVersionIsAnErrorThatNamesOurs(offered: String) {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:\(offered)\nhost:h\n\n\0")
    #expect(server.closed == .violation(.protocolError))
    #expect(server.last?.headers["version"] == "1.0,1.1,1.2")
    #expect(server.last?.headers["content-type"] == "text/plain")
    #expect(server.last.map { $0.body.readableBytes > 0 } == true)
  }

  @Test("stomp.md 26: host may be absent") func hostMayBeAbsent() {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:1.2\n\n\0")
    #expect(server.last?.command == .connected)
  }

  @Test("stomp.md 27: a refusal is to the letter and unescaped") func aRefusalIsToTheLetterAndUnescaped() {
    var server = TestServer()
    server.answersConnect = false
    server.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
    server.perform(server.session.fail(Violation(.authenticationFailed, "Bad CONNECT: authentication failed")))
    #expect(
      server.written == [
        "ERROR\nmessage:Bad CONNECT: authentication failed\ncontent-type:text/plain\ncontent-length:34\n\n"
          + "Bad CONNECT: authentication failed\0"
      ])
    #expect(server.closed == .violation(.authenticationFailed))
  }

  @Test(
    "stomp.md 28: any other first frame is refused",
    arguments: [
      "SEND\ndestination:/a\nreceipt:a\\n\n\nx\0", "SUBSCRIBE\nid:1\ndestination:/a\n\n\0", "DISCONNECT\n\n\0",
    ])
  func anyOtherFirstFrameIsRefused(text: String) {
    var server = TestServer()
    server.receive(text)
    #expect(server.closed == .violation(.protocolError))
    #expect(server.sent.isEmpty && server.subscribed.isEmpty)
    #expect(server.error?.hasPrefix("not connected") == true)
  }

  @Test("stomp.md 29: a second connect is refused") func aSecondConnectIsRefused() {
    var server = TestServer(.v12)
    server.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0SEND\ndestination:/a\n\n\0")
    #expect(server.error == "already connected" && server.sent.isEmpty)
  }

  @Test("stomp.md 30: receipt on connect is ignored") func receiptOnConnectIsIgnored() {
    var server = TestServer()
    server.receive("CONNECT\naccept-version:1.2\nreceipt:1\nhost:h\n\n\0")
    #expect(server.written.count == 1 && server.last?.command == .connected)
  }

  @Test("stomp.md 31: frames behind connect wait for the answer") func framesBehindConnectWaitForTheAnswer() {
    var server = TestServer()
    server.answersConnect = false
    server.receive(
      "CONNECT\naccept-version:1.2\nhost:h\n\n\0SEND\ndestination:/a\nx:\\r\n\n\0DISCONNECT\nreceipt:1\n\n\0")
    #expect(server.written.isEmpty && server.sent.isEmpty)
    server.accept()
    server.pull()
    #expect(server.sent.first?.headers["x"] == "\r")
    #expect(server.written.count == 2 && server.closed == .disconnected)
  }

  @Test("stomp.md 32: a client that does not connect in time is closed") func aClientThatDoesNotConnectInTimeIsClosed()
  {
    var server = TestServer()
    #expect(server.session.nextDeadline == 10_000_000_000)
    server.advance(to: 9_999_999_999)
    #expect(server.closed == nil)
    server.advance(to: 10_000_000_000)
    #expect(server.closed == .violation(.connectTimeout))
  }

  @Test("stomp.md 32: the time for the answer counts too") func theTimeForTheAnswerCountsToo() {
    var server = TestServer()
    server.answersConnect = false
    server.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
    server.advance(to: 10_000_000_000)
    #expect(server.closed == .violation(.connectTimeout))
    server.accept()
    #expect(server.written.count == 1)
  }

  @Test func theTokensEndClosesTheSession() {
    var server = TestServer(.v12, expiresAt: 5_000_000_000)
    #expect(server.session.nextDeadline == 5_000_000_000)
    server.advance(to: 5_000_000_000)
    #expect(server.error == "token expired" && server.closed == .violation(.tokenExpired))
  }

  @Test(arguments: [
    ("passcode:t", "t"), ("Authorization:Bearer t", "t"), ("authorization:bearer  t", "t"),
    ("passcode:\nAuthorization:Bearer t", "t"),
    ("login:x", nil), ("Authorization:Basic t", nil), ("Authorization:Bearer", nil),
  ])
  func theTokenIsPasscodeOrBearer(headers: String, token: String?) throws {
    var server = TestServer()
    let frame = try #require(try decode("CONNECT\naccept-version:1.2\n\(headers)\n\n\0").first)
    guard case .authenticate(let request) = server.session.handle(frame, admission: .allowed, now: 0).first else {
      Issue.record("no authentication asked for")
      return
    }
    #expect(request.token == token)
    #expect(!"\(request)".contains("passcode:t") && "\(request)" == "CONNECT 1.2")
  }
}
