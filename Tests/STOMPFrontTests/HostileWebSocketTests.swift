import Listening
import NIOCore
import Seeded
import Testing
import WireClients

/// Frames that nearly follow the rules get further than noise. Every answer is valid WebSocket, and another client is
/// still served.
@Suite(.timeLimit(.minutes(5))) struct HostileWebSocketTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func hostileFramesEndTheirOwnWebSocketOnly(seed: UInt64) async throws {
    try await withServer { server, _ in
      let patient = try await TestWebSocket.connected(server.httpPort)
      var random = SeededGenerator(seed: seed)
      for _ in 0..<40 {
        let socket = try await TestWebSocket.connected(server.httpPort, token: "n")
        for _ in 0...Int.random(in: 0...4, using: &random) { try? await socket.client.send(frame(&random)) }
        try? await socket.client.channel.close(mode: .output)
        _ = await socket.client.rest()
      }
      await server.until { $0.connections == 1 && $0.sessions == 1 }
      try await patient.send("DISCONNECT\nreceipt:1\n\n\0")
      #expect(try await patient.next() == .text("RECEIPT\nreceipt-id:1\n\n\0"), "seed \(seed)")
    }
  }

  /// Any opcode, flags and length, which often differs from the payload's length.
  private func frame(_ random: inout SeededGenerator) -> [UInt8] {
    let payload = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    let masked: UInt8 = Int.random(in: 0...9, using: &random) == 0 ? 0 : 0x80
    var bytes = [UInt8.random(in: 0...255, using: &random) & (Bool.random(using: &random) ? 0x8F : 0xFF)]
    switch Int.random(in: 0...5, using: &random) {
    case 0: bytes += [masked | 127] + (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) }
    case 1: bytes += [masked | 126, 0, UInt8.random(in: 0...255, using: &random)]
    default: bytes += [masked | UInt8(min(125, payload.count))]
    }
    return bytes + [1, 2, 3, 4] + payload
  }
}
