import NIOCore
import NIOEmbedded
import Testing

@testable import Listening

/// Bodies that a route receives part by part.
@Suite(.timeLimit(.minutes(5))) struct HTTPBodyTests {
  private let chunk = ByteBuffer(repeating: 7, count: 64 << 10)

  private func put(_ headers: String) -> String { "PUT /up HTTP/1.1\r\nHost: h\r\n\(headers)\r\n" }

  @Test func aLargeBodyIsHandedOverInPartsAndReadingPausesWhileTheRouteIsSlow() async throws {
    let taken = Box<[Int]>([])
    let gate = Gate()
    let route = Route(.exactly(["/up"]), methods: ["PUT"], maximumBody: 1 << 20) { request, body in
      do {
        for try await part in body {
          taken.change { $0.append(part.readableBytes) }
          await gate.pass()
        }
      } catch {
        return HTTPResponse(status: 500)
      }
      return HTTPResponse(status: 201, text: "\(request.method) \(request.body.readableBytes)")
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Content-Length: \(1 << 20)\r\n"))
    try await client.send(chunk)
    try await client.until { taken.value == [64 << 10] }
    // The route is busy with the first part. No more is read than fits into the window.
    for _ in 0..<HTTPBody.window / (64 << 10) {
      try await client.askForBytes()
      try await client.send(chunk)
    }
    let reads = client.network.reads
    #expect(reads == HTTPBody.window / (64 << 10))
    try await client.askForBytes()
    #expect(client.network.reads == reads)
    // Everything that waited is the next part, and reading continues.
    gate.open()
    try await client.until { taken.value == [64 << 10, HTTPBody.window] }
    try await client.until { client.network.reads == reads + 1 }
    for _ in 0..<16 - 1 - HTTPBody.window / (64 << 10) { try await client.send(chunk) }
    let answer = try await client.output { $0.hasSuffix("PUT 0") }
    #expect(answer.hasPrefix("HTTP/1.1 201 ") && answer.contains("\r\nconnection: keep-alive\r\n"))
    #expect(taken.value.reduce(0, +) == 1 << 20)
    // The connection serves the next request.
    try await client.send("GET /page HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try await client.output { $0.hasSuffix("/page") }.hasPrefix("HTTP/1.1 200 "))
  }

  /// The limit is the route's own; that of other routes is smaller.
  @Test func aBodyOverTheBoundIsRefusedAndTheConnectionCloses() async throws {
    let errors = Box<[HTTPBodyError]>([])
    let route = Route(.under("/up"), methods: ["PUT"], maximumBody: 100 << 10) { _, body in
      do {
        for try await _ in body {}
      } catch {
        errors.change { if let error = error as? HTTPBodyError { $0.append(error) } }
      }
      return HTTPResponse()
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Transfer-Encoding: chunked\r\n"))
    for _ in 0..<2 {
      try await client.send("10000\r\n")
      try await client.send(chunk)
      // The second one closes the connection.
      try? await client.send("\r\n")
    }
    let answer = try await client.output { $0.hasPrefix("HTTP/1.1 413 ") }
    #expect(answer.contains("\r\nconnection: close\r\n"))
    try await client.until { !client.channel.isActive }
    try await client.until { errors.value == [.tooLarge] }
    // If the head announces too long a body, the body need not be sent.
    let other = try await HTTPConnection([route])
    try await other.send(put("Content-Length: \(100 << 10 + 1)\r\n"))
    #expect(try await other.output { !$0.isEmpty }.hasPrefix("HTTP/1.1 413 "))
    try await other.until { !other.channel.isActive }
    #expect(errors.value == [.tooLarge], "the route was not called")
  }

  @Test func aClientThatGoesAwayEndsTheBody() async throws {
    let errors = Box<[HTTPBodyError]>([])
    let wasCancelled = Box(false)
    let parts = Box(0)
    let route = Route(.all, methods: ["PUT"], maximumBody: 1 << 20) { _, body in
      do {
        for try await _ in body { parts.change { $0 += 1 } }
      } catch {
        errors.change { if let error = error as? HTTPBodyError { $0.append(error) } }
      }
      try? await Task.sleep(for: .seconds(3_600))
      wasCancelled.change { $0 = Task.isCancelled }
      return HTTPResponse()
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Content-Length: 1000000\r\n"))
    try await client.send(chunk)
    try await client.until { parts.value == 1 }
    try await client.close()
    try await client.until { errors.value == [.clientGone] && wasCancelled.value }
  }

  @Test func aClientIsToldToContinueWhenTheRouteWantsTheBody() async throws {
    let gate = Gate()
    let route = Route(.all, methods: ["PUT"], maximumBody: 1 << 20) { request, body in
      guard request.path == "/up" else { return HTTPResponse(status: 403) }
      await gate.pass()
      var count = 0
      do { for try await part in body { count += part.readableBytes } } catch { return HTTPResponse(status: 500) }
      return HTTPResponse(text: "\(count) bytes")
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Expect: 100-continue\r\nContent-Length: 5\r\n"))
    // The client's time limit does not run while it waits for the server.
    await client.loop.advanceTime(by: .seconds(60))
    #expect(client.channel.isActive)
    #expect(try await client.hasWritten() == false)
    gate.open()
    #expect(try await client.output { !$0.isEmpty } == "HTTP/1.1 100 Continue\r\n\r\n")
    try await client.send("hello")
    #expect(try await client.output { $0.hasSuffix("5 bytes") }.hasPrefix("HTTP/1.1 200 "))
    // A refused body is not requested with 100 Continue. The client may still send it, so the connection ends.
    try await client.send("PUT /other HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    let answer = try await client.output { !$0.isEmpty }
    #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("\r\nconnection: close\r\n"))
    for (expectation, length, status) in [("tea", 5, 417), ("100-continue", 1 << 21, 413)] {
      let other = try await HTTPConnection([route])
      try await other.send(put("Expect: \(expectation)\r\nContent-Length: \(length)\r\n"))
      #expect(try await other.output { !$0.isEmpty }.hasPrefix("HTTP/1.1 \(status) "))
    }
  }

  /// A large body may take longer than other requests, as long as it progresses.
  @Test(arguments: [true, false]) func aClientThatSendsTooLittleIsDisconnected(sendsBytes: Bool) async throws {
    let route = Route(.all, methods: ["PUT"], maximumBody: 1 << 20) { _, body in
      do { for try await _ in body {} } catch { return HTTPResponse(status: 500) }
      return HTTPResponse()
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Content-Length: 1000000\r\n"))
    for _ in 0..<5 {
      await client.loop.advanceTime(by: .seconds(10))
      try await client.send(ByteBuffer(repeating: 7, count: 16 << 10))
    }
    #expect(client.channel.isActive)
    await client.loop.advanceTime(by: .seconds(10))
    if sendsBytes { try await client.send("a") }
    await client.loop.advanceTime(by: .seconds(6))
    #expect(!client.channel.isActive)
  }

  @Test func anAnswerBeforeTheEndOfTheBodyClosesTheConnection() async throws {
    let route = Route(.all, methods: ["PUT"], maximumBody: 1 << 20) { _, _ in HTTPResponse(status: 409, text: "next") }
    let client = try await HTTPConnection([route])
    try await client.send(put("Content-Length: 1000000\r\n"))
    let answer = try await client.output { $0.hasSuffix("next") }
    #expect(answer.hasPrefix("HTTP/1.1 409 ") && answer.contains("\r\nconnection: close\r\n"))
    try await client.until { !client.channel.isActive }
  }

  @Test func aRouteTakesItsOwnMethods() async throws {
    let route = Route(.under("/up"), methods: ["PUT", "GET"], maximumBody: 1 << 20) { request, body in
      do { for try await _ in body {} } catch { return HTTPResponse(status: 500) }
      return HTTPResponse(text: request.method)
    }
    let client = try await HTTPConnection([route])
    try await client.send("GET /up/1?x=y HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try await client.output { $0.hasSuffix("GET") }.contains("\r\nconnection: keep-alive\r\n"))
    try await client.send("POST /up/1 HTTP/1.1\r\nHost: h\r\n\r\n")
    let answer = try await client.output { !$0.isEmpty }
    #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("\r\nallow: PUT, GET\r\n"))
    // Another path belongs to another route.
    let other = try await HTTPConnection([route])
    try await other.send("PUT /page HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try await other.output { !$0.isEmpty }.contains("\r\nallow: GET, HEAD, POST, OPTIONS\r\n"))
  }

  @Test func aBodyThatIsNotHTTPEndsTheRequest() async throws {
    let errors = Box<[HTTPBodyError]>([])
    let route = Route(.all, methods: ["PUT"], maximumBody: 1 << 20) { _, body in
      do {
        for try await _ in body {}
      } catch {
        errors.change { if let error = error as? HTTPBodyError { $0.append(error) } }
      }
      return HTTPResponse()
    }
    let client = try await HTTPConnection([route])
    try await client.send(put("Transfer-Encoding: chunked\r\n"))
    try? await client.send("no number\r\n")
    #expect(try await client.output { !$0.isEmpty }.hasPrefix("HTTP/1.1 400 "))
    try await client.until { errors.value == [.unreadable] }
  }
}
