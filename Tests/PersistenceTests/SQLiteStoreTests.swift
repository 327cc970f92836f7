import CallMessages
import Contract
import Foundation
import GRDB
import MediaModel
import Seeded
import StoreWriting
import Synchronization
import Testing

@testable import Persistence

struct SQLiteStoreTests {
  @Test func theFileIsForItsOwnerAlone() throws {
    let test = try TestStore()
    let store = try test.open()
    try store.write(facts("1", [(alice, 0, 1)], ended: 1))
    for file in try FileManager.default.contentsOfDirectory(atPath: test.folder) {
      let mode = try FileManager.default.attributesOfItem(atPath: test.folder + "/" + file)[.posixPermissions] as? Int
      #expect(mode == 0o600, "\(file)")
    }
  }

  @Test func allOrNothingOfACommandIsWritten() throws {
    let test = try TestStore()
    let store = try test.open()
    try DatabaseQueue(path: test.path).write { try $0.execute(sql: "DROP TABLE mailbox") }
    let device = Device(user: alice, device: DeviceID(unchecked: "phone"))
    #expect(throws: StoreError.self) {
      try store.write(
        facts("1", [(alice, 0, 1)], ended: 1) + [.mailbox(device, StoredMailbox(envelopes: [], rung: []))])
    }
    #expect(try store.list(of: alice, before: second(9), limit: 9, rejoinable: [], now: second(9)).calls.isEmpty)
  }

  // MARK: what operators meet

  @Test func aBrokenFileIsNamed() throws {
    let test = try TestStore()
    try Data(repeating: 7, count: 8_192).write(to: URL(fileURLWithPath: test.path))
    let error = #expect(throws: StoreError.self) { try test.open() }
    #expect(error?.kind == .broken)
    #expect(error?.description.contains(test.path) == true)
  }

  @Test func brokenContentsAreNamed() throws {
    let test = try TestStore()
    let store = try test.open()
    try DatabaseQueue(path: test.path).write { db in
      try db.execute(sql: "INSERT INTO call VALUES ('1', x'00')")
    }
    #expect(throws: StoreError.self) { try store.load(now: TestStore.now) }
  }

  /// The check finds everything that prevents a store from being opened and loaded, and changes no file.
  @Test(arguments: 1...60 as ClosedRange<UInt64>) func theCheckFindsWhatAStartWouldRefuse(seed: UInt64) throws {
    let test = try TestStore()
    var world = SmallWorld(seed: seed)
    do {
      let store = try test.open()
      for _ in 0..<30 { try store.write(world.step()) }
      try store.writer.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }
    var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: test.path)))
    var generator = SeededGenerator(seed: seed)
    if seed % 6 != 0 {
      for _ in 0..<Int.random(in: 1...8, using: &generator) {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
    }
    try Data(bytes).write(to: URL(fileURLWithPath: test.path))
    func files() throws -> [String: Data] {
      try FileManager.default.contentsOfDirectory(atPath: test.folder).reduce(into: [:]) {
        $0[$1] = try Data(contentsOf: URL(fileURLWithPath: test.folder + "/" + $1))
      }
    }
    let before = try files()
    var fault: StoreError?
    do { try SQLiteStore.check(path: test.path, now: world.now) } catch { fault = error }
    #expect(try files() == before, "seed \(seed)")
    var refusal: StoreError?
    do { _ = try test.open().load(now: world.now) } catch { refusal = error as? StoreError }
    // The check may also find damage that no start reads.
    #expect(refusal == nil || fault != nil, "seed \(seed)")
    if seed % 6 == 0 { #expect(fault == nil, "seed \(seed)") }
  }

  @Test func theCheckKnowsAMissingAnEmptyAndANewerFile() throws {
    let test = try TestStore()
    try SQLiteStore.check(path: test.path, now: TestStore.now)
    #expect(try FileManager.default.contentsOfDirectory(atPath: test.folder).isEmpty)
    #expect(FileManager.default.createFile(atPath: test.path, contents: nil))
    try SQLiteStore.check(path: test.path, now: TestStore.now)
    _ = try test.open()
    try SQLiteStore.check(path: test.path, now: TestStore.now)
    try DatabaseQueue(path: test.path).write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99')") }
    let error = #expect(throws: StoreError.self) { try SQLiteStore.check(path: test.path, now: TestStore.now) }
    #expect(error?.kind == .newer)
  }

  @Test func aNewerSchemaIsLeftAlone() throws {
    let test = try TestStore()
    _ = try test.open()
    try DatabaseQueue(path: test.path).write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99')") }
    #expect(throws: StoreError.self) { try test.open() }
    let error = #expect(throws: StoreError.self) { try test.open() }
    #expect(error?.kind == .newer)
  }

  /// Before the eighth migration an epoch's record had the whole list.
  @Test func theListOfARunningCallOutlivesTheMigration() throws {
    struct Former: Encodable {
      var number: UInt32 = 7
      var mode = RotationMode.ratchet
      var previous = Base64Bytes([0, 255])
      var list: [ListEntry]
    }
    let test = try TestStore()
    let (call, empty) = (runningCall("c1"), runningCall("c2"))
    let key = JoinKey(
      alg: "x\"/ä", publicKey: Base64Bytes([2]), generation: 3, at: second(1), signature: Base64Bytes([3]))
    let list = [entry(alice, 12, refresh: key), entry(bob, 0), entry(carol, 2)]
    let queue = try DatabaseQueue(path: test.path)
    try Schema.migrator.migrate(queue, upTo: "7")
    try queue.write { db in
      for (call, list) in [(call, list), (empty, [])] {
        try db.run("INSERT INTO call VALUES (?, ?)", [call.id.text, try db.blob(call)])
        try db.run("INSERT INTO progress VALUES (?, ?)", [call.id.text, try db.blob(progress(epoch: 7))])
        try db.run("INSERT INTO epoch VALUES (?, ?)", [call.id.text, try db.blob(Former(list: list))])
      }
    }
    try queue.close()
    let calls = try test.open().load(now: TestStore.now).calls
    #expect(calls.map(\.entries) == [[entry(carol, 2), entry(alice, 12, refresh: key)], []])
    func epoch(_ ringing: [ListEntry]) -> StoredEpoch {
      StoredEpoch(number: 7, mode: .ratchet, previous: Base64Bytes([0, 255]), ringing: ringing)
    }
    #expect(calls.map(\.epoch) == [epoch([entry(bob, 0)]), epoch([])])
  }

  @Test func aMissingFolderIsNamed() throws {
    let error = #expect(throws: StoreError.self) { try SQLiteStore(path: "/nowhere/at/all/conclave.sqlite") }
    #expect(error?.kind == .cannotOpen)
  }

  @Test func aFullDiskIsAnErrorUntilThereIsRoom() throws {
    let test = try TestStore()
    let store = try test.open()
    func limit(_ pages: Int) throws {
      try store.writer.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
    }
    try limit(1)
    let error = #expect(throws: StoreError.self) {
      for call in 0..<1_000 { try store.write(facts("\(call)", [(alice, 0, 1), (bob, 0, 1)], ended: 1)) }
    }
    #expect(error?.kind == .full)
    try limit(1 << 20)
    try store.write(facts("last", [(alice, 5, 6)], ended: 6))
    #expect(try store.list(of: alice, before: second(9), limit: 1, rejoinable: [], now: second(9)).calls.count == 1)
  }

  @Test func writesBesideTheCallsHoldNobodyUp() async throws {
    let test = try TestStore()
    let store = try SQLiteStore(path: test.path, patience: 60)
    let other = try DatabaseQueue(path: test.path)
    let (failures, failed) = AsyncStream.makeStream(of: StoreError?.self)
    var failure = failures.makeAsyncIterator()
    try await other.writeWithoutTransaction { db in
      try db.beginTransaction(.immediate)
      // Another process may lock the file for any time: this still returns.
      store.write(facts("1", [(alice, 0, 1)], ended: 1), as: FencingToken(number: 0)) { failed.yield($0) }
      try db.rollback()
    }
    #expect(await failure.next() == .some(.none))
    #expect(try store.list(of: alice, before: second(9), limit: 9, rejoinable: [], now: second(9)).calls.count == 1)
    try await store.writer.writeWithoutTransaction { try $0.execute(sql: "DROP TABLE history") }
    store.write(facts("2", [(alice, 0, 1)], ended: 1), as: FencingToken(number: 0)) { failed.yield($0) }
    #expect(await failure.next()??.kind == .failed)
  }

  @Test func theLogIsEmptiedAfterSomebodyIsForgotten() async throws {
    let test = try TestStore()
    let store = try test.open()
    func log() throws -> Int {
      try FileManager.default.attributesOfItem(atPath: test.path + "-wal")[.size] as? Int ?? -1
    }
    try store.write(facts("1", [(alice, 0, 1), (bob, 0, 1)], ended: 1))
    store.checkpoint()
    await settled(store)
    #expect(try log() > 0, "copied, and used again from its beginning")
    try store.write([.forgotten(alice)])
    store.checkpoint()
    await settled(store)
    #expect(try log() == 0)
  }

  @Test func aReaderInTheWayDelaysTheEmptyingAndIsNoFailure() async throws {
    let test = try TestStore()
    let store = try test.open()
    func log() throws -> Int {
      try FileManager.default.attributesOfItem(atPath: test.path + "-wal")[.size] as? Int ?? -1
    }
    let failures = Mutex(0)
    try store.write(facts("1", [(alice, 0, 1), (bob, 0, 1)], ended: 1))
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let reader = try DatabaseQueue(path: test.path, configuration: configuration)
    try await reader.writeWithoutTransaction { try $0.execute(sql: "BEGIN; SELECT * FROM history") }
    try store.write([.forgotten(alice)])
    store.checkpoint { _ in failures.withLock { $0 += 1 } }
    await settled(store)
    #expect(try log() > 0)
    try await reader.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
    store.checkpoint { _ in failures.withLock { $0 += 1 } }
    await settled(store)
    #expect(try log() == 0)
    #expect(failures.withLock { $0 } == 0)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>) func aForgottenUserIsInNoByteOfTheFiles(seed: UInt64) async throws {
    var state = seed
    func random(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    let test = try TestStore()
    let store = try test.open()
    let users = (0..<60).map { UserID(unchecked: "somebody-\(100 + $0)") }
    for call in 0..<400 {
      let present = Set((0..<2 + random(5)).map { _ in random(users.count) }).sorted()
      let id = "\(random(1 << 30))-\(call)"
      try store.write(facts(id, present.map { (users[$0], call, call + 1 + random(9)) }, ended: call + 10))
      // Rows that move leave copies.
      if call % 9 == 0 { _ = try store.sweep(now: second(86_400 * 90 + call / 2), historyDays: 90) }
    }
    let user = users[random(users.count)]
    try store.forget(user)
    try store.write([.forgotten(user)])
    store.checkpoint()
    await settled(store)
    for file in try FileManager.default.contentsOfDirectory(atPath: test.folder) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: test.folder + "/" + file))
      #expect(bytes.range(of: Data(user.text.utf8)) == nil, "seed \(seed): \(file)")
    }
  }

  /// Waits until the checkpointer has done its work.
  private func settled(_ store: SQLiteStore) async {
    try? await store.checkpointer.writeWithoutTransaction { _ in }
  }

  @Test func theCostOfATransaction() throws {
    let test = try TestStore()
    let store = try test.open()
    let clock = ContinuousClock()
    let rounds = 500
    let time = try clock.measure {
      for call in 0..<rounds { try store.write(facts("\(call)", [(alice, 0, 1), (bob, 0, 1)], ended: 1)) }
    }
    print("a transaction of 8 facts: \(time / rounds / .microseconds(1)) µs")
    let mailbox = StoredMailbox(envelopes: [], rung: [CallID(unchecked: "1")])
    let one = try clock.measure {
      for round in 0..<rounds {
        try store.write([.mailbox(Device(user: alice, device: DeviceID(unchecked: "\(round)")), mailbox)])
      }
    }
    print("a transaction of one mailbox: \(one / rounds / .microseconds(1)) µs")
    #expect(one / rounds < .milliseconds(20))
  }

  /// The content of all tables.
  private func text(_ store: SQLiteStore) throws -> String {
    try store.reader.read { db in
      let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      return try tables.flatMap { try Row.fetchAll(db, sql: "SELECT * FROM \"\($0)\"") }.map { row in
        row.map { _, value in String.fromDatabaseValue(value) ?? "\(value)" }.joined(separator: "|")
      }.joined(separator: "\n")
    }
  }

  @Test func aForgottenUserIsInNoTable() throws {
    let test = try TestStore()
    let store = try test.open()
    try store.write(facts("1", [(alice, 0, 9), (bob, 0, 9)], ended: 9))
    try store.write(facts("2", [(alice, 200, 209), (bob, 200, 209), (carol, 200, 209)], ended: 209))
    let link = StoredLastingLink(
      id: LinkID(unchecked: String(repeating: "l", count: 21) + "A"),
      device: Device(user: alice, device: DeviceID(unchecked: "phone")),
      fingerprint: Base64Bytes([1]), madeAt: second(1), expiresAt: second(9))
    try store.write([.lastingLink(link)])
    while try store.sweep(now: second(90 * 86_400 + 100), historyDays: 90) {}
    try store.forget(alice)
    try store.write([.forgotten(alice)])
    let rest = try text(store)
    #expect(!rest.contains("alice") && !rest.contains("Alice"))
    #expect(rest.contains("Carol"))
  }

  /// The file is only read when another process has changed it.
  @Test func aForgottenUserIsNamedOnce() throws {
    let test = try TestStore()
    let store = try test.open()
    try test.open().forget(alice)
    #expect(try store.takeForgotten() == [alice])
    #expect(try store.takeForgotten().isEmpty)
  }

  /// The message says which two servers there are and what to do.
  @Test func aFencedServerIsToldWhatToDo() throws {
    let test = try TestStore()
    let old = try test.open()
    let token = try old.load(now: TestStore.now).token
    _ = try test.open().load(now: TestStore.now)
    let error = #expect(throws: StoreError.self) { try old.write([.running(TestStore.now)], as: token) }
    #expect(
      error?.description
        == "\(test.path): a server that started later uses the file (start 2, this is start 1); end one of the two, or give "
        + "each its own state folder")
  }
}
