import NIOCore
import STOMP
import Testing

/// B: escapes by version.
@Suite struct HeaderCodingTests {
  private func value(_ text: String, _ version: Version) throws(FrameError) -> String? {
    try decode("SEND\na:\(text)\n\n\0", version: version).first?.headers["a"]
  }

  private func encoded(_ value: String, _ version: Version, _ command: FrameCommand = .message) -> String {
    String(buffer: FrameEncoder(version: version).encode(Frame(command, ["a": value])))
      .replacing("content-length:0\n", with: "")
  }

  @Test("stomp.md 13: version 10 has no escapes") func version10HasNoEscapes() throws {
    #expect(try value(#"x\ny\c\\z"#, .v10) == #"x\ny\c\\z"#)
    #expect(encoded(#"x\y:z"#, .v10) == "MESSAGE\na:x\\y:z\n\n\0")
  }

  @Test("stomp.md 14: version 11 knows three") func version11KnowsThree() throws {
    #expect(try value(#"x\ny\cz\\"#, .v11) == "x\ny:z\\")
    #expect(encoded("x\ny:z\\", .v11) == "MESSAGE\na:x\\ny\\cz\\\\\n\n\0")
    #expect(throws: FrameError(.badEscape)) { try value(#"x\r"#, .v11) }
    #expect(throws: FrameError(.badEscape)) { try value(#"x\t"#, .v11) }
  }

  @Test("stomp.md 15: version 12 knows four") func version12KnowsFour() throws {
    #expect(try value(#"x\r\ny\cz\\"#, .v12) == "x\r\ny:z\\")
    #expect(encoded("x\r\ny:z\\", .v12) == "MESSAGE\na:x\\r\\ny\\cz\\\\\n\n\0")
    #expect(throws: FrameError(.badEscape)) { try value(#"x\t"#, .v12) }
    #expect(throws: FrameError(.badEscape)) { try value(#"x\"#, .v12) }
  }

  @Test(
    "stomp.md 16: connect and connected are never escaped", arguments: Version.allCases,
    [FrameCommand.connect, .stomp, .connected])
  func connectAndConnectedAreNeverEscaped(version: Version, command: FrameCommand) throws {
    let text = "\(command.rawValue)\naccept-version:1.2\npasscode:pa\\ss:\\n\n\n\0"
    let frame = try #require(try decode(text, version: version).first)
    #expect(frame.headers["passcode"] == "pa\\ss:\\n")
    #expect(String(buffer: FrameEncoder(version: version).encode(frame)) == text)
  }

  @Test("stomp.md 17: names are escaped too") func namesAreEscapedToo() throws {
    #expect(try decode("SEND\na\\cb:x\n\n\0").first?.headers["a:b"] == "x")
    let frame = Frame(.send, ["a:b": "x"])
    #expect(String(buffer: FrameEncoder(version: .v12).encode(frame)).hasPrefix("SEND\na\\cb:x\n"))
  }

  @Test("stomp.md 18: headers that a version cannot express are left out", arguments: ["x\ny", "x\n", "\nadmin:true"])
  func headersThatAVersionCannotExpressAreLeftOut(value: String) {
    #expect(encoded(value, .v10) == "MESSAGE\n\n\0")
    #expect(encoded(value, .v12, .connected) == "CONNECTED\n\n\0")
  }

  @Test("stomp.md 18: nulls and trailing carriage returns are never written raw")
  func nullsAndTrailingCarriageReturnsAreNeverWrittenRaw() {
    #expect(encoded("x\0y", .v12) == "MESSAGE\n\n\0")
    #expect(encoded("x\r", .v11) == "MESSAGE\n\n\0")
    #expect(encoded("x\ry", .v11) == "MESSAGE\na:x\ry\n\n\0")
  }

  @Test("stomp.md 19: only 10 trims") func only10Trims() throws {
    #expect(try decode("SEND\na : b \n\n\0", version: .v10).first?.headers["a"] == "b")
    #expect(try decode("SEND\na : b \n\n\0", version: .v11).first?.headers["a "] == " b ")
    #expect(try decode("CONNECT\nlogin: bob\n\n\0").first?.headers["login"] == "bob")
    #expect(try decode("CONNECT\naccept-version:1.2\nlogin: bob\n\n\0").first?.headers["login"] == " bob")
  }

  @Test("stomp.md 9: every body has its content length", arguments: Version.allCases, [FrameCommand.message, .error])
  func everyBodyHasItsContentLength(version: Version, command: FrameCommand) {
    let frame = Frame(command, ["content-length": "99", "a": "b"], body: ByteBuffer(bytes: [0x78, 0x00]))
    let text = "\(command.rawValue)\na:b\ncontent-length:2\n\nx\0\0"
    #expect(String(buffer: FrameEncoder(version: version).encode(frame)) == text)
    #expect(
      String(buffer: FrameEncoder(version: version).encode(Frame(.receipt, ["receipt-id": "1"])))
        == "RECEIPT\nreceipt-id:1\n\n\0")
  }

  @Test("stomp.md 21: no header is written twice") func noHeaderIsWrittenTwice() {
    var server = TestServer(.v12)
    server.receive("SUBSCRIBE\nid:s\ndestination:/a\nack:client\n\n\0")
    var headers: Headers = ["mood": "good"]
    for name in ["mood", "destination", "message-id", "subscription", "ack", "content-length"] {
      headers.append(name, "x")
    }
    server.deliver(SharedMessage(destination: "/a", headers: headers, body: ByteBuffer()), token: 1)
    let lines = server.written.last?.split(separator: "\n").filter { $0.contains(":") } ?? []
    let names = lines.compactMap { $0.split(separator: ":").first }
    #expect(names.count == 6 && Set(names).count == 6)
  }
}
