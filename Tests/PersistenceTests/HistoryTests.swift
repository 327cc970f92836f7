import CallMessages
import Contract
import MediaModel
import StoreWriting
import Testing

struct HistoryTests {
  private let test: TestStore

  init() throws { test = try TestStore() }

  private func list(
    _ store: any Storage, _ user: UserID, before: Int = 1 << 20, limit: Int = 200
  ) throws -> [HistoryEntry] {
    try store.list(
      of: user, before: second(before), limit: limit, rejoinable: [CallID(unchecked: "2")], now: second(1_000)
    ).calls
  }

  @Test(arguments: StoreKind.allCases) func theNewestComesFirstAndPagesGoOn(kind: StoreKind) throws {
    let store = try test.open(kind)
    for call in 1...5 { try store.write(facts("\(call)", [(alice, call, call + 3), (bob, call, call + 1)], ended: 9)) }
    #expect(try list(store, alice).map(\.id.text) == ["5", "4", "3", "2", "1"])
    #expect(try list(store, alice, limit: 2).map(\.id.text) == ["5", "4"])
    #expect(try list(store, alice, before: 4).map(\.id.text) == ["3", "2", "1"])
    #expect(try list(store, carol).isEmpty)
  }

  @Test(arguments: StoreKind.allCases) func anEntryIsOfItsUser(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write(facts("2", [(alice, 0, 100), (bob, 10, 40)], ended: 100))
    let entry = try #require(try list(store, bob).first)
    #expect(entry.direction == .incoming && entry.outcome == .answered && entry.seconds == 30)
    #expect(entry.members.map(\.name) == ["Alice", "Bob"])
    #expect(entry.rejoinable && entry.startedAt == second(0))
    #expect(try list(store, alice).first?.direction == .outgoing)
  }

  @Test(arguments: StoreKind.allCases) func openCallsAreNotHistory(kind: StoreKind) throws {
    let store = try test.open(kind)
    let call = CallID(unchecked: "1")
    try store.write([
      .history(.call(call, .audio, startedAt: second(0))), .history(.part(call, bob, name: nil, .incoming, nil)),
    ])
    #expect(try list(store, bob).isEmpty)
    try store.write([.history(.part(call, bob, name: nil, .incoming, .missed))])
    #expect(try list(store, bob).map(\.outcome) == [.missed])
  }

  @Test(arguments: StoreKind.allCases) func deletingIsForOneUserAndLasts(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write(facts("1", [(alice, 0, 9), (bob, 0, 9)], ended: 9))
    try store.write(facts("2", [(alice, 20, 29), (bob, 20, 29)], ended: 29))
    try store.delete(of: alice, calls: [CallID(unchecked: "1")])
    #expect(try list(store, alice).map(\.id.text) == ["2"])
    try store.delete(of: alice, calls: nil)
    // The same fact again, as after a disk failure.
    try store.write(facts("2", [(alice, 20, 29), (bob, 20, 29)], ended: 29))
    #expect(try list(store, alice).isEmpty)
    #expect(try list(store, bob).count == 2)
    #expect(try store.totals(of: alice, with: bob, now: second(99)) == Totals(calls: 2, seconds: 18))
  }

  @Test(arguments: StoreKind.allCases) func aStayAfterTheClockWasSetBackCounts(kind: StoreKind) throws {
    let store = try test.open(kind)
    let call = CallID(unchecked: "1")
    try store.write(facts("1", [(alice, 100, 110), (bob, 90, 110)], ended: nil))
    try store.write([.history(.came(call, alice, at: second(50))), .history(.went(call, alice, at: second(57)))])
    // When the clock is set back during a call, only the call itself is known, not its length.
    try store.write([.history(.came(call, bob, at: second(120))), .history(.went(call, bob, at: second(60)))])
    #expect(try list(store, alice).map(\.seconds) == [17])
    #expect(try list(store, bob).map(\.seconds) == [20])
    #expect(try store.totals(of: alice, with: bob, now: second(60)) == Totals(calls: 1, seconds: 10))
  }

  @Test(arguments: StoreKind.allCases) func aLongHistoryIsDeletedWhole(kind: StoreKind) throws {
    let store = try test.open(kind)
    for call in 0..<1_101 {
      try store.write(facts("\(call)", [(alice, call, call + 1), (bob, call, call + 1)], ended: call + 1))
    }
    try store.delete(of: alice, calls: nil)
    #expect(try list(store, alice).isEmpty)
    #expect(try !list(store, bob).isEmpty)
  }

