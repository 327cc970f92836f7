import Crypto
import Testing

@testable import SFrame

struct ReplayTests {
  @Test func aFrameIsDeliveredOnce() throws {
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    var receiver = ReceiverContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    let frames = try (0..<3).map { try sender.encrypt([UInt8($0)]) }
    for index in [2, 0, 1] { #expect(try receiver.decrypt(frames[index]) == [UInt8(index)]) }
    for frame in frames { #expect(throws: SFrameError.replayed) { try receiver.decrypt(frame) } }
  }

  @Test func theWindowHolds1024Counters() {
    var window = ReplayWindow()
    window.mark(5000)
    #expect(window.accepts(5000 - 1023))
    #expect(!window.accepts(5000 - 1024))
    #expect(!window.accepts(5000))
    #expect(window.accepts(5001))
  }

  @Test func aJumpForgetsWhatItPassed() {
    var window = ReplayWindow()
    for counter in 0..<UInt64(1024) { window.mark(counter) }
    window.mark(1500)
    #expect(!window.accepts(1023))
    #expect(window.accepts(1024))
    #expect(!window.accepts(476))
    window.mark(.max)
    #expect(window.accepts(.max - 1))
    #expect(!window.accepts(1501))
  }

  /// Against a set of everything seen, over random counters with jumps.
  @Test func theWindowAgreesWithAModel() {
    let seed: UInt64 = 77
    var random = SeededGenerator(state: seed)
    var window = ReplayWindow()
    var seen: Set<UInt64> = []
    var highest: UInt64 = 0
    for _ in 0..<50_000 {
      let jump = UInt64.random(in: 0..<50, using: &random) == 0 ? UInt64.random(in: 0..<3000, using: &random) : 3
      let base = highest + jump
      let counter = base - min(base, UInt64.random(in: 0..<1100, using: &random))
      let expected = !seen.contains(counter) && (seen.isEmpty || counter > highest || highest - counter < 1024)
      #expect(window.accepts(counter) == expected, "seed \(seed), counter \(counter)")
      guard expected else { continue }
      window.mark(counter)
      seen.insert(counter)
      highest = max(highest, counter)
    }
  }

  @Test func aWindowCanBeKeptFromMovingFar() {
    var window = ReplayWindow()
    #expect(!window.accepts(65, movingAtMost: 64))
    #expect(window.accepts(64, movingAtMost: 64))
    window.mark(1_000)
    #expect(!window.accepts(1_065, movingAtMost: 64))
    #expect(window.accepts(1_064, movingAtMost: 64))
    #expect(window.accepts(999, movingAtMost: 0))
    #expect(!window.accepts(1_000, movingAtMost: .max))
  }
}
