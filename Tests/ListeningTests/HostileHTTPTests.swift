import Listening
import NIOCore
import Seeded
import Testing
import WireClients

/// Requests that nearly follow the rules get further than noise. Every answer is HTTP, and another client is still
/// served.
@Suite(.timeLimit(.minutes(5))) struct HostileHTTPTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func mutatedRequestsEndTheirOwnConnectionOnly(seed: UInt64) async throws {
    try await withServer({ $0.httpTimeout = .milliseconds(300) }) { server in
      var random = SeededGenerator(seed: seed)
      for _ in 0..<80 {
        let client = try await TestClient.open(port: server.httpPort)
        try? await client.send(mutated(HostileHTTPTests.requests.randomElement(using: &random) ?? "", &random))
        try? await client.channel.close(mode: .output)
        let answer = await client.rest()
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 "), "seed \(seed)")
      }
      let client = try await TestClient.open(port: server.httpPort)
      try await client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(await client.rest().hasSuffix("\r\n\r\n/x"), "seed \(seed)")
    }
  }

  private static let requests = [
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "POST /demo/token HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
    "GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\u{1}\u{2}\u{3}",
  ]

  /// A copy with bytes changed, removed, repeated or moved.
  private func mutated(_ request: String, _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = Array(request.utf8)
    for _ in 0...Int.random(in: 0...3, using: &random) {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0...4, using: &random) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: place)
      case 2: bytes.insert(contentsOf: bytes[place...].prefix(40), at: place)
      case 3: bytes.insert(contentsOf: [13, 10, 0, 9, 32, 58].shuffled(using: &random).prefix(2), at: place)
      default: bytes.insert(contentsOf: String(repeating: "9", count: 20).utf8, at: place)
      }
      if bytes.isEmpty { return [0] }
    }
    return bytes
  }

  @Test func halfAMillionSmallHeadersAreRefusedEarly() async throws {
    try await withServer { server in
      let client = try await TestClient.open(port: server.httpPort)
      // The server stops reading at the hundredth; the rest may arrive at a closed connection.
      let request = "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "a: b\r\n", count: 500_000)
      client.channel.writeAndFlush(ByteBuffer(string: request), promise: nil)
      let answer = await client.rest()
      try? await client.close()
      #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 400 "))
      await server.until { $0.connections == 0 }
      #expect(server.statistics.drops[.invalidHTTP] == 1 && server.statistics.httpRequests == 0)
    }
  }
}
