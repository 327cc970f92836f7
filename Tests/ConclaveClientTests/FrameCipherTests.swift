import Contract
import Crypto
import MediaModel
import SFrame
import Testing

@testable import ConclaveClient

struct FrameCipherTests {
  private func world() -> KeyWorld {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    return world
  }

  @Test func tracksHaveCountersOfTheirOwn() throws {
    let world = world()
    for (track, count) in [(UInt8(1), 3), (2, 2), (0, 1)] {
      for counter in 0..<count {
        let frame = try world.seal("x", from: "alice", track: track)
        let header = try frame.withUnsafeBytes { try SFrameHeader(parsing: $0) }
        #expect(header.counter == UInt64(counter))
        #expect(header.keyID == 1 << 16 | UInt64(track) << 8 | 2)
        #expect(try world.open(frame, as: "bob").1.track == track)
      }
    }
  }

  @Test func aFrameOpensOnce() throws {
    let world = world()
    let frame = try world.seal("x", from: "alice")
    #expect(try world.open(frame, as: "bob").0 == "x")
    #expect(throws: FrameCipherError.replayed) { try world.open(frame, as: "bob") }
  }

  @Test func metadataIsAuthenticated() throws {
    let world = world()
    var output = [UInt8](repeating: 0, count: 64)
    let count = try output.withUnsafeMutableBytes { output in
      try [UInt8]([1, 2]).withUnsafeBytes { frame in
        try [UInt8]([9]).withUnsafeBytes {
          try world.members["alice"]!.cipher.encrypt(frame, track: 1, metadata: $0, into: output)
        }
      }
    }
    #expect(throws: FrameCipherError.notAuthentic) { try world.open(Array(output.prefix(count)), as: "bob") }
  }

  /// Sending the same epoch again must not start the counters anew: the key and nonce would repeat.
  @Test func anEpochSentTwiceGoesOnCounting() throws {
    let world = world()
    _ = try world.seal("x", from: "alice")
    world.members["alice"]!.cipher.stopSending()
    #expect(throws: FrameCipherError.noKey) { try world.seal("y", from: "alice") }
    world.members["alice"]!.cipher.send(2, as: 1)
    let frame = try world.seal("y", from: "alice")
    #expect(try frame.withUnsafeBytes { try SFrameHeader(parsing: $0) }.counter == 1)
    world.members["alice"]!.cipher.send(1, as: 1)
    world.members["alice"]!.cipher.send(2, as: 7)
    #expect(try world.seal("z", from: "alice").withUnsafeBytes { try SFrameHeader(parsing: $0) }.counter == 2)
  }

  /// Under an earlier epoch, or another name, counters would begin anew.
  @Test func neitherAnEarlierEpochNorAnotherParticipantIsSentUnder() throws {
    let world = world()
    let cipher = try #require(world.members["alice"]).cipher
    for (counter, stay) in [(1, 1), (2, 7), (1, 7)].enumerated() {
      cipher.send(UInt32(stay.0), as: ParticipantNumber(stay.1))
      #expect(cipher.sendingEpoch == 2)
      let header = try world.seal("x", from: "alice").withUnsafeBytes { try SFrameHeader(parsing: $0) }
      #expect(header.keyID == 1 << 16 | 1 << 8 | 2 && header.counter == UInt64(counter))
    }
    cipher.stopSending()
    cipher.send(1, as: 1)
    cipher.send(2, as: 7)
    #expect(cipher.sendingEpoch == nil)
  }

  @Test func noiseIsRefused() throws {
    let world = world()
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<5_000 {
      let noise = (0..<Int.random(in: 0...40)).map { _ in UInt8.random(in: 0...255, using: &generator) }
      #expect(throws: FrameCipherError.self) { try world.open(noise, as: "bob") }
    }
  }
}
