import Calls
import Contract
import GRDB
import MediaModel
import StoreWriting
import Testing

@testable import Persistence

struct HistoryTests {
  private let test: TestStore
  private let store: Store

  init() throws {
    test = try TestStore()
    store = try test.open()
  }

  private func list(_ user: UserID, before: Int = 1 << 20, limit: Int = 200) throws -> [HistoryEntry] {
    try store.list(
      of: user, before: second(before), limit: limit, rejoinable: [CallID(unchecked: "2")], now: second(1_000)
    ).calls
  }

  @Test func theNewestComesFirstAndPagesGoOn() throws {
    for call in 1...5 { try store.write(facts("\(call)", [(alice, call, call + 3), (bob, call, call + 1)], ended: 9)) }
    #expect(try list(alice).map(\.id.text) == ["5", "4", "3", "2", "1"])
    #expect(try list(alice, limit: 2).map(\.id.text) == ["5", "4"])
    #expect(try list(alice, before: 4).map(\.id.text) == ["3", "2", "1"])
    #expect(try list(carol).isEmpty)
  }

  @Test func anEntryIsOfItsUser() throws {
    try store.write(facts("2", [(alice, 0, 100), (bob, 10, 40)], ended: 100))
    let entry = try #require(try list(bob).first)
    #expect(entry.direction == .incoming && entry.outcome == .answered && entry.seconds == 30)
    #expect(entry.members.map(\.name) == ["Alice", "Bob"])
    #expect(entry.rejoinable && entry.startedAt == second(0))
    #expect(try list(alice).first?.direction == .outgoing)
  }

  @Test func openCallsAreNotHistory() throws {
    let call = CallID(unchecked: "1")
    try store.write([
      .history(.call(call, .audio, startedAt: second(0))), .history(.part(call, bob, name: nil, .incoming, nil)),
    ])
    #expect(try list(bob).isEmpty)
    try store.write([.history(.part(call, bob, name: nil, .incoming, .missed))])
    #expect(try list(bob).map(\.outcome) == [.missed])
  }

  @Test func deletingIsForOneUserAndLasts() throws {
    try store.write(facts("1", [(alice, 0, 9), (bob, 0, 9)], ended: 9))
    try store.write(facts("2", [(alice, 20, 29), (bob, 20, 29)], ended: 29))
    try store.delete(of: alice, calls: [CallID(unchecked: "1")])
    #expect(try list(alice).map(\.id.text) == ["2"])
    try store.delete(of: alice, calls: nil)
    // The same fact again, as after a disk that failed.
    try store.write(facts("2", [(alice, 20, 29), (bob, 20, 29)], ended: 29))
    #expect(try list(alice).isEmpty)
    #expect(try list(bob).count == 2)
    #expect(try store.totals(of: alice, with: bob, now: second(99)) == Totals(calls: 2, seconds: 18))
  }

  @Test func aStayAfterTheClockWasSetBackCounts() throws {
    let call = CallID(unchecked: "1")
    try store.write(facts("1", [(alice, 100, 110), (bob, 90, 110)], ended: nil))
    try store.write([.history(.came(call, alice, at: second(50))), .history(.went(call, alice, at: second(57)))])
    // When the clock is set back during a call, only the call itself is known, not its length.
    try store.write([.history(.came(call, bob, at: second(120))), .history(.went(call, bob, at: second(60)))])
    #expect(try list(alice).map(\.seconds) == [17])
    #expect(try list(bob).map(\.seconds) == [20])
    #expect(try store.totals(of: alice, with: bob, now: second(60)) == Totals(calls: 1, seconds: 10))
  }

  @Test func aLongHistoryIsDeletedWhole() throws {
    for call in 0..<1_101 {
      try store.write(facts("\(call)", [(alice, call, call + 1), (bob, call, call + 1)], ended: call + 1))
    }
    try store.delete(of: alice, calls: nil)
    #expect(try list(alice).isEmpty)
    #expect(try !list(bob).isEmpty)
  }

