import ConclaveClient
import Testing

struct WaitingFramesTests {
  private let second: UInt64 = 1_000_000_000

  @Test func framesWaitASecond() {
    var frames = WaitingFrames<Int>()
    frames.keep(1, now: 0)
    frames.keep(2, now: second / 2)
    #expect(frames.take(now: second).map(\.frame) == [2])
    #expect(frames.dropped == 1)
  }

  @Test func atMost64OfThemTheNewest() {
    var frames = WaitingFrames<Int>()
    for number in 0..<100 { frames.keep(number, now: 1) }
    #expect(frames.take(now: 2).map(\.frame) == Array(36..<100))
    #expect(frames.isEmpty)
    #expect(frames.dropped == 36)
  }

  @Test func framesWithoutAKeyWaitOnAndNoLonger() {
    var frames = WaitingFrames<Int>()
    frames.keep(1, now: 0)
    for frame in frames.take(now: second - 1) { frames.keepAgain(frame) }
    #expect(frames.take(now: second).isEmpty)
  }
}
