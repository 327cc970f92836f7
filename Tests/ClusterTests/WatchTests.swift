import MediaModel
import Testing

@testable import Cluster

struct WatchTests {
  private let node = Incarnation(7)
  private let times = Times()

  /// Polls every second, and returns the second in which the node counts as silent.
  /// - Parameters:
  ///   - answers: how many milliseconds the answer to the poll of each second takes; 10 if it is not named.
  ///   - commits: of the node in each second.
  private func silence(answers: [Int: Int] = [:], commits: (Int) -> UInt64 = { _ in 1 }) -> Int? {
    var now = Instant(nanoseconds: 0)
    var watch = Watch(now: now)
    for second in 1...20 {
      now = max(now, Instant(nanoseconds: UInt64(second) * 1_000_000_000))
      guard watch.tick(now: now, times) else { continue }
      now = now.advanced(by: .milliseconds(answers[second] ?? 10))
      let row = NodeRow(node: node, commits: commits(second), isDead: false)
      if !watch.take([row], now: now, times).silent.isEmpty { return second }
    }
    return nil
  }

  @Test func aNodeThatDoesNotRenewIsSilentAfterTheLease() {
    #expect(silence().map { (6...8).contains($0) } == true)
  }

  @Test func aNodeThatRenewsIsNot() { #expect(silence(commits: { UInt64($0 / 3) }) == nil) }

  /// The store was slow, so the node may have been unable to renew.
  @Test func aSlowPollBeginsTheWindowAgain() throws {
    let quick = try #require(silence())
    let slow = try #require(silence(answers: [5: 2_500]))
    #expect(slow >= quick + 4)
  }

  @Test func aFailedPollBeginsTheWindowAgain() {
    var watch = Watch(now: Instant(nanoseconds: 0))
    let row = NodeRow(node: node, commits: 1, isDead: false)
    for second in [2, 3, 4, 5, 6] as [UInt64] {
      let now = Instant(nanoseconds: second * 1_000_000_000)
      let (asks, answer) = (watch.tick(now: now, times), watch.take([row], now: now, times))
      #expect(asks && answer.silent.isEmpty)
    }
    let then = Instant(nanoseconds: 7_000_000_000)
    let asks = watch.tick(now: then, times)
    watch.fail(now: then)
    let later = Instant(nanoseconds: 8_000_000_000)
    let (asksAgain, answer) = (watch.tick(now: later, times), watch.take([row], now: later, times))
    #expect(asks && asksAgain && answer.silent.isEmpty)
  }
}