  @Test func totalsAreTheTimeTogether() throws {
    try store.write(facts("1", [(alice, 0, 60), (bob, 10, 40), (carol, 50, 60)], ended: 60))
    try store.write(facts("2", [(bob, 100, nil), (alice, 110, nil)], ended: nil))
    try store.write([.history(.went(CallID(unchecked: "1"), bob, at: second(40)))])
    #expect(try store.totals(of: alice, with: bob, now: second(130)) == Totals(calls: 2, seconds: 50))
    #expect(try store.totals(of: bob, with: alice, now: second(130)) == Totals(calls: 2, seconds: 50))
    #expect(try store.totals(of: carol, with: bob, now: second(130)) == Totals(calls: 0, seconds: 0))
    #expect(try store.totals(of: carol, with: carol, now: second(130)) == Totals(calls: 0, seconds: 0))
  }

  @Test func aCallThatEndsInTheMillisecondOfTheAnswerCounts() throws {
    try store.write(facts("1", [(alice, 0, 5), (bob, 5, 5), (carol, 6, 9)], ended: 9))
    for now in [second(10), second(90 * 86_400 + 100)] {
      while try store.sweep(now: now, historyDays: 90) {}
      #expect(try store.totals(of: alice, with: bob, now: now) == Totals(calls: 1, seconds: 0))
      #expect(try store.totals(of: alice, with: carol, now: now) == Totals(calls: 0, seconds: 0))
    }
  }

  @Test func totalsOutliveTheCalls() throws {
    for call in 1...40 {
      try store.write(facts("\(call)", [(alice, call, call + 10), (bob, call + 3, call + 20)], ended: call + 20))
    }
    try store.write(facts("on", [(alice, 0, nil), (bob, 0, nil)], ended: nil))
    try store.writer.write { try $0.execute(sql: "INSERT INTO call VALUES ('on', x'')") }
    let before = try store.totals(of: alice, with: bob, now: second(100))
    #expect(before == Totals(calls: 41, seconds: 40 * 7 + 100))
    // 90 days after the 30th call ended.
    let late = second(90 * 86_400 + 50) + .milliseconds(1)
    var steps = 1
    while try store.sweep(now: late, historyDays: 90) { steps += 1 }
    #expect(steps < 20)
    #expect(try store.totals(of: alice, with: bob, now: second(100)) == before)
    #expect(try list(alice).map(\.id.text).filter { $0 != "on" } == (31...40).reversed().map(String.init))
    #expect(try store.acquainted(alice, with: [bob, carol]) == [bob])
  }

  @Test func aStepOfALargeCallIsShort() throws {
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

  @Test func forgettingAUserLeavesNothing() throws {
    try store.write(facts("1", [(alice, 0, 9), (bob, 0, 9)], ended: 9))
    try store.write(facts("2", [(alice, 200, 209), (bob, 200, 209), (carol, 200, 209)], ended: 209))
    while try store.sweep(now: second(90 * 86_400 + 100), historyDays: 90) {}
    try store.forget(alice)
    #expect(try list(alice).isEmpty)
    #expect(try list(bob).map { $0.members.map(\.user) } == [[bob, carol]])
    #expect(try store.totals(of: alice, with: bob, now: second(300)) == Totals(calls: 0, seconds: 0))
    #expect(try store.totals(of: bob, with: carol, now: second(300)) == Totals(calls: 1, seconds: 9))
    try store.write([.forgotten(alice)])
    let rest = try text()
    #expect(!rest.contains("alice") && !rest.contains("Alice"))
    #expect(rest.contains("Carol"))
  }

  /// All that is in the tables.
  private func text() throws -> String {
    try store.reader.read { db in
      let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      return try tables.flatMap { try Row.fetchAll(db, sql: "SELECT * FROM \"\($0)\"") }.map { row in
        row.map { _, value in String.fromDatabaseValue(value) ?? "\(value)" }.joined(separator: "|")
      }.joined(separator: "\n")
    }
  }

  @Test func theServerLearnsOfWhatAnotherProcessForgot() throws {
    #expect(try store.takeForgotten().isEmpty)
    let other = try test.open()
    try other.forget(alice)
    #expect(try store.takeForgotten() == [alice])
    #expect(try store.takeForgotten().isEmpty)
    // A server that starts later learns of it, too.
    #expect(try test.open().takeForgotten() == [alice])
    try store.write([.forgotten(alice)])
    #expect(try test.open().takeForgotten().isEmpty)
  }
}
