import LinuxIO
import MediaModel
import NIOCore
import Synchronization
import Testing

@testable import ConclaveServer
@testable import OutboundHTTP

@Suite(.timeLimit(.minutes(5))) struct HTTPClientTests {
  private func request(
    _ url: String, body: [UInt8]? = nil, headers: [(name: String, value: String)] = [],
    timeout: Duration = .seconds(60),
    maximumBody: Int = 1_000, connection: HTTPClient.Request.Connection = .shared
  ) -> HTTPClient.Request {
    HTTPClient.Request(
      url: url, body: body, headers: headers, timeout: timeout, maximumBody: maximumBody, connection: connection)
  }

  private func failure(_ client: HTTPClient, _ request: HTTPClient.Request) async -> HTTPClient.Failure? {
    do {
      _ = try await client.send(request)
      return nil
    } catch {
      return error
    }
  }

  private func isUnreachable(_ failure: HTTPClient.Failure?) -> Bool {
    if case .unreachable = failure { true } else { false }
  }

  // MARK: messages

  @Test func arrivesAsGivenAndTheAnswerComesWhole() async throws {
    let server = try await BackEndServer { _, _ in .init(status: 503, body: "later", retryAfter: "7") }
    let client = try HTTPClient()
    let content: [UInt8] = [0] + Array("\r\n\u{e9}".utf8) + [0, 255]
    let posted = try await client.send(
      request(server.url, body: content, headers: [("content-type", "application/x-test"), ("topic", "a: b")]))
    #expect(posted.status == 503 && posted.body == Array("later".utf8) && posted.retryAfter == 7)
    _ = try await client.send(request(server.url + "/../a?b=%20", headers: [("accept", "text/plain")]))
    _ = try await client.send(request(server.url, body: []))
    #expect(server.received.map(\.path) == ["/hook", "/hook/../a?b=%20", "/hook"])
    #expect(server.received.map(\.body) == [content, [], []])
    #expect(server.received[0].headers["content-type"] == "application/x-test")
    #expect(server.received[0].headers["topic"] == "a: b" && server.received[1].headers["accept"] == "text/plain")
    #expect(server.received[2].headers["content-length"] == "0")
    client.stop()
    await server.stop()
  }

  @Test func aLargeBodyIsSentWithoutAQuestion() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let client = try HTTPClient()
    let content = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) }
    #expect(try await client.send(request(server.url, body: content)).status == 200)
    #expect(server.received.first?.body == content && server.received.first?.headers["expect"] == nil)
    client.stop()
    await server.stop()
  }

  @Test func anAnswerLongerThanItsBoundIsAFailureThatEndsTheConnection() async throws {
    let server = try await BackEndServer { number, _ in
      .init(body: String(repeating: "x", count: number == 0 ? 1_000 : 1_001))
    }
    let client = try HTTPClient()
    #expect(try await client.send(request(server.url)).body.count == 1_000)
    #expect(await failure(client, request(server.url)) == .tooLong(1_000))
    #expect(await eventually { server.connections == 0 })
    client.stop()
    await server.stop()
  }

  @Test func aLineBreakInAHeaderSendsNothing() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let client = try HTTPClient()
    for value in ["a\r\nhost: b", "a\nb", "a\u{0}"] {
      #expect(isUnreachable(await failure(client, request(server.url, headers: [("x", value)]))))
    }
    #expect(server.accepted == 0)
    client.stop()
    await server.stop()
  }

  @Test(arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "no URL", "", "http://[::1"])
  func onlyURLsOfHTTPAreRequested(url: String) async throws {
    let client = try HTTPClient()
    #expect(isUnreachable(await failure(client, request(url))))
    client.stop()
  }

  @Test func aRedirectIsAnAnswer() async throws {
    let target = try await BackEndServer { _, _ in .init() }
    let location = target.url
    let server = try await BackEndServer { _, _ in .init(status: 302, location: location) }
    let client = try HTTPClient()
    #expect(try await client.send(request(server.url)).status == 302)
    #expect(target.accepted == 0)
    client.stop()
    await server.stop()
    await target.stop()
  }

  // MARK: time

  @Test func theTimeLimitIsForTheWholeBody() async throws {
    let server = try await BackEndServer { _, _ in
      .init(body: String(repeating: " ", count: 1_000), drip: .milliseconds(50))
    }
    let client = try HTTPClient()
    let began = ContinuousClock.now
    #expect(await failure(client, request(server.url, timeout: .milliseconds(300))) == .timeout)
    let took = ContinuousClock.now - began
    #expect(took >= .milliseconds(300) && took < .seconds(40), "the answer would take 50 s")
    #expect(await eventually { server.connections == 0 })
    client.stop()
    await server.stop()
  }

  @Test func theTimeLimitHoldsWhileARequestWaitsForAConnection() async throws {
    let server = try await BackEndServer { _, _ in .init(delay: .minutes(10)) }
    let client = try HTTPClient(hostConnections: 1)
    let (first, second) = (request(server.url), request(server.url, timeout: .milliseconds(200)))
    async let slow = failure(client, first)
    #expect(await eventually { server.received.count == 1 })
    #expect(await failure(client, second) == .timeout)
    #expect(server.accepted == 1)
    client.stop()
    #expect(await slow == .stopped)
    await server.stop()
  }

  @Test func aHeadIsEnoughWhereNoBodyIsWanted() async throws {
    let server = try await BackEndServer { _, _ in
      .init(body: String(repeating: " ", count: 10_000), drip: .milliseconds(50))
    }
    let client = try HTTPClient()
    let response = try await client.send(request(server.url, maximumBody: 0))
    #expect(response.status == 200 && response.body.isEmpty)
    #expect(await eventually { server.connections == 0 }, "the rest is not read")
    client.stop()
    await server.stop()
  }

  // MARK: connections

  @Test(arguments: [0, 1_000]) func aConnectionIsReused(maximumBody: Int) async throws {
    let server = try await BackEndServer { _, _ in .init(body: "{}") }
    let client = try HTTPClient()
    for _ in 0..<5 { _ = try await client.send(request(server.url, maximumBody: maximumBody)) }
    #expect(server.received.count == 5 && server.accepted == 1)
    client.stop()
    #expect(await eventually { server.connections == 0 })
    await server.stop()
  }

  @Test func anIdleConnectionThatTheOtherSideClosedIsReplaced() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let client = try HTTPClient()
    for round in 1...3 {
      #expect(try await client.send(request(server.url, body: [1])).status == 200)
      #expect(server.accepted == round)
      server.closeConnections()
      #expect(await eventually { server.connections == 0 })
    }
    client.stop()
    await server.stop()
  }

  /// The other side closes it at the moment at which the request arrives.
  @Test func aRequestOnAReusedConnectionThatEndsIsSentAgain() async throws {
    let server = try await BackEndServer { number, _ in .init(hangsUp: number == 1) }
    let client = try HTTPClient()
    for content in [1, 2] as [UInt8] {
      #expect(try await client.send(request(server.url, body: [content])).status == 200)
    }
    #expect(server.received.map(\.body) == [[1], [2], [2]] && server.accepted == 2)
    client.stop()
    await server.stop()
  }

  @Test func aNewConnectionThatEndsWithoutAnAnswerIsAFailure() async throws {
    let server = try await BackEndServer { _, _ in .init(hangsUp: true) }
    let client = try HTTPClient()
    #expect(isUnreachable(await failure(client, request(server.url, body: [1]))))
    #expect(server.received.count == 1)
    client.stop()
    await server.stop()
  }

  @Test func connectionsToAHostAreBounded() async throws {
    let most = Mutex(0)
    let running = SetOnce<BackEndServer>()
    let server = try await BackEndServer { _, _ in
      most.withLock { $0 = max($0, running.value?.connections ?? 0) }
      return .init(delay: .milliseconds(20))
    }
    running.set(server)
    let client = try HTTPClient(hostConnections: 3)
    let url = server.url
    let statuses = await withTaskGroup(of: Int?.self) { group in
      for _ in 0..<30 {
        group.addTask {
          try? await client.send(HTTPClient.Request(url: url, timeout: .seconds(60), maximumBody: 10)).status
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.count == 30 && statuses.allSatisfy { $0 == 200 })
    #expect(most.withLock { $0 } == 3)
    client.stop()
    await server.stop()
  }

  @Test func aRequestOfItsOwnConnectionSharesItWithNobody() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let client = try HTTPClient()
    for connection in [.shared, .own { _ in true }, .own { _ in true }, .shared] as [HTTPClient.Request.Connection] {
      _ = try await client.send(request(server.url, connection: connection))
    }
    #expect(server.accepted == 3)
    #expect(server.received.map { $0.headers["connection"] } == [nil, "close", "close", nil])
    client.stop()
    await server.stop()
  }

  @Test func aConnectionGoesOnlyToAnAddressThatIsAllowed() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let client = try HTTPClient()
    let asked = Mutex<[MediaModel.SocketAddress]>([])
    let refusing = HTTPClient.Request.Connection.own { address in
      asked.withLock { $0.append(address) }
      return false
    }
    #expect(await failure(client, request(server.url, connection: refusing)) == .address)
    #expect(asked.withLock { $0 } == [MediaModel.SocketAddress(ipv4: 0x7f00_0001, port: UInt16(server.port))])
    let six = "http://[2001:db8::1]:\(server.port)/"
    #expect(await failure(client, request(six, connection: refusing)) == .address)
    let last = asked.withLock { $0.last }
    #expect(last == MediaModel.SocketAddress(high: 0x2001_0db8_0000_0000, low: 1, port: UInt16(server.port)))
    #expect(server.accepted == 0)
    #expect(try await client.send(request(server.url, connection: .own { $0.isLoopback })).status == 200)
    client.stop()
    await server.stop()
  }

  @Test func nothingListensThere() async throws {
    let client = try HTTPClient()
    #expect(isUnreachable(await failure(client, request("http://127.0.0.1:1/"))))
    #expect(isUnreachable(await failure(client, request("http://127.0.0.1:1/", connection: .own { _ in true }))))
    client.stop()
  }

  // MARK: certificates

  @Test func onlyACertificateOfATrustedAuthorityIsAccepted() async throws {
    let server = try await BackEndServer(certificate: "test") { _, _ in .init() }
    for trust in [nil, BackEndServer.file("other-certificate")] {
      let client = try HTTPClient(trust: trust)
      #expect(isUnreachable(await failure(client, request(server.url))))
      client.stop()
    }
    #expect(server.received.isEmpty)
    let client = try HTTPClient(trust: BackEndServer.file("test-certificate"))
    for connection in [.shared, .shared, .own { _ in true }] as [HTTPClient.Request.Connection] {
      #expect(try await client.send(request(server.url, body: [7], connection: connection)).status == 200)
    }
    #expect(server.received.map(\.body) == [[7], [7], [7]])
    client.stop()
    await server.stop()
  }

  @Test func aCertificateIsForItsHost() async throws {
    let server = try await BackEndServer(certificate: "test") { _, _ in .init() }
    let client = try HTTPClient(trust: BackEndServer.file("test-certificate"))
    let another = "https://127.0.0.2:\(server.port)/"
    #expect(isUnreachable(await failure(client, request(another))))
    #expect(server.received.isEmpty)
    client.stop()
    await server.stop()
  }

  @Test func theSystemsAuthoritiesStayTrustedBesideTheAdditionalOnes() {
    #expect(String(decoding: Transfer.systemAuthorities, as: UTF8.self).contains("-----BEGIN CERTIFICATE-----"))
  }

  @Test func aFileOfAuthoritiesThatIsNotThereIsTold() {
    let error = #expect(throws: SystemError.self) { try HTTPClient(trust: "/no/trust.pem") }
    #expect(error?.description.contains("/no/trust.pem") == true)
  }

  // MARK: ends

  @Test func aCancelledTaskEndsItsRequest() async throws {
    let server = try await BackEndServer { _, _ in .init(delay: .minutes(10)) }
    let client = try HTTPClient()
    let request = request(server.url)
    let task = Task { await failure(client, request) }
    #expect(await eventually { server.received.count == 1 })
    task.cancel()
    #expect(await task.value == .cancelled)
    #expect(await eventually { server.connections == 0 })
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure(client, request)
    }
    #expect(await late.value == .cancelled)
    #expect(server.received.count == 1)
    client.stop()
    await server.stop()
  }

  @Test func aClientThatStopsEndsItsRequests() async throws {
    let server = try await BackEndServer { _, _ in .init(delay: .minutes(10)) }
    let client = try HTTPClient(hostConnections: 4)
    let url = server.url
    let failures = await withTaskGroup(of: HTTPClient.Failure?.self) { group in
      for _ in 0..<10 { group.addTask { await failure(client, request(url)) } }
      #expect(await eventually { server.received.count == 4 })
      client.stop()
      client.stop()
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(failures.count == 10 && failures.allSatisfy { $0 == .stopped })
    #expect(await failure(client, request(url)) == .stopped)
    #expect(await eventually { server.connections == 0 })
    await server.stop()
  }

  @Test func aClientThatIsGoneKeepsNoConnection() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    var client: HTTPClient? = try HTTPClient()
    #expect(try await client?.send(request(server.url)).status == 200)
    #expect(server.connections == 1)
    client = nil
    #expect(await eventually { server.connections == 0 })
    await server.stop()
  }

  @Test func theQueueIsBounded() throws {
    let queue = try ExchangeQueue(limit: 2)
    let exchanges = (0..<3).map { _ in Exchange(request("http://x/"), deadline: Instant(nanoseconds: 0)) }
    try queue.add(exchanges[0])
    try queue.add(exchanges[1])
    #expect(throws: HTTPClient.Failure.full) { try queue.add(exchanges[2]) }
    #expect(queue.take().added.count == 2)
    #expect(throws: HTTPClient.Failure.full) { try queue.add(exchanges[2]) }
    queue.left()
    try queue.add(exchanges[2])
    queue.stop()
    queue.left()
    #expect(throws: HTTPClient.Failure.stopped) { try queue.add(exchanges[2]) }
    #expect(queue.take().added.count == 1 && queue.take().isStopped)
  }
}
