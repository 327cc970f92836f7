import Foundation
import NIOCore
import NIOSSL
import STOMP
import Testing

@testable import Signaling

/// TLS on both ports, and how its connections end.
@Suite(.timeLimit(.minutes(1))) struct TLSTests {
  private func withTLS(_ body: (SignalingServer, Int) async throws -> Void) async throws {
    let vectors = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors")
    let files = SignalingServer.Configuration.TLS(
      certificateChain: vectors.appending(path: "test-certificate.pem").path,
      privateKey: vectors.appending(path: "test-key.pem").path)
    try await withServer({ $0.tls = files }) { server, _ in try await body(server, try #require(server.stompTLSPort)) }
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
      #expect(await web.rest().hasSuffix("\r\n\r\n/x"))
      let plain = try await TestClient.open(port: server.stompPort)
      try await plain.send([0x16, 0x03, 0x01, 0x02])
      #expect(try await plain.frame()?.headers["message"] == "this port speaks STOMP without TLS")
    }
  }

  @Test func aClientsCloseIsAnsweredAtOnce() async throws {
    try await withTLS { server, port in
      let clients = [
        try await TestClient.connected(to: port, token: "a", tls: true),
        try await TestWebSocket.connected(server, token: "b", tls: true).client,
        try await TestClient.open(port: server.httpPort, tls: true),
      ]
      // Without an answer this waits longer than the test may take.
      for client in clients { try await client.close() }
      await server.until { $0.connections == 0 }
      #expect(clients.allSatisfy { !$0.wasReset })
    }
  }

  @Test func whatCameBeforeTheCloseIsDoneAndAnswered() async throws {
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
