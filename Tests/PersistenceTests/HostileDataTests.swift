import CallMessages
import Contract
import Foundation
import GRDB
import MediaModel
import Seeded
import Simulation
import StoreWriting
import Testing

@testable import Persistence

/// Clients' values pass through SQLite unchanged. A damaged file is refused: it is not trusted, and nothing traps.
@Suite(.timeLimit(.minutes(5))) struct HostileDataTests {
  /// Ids may contain characters with a meaning in SQL and paths; names may be any text without U+0000, which JSON
  /// refuses.
  private static let ids = [
    ".", "..", "~", "-", "--", "@", "+", "a.b_c~d@e+f-g", "NULL", "null", "0", "-1", "1e999", "x'00'", "rowid",
    String(repeating: "a", count: 128),
  ]
  private static let names = [
    "", " ", "'; DROP TABLE part; --", "\"", "%", "_", "\\", "\u{FFFD}", "\u{202E}", "👩‍👩‍👧", "\u{1}\n\r\t",
    String(repeating: "n", count: 100_000),
  ]

  @Test(arguments: StoreKind.allCases) func idsAndNamesComeBackAsTheyWere(kind: StoreKind) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    let users = Self.ids.compactMap { UserID($0) }
    #expect(users.count > 10)
    for (number, user) in users.enumerated() {
      let name = Self.names[number % Self.names.count]
      let call = CallID(unchecked: "c\(number)")
      try store.write([
        .history(.call(call, .audio, startedAt: second(number))),
        .history(.part(call, user, name: name, .outgoing, .answered)),
        .history(.part(call, alice, name: name, .incoming, .answered)),
        .history(.came(call, user, at: second(number))), .history(.came(call, alice, at: second(number))),
        .history(.ended(call, at: second(number + 10))),
      ])
      let kept = try store.list(of: user, before: second(9_999), limit: 9, rejoinable: [], now: second(9_999)).calls
      #expect(kept.count == 1 && kept[0].members.map(\.user) == [user, alice])
      #expect(kept[0].members.map(\.name) == [name, name])
      #expect(try store.totals(of: alice, with: user, now: second(9_999)).calls == 1)
      #expect(try store.acquainted(alice, with: [user]) == [user])
    }
    #expect(
      try store.list(of: alice, before: second(9_999), limit: 200, rejoinable: [], now: second(9_999)).calls.count
        == users.count)
  }

  /// Bytes of a file are changed, cut off or zeroed. It opens, or is refused with its name; whatever it then returns,
  /// nothing traps.
  @Test(arguments: 1...40 as ClosedRange<UInt64>) func aDamagedFileIsAnErrorAndNoTrap(seed: UInt64) throws {
    let test = try TestStore()
    var world = SmallWorld(seed: seed)
    do {
      let store = try test.open()
      for _ in 0..<30 { try store.write(world.step()) }
      try store.write(facts("1", [(alice, 0, 5), (bob, 1, 4)], ended: 6))
      _ = try store.load(now: world.now)
      try store.writer.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }
    var random = SeededGenerator(seed: seed)
    let file = URL(fileURLWithPath: test.path)
    var bytes = Array(try Data(contentsOf: file))
    switch seed % 4 {
    case 0: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
    case 1:
      let page = Int.random(in: 0..<bytes.count / 4_096, using: &random) * 4_096
      for place in page..<page + 4_096 { bytes[place] = 0 }
    default:
      // After the header's magic number, which is checked first.
      for _ in 0..<Int.random(in: 1...2_000, using: &random) {
        bytes[Int.random(in: 100..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
    }
    try Data(bytes).write(to: file)
    for side in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: test.path + side) }
    do throws(StoreError) {
      let store = try SQLiteStore(path: test.path)
      _ = try store.load(now: world.now)
      _ = try store.list(of: alice, before: second(9_999), limit: 200, rejoinable: [], now: second(9_999))
      _ = try store.totals(of: alice, with: bob, now: second(9_999))
      _ = try store.takeForgotten()
      try store.write([.forgotten(alice)])
    } catch {
      #expect(error.description.contains(test.path), "seed \(seed): \(error)")
    }
  }

  /// Values of another type than their column's, which SQLite stores unchanged.
  @Test(arguments: [
    "INSERT INTO presence VALUES (x'ff', x'00')", "INSERT INTO mailbox VALUES (1, 2, 3)",
    "INSERT INTO device VALUES ('a', 'b', 7)", "INSERT INTO call VALUES (x'00ff', 'text')",
    "UPDATE server SET boots = -1", "UPDATE server SET boots = 1e300",
    "UPDATE server SET boots = 4294967295",
    "INSERT INTO ended VALUES (x'ff', 9e18, 1)", "INSERT INTO revokes VALUES ('a', '{}')",
    "INSERT INTO lastingLink VALUES ('l', 'a', 1, '{}')",
    "INSERT INTO call VALUES ('c', x'7b7d'); INSERT INTO link VALUES ('c', -1, x'00')",
    "INSERT INTO call VALUES ('c', x'7b7d'); INSERT INTO confirmation VALUES ('c', 'x', 1)",
  ])
  func aValueOfTheWrongTypeIsAnError(sql: String) throws {
    let test = try TestStore()
    let store = try test.open()
    try DatabaseQueue(path: test.path).write { try $0.execute(sql: sql) }
    let error = #expect(throws: StoreError.self) { try store.load(now: TestStore.now) }
    #expect(error?.kind == .broken && error?.description.contains(test.path) == true)
  }
}
