import NIOCore
import STOMP
import Testing

/// A (framing) and J (limits) of the list of requirements, whose numbers are in the names of the tests.
@Suite struct FrameDecoderTests {
  @Test("stomp.md 1: ends of lines and stray nulls between frames are skipped")
  func endsOfLinesAndStrayNullsBetweenFramesAreSkipped() throws {
    let frames = try decode("\n\r\n\0\nSEND\ndestination:/a\n\nx\0\n\n\0\r\nSEND\ndestination:/b\n\n\0\n")
    #expect(frames.map(\.headers["destination"]) == ["/a", "/b"])
    #expect(frames.map { String(buffer: $0.body) } == ["x", ""])
  }

  @Test("stomp.md 2: lines may end in CRLF", arguments: Version.allCases)
  func linesMayEndInCRLF(version: Version) throws {
    let frames = try decode("SEND\r\ndestination:/a\r\n\r\nx\r\n\0", version: version)
    #expect(frames.first?.headers["destination"] == "/a")
    #expect(frames.first.map { String(buffer: $0.body) } == "x\r\n")
  }

  @Test("stomp.md 2: carriage return inside a header is refused from 12 on")
  func carriageReturnInsideAHeaderIsRefusedFrom12On() throws {
    #expect(error("SEND\na:b\rc\n\n\0", version: .v12) == .bareCarriageReturn)
    #expect(try decode("SEND\na:b\rc\n\n\0", version: .v11).first?.headers["a"] == "b\rc")
  }

  @Test("stomp.md 3: commands are case sensitive", arguments: ["connect", "Connect", "Send", "send", "ACk"])
  func commandsAreCaseSensitive(command: String) {
    #expect(error("\(command)\n\n\0") == .unknownCommand)
  }

  @Test("stomp.md 71: unknown commands are refused", arguments: ["FOO", "POST / HTTP/1.1", " SEND", "SEND ", "SUB"])
  func unknownCommandsAreRefused(command: String) {
    #expect(error("\(command)\n\n\0") == .unknownCommand)
  }

  @Test("stomp.md 3: header names are case sensitive") func headerNamesAreCaseSensitive() throws {
    #expect(try decode("SEND\nDestination:/a\n\n\0").first?.headers["destination"] == nil)
  }

  @Test("stomp.md 4: headers must be UTF8") func headersMustBeUTF8() {
    #expect(throws: FrameError(.notUTF8)) { try decode(Array("SEND\na:".utf8) + [0xFF] + Array("\n\n\0".utf8)) }
  }

  @Test("stomp.md 5: a frame may be split at any byte and many may be glued")
  func aFrameMayBeSplitAtAnyByteAndManyMayBeGlued() throws {
    let bytes = Array(
      "\nSEND\r\ndestination:/ä\ncontent-length:3\n\n\0x\0\0\nACK\nid:1\n\n\0SEND\ndestination:/c\n\nyz\0".utf8)
    let whole = try decode(bytes)
    #expect(whole.count == 3)
    for first in 0..<bytes.count {
      #expect(try decode(bytes, pieces: [first]) == whole)
    }
    #expect(try decode(bytes, pieces: Array(1..<bytes.count)) == whole)
  }

  @Test("stomp.md 7: content length reads nulls") func contentLengthReadsNulls() throws {
    let frames = try decode("SEND\ncontent-length:3\n\na\0b\0SEND\ncontent-length:0\n\n\0SEND\n\nc\0")
    #expect(frames.map { Array($0.body.readableBytesView) } == [[97, 0, 98], [], [99]])
  }

  @Test("stomp.md 8: content length is honoured on every command", arguments: FrameCommand.allCases)
  func contentLengthIsHonouredOnEveryCommand(command: FrameCommand) throws {
    let frames = try decode("\(command.rawValue)\ncontent-length:4\n\n\0\nA\0\0SEND\n\n\0")
    #expect(frames.map(\.command) == [command, .send] && frames.first?.body.readableBytes == 4)
  }

