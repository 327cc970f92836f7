import NIOCore
import Seeded
import STOMP
import Testing

/// Random streams: a peer's bytes may cause errors, but never a trap, and how they are split never matters.
@Suite struct FuzzTests {
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func roundTripsSurviveAnySplit(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let version = Version.allCases.randomElement(using: &random)!
      let frames = (0...Int.random(in: 0..<4, using: &random)).map { _ in randomFrame(&random) }
      var bytes: [UInt8] = []
      for frame in frames {
        bytes += FrameEncoder(version: version).encode(frame).readableBytesView
        bytes += (0..<Int.random(in: 0..<3, using: &random)).map { _ in 0x0A }
      }
      let pieces = (0..<Int.random(in: 0..<8, using: &random)).map { _ in
        Int.random(in: 0...bytes.count, using: &random)
      }
      let decoded = try decode(bytes, version: version, pieces: pieces)
      #expect(decoded.map(\.body) == frames.map(\.body), "seed \(seed)")
      if version == .v12 {
        #expect(decoded.map { $0.headers["value"] } == frames.map { $0.headers["value"] }, "seed \(seed)")
      }
    }
  }

  @Test(arguments: [11, 12, 13] as [UInt64])
  func mutatedStreamsNeverTrapAndNeverDependOnTheCut(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let seeds = corpus.map { Array($0.utf8) }
    for _ in 0..<3_000 {
      var bytes = seeds.randomElement(using: &random)! + seeds.randomElement(using: &random)!
      for _ in 0...Int.random(in: 0..<6, using: &random) { mutate(&bytes, &random) }
      let version = Version.allCases.randomElement(using: &random)!
      let cut = bytes.isEmpty ? 0 : Int.random(in: 0...bytes.count, using: &random)
      #expect(outcome(bytes, version, []) == outcome(bytes, version, [cut, cut / 2]), "seed \(seed)")
    }
  }

  @Test(arguments: [21, 22, 23] as [UInt64])
  func mutatedSessionsNeverTrapAndEndAtMostOnce(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      var server = TestServer()
      for step in 0..<12 {
        var bytes = Array(corpus.randomElement(using: &random)!.utf8)
        if Bool.random(using: &random) { mutate(&bytes, &random) }
        server.receive(bytes)
        server.deliver("x", to: "/a", token: UInt64(step))
        server.advance(to: server.now + UInt64.random(in: 0..<2_000_000_000, using: &random))
      }
      #expect(server.written.filter { $0.hasPrefix("ERROR") }.count <= 1, "seed \(seed)")
      #expect(server.written.dropLast().allSatisfy { !$0.hasPrefix("ERROR") }, "seed \(seed)")
    }
  }

  private func outcome(_ bytes: [UInt8], _ version: Version, _ pieces: [Int]) -> Result<[Frame], FrameError> {
    Result { () throws(FrameError) in try decode(bytes, version: version, pieces: pieces) }
  }

  private func mutate(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
    let interesting: [UInt8] = [0x00, 0x0A, 0x0D, 0x3A, 0x5C, 0x30, 0x39, 0x41, 0x80, 0xFF]
    let index = Int.random(in: 0..<max(bytes.count, 1), using: &random)
    guard index < bytes.count else { return }
    switch Int.random(in: 0..<5, using: &random) {
    case 0: bytes[index] = interesting.randomElement(using: &random)!
    case 1: bytes.insert(interesting.randomElement(using: &random)!, at: index)
    case 2: bytes.remove(at: index)
    case 3: bytes.removeSubrange(index...)
    default: bytes[index] = UInt8.random(in: 0...255, using: &random)
    }
  }

  private func randomFrame(_ random: inout SeededGenerator) -> Frame {
    let letters: [Character] = ["a", ":", "\\", "\n", "\r", " ", "ä", "🎥"]
    let value = String((0..<Int.random(in: 0..<12, using: &random)).map { _ in letters.randomElement(using: &random)! })
    let body = (0..<Int.random(in: 0..<200, using: &random)).map { _ in UInt8.random(in: 0...3, using: &random) }
    return Frame(.send, ["destination": "/a", "value": value], body: ByteBuffer(bytes: body))
  }

  private let corpus = [
    "CONNECT\naccept-version:1.0,1.1,1.2\nhost:h\nheart-beat:1000,1000\npasscode:p\n\n\0", "\n\r\n\n",
    "SUBSCRIBE\nid:1\ndestination:/a\nack:client\nreceipt:1\n\n\0", "ACK\nid:1\nmessage-id:1\nsubscription:1\n\n\0",
    "SUBSCRIBE\nid:2\ndestination:/a\nack:client-individual\n\n\0", "NACK\nid:2\nmessage-id:2\nsubscription:2\n\n\0",
    "SEND\ndestination:/app/x\ncontent-length:5\nreceipt:a\\n\\c\n\nab\0cd\0", "UNSUBSCRIBE\nid:1\n\n\0",
    "BEGIN\ntransaction:t\n\n\0", "SEND\ndestination:/a\ntransaction:t\n\nx\0", "COMMIT\ntransaction:t\n\n\0",
    "ABORT\ntransaction:t\n\n\0", "ACK\nid:1\ntransaction:t\n\n\0",
  ]
}
