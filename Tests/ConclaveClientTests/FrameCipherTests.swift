import Contract
import Crypto
import MediaModel
@testable import SFrame
import Octets
import Testing

@testable import ConclaveClient

struct FrameCipherTests {
  private static func secret(_ number: UInt64 = 0) -> SymmetricKey {
    var generator = SplitMix64(seed: number)
    return Epoch.secret(using: &generator)
  }

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
        let header = try frame.withUnsafeBytes { try SFrameHeader(parsing: $0.bytes) }
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

  /// Sending the same epoch again must not restart the counters: the key and nonce would repeat.
  @Test func anEpochSentTwiceGoesOnCounting() throws {
    let world = world()
    _ = try world.seal("x", from: "alice")
    world.members["alice"]!.cipher.stopSending()
    #expect(throws: FrameCipherError.noKey) { try world.seal("y", from: "alice") }
    let cipher = try #require(world.members["alice"]).cipher
    cipher.send(try key(of: world))
    #expect(try header(world.seal("y", from: "alice")).counter == 1)
    // Under an earlier epoch of the stay, counters would restart.
    cipher.send(try key(of: world, epoch: 1))
    #expect(cipher.sendingEpoch == 2)
    #expect(try header(world.seal("z", from: "alice")).counter == 2)
    cipher.stopSending()
    cipher.send(try key(of: world, epoch: 1))
    #expect(cipher.sendingEpoch == nil)
  }

  private func key(of world: KeyWorld, epoch: UInt32? = nil) throws -> SendingKey {
    let agreement = try #require(world.members["alice"]).agreement
    let inUse = try #require(agreement.epochs[2])
    let key = try #require(agreement.own.sendingKey(inUse))
    return SendingKey(
      epoch: epoch ?? key.epoch, participant: key.participant, joinId: key.joinId, baseKey: key.baseKey)
  }

  private func header(_ frame: [UInt8]) throws -> SFrameHeader {
    try frame.withUnsafeBytes { try SFrameHeader(parsing: $0.bytes) }
  }

  /// A former stay's key is never used for sending again, whatever the server says.
  @Test func aFormerStayDoesNotComeBack() throws {
    let world = world()
    let cipher = try #require(world.members["alice"]).cipher
    let old = try key(of: world)
    let next = SendingKey(
      epoch: 2, participant: 7, joinId: [UInt8](repeating: 7, count: 16),
      baseKey: Self.secret())
    cipher.send(next)
    #expect(try header(world.seal("x", from: "alice")).keyID == 7 << 16 | 1 << 8 | 2)
    cipher.send(old)
    #expect(try header(world.seal("x", from: "alice")).keyID == 7 << 16 | 1 << 8 | 2)
  }

  @Test func nothingIsSealedOrOpenedWithWipedKeys() throws {
    let world = world()
    let frame = try world.seal("x", from: "alice")
    let own = try key(of: world)
    for name in ["alice", "bob"] { world.members[name]!.cipher.wipe() }
    #expect(throws: FrameCipherError.noKey) { try world.seal("x", from: "alice") }
    #expect(throws: FrameCipherError.unknownKey) { try world.open(frame, as: "bob") }
    world.members["alice"]!.cipher.send(own)
    #expect(throws: FrameCipherError.noKey) { try world.seal("x", from: "alice") }
  }

  /// A reflected frame does not open: this device has no key for its own frames.
  @Test func ownFramesDoNotOpen() throws {
    let world = world()
    let frame = try world.seal("x", from: "alice")
    #expect(throws: FrameCipherError.unknownKey) { try world.open(frame, as: "alice") }
    #expect(try world.open(frame, as: "bob").0 == "x")
  }

  // MARK: attribution

  private func at(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }
  private let alicesTrack = TrackID(participant: 1, index: 1)

  /// A frame counts only in the slot of its track; elsewhere it affects neither its key nor its replay window.
  @Test func aFrameInAnothersSlotIsNotLookedAt() throws {
    let world = world()
    let bob = try #require(world.members["bob"]).cipher
    let frame = try world.seal("x", from: "alice")
    bob.assign(["3": TrackID(participant: 1, index: 2), "4": TrackID(participant: 9, index: 1)], now: at(0))
    for mid in ["3", "4", "5"] {
      #expect(throws: FrameCipherError.otherTrack) { try bob.open(frame, from: .slot(mid, now: at(1))) }
    }
    #expect(throws: FrameCipherError.notAuthentic) { try bob.open(frame, from: .message(from: 1)) }
    bob.assign(["3": alicesTrack], now: at(2))
    #expect(try bob.open(frame, from: .slot("3", now: at(3))).0 == [UInt8(ascii: "x")])
  }

  @Test func aSlotsFormerTrackCountsForASecond() throws {
    let world = world()
    let bob = try #require(world.members["bob"]).cipher
    let frames = try (0..<3).map { _ in try world.seal("x", from: "alice") }
    bob.assign(["3": alicesTrack], now: at(0))
    bob.assign(["3": TrackID(participant: 9, index: 1)], now: at(1_000))
    #expect(throws: Never.self) { try bob.open(frames[0], from: .slot("3", now: at(1_999))) }
    #expect(throws: FrameCipherError.otherTrack) { try bob.open(frames[1], from: .slot("3", now: at(2_000))) }
    bob.assign([:], now: at(3_000))
    bob.assign(["3": alicesTrack], now: at(3_001))
    #expect(throws: Never.self) { try bob.open(frames[2], from: .slot("3", now: at(9_000))) }
  }

  /// A member holds the group's secret and can forge anyone's frames: in the second after a slot's change it moves the
  /// window by at most 64, and mutes no one.
  @Test func aForgedCounterInAFormerSlotMutesNobody() throws {
    let world = world()
    let bob = try #require(world.members["bob"]).cipher
    let real = try key(of: world)
    bob.assign(["3": alicesTrack], now: at(0))
    #expect(throws: Never.self) { try bob.open(world.seal("1", from: "alice"), from: .slot("3", now: at(0))) }
    bob.assign(["3": TrackID(participant: 9, index: 1)], now: at(1))
    let keyID = FrameKeyID(participant: 1, track: 1, epoch: 2).rawValue
    for counter in [UInt64(66), 1 << 47, 1 << 48] {
      var forger = SenderContext(suite: Epoch.suite, keyID: keyID, baseKey: real.baseKey, startingAt: counter)
      guard let forged = try? forger.encrypt([1]) else { continue }
      #expect(throws: FrameCipherError.replayed) { try bob.open(forged, from: .slot("3", now: at(2))) }
    }
    #expect(throws: Never.self) { try bob.open(world.seal("2", from: "alice"), from: .slot("3", now: at(3))) }
  }

  /// The cipher keeps three epochs, and only the newest of those with the same low byte.
  @Test func oldEpochsMakeRoom() {
    let cipher = FrameCipher()
    func install(_ epoch: UInt32) {
      cipher.install(
        EpochKeys(
          epoch: epoch,
          derivation: SenderDerivation(
            call: KeyWorld.call, epoch: epoch, listHash: [], secret: Self.secret(UInt64(epoch))),
          senders: [:]))
    }
    for epoch: UInt32 in [5, 6, 7, 8] { install(epoch) }
    #expect(Set(cipher.epochs) == [6, 7, 8])
    install(262)
    #expect(Set(cipher.epochs) == [7, 8, 262])
  }

  @Test func noiseIsRefused() throws {
    let world = world()
    var generator = SplitMix64(seed: 6)
    for _ in 0..<5_000 {
      let noise = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      #expect(throws: FrameCipherError.self) { try world.open(noise, as: "bob") }
    }
  }
}
