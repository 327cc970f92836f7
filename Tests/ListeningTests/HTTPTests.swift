import Foundation
import Listening
import NIOCore
import Testing
import WireClients

/// The HTTP routes next to the WebSocket.
@Suite(.timeLimit(.minutes(5))) struct HTTPTests {
  private func get(_ path: String, _ headers: String = "", method: String = "GET") -> String {
    "\(method) \(path) HTTP/1.1\r\nHost: h\r\n\(headers)\r\n"
  }

  @Test func oneConnectionServesManyRequests() async throws {
    try await withServer(pages: { HTTPResponse(text: "\($0.method) \($0.path) \($0.query ?? "-")") }) { server in
      let client = try await TestClient.open(port: server.httpPort)
      try await client.send(get("/a?b=c") + get("/d", method: "HEAD") + get("/e", "Connection: close\r\n"))
      let text = await client.rest()
      #expect(text.contains("content-length: 10\r\n") && text.contains("\r\n\r\nGET /a b=cHTTP/1.1 200 OK"))
      #expect(text.contains("content-length: 8\r\nconnection: keep-alive\r\n\r\nHTTP/1.1 200 OK"))
      #expect(text.hasSuffix("connection: close\r\n\r\nGET /e -"))
      #expect(server.statistics.httpRequests == 3)
    }
  }

  @Test func smallBodiesAreTakenAndLargeOnesRefused() async throws {
    try await withServer(pages: {
      HTTPResponse(status: 201, text: "\($0.body.readableBytes) \($0[header: "X-A"] ?? "")")
    }) {
      server in
      let client = try await TestClient.open(port: server.httpPort)
      let body = String(repeating: "x", count: 16 << 10)
      try await client.send(get("/demo/token", "x-a: b\r\nContent-Length: 16384\r\n", method: "POST") + body)
      let answer = await client.bytes { String(buffer: $0).hasSuffix("16384 b") }
      #expect(String(buffer: answer).hasPrefix("HTTP/1.1 201 "))
      let other = try await TestClient.open(port: server.httpPort)
      try await other.send(
        get("/demo/token", "Transfer-Encoding: chunked\r\n", method: "POST")
          + String(repeating: "4000\r\n\(body)\r\n", count: 100) + "0\r\n\r\n")
      #expect(await other.rest().hasPrefix("HTTP/1.1 413 "))
      #expect(!other.wasReset)
    }
  }

  /// RFC 9112 section 3.2.2: servers must accept the form that clients send to proxies.
  @Test func aTargetInAbsoluteFormIsItsPath() async throws {
    try await withServer(pages: { HTTPResponse(text: "\($0.path) \($0.query ?? "-") \($0[header: "host"] ?? "")") }) {
      server in
      for (target, answer) in [
        ("http://a.example/b?c=d", "/b c=d a.example"), ("HTTPS://a.example:8443", "/ - a.example:8443"),
        ("http://a.example?c", "/ c a.example"),
      ] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(get(target, "Connection: close\r\n"))
        #expect(await client.rest().hasSuffix("\r\n\r\n" + answer), "\(target)")
      }
      let socket = try await TestClient.open(port: server.httpPort)
      try await socket.send(
        get(
          "http://h/stomp",
          "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
      let answer = await socket.bytes { String(buffer: $0).contains("\r\n\r\n") }
      #expect(String(buffer: answer).hasPrefix("HTTP/1.1 101 "))
      // A valid target does not replace a valid Host.
      for request in ["GET http://h/ HTTP/1.1\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(request)
        #expect(await client.rest().hasPrefix("HTTP/1.1 400 "))
      }
    }
  }

  /// RFC 9110 section 10.1.1: a waiting client is answered at once.
  @Test func aClientThatWaitsWithItsBodyIsTold() async throws {
    try await withServer(pages: { HTTPResponse(text: "\($0.body.readableBytes) bytes") }) { server in
      let client = try await TestClient.open(port: server.httpPort)
      let head = get("/", "Expect: 100-continue\r\nContent-Length: 5\r\n", method: "POST")
      let told = "HTTP/1.1 100 Continue\r\n\r\n"
      for count in 1...2 {
        try await client.send(head)
        let before = await client.bytes { String(buffer: $0).components(separatedBy: told).count == count + 1 }
        #expect(String(buffer: before).hasSuffix(told))
        try await client.send("hello")
        let answers = await client.bytes { String(buffer: $0).components(separatedBy: "5 bytes").count == count + 1 }
        #expect(String(buffer: answers).components(separatedBy: "HTTP/1.1 200 ").count == count + 1)
      }
      for (headers, status) in [
        ("Expect: 100-continue\r\nContent-Length: 99999999\r\n", "413"),
        ("Expect: more\r\nContent-Length: 5\r\n", "417"),
      ] {
        let other = try await TestClient.open(port: server.httpPort)
        try await other.send(get("/", headers, method: "POST"))
        #expect(String(buffer: await other.bytes { $0.readableBytes > 12 }).hasPrefix("HTTP/1.1 \(status) "))
      }
    }
  }

  @Test(arguments: [
    (403, "GET /stomp", "Host: h\r\n"), (426, "GET /stomp", "Host: h\r\nConnection: close\r\n"),
    (405, "DELETE /", "Host: h\r\n"),
    (400, "GET /", "Host: h\r\nHost: h\r\n"),
    (413, "POST /", "Host: h\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n"),
    (417, "GET /", "Host: h\r\nExpect: tea\r\n"), (415, "POST /not-taken", "Host: h\r\n"),
  ])
  func refusedRequestsLeaveALineWithWhatWasCompared(status: Int, request: String, headers: String) async throws {
    let lines = LogLines()
    let pages: @Sendable (HTTPRequest) async -> HTTPResponse = {
      HTTPResponse(status: $0.path == "/not-taken" ? 415 : 200)
    }
    try await withServer({ $0.origins = .sameHost(also: []) }, log: lines, pages: pages) { server in
      let client = try await TestClient.open(port: server.httpPort)
      let origin = status == 426 ? "http://h" : "https://evil.example"
      try await client.send("\(request) HTTP/1.1\r\n\(headers)Origin: \(origin)\r\nConnection: close\r\n\r\n")
      #expect(await client.rest().hasPrefix("HTTP/1.1 \(status) "))
      let refusals = lines.texts.filter { $0.contains("refused") }
      #expect(refusals.count == 1)
      #expect(
        refusals.first.map { $0.contains("status=\(status)") && $0.contains(origin) && $0.contains("host=h") } == true)
    }
  }

  @Test func aMissingPageLeavesNoLine() async throws {
    let lines = LogLines()
    try await withServer(log: lines, pages: { _ in HTTPResponse(status: 404) }) { server in
      let client = try await TestClient.open(port: server.httpPort)
      try await client.send(get("/favicon.ico", "Connection: close\r\n"))
      #expect(await client.rest().hasPrefix("HTTP/1.1 404 "))
      #expect(!lines.texts.contains { $0.contains("refused") })
    }
  }

  @Test func otherMethodsAndPlainRequestsToTheWebSocketAreRefused() async throws {
    try await withServer { server in
      for (request, status) in [
        (get("/", "Connection: close\r\n", method: "DELETE"), "405"), (get("/stomp"), "426"),
        (get("/ws/", "Origin: http://evil\r\n"), "403"),
        // A path that is not an endpoint is answered, and the connection ends: its parser reads no further.
        (get("/other", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"), "200"),
        (get("/", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"), "200"),
        (get("h:1", method: "CONNECT"), "405"),
        ("NONSENSE\r\n\r\n", "400"), ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", "400"),
      ] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(request)
        #expect(await client.rest().hasPrefix("HTTP/1.1 \(status) "), "\(request)")
      }
    }
  }

  @Test(
    "RFC 9112 section 3.2: one valid Host",
    arguments: [
      ("HTTP/1.1", "Host: h\r\n", true), ("HTTP/1.1", "Host: [::1]:8080\r\n", true), ("HTTP/1.1", "", false),
      ("HTTP/1.0", "", true), ("HTTP/1.1", "Host: h\r\nHost: h\r\n", false),
      ("HTTP/1.1", "Host: h\r\nHost: evil\r\n", false), ("HTTP/1.0", "Host: h\r\nHost: evil\r\n", false),
      ("HTTP/1.1", "Host: h, evil\r\n", false), ("HTTP/1.1", "Host: localhost:1@evil\r\n", false),
      ("HTTP/1.1", "Host: h/evil\r\n", false),
    ])
  func aRequestHasOneHost(version: String, hosts: String, isGood: Bool) async throws {
    try await withServer { server in
      for path in ["/x", "/stomp"] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send("GET \(path) \(version)\r\n\(hosts)Connection: close\r\n\r\n")
        #expect(await client.rest().hasPrefix("HTTP/1.1 \(isGood ? path == "/x" ? "200" : "426" : "400") "))
      }
      #expect(server.statistics.drops[.invalidHTTP] == (isGood ? nil : 2))
    }
  }

  @Test func answersTellBrowsersThatTheyAreNoDocuments() async throws {
    try await withServer(pages: {
      HTTPResponse(
        headers: $0.path == "/page" ? [(name: "content-security-policy", value: "default-src 'self'")] : [])
    }) { server in
      for (path, policy) in [("/x", "default-src 'none'; frame-ancestors 'none'"), ("/page", "default-src 'self'")] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(get(path, "Connection: close\r\n"))
        let answer = await client.rest()
        #expect(answer.contains("\r\ncontent-security-policy: \(policy)\r\n"))
        #expect(answer.contains("\r\nx-content-type-options: nosniff\r\n"))
        #expect(!answer.contains("strict-transport-security"), "this connection is without TLS")
      }
    }
  }

  @Test func headersAreBounded() async throws {
    try await withServer { server in
      for headers in [
        "a: \(String(repeating: "x", count: 9 << 10))\r\n",
        String(repeating: "a: \(String(repeating: "x", count: 900))\r\n", count: 40),
        String(repeating: "a: b\r\n", count: 500),
      ] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(get("/stomp", "Upgrade: websocket\r\nConnection: Upgrade\r\n" + headers))
        let answer = await client.rest()
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 400 ") || answer.hasPrefix("HTTP/1.1 431 "))
      }
      #expect(server.statistics.httpRequests == 0)
    }
  }

  @Test func slowRequestsAndIdleConnectionsAreLetGo() async throws {
    try await withServer({ $0.httpTimeout = .milliseconds(100) }) { server in
      for text in ["", "GET / HT", get("/x")] {
        let client = try await TestClient.open(port: server.httpPort)
        if !text.isEmpty { try await client.send(text) }
        let answer = await client.rest()
        #expect(answer.isEmpty || answer.hasSuffix("/x"))
      }
      await server.until { $0.connections == 0 }
    }
  }

  @Test func anAddressGetsPagesOnlySoOftenAndAProxyAlways() async throws {
    // All at once, on one connection: on a slow machine the bucket could refill while connections are opened.
    func answers(_ server: TestServer) async throws -> [String] {
      let client = try await TestClient.open(port: server.httpPort)
      let requests = String(repeating: get("/"), count: 39) + get("/", "Connection: close\r\n")
      try await client.send(requests)
      return await client.rest().components(separatedBy: "HTTP/1.1 ").dropFirst().map { String($0.prefix(3)) }
    }
    let none = try #require(AddressList([]))
    try await withServer({
      ($0.limits.addressRequestsPerSecond, $0.limits.addressRequestBurst, $0.proxies) = (1, 5, none)
    }) { server in
      let statuses = try await answers(server)
      // The connection ends with the first refusal.
      #expect(statuses.starts(with: Array(repeating: "200", count: 5)) && statuses.last == "429", "\(statuses)")
      #expect(server.statistics.drops[.addressRequestsFull].map { (1...35).contains($0) } == true)
      // A WebSocket is not a page: its logins have their own limits.
      let client = try await TestClient.open(port: server.httpPort)
      try await client.send(get("/stomp"))
      #expect(await client.rest().hasPrefix("HTTP/1.1 426 "))
    }
    try await withServer({ ($0.limits.addressRequestsPerSecond, $0.limits.addressRequestBurst) = (1, 5) }) {
      server in
      let statuses = try await answers(server)
      #expect(statuses == Array(repeating: "200", count: 40))
    }
  }

  @Test func loopbackIsToldFromProxies() async throws {
    try await withServer(pages: { HTTPResponse(text: $0.isFromLoopback ? "near" : "far") }) { server in
      for (headers, answer) in [
        ("", "near"), ("X-Forwarded-For: 1.2.3.4\r\n", "far"), ("Forwarded: for=1.2.3.4\r\n", "far"),
        ("Via: 1.1 proxy\r\n", "far"), ("X-Real-IP: 1.2.3.4\r\n", "far"), ("x-forwarded-proto: https\r\n", "far"),
      ] {
        let client = try await TestClient.open(port: server.httpPort)
        try await client.send(get("/", headers + "Connection: close\r\n"))
        #expect(await client.rest().hasSuffix("\r\n\r\n" + answer))
      }
    }
  }

  @Test(arguments: [
    ("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::ffff:127.0.0.1", true), ("::ffff:1.2.3.4", false),
    ("10.0.0.1", false),
    ("fe80::1", false),
  ])
  func loopbackAddresses(address: String, isLoopback: Bool) throws {
    let request = HTTPRequest(
      method: "GET", path: "/", query: nil, headers: [], body: ByteBuffer(),
      remoteAddress: try SocketAddress(ipAddress: address, port: 1))
    #expect(request.isFromLoopback == isLoopback)
  }
}