  @Test(arguments: StoreKind.allCases) func totalsAreTheTimeTogether(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write(facts("1", [(alice, 0, 60), (bob, 10, 40), (carol, 50, 60)], ended: 60))
    try store.write(facts("2", [(bob, 100, nil), (alice, 110, nil)], ended: nil))
    try store.write([.history(.went(CallID(unchecked: "1"), bob, at: second(40)))])
    #expect(try store.totals(of: alice, with: bob, now: second(130)) == Totals(calls: 2, seconds: 50))
    #expect(try store.totals(of: bob, with: alice, now: second(130)) == Totals(calls: 2, seconds: 50))
    #expect(try store.totals(of: carol, with: bob, now: second(130)) == Totals(calls: 0, seconds: 0))
    #expect(try store.totals(of: carol, with: carol, now: second(130)) == Totals(calls: 0, seconds: 0))
  }

  @Test(arguments: StoreKind.allCases) func aCallThatEndsInTheMillisecondOfTheAnswerCounts(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write(facts("1", [(alice, 0, 5), (bob, 5, 5), (carol, 6, 9)], ended: 9))
    for now in [second(10), second(90 * 86_400 + 100)] {
      while try store.sweep(now: now, historyDays: 90) {}
      #expect(try store.totals(of: alice, with: bob, now: now) == Totals(calls: 1, seconds: 0))
      #expect(try store.totals(of: alice, with: carol, now: now) == Totals(calls: 0, seconds: 0))
    }
  }

  @Test(arguments: StoreKind.allCases) func totalsOutliveTheCalls(kind: StoreKind) throws {
    let store = try test.open(kind)
    for call in 1...40 {
      try store.write(facts("\(call)", [(alice, call, call + 10), (bob, call + 3, call + 20)], ended: call + 20))
    }
    try store.write(facts("on", [(alice, 0, nil), (bob, 0, nil)], ended: nil))
    try store.write([.call(runningCall("on"))])
    let before = try store.totals(of: alice, with: bob, now: second(100))
    #expect(before == Totals(calls: 41, seconds: 40 * 7 + 100))
    // 90 days after the 30th call ended.
    let late = second(90 * 86_400 + 50) + .milliseconds(1)
    var steps = 1
    while try store.sweep(now: late, historyDays: 90) { steps += 1 }
    #expect(steps < 20)
    #expect(try store.totals(of: alice, with: bob, now: second(100)) == before)
    #expect(try list(store, alice).map(\.id.text).filter { $0 != "on" } == (31...40).reversed().map(String.init))
    #expect(try store.acquainted(alice, with: [bob, carol]) == [bob])
  }

  @Test(arguments: StoreKind.allCases) func aStepOfALargeCallIsShort(kind: StoreKind) throws {
    let store = try test.open(kind)
    let users = (0..<300).map { UserID(unchecked: "u\($0)") }
    try store.write(facts("1", users.map { ($0, 0, 60) }, ended: 60))
    let clock = ContinuousClock()
    var steps: [Duration] = []
    var more = true
    while more { steps.append(try clock.measure { more = try store.sweep(now: second(91 * 86_400), historyDays: 90) }) }
    // The median: on a busy machine one step may wait for the processor.
    let median = steps.sorted()[steps.count / 2]
    print("the median step of a sweep: \(median / .milliseconds(1)) ms of \(steps.count)")
    #expect(try store.totals(of: users[7], with: users[8], now: second(0)) == Totals(calls: 1, seconds: 60))
    #expect(median < .milliseconds(100))
  }

  @Test(arguments: StoreKind.allCases) func forgettingAUserLeavesNothing(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write(facts("1", [(alice, 0, 9), (bob, 0, 9)], ended: 9))
    try store.write(facts("2", [(alice, 200, 209), (bob, 200, 209), (carol, 200, 209)], ended: 209))
    while try store.sweep(now: second(90 * 86_400 + 100), historyDays: 90) {}
    try store.forget(alice)
    #expect(try list(store, alice).isEmpty)
    #expect(try list(store, bob).map { $0.members.map(\.user) } == [[bob, carol]])
    #expect(try store.totals(of: alice, with: bob, now: second(300)) == Totals(calls: 0, seconds: 0))
    #expect(try store.totals(of: bob, with: carol, now: second(300)) == Totals(calls: 1, seconds: 9))
  }
}
