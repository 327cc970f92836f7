import Contract
import DatabaseServers
import Foundation
import LinuxIO
import MediaModel
import PostgreSQL
import StoreWriting
import Testing

@testable import Calls
@testable import Persistence

@Suite(.timeLimit(.minutes(2))) struct PostgresStoreTests {
  private let test: TestStore
  private let store: PostgresStore
  private let database: TestDatabase

  init() throws {
    test = try TestStore()
    store = try test.openPostgres()
    database = try #require(test.database)
  }

  private func connection(_ name: String = "test", in database: TestDatabase? = nil) throws -> PostgresConnection {
    try PostgresConnection(
      try (database ?? self.database).target,
      PostgresConnection.Settings(
        name: name, statement: nil, lock: .seconds(10), idle: .seconds(60), silence: .seconds(30)))
  }

  private func calls(of user: UserID) throws -> Int {
    try store.list(of: user, before: second(9_999), limit: 99, rejoinable: [], now: second(9_999)).calls.count
  }

  // MARK: tables

  @Test func twoServersThatMakeTheTablesAtOnceMakeThemOnce() async throws {
    let empty = try TestDatabase(in: try PostgresServer.shared.get(), hasTables: false)
    let target = try empty.target
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { _ = try PostgresStore(target) } }
      try await group.waitForAll()
    }
    #expect(try empty.sql("SELECT count(*), max(number) FROM migration") == "1|1")
  }

  @Test func aDatabaseOfANewerVersionIsLeftAlone() throws {
    try database.sql("INSERT INTO migration VALUES (99)")
    let error = #expect(throws: StoreError.self) { try test.openPostgres() }
    #expect(error?.kind == .newer)
  }

  @Test func aRoleThatMayNotMakeTablesIsToldWhatToDo() throws {
    let empty = try TestDatabase(in: try PostgresServer.shared.get(), hasTables: false)
    let role = "r" + empty.name
    try empty.sql("CREATE ROLE \(role) LOGIN")
    defer { _ = try? empty.server.sql("DROP ROLE \(role)") }
    let url = "postgresql://\(role)@/\(empty.name)?host=\(empty.server.folder)"
    let error = #expect(throws: StoreError.self) { try PostgresStore(try PostgresTarget(url: url, password: nil)) }
    #expect(error?.kind == .readOnly && error?.description.contains("ALTER DATABASE") == true)
  }

  // MARK: transactions

  @Test func allOrNothingOfABatchIsWritten() throws {
    try database.sql("DROP TABLE mailbox")
    let device = Device(user: alice, device: DeviceID(unchecked: "phone"))
    #expect(throws: StoreError.self) {
      try store.write(
        facts("1", [(alice, 0, 1)], ended: 1) + [.mailbox(device, StoredMailbox(envelopes: [], rung: []))])
    }
    #expect(try calls(of: alice) == 0)
  }

  /// Another transaction is in the way: the caller does not wait for it.
  @Test func writingReturnsAtOnce() async throws {
    let token = try store.load(now: TestStore.now).token
    let other = try connection()
    try other.run([PostgresStatement("BEGIN"), PostgresStatement("SELECT FROM node FOR UPDATE")])
    let (results, done) = AsyncStream.makeStream(of: StoreError?.self)
    store.write(facts("1", [(alice, 0, 1)], ended: 1), as: token) { done.yield($0) }
    try other.run([PostgresStatement("SELECT pg_sleep(0.2)"), PostgresStatement("ROLLBACK")])
    var result = results.makeAsyncIterator()
    #expect(await result.next() == .some(.none))
    #expect(try calls(of: alice) == 1)
  }

  /// A connection that a server's end has cut off, after the server had begun with the batch.
  @Test func aBatchWhoseConnectionWasLostIsWrittenByTheNextOne() throws {
    try database.sql(
      """
      CREATE SEQUENCE attempts;
      CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('attempts') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER cut AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION cut();
      """)
    let token = try store.load(now: TestStore.now).token
    try store.write(facts("1", [(alice, 0, 1)], ended: 1), as: token)
    try store.write(facts("2", [(alice, 2, 3)], ended: 3), as: token)
    #expect(try calls(of: alice) == 2)
    #expect(try database.sql("SELECT last_value FROM attempts") == "3")
    // The number of the attempt that was cut is never used.
    #expect(try database.sql("SELECT commits, resumed FROM node WHERE id = \(token.number)") == "3|1")
  }

  /// PostgreSQL warns when a commit is not on its standby yet. The batch is found, and not written again.
  @Test func aBatchThatIsInAlthoughPostgreSQLWarnedIsNotWrittenTwice() throws {
    try database.sql(
      """
      CREATE SEQUENCE attempts;
      CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('attempts'); RAISE WARNING 'not replicated'; RETURN NULL;
      END $$;
      CREATE TRIGGER warn AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION warn();
      """)
    let token = try store.load(now: TestStore.now).token
    try store.write(facts("1", [(alice, 0, 1)], ended: 1), as: token)
    #expect(try database.sql("SELECT last_value FROM attempts") == "1")
    #expect(try calls(of: alice) == 1)
    try store.write([.running(second(3))], as: token)
    #expect(try database.sql("SELECT commits, resumed FROM node WHERE id = \(token.number)") == "2|1")
  }

  /// A lost connection may still deliver a batch to the server; its number is too old then.
  @Test func aBatchThatComesLateIsRefused() throws {
    let token = Int64(try store.load(now: TestStore.now).token.number)
    let late = try connection()
    func fence(_ number: Int64) throws {
      try late.run([PostgresStatement("SELECT fence($1, $2)", .integer(token), .integer(number))])
    }
    func resume(sent: Int64) throws -> Int64? {
      try late.run([PostgresStatement("SELECT resume($1, $2)", .integer(token), .integer(sent))])[0].first?
        .optionalInteger(0)
    }
    try fence(1)
    #expect(throws: PostgresError.refused("CL002")) { try fence(1) }
    #expect(try resume(sent: 2) == 1, "the second is not in, and cannot come in any more")
    #expect(throws: PostgresError.refused("CL002")) { try fence(2) }
    try fence(3)
    #expect(throws: PostgresError.refused("CL003")) { try fence(5) }
    #expect(try resume(sent: 3) == 3)
    _ = try test.openPostgres().load(now: TestStore.now)
    #expect(throws: PostgresError.refused("CL001")) { try fence(4) }
    #expect(try resume(sent: 4) == nil)
  }

  @Test func aDatabaseThatForgotWhatItConfirmedIsNoticed() throws {
    let token = try store.load(now: TestStore.now).token
    for number in 1...3 { try store.write([.running(second(number))], as: token) }
    try database.sql("UPDATE node SET commits = 1 WHERE id = \(token.number)")
    let error = #expect(throws: StoreError.self) { try store.write([.running(second(4))], as: token) }
    #expect(error?.kind == .failed && error?.description.contains("synchronous_standby_names") == true)
    // The server writes everything again.
    try store.write([.reset, .running(second(5))], as: token)
    #expect(try store.load(now: TestStore.now).ranUntil == second(5))
  }

  // MARK: starts

  @Test func aFencedServerIsToldWhatToDo() throws {
    let token = try store.load(now: TestStore.now).token
    _ = try test.openPostgres().load(now: TestStore.now)
    let error = #expect(throws: StoreError.self) { try store.write([.running(TestStore.now)], as: token) }
    #expect(error?.kind == .fenced)
    #expect(error?.description.hasSuffix("end one of the two, or give each its own database") == true)
  }

  /// A server that stands still within a transaction keeps no other one from starting.
  @Test func aStartEndsWhatAnEarlierOneLeftOpen() throws {
    let token = Int64(try store.load(now: TestStore.now).token.number)
    let stopped = try connection(PostgresStore.writerName)
    try stopped.run([
      PostgresStatement("BEGIN"), PostgresStatement("SELECT fence($1, $2)", .integer(token), .integer(1)),
    ])
    let next = try test.openPostgres().load(now: TestStore.now)
    #expect(next.boots == UInt32(token))
    #expect(throws: PostgresError.self) { try stopped.run([PostgresStatement("COMMIT")]) }
  }

  @Test func aStartThatCannotReadTheStateChangesNothing() throws {
    let token = try store.load(now: TestStore.now).token
    try database.sql("INSERT INTO call VALUES ('1', '\\x00')")
    let error = #expect(throws: StoreError.self) { try test.openPostgres().load(now: TestStore.now) }
    #expect(error?.kind == .broken)
    try store.write([.running(TestStore.now)], as: token)
  }

  // MARK: a database that is away

  @Test func aDatabaseThatRestartsIsUsedAgain() async throws {
    let server = try PostgresServer()
    let database = try TestDatabase(in: server)
    let store = try PostgresStore(try database.target, patience: .milliseconds(200))
    let token = try store.load(now: TestStore.now).token
    try store.write(facts("1", [(alice, 0, 1)], ended: 1), as: token)
    func calls() throws -> Int {
      try store.list(of: alice, before: second(99), limit: 9, rejoinable: [], now: second(99)).calls.count
    }
    #expect(try calls() == 1)
    try server.stop()
    let error = #expect(throws: StoreError.self) {
      try store.write(facts("2", [(alice, 2, 3)], ended: 3), as: token)
    }
    #expect(error?.kind == .unreachable)
    #expect(error?.description.contains("start the server") == true)
    #expect(throws: StoreError.self) { try calls() }
    try server.start()
    try store.write(facts("3", [(alice, 4, 5)], ended: 5), as: token)
    #expect(try calls() == 2, "what was reported as failed is not in")
    // Each connection was lost, and nobody is told.
    try server.stop()
    try server.start()
    #expect(try calls() == 2)
    try store.write(facts("4", [(alice, 6, 7)], ended: 7), as: token)
    #expect(try calls() == 3)
  }

  // MARK: refusals, in words for the operator

  @Test(arguments: [
    ("nobody", "postgres", "CREATE ROLE"), ("conclave", "nothing", "CREATE DATABASE"),
  ])
  func aRefusalSaysWhatToDo(role: String, database: String, remedy: String) throws {
    let folder = try PostgresServer.shared.get().folder
    let target = try PostgresTarget(url: "postgresql://\(role)@/\(database)?host=\(folder)", password: nil)
    let error = #expect(throws: StoreError.self) { try PostgresStore(target) }
    #expect(error?.kind == .unreachable)
    #expect(error?.description.contains(remedy) == true, "\(error.map { "\($0)" } ?? "")")
    #expect(error?.description.contains("\n") == false)
  }

  @Test func aMissingServerSaysWhatToDo() throws {
    let target = try PostgresTarget(url: "postgresql://conclave@127.0.0.1:1/conclave", password: nil)
    let error = #expect(throws: StoreError.self) { try PostgresStore(target) }
    #expect(error?.description.hasPrefix("postgresql://127.0.0.1:1/conclave: ") == true)
    #expect(error?.description.contains("start the server") == true)
  }

  @Test func aDatabaseOfAnotherEncodingIsRefused() throws {
    let server = try PostgresServer.shared.get()
    let name = "latin" + UUID().uuidString.lowercased().prefix(8)
    try server.sql("CREATE DATABASE \(name) ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    defer { _ = try? server.sql("DROP DATABASE \(name) WITH (FORCE)") }
    let target = try PostgresTarget(url: server.url(name), password: nil)
    let error = #expect(throws: StoreError.self) { try PostgresStore(target) }
    #expect(error?.description.contains("ENCODING 'UTF8'") == true)
  }

  @Test func theCostOfABatch() throws {
    let token = try store.load(now: TestStore.now).token
    let clock = ContinuousClock()
    let rounds = 200
    let time = try clock.measure {
      for call in 0..<rounds { try store.write(facts("\(call)", [(alice, 0, 1), (bob, 0, 1)], ended: 1), as: token) }
    }
    print("a batch of 8 facts in PostgreSQL: \(time / rounds / .microseconds(1)) µs")
    let large = try clock.measure {
      try store.write(
        (0..<rounds * 10).flatMap { facts("l\($0)", [(alice, 0, 1), (bob, 0, 1)], ended: 1) }, as: token)
    }
    print("a fact of a large batch in PostgreSQL: \(large / (rounds * 80) / .microseconds(1)) µs")
    #expect(large < time * 10, "one transaction, not one for each")
  }
}
