import MediaModel
import Synchronization
import Testing

@testable import ConclaveServer

/// `/metrics` costs ten times as much as another page.
struct SharedTextTests {
  @Test func manyWhoAskGetTheTextThatWasMadeForOne() async {
    let time = Mutex(Instant(nanoseconds: 0))
    let made = Counter()
    let shared = SharedText(now: { time.withLock { $0 } }, make: { "\(made.next())" })
    var texts: [String] = []
    for _ in 0..<1_000 { texts.append(await shared.text()) }
    #expect(made.count <= 12)
    #expect(texts.prefix(2) == ["1", "2"], "two readings in a row differ")
    for second in 1...100 {
      time.withLock { $0 = Instant(nanoseconds: UInt64(second) * 1_000_000_000) }
      for _ in 0..<100 { _ = await shared.text() }
    }
    #expect(made.count <= 112, "one a second")
    let last = await shared.text()
    #expect(last == "\(made.count)")
  }

  @Test func questionsAtOnceWaitForTheSameText() async {
    let made = Counter()
    let shared = SharedText(
      now: { Instant(nanoseconds: 0) },
      make: {
        try? await Task.sleep(for: .milliseconds(10))
        _ = made.next()
        return "text"
      })
    let texts = await withTaskGroup(of: String.self) { group in
      for _ in 0..<500 { group.addTask { await shared.text() } }
      return await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(texts == ["text"] && made.count <= 12)
  }
}

private final class Counter: Sendable {
  private let value = Mutex(0)

  var count: Int { value.withLock { $0 } }

  func next() -> Int {
    value.withLock { value in
      value += 1
      return value
    }
  }
}
