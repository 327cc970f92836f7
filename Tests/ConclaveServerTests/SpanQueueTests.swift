import MediaModel
import NIOCore
import NIOPosix
import Testing

@testable import ConclaveServer

private func spans(_ count: Int) -> [Span] {
  let time = Timestamp(milliseconds: 1_790_000_000_000)
  return (0..<count).map { number in
    Span(
      name: "call", context: TraceContext(random: { UInt64(number + 1) }), from: time, to: time,
      attributes: ["number": .number(number)])
  }
}

/// The order and times of sending.
struct SpanQueueTests {
  private let start = Instant(nanoseconds: 0)
  private func at(_ seconds: Double) -> Instant { start.advanced(by: .milliseconds(Int(seconds * 1_000))) }

  @Test func spansWaitForOthersForASecond() {
    var queue = SpanQueue()
    #expect(queue.deadline(now: start) == nil && queue.next(now: start) == nil)
    queue.add(spans(1), now: start)
    queue.add(spans(2), now: at(0.5))
    #expect(queue.next(now: at(0.9)) == nil && queue.deadline(now: start) == at(1))
    #expect(queue.next(now: at(1))?.count == 3)
    #expect(queue.next(now: at(9)) == nil && queue.deadline(now: start) == nil, "one batch at a time")
    queue.add(spans(1), now: at(9))
    #expect(queue.next(now: at(20)) == nil && queue.deadline(now: start) == nil)
    queue.finished([], .delivered, now: at(20), jitter: 0)
    #expect(queue.next(now: at(20))?.count == 1)
    queue.finished([], .delivered, now: at(20), jitter: 0)
    #expect(queue.count == 0 && queue.drops.isEmpty && queue.deadline(now: start) == nil)
  }

  @Test func aFullBatchWaitsForNothing() {
    var queue = SpanQueue()
    queue.add(spans(SpanQueue.maximumBatch + 1), now: start)
    #expect(queue.next(now: start)?.count == SpanQueue.maximumBatch)
    queue.finished([], .delivered, now: start, jitter: 0)
    #expect(queue.next(now: start) == nil && queue.deadline(now: start) == at(1))
    #expect(queue.next(now: at(1))?.count == 1)
  }

  @Test func aFailureIsTriedAgainLaterAndLater() {
    var queue = SpanQueue()
    queue.add(spans(1), now: start)
    var now = at(1)
    var pauses: [Duration] = []
    while let sent = queue.next(now: now) {
      #expect(sent == spans(1))
      queue.finished([], .failed(retryAfter: nil), now: now, jitter: 1)
      guard let deadline = queue.deadline(now: start) else { break }
      #expect(queue.next(now: deadline.advanced(by: .milliseconds(-1))) == nil)
      pauses.append(now.duration(to: deadline))
      now = deadline
    }
    #expect(Array(pauses.prefix(7)) == [1, 2, 4, 8, 16, 32, 60].map { .seconds($0) })
    #expect(queue.drops == [.tooOld: 1] && queue.count == 0 && queue.deadline(now: start) == nil)
  }

  @Test func theCollectorsPatienceCountsWithinBounds() {
    var queue = SpanQueue()
    queue.add(spans(1), now: start)
    _ = queue.next(now: at(1))
    queue.finished([], .failed(retryAfter: .seconds(20)), now: at(1), jitter: 0)
    #expect(queue.deadline(now: start) == at(21))
    _ = queue.next(now: at(21))
    queue.finished([], .failed(retryAfter: .seconds(3_000)), now: at(21), jitter: 0)
    #expect(queue.deadline(now: start) == at(81))
  }

  @Test func aRefusedBatchIsDroppedAndTheNextGoes() {
    var queue = SpanQueue()
    queue.add(spans(2), now: start)
    _ = queue.next(now: at(1))
    queue.add(spans(1), now: at(1))
    queue.finished([], .refused, now: at(1), jitter: 0)
    #expect(queue.drops == [.refused: 2] && queue.next(now: at(2))?.count == 1)
  }

  @Test func aDeadCollectorFillsTheQueueAndNoMore() {
    var queue = SpanQueue()
    for second in 0..<100 {
      queue.add(spans(200), now: at(Double(second)))
      if queue.next(now: at(Double(second))) != nil {
        queue.finished([], .failed(retryAfter: nil), now: at(Double(second)), jitter: 1)
      }
    }
    #expect(queue.count == SpanQueue.maximumSpans)
    #expect(queue.drops == [.full: UInt64(20_000 - SpanQueue.maximumSpans)])
  }

  @Test func theEndOfTheServerTakesAllThatIsNotUnderWay() {
    var queue = SpanQueue()
    queue.add(spans(SpanQueue.maximumBatch + 5), now: start)
    _ = queue.next(now: start)
    #expect(queue.drain().map(\.count) == [5], "the other batch is under way")
    queue.finished([], .failed(retryAfter: nil), now: start, jitter: 0)
    #expect(queue.drain().map(\.count) == [SpanQueue.maximumBatch])
    #expect(queue.drain().isEmpty && queue.count == 0)
  }

  @Test func onlyFourFailuresAreTriedAgain() {
    for status in 100..<600 {
      let isPassing = [429, 502, 503, 504].contains(status)
      switch SpanExporter.response(status, retryAfter: 7) {
      case .delivered: #expect((200..<300).contains(status))
      case .failed(let pause): #expect(isPassing && pause == .seconds(7))
      case .refused: #expect(!isPassing && !(200..<300).contains(status))
      }
    }
    for (seconds, expected) in [(-5, 0), (Int64.max, 3_600), (.min, 0), (3_601, 3_600)] as [(Int64, Int64)] {
      guard case .failed(let pause) = SpanExporter.response(503, retryAfter: seconds) else {
        Issue.record("503 is a failure that passes")
        continue
      }
      #expect(pause == .seconds(expected))
    }
  }
}

struct SpanExporterTests {
  private func exporter(_ url: String) throws -> SpanExporter {
    try SpanExporter(Configuration.Telemetry(otlp: url), group: MultiThreadedEventLoopGroup.singleton)
  }

  @Test func spansArePostedTogetherAndAgainAfterAFailure() async throws {
    let server = try await BackEndServer { number, _ in .init(status: number == 0 ? 503 : 200, body: "{}") }
    let exporter = try exporter("http://127.0.0.1:\(server.port)/")
    exporter.add(spans(2))
    exporter.add(spans(1))
    #expect(await eventually { exporter.statistics.sent == 3 })
    #expect(server.received.map(\.path) == ["/v1/traces", "/v1/traces"])
    #expect(server.received[0].body == server.received[1].body)
    #expect(server.received[0].headers["content-type"] == "application/json")
    #expect(exporter.statistics.failed == 1 && exporter.statistics.drops.isEmpty && exporter.statistics.waiting == 0)
    await exporter.stop()
    await server.stop()
  }

  @Test func theRestIsSentAtTheEnd() async throws {
    let server = try await BackEndServer { _, _ in .init(body: "{}") }
    let exporter = try exporter("http://127.0.0.1:\(server.port)")
    exporter.add(spans(1))
    await exporter.stop()
    #expect(server.received.count == 1)
    await server.stop()
  }

  @Test func theEndWaitsForNoDeadCollector() async throws {
    let server = try await BackEndServer { _, _ in .init(delay: .minutes(10)) }
    let exporter = try exporter("http://127.0.0.1:\(server.port)")
    exporter.add(spans(SpanQueue.maximumSpans))
    let start = ContinuousClock.now
    await exporter.stop()
    #expect(ContinuousClock.now - start < .seconds(60))
    await server.stop()
  }
}
