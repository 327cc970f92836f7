import Octets
import Testing

struct TokenBucketTests {
  private static let second: UInt64 = 1_000_000_000

  @Test func aBurstIsThereAtOnceAndThenTheRate() {
    var bucket = TokenBucket(perSecond: 10, burst: 3)
    #expect((0..<3).allSatisfy { _ in bucket.take(now: Self.second) == nil })
    #expect(bucket.take(now: Self.second) == 100_000_000)
    #expect(bucket.take(now: Self.second + 99_999_999) == 1)
    #expect(bucket.take(now: Self.second + 100_000_000) == nil)
    #expect(bucket.take(now: Self.second + 100_000_000) != nil)
  }

  @Test func anAmountBeyondTheRestIsNotTakenInPart() {
    var bucket = TokenBucket(perSecond: 10, burst: 10)
    #expect(bucket.take(8, now: 0) == nil)
    #expect(bucket.take(5, now: 0) == 300_000_000)
    #expect(bucket.take(2, now: 0) == nil)
  }

  @Test func aFullBucketPaysForAnyCount() {
    var bucket = TokenBucket(perSecond: 10, burst: 10)
    #expect(bucket.take(.max, now: 0) == nil)
    #expect(bucket.take(now: 0) == 100_000_000)
    #expect(bucket.take(.min, now: 0) == nil, "a negative count is refused")
  }

  @Test func aDebtIsPaidByTimeAndBounded() {
    var bucket = TokenBucket(perSecond: 10, burst: 10)
    #expect(bucket.owe(10, now: 0) == nil && !bucket.isFull(now: 0))
    #expect(bucket.owe(1, now: 0) == 100_000_000)
    for _ in 0..<100 { _ = bucket.owe(.max, now: 0) }
    #expect(bucket.owe(now: 0) == 10 * Self.second)
    #expect(bucket.isFull(now: 11 * Self.second))
  }
}
