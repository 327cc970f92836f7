import Listening
import NIOCore
import Seeded
import Testing
import WireClients

/// The server keeps running, whatever arrives at its ports.
@Suite(.timeLimit(.minutes(5))) struct NoiseTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func noiseEndsItsOwnConnectionOnly(seed: UInt64) async throws {
    try await withServer { server, _ in
      let patient = try await TestWebSocket.connected(server.httpPort)
      var random = SeededGenerator(seed: seed)
      for round in 0..<30 {
        let noise = (0..<Int.random(in: 1...2_000, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
        }
        switch round % 3 {
        case 0:
          let client = try await TestClient.open(port: server.stompPort)
          try? await client.send(Array("CONNECT\naccept-version:1.2\nhost:h\npasscode:n\(round)\n\n\0".utf8) + noise)
          await client.finish()
        case 1:
          let client = try await TestClient.open(port: server.httpPort)
          try? await client.send(Array("GET / HTTP/1.1\r\n".utf8) + noise)
          await client.finish()
        default:
          let socket = try await TestWebSocket.open(server.httpPort)
          try? await socket.client.send([UInt8.random(in: 0...255, using: &random) | 0x80] + noise)
          await socket.client.finish()
        }
      }
      try await patient.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await patient.next() == .text("RECEIPT\nreceipt-id:1\n\n\0"), "seed \(seed)")
    }
  }
}
