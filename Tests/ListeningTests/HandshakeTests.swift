import NIOCore
import Testing
import WireClients

@testable import Listening

/// Which requests become WebSockets (RFC 6455 section 4.2).
@Suite(.timeLimit(.minutes(5))) struct HandshakeTests {
  @Test(
    "stomp.md 81: pages of other sites are refused",
    arguments: [
      (nil, true), ("http://example.org:8080", true), ("https://example.org:8080", true),
      ("http://EXAMPLE.org:8080", true),
      ("http://example.org", false), ("http://evil.org:8080", false), ("null", false), ("https://app.example", true),
      ("http://example.org:8080.evil.org", false),
    ])
  func pagesOfOtherSitesAreRefused(origin: String?, isAllowed: Bool) async throws {
    try await withServer({ $0.origins = .sameHost(also: ["https://app.example"]) }) { server in
      let socket = try await TestWebSocket.open(server.httpPort, headers: origin.map { ["Origin: \($0)"] } ?? [])
      #expect(socket.isOpen == isAllowed)
      if !isAllowed { #expect(socket.response.hasPrefix("HTTP/1.1 403 ")) }
      #expect(server.statistics.drops[.foreignOrigin] == (isAllowed ? nil : 1))
    }
  }

  /// Clients other than browsers write `ws` and `wss` and the default port; a proxy that took off the TLS may write the port, too.
  @Test(arguments: [
    ("wss://calls.example", "calls.example:443", true), ("https://calls.example", "calls.example:443", true),
    ("ws://calls.example:80", "calls.example", true), ("wss://CALLS.example:443", "calls.example", true),
    ("https://calls.example", "calls.example:80", true), ("https://[2001:db8::1]", "[2001:db8::1]:443", true),
    ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443", true), ("capacitor://localhost", "localhost", true),
    ("wss://app.example:443", "calls.example", true), ("https://calls.example:8443", "calls.example", false),
    ("https://calls.example", "calls.example:8443", false), ("https://calls.example.evil", "calls.example", false),
    ("https://calls.example@evil", "calls.example", false), ("https://", "calls.example", false),
    ("calls.example", "calls.example", false), ("https://calls.example/x", "calls.example", false),
    ("https://calls.example:443:443", "calls.example", false), ("https://:443", ":443", false),
  ])
  func theSameAuthorityIsTheSamePage(origin: String, host: String, isAllowed: Bool) {
    let policy = OriginPolicy.sameHost(also: ["https://app.example"])
    #expect(policy.allows(origin: origin, host: host) == isAllowed)
  }

  /// Pages inside apps have no host. They are refused unless they are named.
  @Test(arguments: ["null", "file://"]) func pagesWithoutAHostAreLetInWhereTheyAreNamed(origin: String) {
    #expect(OriginPolicy.hostless.contains(origin))
    #expect(OriginPolicy.sameHost(also: [origin]).allows(origin: origin, host: "calls.example"))
    #expect(!OriginPolicy.sameHost(also: ["https://app.example"]).allows(origin: origin, host: "calls.example"))
  }

  @Test("stomp.md 81: any origin can be configured")
  func anyOriginCanBeConfigured() async throws {
    try await withServer({ $0.origins = .any }) { server in
      let socket = try await TestWebSocket.open(server.httpPort, headers: ["Origin: http://evil.org"])
      #expect(socket.isOpen)
    }
  }

  @Test(
    "RFC 6455 section 4.2: what is no handshake is refused",
    arguments: [
      (["Sec-WebSocket-Version: 8"], 426), (["Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"], 426),
      (["Sec-WebSocket-Key: YQ=="], 400), (["Sec-WebSocket-Key: "], 400),
      (["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE="], 400), (["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!=="], 400),
      (["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="], 400),
      (["Upgrade: h2c"], 426), (["Connection: close"], 426), (["Content-Length: 1"], 400),
    ] as [([String], Int)])
  func malformedHandshakesAreRefused(headers: [String], status: Int) async throws {
    try await withServer { server in
      var lines = [
        "Host: h", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ]
      let names = headers.map { $0.prefix { $0 != ":" } }
      lines.removeAll { names.contains($0.prefix { $0 != ":" }) }
      let client = try await TestClient.open(port: server.httpPort)
      try await client.send("GET /stomp HTTP/1.1\r\n\((lines + headers).joined(separator: "\r\n"))\r\n\r\nx")
      let answer = await client.rest()
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.contains("\r\nsec-websocket-version: 13\r\n") == (status == 426))
    }
  }

  /// A second front has its own paths, subprotocols and limits, and needs nothing else from the listeners.
  @Test func aFrontIsRegisteredByItsPathsAndSubprotocols() async throws {
    try await withServer { server in
      let both = ["Sec-WebSocket-Protocol: first, second"]
      let socket = try await TestWebSocket.open(server.httpPort, path: "/ws/?x=1", headers: both)
      #expect(socket.isOpen && socket.response.contains("\r\nsec-websocket-protocol: second"), "the front's order")
      try await socket.send("more than eight bytes")
      #expect(try await socket.next() == .text("more than eight bytes"))
      let named = try await TestWebSocket.open(
        server.httpPort, path: "/named", headers: ["Sec-WebSocket-Protocol: x, named"])
      #expect(named.isOpen && named.response.contains("\r\nsec-websocket-protocol: named"))
      try await named.send("eight ok")
      #expect(try await named.next() == .text("eight ok"))
      try await named.send("nine bytes")
      #expect(try await named.next() == .close(1_009))
      let raw = try await TestClient.open(port: server.echoPort)
      try await raw.send("any bytes")
      #expect(await raw.take(9) == Array("any bytes".utf8))
    }
  }

  @Test(arguments: [[], ["Sec-WebSocket-Protocol: v12.stomp"]])
  func aFrontThatNeedsItsSubprotocolRefusesOthers(headers: [String]) async throws {
    try await withServer { server in
      let socket = try await TestWebSocket.open(server.httpPort, path: "/named", headers: headers)
      #expect(socket.response.hasPrefix("HTTP/1.1 400 "))
    }
  }

  @Test func aClientThatHasNotLoggedInSendsLittle() async throws {
    try await withServer { server in
      let socket = try await TestWebSocket.open(server.httpPort)
      try await socket.client.send([0x82, 0xFE, 4, 0, 1, 2, 3, 4] + [UInt8](repeating: 0, count: 1_100))
      #expect(try await socket.next() == nil)
    }
  }
}
