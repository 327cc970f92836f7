import MediaModel
import Testing

@testable import ConclaveServer

/// The queue in virtual time.
struct WebhookQueueTests {
  private static func post(_ id: Int, of line: String, bytes: Int = 2) -> WebhookQueue.Post {
    .init(id: "\(id)", line: line, event: "call.member", body: Array(repeating: 0, count: bytes))
  }

  private static func at(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64((seconds + 100) * 1e9)) }

  @Test func theNextEventOfACallWaitsForTheOneBefore() throws {
    var queue = WebhookQueue()
    for i in 1...3 { queue.add(Self.post(i, of: "a"), now: Self.at(0)) }
    queue.add(Self.post(4, of: "b"), now: Self.at(0))
    let first = queue.next(now: Self.at(0))
    let other = queue.next(now: Self.at(0))
    #expect(first?.id == "1" && other?.id == "4")
    #expect(queue.next(now: Self.at(0)) == nil)
    queue.finished(try #require(first), .delivered, now: Self.at(1), jitter: 0)
    #expect(queue.next(now: Self.at(1))?.id == "2")
    #expect(queue.next(now: Self.at(1)) == nil)
  }

  @Test func aFailureIsTriedAgainLaterAndHoldsUpItsCallAlone() throws {
    var queue = WebhookQueue()
    for (id, line) in [(1, "a"), (2, "a"), (3, "b")] { queue.add(Self.post(id, of: line), now: Self.at(0)) }
    let first = queue.next(now: Self.at(0))
    queue.finished(try #require(first), .failed, now: Self.at(0), jitter: 1)
    #expect(queue.next(now: Self.at(0))?.id == "3")
    #expect(queue.next(now: Self.at(0.9)) == nil)
    #expect(queue.deadline(now: Self.at(0)) == Self.at(1))
    let again = queue.next(now: Self.at(1))
    #expect(again == first, "the same id and body")
    queue.finished(try #require(again), .delivered, now: Self.at(1), jitter: 1)
    #expect(queue.next(now: Self.at(1))?.id == "2")
    #expect(queue.deadline(now: Self.at(0)) == nil)
  }

  @Test func pausesDoubleUpToAMinuteWithJitter() {
    let seconds = (1...9).map { WebhookQueue.backoff.pause(after: $0, jitter: 1).components.seconds }
    #expect(seconds == [1, 2, 4, 8, 16, 32, 60, 60, 60])
    #expect(WebhookQueue.backoff.pause(after: 2, jitter: 0) == .seconds(1))
    #expect(WebhookQueue.backoff.pause(after: .max, jitter: 1) == .seconds(60))
  }

  @Test func refusedWebhooksAreGivenUpAndCounted() throws {
    var queue = WebhookQueue()
    for i in 1...2 { queue.add(Self.post(i, of: "a"), now: Self.at(0)) }
    let first = queue.next(now: Self.at(0))
    queue.finished(try #require(first), .refused, now: Self.at(0), jitter: 0)
    #expect(queue.next(now: Self.at(0))?.id == "2")
    #expect(queue.drops == [.refused: 1])
  }

  @Test func afterTenMinutesAPostIsGivenUpAndTheNextGoesOn() throws {
    var queue = WebhookQueue()
    queue.add(Self.post(1, of: "a"), now: Self.at(0))
    queue.add(Self.post(2, of: "a"), now: Self.at(300))
    var tries = 0
    var now = Self.at(0)
    while now < Self.at(600), let post = queue.next(now: now) {
      #expect(post.id == "1")
      tries += 1
      queue.finished(post, .failed, now: now, jitter: 1)
      now = try #require(queue.deadline(now: Self.at(0)))
    }
    #expect((10...20).contains(tries))
    #expect(queue.next(now: now)?.id == "2")
    #expect(queue.drops == [.tooOld: 1])
    #expect(queue.count == 1)
  }

  @Test func onlySoManyAreUnderWayAtOnce() throws {
    var queue = WebhookQueue()
    for i in 0..<20 { queue.add(Self.post(i, of: "call \(i)"), now: Self.at(0)) }
    let posts = (0..<20).compactMap { _ in queue.next(now: Self.at(0)) }
    #expect(posts.count == WebhookQueue.parallel)
    queue.finished(posts[0], .delivered, now: Self.at(0), jitter: 0)
    #expect(queue.next(now: Self.at(0)) != nil)
    #expect(queue.next(now: Self.at(0)) == nil)
  }

  @Test func theOldestThatIsNotUnderWayMakesRoom() throws {
    var queue = WebhookQueue()
    queue.add(Self.post(0, of: "busy"), now: Self.at(0))
    let busy = queue.next(now: Self.at(0))
    for i in 1...WebhookQueue.maximumPosts { queue.add(Self.post(i, of: "call \(i % 7)"), now: Self.at(0)) }
    #expect(queue.count == WebhookQueue.maximumPosts)
    #expect(queue.drops == [.full: 1])
    #expect(queue.next(now: Self.at(0))?.id == "8", "1 is gone, and its call continues with its next post")
    queue.finished(try #require(busy), .delivered, now: Self.at(0), jitter: 0)
    #expect(queue.count == WebhookQueue.maximumPosts - 1)
  }

  @Test func aFullQueueOfManyCallsIsNotSearchedForEachEvent() {
    var queue = WebhookQueue()
    let count = WebhookQueue.maximumPosts
    func time(adding numbers: Range<Int>) -> Duration {
      ContinuousClock().measure {
        for i in numbers { queue.add(Self.post(i, of: "call \(i)"), now: Self.at(0)) }
      }
    }
    let filling = time(adding: 0..<count)
    let overflowing = time(adding: count..<3 * count)
    #expect(queue.count == count && queue.drops == [.full: UInt64(2 * count)])
    // 20,000 searches among 10,000 calls would take far longer.
    #expect(overflowing < filling * 20)
  }

  @Test func bytesAreBoundedToo() {
    var queue = WebhookQueue()
    let half = WebhookQueue.maximumBytes / 2
    for i in 0..<5 { queue.add(Self.post(i, of: "a", bytes: half), now: Self.at(0)) }
    #expect(queue.count == 2)
    #expect(queue.next(now: Self.at(0))?.id == "3")
  }

  /// Posts of many calls through a back end that fails at random: each arrives once and in order, and nothing is left.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func everythingArrivesInOrder(seed: UInt64) {
    var state = seed
    func random() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 40) / Double(1 << 24)
    }
    var queue = WebhookQueue()
    var underWay: [WebhookQueue.Post] = []
    var arrived: [String: [Int]] = [:]
    var now = Self.at(0)
    var added = 0
    while added < 300 || !underWay.isEmpty || queue.deadline(now: Self.at(0)) != nil || queue.count > 0 {
      if added < 300 {
        queue.add(Self.post(added, of: "call \(Int(random() * 9))"), now: now)
        added += 1
      }
      while let post = queue.next(now: now) { underWay.append(post) }
      #expect(Set(underWay.map(\.line)).count == underWay.count && underWay.count <= WebhookQueue.parallel)
      if !underWay.isEmpty {
        let post = underWay.remove(at: Int(random() * Double(underWay.count)))
        let fails = random() < 0.3
        if !fails { arrived[post.line, default: []].append(Int(post.id)!) }
        queue.finished(post, fails ? .failed : .delivered, now: now, jitter: random())
      }
      now = now.advanced(by: .milliseconds(50))
    }
    #expect(arrived.values.reduce(0) { $0 + $1.count } == 300 && queue.drops.isEmpty, "seed \(seed)")
    for ids in arrived.values { #expect(ids == ids.sorted(), "seed \(seed)") }
  }
}
