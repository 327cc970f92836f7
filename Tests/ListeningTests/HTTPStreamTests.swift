import NIOCore
import NIOEmbedded
import Testing

@testable import Listening

/// Answers that are written part by part.
@Suite(.timeLimit(.minutes(5))) struct HTTPStreamTests {
  private let part = ByteBuffer(repeating: 97, count: HTTPBodyWriter.part)

  private func get(_ version: String = "1.1", method: String = "GET") -> String {
    "\(method) /down HTTP/\(version)\r\nHost: h\r\n\(version == "1.0" ? "Connection: keep-alive\r\n" : "")\r\n"
  }

  /// A buffered route may also answer with a stream.
  private func route(length: Int?, _ write: @escaping @Sendable (HTTPBodyWriter) async throws -> Void) -> Route {
    Route(.exactly(["/down"])) { _ in
      HTTPResponse(headers: [("content-type", "video/x")], stream: HTTPStream(length: length, write: write))
    }
  }

  @Test func aStreamWaitsForASlowReader() async throws {
    let written = Box(0)
    let part = part
    let client = try await HTTPConnection([
      route(length: 4 * HTTPBodyWriter.part) { writer in
        for _ in 0..<2 {
          var two = part
          two.writeImmutableBuffer(part)
          try await writer.write(two)
          written.change { $0 += 1 }
        }
      }
    ])
    client.network.holdsWrites = true
    try await client.send(get())
    // The route writes two parts at once, and only one is in flight.
    for count in 0..<4 {
      try await client.until { client.network.held == 1 }
      #expect(written.value == count / 2)
      if count == 3 { client.network.holdsWrites = false }
      client.network.release()
    }
    let answer = try await client.output { $0.utf8.count > 4 * HTTPBodyWriter.part }
    #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("\r\nconnection: keep-alive\r\n"))
    #expect(answer.contains("\r\ncontent-length: \(4 * HTTPBodyWriter.part)\r\n"))
    #expect(answer.hasSuffix(String(repeating: "a", count: 4 * HTTPBodyWriter.part)))
    try await client.send("GET /page HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try await client.output { $0.hasSuffix("/page") }.hasPrefix("HTTP/1.1 200 "))
  }

  /// The client's time limit runs while a part waits for the client, but not while the route makes the next one.
  @Test func aReaderThatStopsIsDisconnectedAndASlowRouteIsNot() async throws {
    let gate = Gate()
    let ended = Box<[String]>([])
    let part = part
    let client = try await HTTPConnection([
      route(length: nil) { writer in
        await gate.pass()
        do { try await writer.write(part) } catch { ended.change { $0.append("\(error)") } }
        try? await Task.sleep(for: .seconds(3_600))
        ended.change { $0.append(Task.isCancelled ? "cancelled" : "late") }
      }
    ])
    try await client.send(get())
    _ = try await client.output { $0.hasSuffix("\r\n\r\n") }
    await client.loop.advanceTime(by: .seconds(60))
    #expect(client.channel.isActive)
    client.network.holdsWrites = true
    gate.open()
    try await client.until { client.network.held > 0 }
    await client.loop.advanceTime(by: .seconds(16))
    #expect(!client.channel.isActive)
    client.network.release(ChannelError.ioOnClosedChannel)
    try await client.until { ended.value.count == 2 }
    #expect(ended.value.last == "cancelled")
  }

  @Test func aClientThatGoesAwayEndsTheStream() async throws {
    let gate = Gate()
    let errors = Box<[any Error]>([])
    let part = part
    let client = try await HTTPConnection([
      route(length: nil) { writer in
        do {
          try await writer.write(part)
          await gate.pass()
          try await writer.write(part)
        } catch {
          errors.change { $0.append(error) }
        }
      }
    ])
    try await client.send(get())
    _ = try await client.output { $0.hasSuffix("a\r\n") }
    try await client.close()
    gate.open()
    try await client.until { errors.value.count == 1 }
  }

  @Test func aStreamOfUnknownLengthIsChunked() async throws {
    let client = try await HTTPConnection([
      route(length: nil) { writer in for text in ["one", "three"] { try await writer.write(ByteBuffer(string: text)) } }
    ])
    try await client.send(get())
    let answer = try await client.output { $0.hasSuffix("0\r\n\r\n") }
    #expect(answer.contains("\r\ntransfer-encoding: chunked\r\n") && !answer.contains("content-length"))
    #expect(
      answer.contains("\r\nconnection: keep-alive\r\n") && answer.hasSuffix("3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"))
    // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
    try await client.send(get("1.0"))
    let old = try await client.output { $0.hasSuffix("three") }
    #expect(!old.contains("transfer-encoding") && old.contains("\r\nconnection: close\r\n"))
    #expect(old.hasSuffix("\r\n\r\nonethree"))
    try await client.until { !client.channel.isActive }
  }

  @Test func anAnswerToHEADHasNoBody() async throws {
    let calls = Box(0)
    for length in [5, nil] {
      let client = try await HTTPConnection([
        route(length: length) { writer in
          calls.change { $0 += 1 }
          try await writer.write(ByteBuffer(string: "12345"))
        }
      ])
      try await client.send(get(method: "HEAD"))
      let answer = try await client.output { !$0.isEmpty }
      #expect(answer.hasSuffix("\r\n\r\n") && !answer.contains("12345"))
      #expect(answer.contains("\r\ncontent-length: 5\r\n") == (length != nil))
      #expect(answer.contains("\r\nconnection: keep-alive\r\n") == (length != nil))
    }
    #expect(calls.value == 0)
  }

  /// The client must not mistake a part for the whole.
  @Test(arguments: [false, true]) func aStreamThatFailsClosesTheConnection(isShort: Bool) async throws {
    let client = try await HTTPConnection([
      route(length: isShort ? 10 : nil) { writer in
        try await writer.write(ByteBuffer(string: "12345"))
        if !isShort { throw HTTPStreamError.clientGone }
      }
    ])
    try await client.send(get())
    try await client.until { !client.channel.isActive }
    #expect(try await client.output { $0.contains("12345") }.contains("\r\n0\r\n\r\n") == false)
  }

  @Test func moreThanWasPromisedIsNotSent() async throws {
    let errors = Box<[any Error]>([])
    let client = try await HTTPConnection([
      route(length: 5) { writer in
        do { try await writer.write(ByteBuffer(string: "123456")) } catch { errors.change { $0.append(error) } }
      }
    ])
    try await client.send(get())
    try await client.until { !client.channel.isActive }
    #expect(errors.value.first as? HTTPStreamError == .tooLong)
    #expect(try await client.output { !$0.isEmpty }.hasSuffix("\r\n\r\n"))
  }
}
