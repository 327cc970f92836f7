import Foundation
import Listening
import NIOCore
import NIOSSL
import Seeded
import STOMP
import Testing
import WireClients

@testable import STOMPFront

/// TLS on both ports, and how its connections end.
@Suite(.timeLimit(.minutes(5))) struct TLSTests {
  private func withTLS(
    _ configure: (inout TestConfiguration) -> Void = { _ in },
    _ body: (TestServer, Int) async throws -> Void
  ) async throws {
    let vectors = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../ListeningTests/Vectors")
    let files = TLSFiles(
      certificateChain: vectors.appending(path: "test-certificate.pem").path,
      privateKey: vectors.appending(path: "test-key.pem").path)
    try await withServer({
      $0.tls = files
      configure(&$0)
    }) { server, _ in try await body(server, try #require(server.stompTLSPort)) }
  }

  @Test("stomp.md 83: TLS is spoken where it is configured, and missed by name where it is not")
  func tlsIsSpokenWhereItIsConfigured() async throws {
    try await withTLS { server, port in
      let client = try await TestClient.connected(to: port, token: "a", tls: true)
      try await client.send("NONSENSE\n\n\0")
      #expect(try await client.frame()?.headers["message"] == "unknown command")
      #expect(try await client.frame() == nil)
      let web = try await TestClient.open(port: server.httpPort, tls: true)
      try await web.send("GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
      let answer = await web.rest()
      #expect(answer.hasSuffix("\r\n\r\n/x"))
      #expect(answer.contains("\r\nstrict-transport-security: max-age=31536000\r\n"))
      let plain = try await TestClient.open(port: server.stompPort)
      try await plain.send([0x16, 0x03, 0x01, 0x02])
      #expect(try await plain.frame()?.headers["message"] == "this port speaks STOMP without TLS")
    }
  }

  @Test func thePortWithoutTLSCanBeClosed() async throws {
    try await withTLS({ $0.stompPort = nil }) { server, port in
      #expect(server.stompPort == 0)
      _ = try await TestClient.connected(to: port, token: "a", tls: true)
      let web = try await TestClient.open(port: server.httpPort, tls: true)
      try await web.send("GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
      #expect(await web.rest().hasSuffix("\r\n\r\n/x"))
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func aBrokenHandshakeEndsItsOwnConnectionOnly(seed: UInt64) async throws {
    try await withTLS { server, port in
      let patient = try await TestClient.connected(to: port, token: "a", tls: true)
      var random = SeededGenerator(seed: seed)
      var failed: UInt64 = 0
      for round in 0..<60 {
        let client = try await TestClient.open(port: round % 2 == 0 ? port : server.httpPort)
        try? await client.send(hostileTLS(round, &random))
        await client.finish()
        failed += 1
      }
      await server.until { $0.connections == 1 }
      #expect(server.statistics.drops[.tlsHandshake, default: 0] > failed / 3, "seed \(seed)")
      try await patient.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await patient.frame()?.headers["receipt-id"] == "1", "seed \(seed)")
    }
  }

  /// Garbage; records of any kind, length and version; a ClientHello that is cut off, mutated or interrupted by an alert.
  private func hostileTLS(_ round: Int, _ random: inout SeededGenerator) -> [UInt8] {
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) } }
    func record(_ kind: UInt8, _ body: [UInt8], length: Int? = nil) -> [UInt8] {
      let length = length ?? body.count
      return [kind, 3, 3, UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)] + body
    }
    // RFC 8446 section 4.1.2: version, random, no session, one cipher suite, no compression, no extensions.
    let hello = [3, 3] + bytes(32) + [0, 0, 2, 0xC0, 0x2F, 1, 0, 0, 0] as [UInt8]
    var message = [1, 0, 0, UInt8(hello.count)] + hello
    switch round % 6 {
    case 0: return bytes(Int.random(in: 1...3_000, using: &random))
    case 1: return record(UInt8.random(in: 20...25, using: &random), bytes(Int.random(in: 0...500, using: &random)))
    case 2: return Array(record(22, message).prefix(Int.random(in: 1...message.count, using: &random)))
    case 3:
      for _ in 0..<3 {
        message[Int.random(in: 0..<message.count, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
      }
      return record(22, message)
    case 4: return record(22, Array(message.prefix(10))) + record(21, [2, UInt8.random(in: 0...255, using: &random)])
    default: return record(22, message, length: 0xFFFF) + bytes(20_000)
    }
  }

  @Test func aClientsCloseIsAnsweredAtOnce() async throws {
    try await withTLS { server, port in
      let clients = [
        try await TestClient.connected(to: port, token: "a", tls: true),
        try await TestWebSocket.connected(server.httpPort, token: "b", tls: true).client,
        try await TestClient.open(port: server.httpPort, tls: true),
      ]
      // Without an answer this waits for longer than the test's time limit.
      for client in clients { try await client.close() }
      await server.until { $0.connections == 0 }
      #expect(clients.allSatisfy { !$0.wasReset })
    }
  }

  @Test func requestsBeforeTheCloseAreDoneAndAnswered() async throws {
    try await withTLS { server, port in
      let client = try await TestClient.connected(to: port, token: "a", tls: true)
      let frame = ByteBuffer(string: "SEND\ndestination:/app/calls/list\nrequest-id:1\nreceipt:r\n\n\0")
      client.channel.writeAndFlush(frame, promise: nil)
      client.channel.close(mode: .output, promise: nil)
      #expect(await client.rest() == "RECEIPT\nreceipt-id:r\n\n\0")
      await server.until { $0.connections == 0 }
      #expect(!client.wasReset)
    }
  }

  @Test func anEndWithoutACloseNotifyIsAnEndToo() async throws {
    try await withTLS { server, port in
      let client = try await TestClient.connected(to: port, token: "a", tls: true)
      let start = ContinuousClock.now
      let channel = client.channel
      try await channel.eventLoop.submit {
        // Below TLS.
        try channel.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self)
          .close(mode: .output, promise: nil)
      }.get()
      await server.until { $0.connections == 0 }
      #expect(ContinuousClock.now - start < .seconds(4), "NIOSSL's own patience is 5 s")
    }
  }
}