  @Test("stomp.md 7: content length must end at a null") func contentLengthMustEndAtANull() {
    #expect(error("SEND\nreceipt:7\ncontent-length:2\n\nabc\0") == .bodyNotTerminated)
    #expect(throws: FrameError(.bodyNotTerminated, receipt: "7")) {
      try decode("SEND\nreceipt:7\ncontent-length:2\n\nabc\0")
    }
  }

  @Test(
    "stomp.md 10: content length must be a number",
    arguments: ["-1", "+1", "0x1", "1 ", "", "1.0", "99999999999999999999999"])
  func contentLengthMustBeANumber(value: String) {
    #expect(error("SEND\ncontent-length:\(value)\n\na\0") == .badContentLength)
  }

  @Test("stomp.md 10: announced length over the limit is refused before the body")
  func announcedLengthOverTheLimitIsRefusedBeforeTheBody() {
    #expect(error("SEND\ncontent-length:1048577\n\n") == .bodyTooLong)
    #expect(error("SEND\ncontent-length:1048576\n\n") == nil)
  }

  @Test("stomp.md 11: header lines need a colon and a name") func headerLinesNeedAColonAndAName() throws {
    #expect(error("SEND\nabc\n\n\0") == .noColon)
    #expect(error("SEND\n:abc\n\n\0") == .emptyHeaderName)
    #expect(try decode("SEND\nabc:\n\n\0").first?.headers["abc"] == "")
  }

  @Test("stomp.md 12: the first colon splits", arguments: Version.allCases)
  func theFirstColonSplits(version: Version) throws {
    #expect(try decode("SEND\na:b:c:d\n\n\0", version: version).first?.headers["a"] == "b:c:d")
  }

  @Test("stomp.md 20: the first of repeated headers wins") func theFirstOfRepeatedHeadersWins() throws {
    let text = "SEND\ndestination:/a\ncontent-length:1\nreceipt:r\ndestination:/b\ncontent-length:9\nreceipt:s\n\nx\0"
    #expect(try decode(text).first?.headers.fields.map(\.value) == ["/a", "1", "r"])
  }

  @Test func nullInTheHeadersIsRefusedAtOnce() {
    #expect(error("CONNECT\0") == .nullInHead)
    #expect(error("SEND\na:b\0") == .nullInHead)
  }

  @Test("stomp.md 83: tls on the plain port is named") func tlsOnThePlainPortIsNamed() {
    #expect(throws: FrameError(.tls)) { try decode([0x16, 0x03, 0x01]) }
  }

  private var small: FrameLimits {
    var limits = FrameLimits()
    (limits.headerLine, limits.head, limits.headers, limits.body) = (100, 300, 4, 50)
    return limits
  }

  @Test("stomp.md 72: each limit holds to the octet") func eachLimitHoldsToTheOctet() {
    let value = String(repeating: "x", count: 98)
    #expect(error(String(repeating: "A", count: 32) + "\n") == .unknownCommand)
    #expect(error(String(repeating: "A", count: 33) + "\n") == .commandTooLong)
    for end in ["\n", "\r\n"] { #expect(error("SEND\na:\(value)\(end)\n\0", limits: small) == nil) }
    #expect(error("SEND\na:\(value)x\n\n\0", limits: small) == .headerLineTooLong)
    #expect(error("SEND\n" + String(repeating: "a:1\n", count: 4) + "\n\0", limits: small) == nil)
    #expect(error("SEND\n" + String(repeating: "a:1\n", count: 5) + "\n\0", limits: small) == .tooManyHeaders)
    #expect(error("SEND\n" + String(repeating: "a:\(value)\n", count: 3) + "\n\0", limits: small) == nil)
    #expect(error("SEND\n" + String(repeating: "a:\(value)\n", count: 3) + "a:\n\n\0", limits: small) == .headTooLong)
    #expect(error("SEND\n\n" + String(repeating: "x", count: 50) + "\0", limits: small) == nil)
    #expect(error("SEND\n\n" + String(repeating: "x", count: 51) + "\0", limits: small) == .bodyTooLong)
  }

  @Test("stomp.md 74: limits hold before a line or body is complete") func limitsHoldBeforeALineOrBodyIsComplete() {
    #expect(error(String(repeating: "A", count: 34)) == .commandTooLong)
    #expect(error("SEND\n" + String(repeating: "x", count: 102), limits: small) == .headerLineTooLong)
    #expect(error("SEND\n" + String(repeating: "a:1\n", count: 5), limits: small) == .tooManyHeaders)
    #expect(error("SEND\n\n" + String(repeating: "x", count: 51), limits: small) == .bodyTooLong)
  }

  @Test func aDecoderThatFailedStaysSilent() throws {
    var decoder = FrameDecoder()
    var bytes = ByteBuffer(string: "NO\n\n\0")
    decoder.append(&bytes)
    #expect(throws: FrameError.self) { try decoder.next() }
    bytes = ByteBuffer(string: "SEND\n\n\0")
    decoder.append(&bytes)
    #expect(try decoder.next() == nil)
    #expect(bytes.readableBytes == 0 && decoder.bufferedBytes == 0)
  }

  @Test("stomp.md 74: a body in one byte packets costs linear time")
  func aBodyInOneBytePacketsCostsLinearTime() throws {
    var decoder = FrameDecoder()
    var head = ByteBuffer(string: "SEND\n\n")
    decoder.append(&head)
    let letter = ByteBuffer(bytes: [0x61])
    for _ in 0..<300_000 {
      var byte = letter
      decoder.append(&byte)
      guard try decoder.next() == nil else { throw CancellationError() }
    }
    var end = ByteBuffer(bytes: [0])
    decoder.append(&end)
    #expect(try decoder.next()?.body.readableBytes == 300_000)
  }

  @Test func anIdleDecoderHoldsNoBuffer() throws {
    var decoder = FrameDecoder()
    var bytes = ByteBuffer(string: "SEND\n\nabc\0")
    decoder.append(&bytes)
    _ = try decoder.next()
    #expect(decoder.bufferedBytes == 0)
  }
}
