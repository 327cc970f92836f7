import CallMessages
import Contract
import DatabaseServers
import Foundation
import GRDB
import MediaModel
import PostgreSQL
import Recording
import StoreWriting
import Testing

@testable import Persistence

@Suite(.timeLimit(.minutes(5))) struct StoreMoveTests: RecordingSamples {
  private let test: TestStore
  private let database: TestDatabase

  init() throws {
    test = try TestStore()
    database = try TestDatabase(in: try PostgresServer.shared.get(), hasTables: false)
  }

  /// A file with something in each table. Returns how many rows there are, without those about the server.
  private func fill(seed: UInt64) throws -> Int {
    let store = try test.open()
    _ = try store.load(now: TestStore.now)
    _ = try store.load(now: TestStore.now)
    var world = SmallWorld(seed: seed)
    for _ in 0..<60 { try store.write(world.step()) }
    let call = runningCall("moved")
    let device = Device(user: alice, device: DeviceID(unchecked: "phone"))
    try store.write([
      .call(call), .link(call.id, EpochLink(epoch: 7, roster: Base64Bytes([0, 255]))),
      .progress(call.id, progress(epoch: 7)),
      .epoch(call.id, StoredEpoch(number: 7, mode: .fresh, previous: Base64Bytes([1]), ringing: [entry(bob, 0)])),
      .entry(call.id, entry(alice, 3)),
      .confirmation(call.id, 3, Base64Bytes([1, 2])),
      .number(call.id, 3, StoredNumber(device: device, joinId: Base64Bytes([5]), cameBy: "start")),
      .number(call.id, 4, StoredNumber(device: device)), .presence(alice, StoredPresence(state: .unavailable)),
      .lastingLink(
        StoredLastingLink(
          id: LinkID(unchecked: String(repeating: "l", count: 21) + "A"), device: device,
          fingerprint: Base64Bytes([1, 255]), madeAt: second(1),
          expiresAt: second(9))),
      .mailbox(device, StoredMailbox(envelopes: [], rung: [call.id])), .running(second(77)),
    ])
    var draft = recording(3)
    draft.isDraft = true
    let ofRecordings: [RecordingFact] = [
      .begun(recording(1, reels: [(1, alice), (7, bob)])), .described(id(1), record(1)), .grant(grant(1, to: bob)),
      .grant(grant(1, to: bob, nil)), .note(id(1), note(3)), .witness(id(1), witness(1)), .ended(id(1), .finished),
      .reader(id(1), bob, .seen(second(3))), .reader(id(1), bob, .opened),
      .begun(recording(2, of: bob, reels: [(1, bob)])), .begun(draft),
      .begun(recording(4, reels: [])), .reel(id(4), StoredReel(number: 2, user: bob), person(2)),
      .trackKeys(id(4), trackKeys(2, 9, [1, 255], of: 4)), .trackKeys(id(4), trackKeys(2, 9, [2], of: 4)),
      .ended(id(4), .finished),
    ]
    // More than travel together.
    let segments: [RecordingFact] = (0..<1_200).map { .segment(id(1), reel: 7, segment($0)) }
    try store.write((ofRecordings + segments).map(StoreChange.recording))
    for number in 0..<300 {
      try store.write(facts("h\(number)", [(alice, number, number + 9), (bob, number, number + 5)], ended: number + 9))
    }
    while try store.sweep(now: second(90 * 86_400 + 100), historyDays: 90) {}
    try store.write([
      .report(
        StoredReport(
          id: ReportID(number: 1), at: second(5), call: call.id,
          report: Report(by: alice, user: bob, participant: nil, text: "'; --\n👩‍👩‍👧")))
    ])
    try store.delete(of: alice, calls: [CallID(unchecked: "h200")])
    try store.forget(carol)
    return try rows(test.path).values.reduce(0) { $0 + $1.count }
  }

  /// The rows of each table, as text.
  private func rows(_ file: String) throws -> [String: [String]] {
    try DatabaseQueue(path: file).read { db in
      try MovedTable.all.reduce(into: [:]) { rows, table in
        rows[table.name] = try Row.fetchAll(db, sql: table.selection).map { row in
          row.map { column, value in "\(column)=\(value)" }.joined(separator: "|")
        }
      }
    }
  }

  /// A table or column that is left out would be lost.
  @Test func allTablesAndColumnsAreMoved() throws {
    _ = try test.open()
    let expected: [String: [String]] = try DatabaseQueue(path: test.path).read { db in
      let names = try String.fetchAll(
        db,
        sql: """
          SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('server', 'grdb_migrations')
          AND name NOT LIKE 'sqlite_%'
          """)
      return try names.reduce(into: [:]) { $0[$1] = try db.columns(in: $1).map(\.name) }
    }
    let moved = MovedTable.all.map { table in
      let columns = table.selection.split(separator: "SELECT ")[0].split(separator: " FROM")[0]
      return (table.name, columns.split(separator: ", ").map { $0.replacing("\"", with: "") }.map(String.init))
    }
    #expect(Set(expected.keys) == Set(moved.map(\.0)))
    for (name, columns) in moved { #expect(Set(expected[name] ?? []) == Set(columns), "\(name)") }
    for table in MovedTable.all { #expect(expected[table.name]?.count == table.columns.count, "\(table.name)") }
  }

  /// Beside them the database has only the starts and the migrations.
  @Test func theDatabaseHasTheSameTables() throws {
    _ = try PostgresStore(try database.target)
    let names = try database.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").split(separator: "\n")
    #expect(Set(names.map(String.init)) == Set(MovedTable.all.map { $0.name.lowercased() } + ["node", "migration"]))
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>) func everythingComesBackAsItWas(seed: UInt64) throws {
    let count = try fill(seed: seed)
    let before = try rows(test.path)
    for name in [
      "call", "progress", "epoch", "entry", "link", "confirmation", "number", "presence", "mailbox", "lastingLink",
      "history", "part", "stay", "total", "report", "forgotten", "recording", "reel", "segment", "witness",
      "description", "readerGrant", "reader", "note", "person", "trackKey",
    ] {
      #expect(before[name]?.isEmpty == false, "\(name) has nothing to move")
    }
    #expect(try StoreMove.move(file: test.path, to: try database.target) == count)
    #expect(!FileManager.default.fileExists(atPath: test.path))
    #expect(try StoreMove.move(try database.target, to: test.path) == count)
    let after = try rows(test.path)
    for table in MovedTable.all {
      #expect(Set(after[table.name] ?? []) == Set(before[table.name] ?? []), "seed \(seed): \(table.name)")
    }
    for name in ["part", "report", "member"] { #expect(after[name] == before[name], "the order of \(name)") }
    let stored = try test.open().load(now: TestStore.now)
    #expect(stored.boots == 2 && stored.ranUntil == second(77))
  }

  @Test func aServerReadsTheSameFromBothStores() throws {
    _ = try fill(seed: 4)
    let before = try test.open().load(now: TestStore.now)
    _ = try StoreMove.move(file: test.path, to: try database.target)
    var after = try PostgresStore(try database.target).load(now: TestStore.now)
    #expect(after.boots == before.boots + 1)
    after.boots = before.boots
    #expect(after == before)
    let store = try PostgresStore(try database.target)
    #expect(try store.recording(id(1))?.reels.map(\.position.next) == [0, 1_200])
    #expect(try store.recordings().running.map(\.id) == [id(2), id(3)])
    #expect(try store.recording(id(3))?.isDraft == true && store.recording(id(2))?.isDraft == false)
    #expect(
      try store.readers(of: id(1)) == [StoredReader(user: bob, grants: 2, isOpened: true, seenAt: second(3))])
    #expect(try store.people(of: id(4)) == [person(2)])
    #expect(
      try store.trackKeys(of: id(4)) == [trackKeys(2, 9, [1, 255], of: 4), trackKeys(2, 9, [2], of: 4)])
  }

  @Test func aStoreThatHasSomethingAlreadyIsNotTouched() throws {
    _ = try fill(seed: 5)
    let before = try rows(test.path)
    _ = try PostgresStore(try database.target).load(now: TestStore.now)
    let error = #expect(throws: StoreError.self) { try StoreMove.move(file: test.path, to: try database.target) }
    #expect(error?.description.contains("make an empty one") == true)
    #expect(throws: StoreError.self) { try StoreMove.move(try database.target, to: test.path) }
    #expect(try rows(test.path) == before)
    #expect(try database.sql("SELECT count(*) FROM history") == "0")
  }

  @Test func anEarlierMovesFileIsNotOverwritten() throws {
    _ = try fill(seed: 7)
    #expect(FileManager.default.createFile(atPath: test.path + ".moved", contents: Data([1])))
    let error = #expect(throws: StoreError.self) { try StoreMove.move(file: test.path, to: try database.target) }
    #expect(error?.description.hasPrefix("\(test.path).moved: ") == true)
    #expect(FileManager.default.fileExists(atPath: test.path), "nothing was moved")
  }

  /// A server that still runs with the database writes nothing after the move.
  @Test func afterTheMoveNoServerWritesIntoTheDatabase() throws {
    let store = try PostgresStore(try database.target)
    let token = try store.load(now: TestStore.now).token
    try store.write([.running(second(1))], as: token)
    _ = try StoreMove.move(try database.target, to: test.path)
    let error = #expect(throws: StoreError.self) { try store.write([.running(second(2))], as: token) }
    #expect(error?.kind == .fenced)
    let mode = try FileManager.default.attributesOfItem(atPath: test.path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test func aMoveThatFailsLeavesEverythingAsItWas() throws {
    _ = try fill(seed: 6)
    let before = try rows(test.path)
    _ = try PostgresStore(try database.target)
    try database.sql("DROP TABLE report; CREATE TABLE report (id bigint)")
    #expect(throws: StoreError.self) { try StoreMove.move(file: test.path, to: try database.target) }
    #expect(try rows(test.path) == before)
    #expect(try database.sql("SELECT (SELECT count(*) FROM node), (SELECT count(*) FROM history)") == "0|0")
    #expect(throws: StoreError.self) { try StoreMove.move(try database.target, to: test.folder + "/other.sqlite") }
    #expect(!FileManager.default.fileExists(atPath: test.folder + "/other.sqlite"))
  }
}
