import CallMessages
import Contract
import DatabaseServers
import Foundation
import LinuxIO
import MediaModel
import PostgreSQL
import Recording
import StoreWriting
import Testing

@testable import Persistence

@Suite(.timeLimit(.minutes(5))) struct PostgresStoreTests {
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

  @Test func earlierStartsAreForgottenButForTheLastThatRan() throws {
    for _ in 0..<4 {
      let token = try store.load(now: TestStore.now).token
      try store.write([.running(second(Int(token.number)))], as: token)
    }
    // They never said when they ran.
    for _ in 0..<2 { _ = try store.load(now: TestStore.now) }
    let last = try store.load(now: TestStore.now)
    let kept = try database.sql("SELECT string_agg(id::text, ',' ORDER BY id) FROM node WHERE id < \(UInt32.max)")
    #expect(kept == (4...7).map { "\($0)" }.joined(separator: ","))
    #expect(last.boots == 6 && last.ranUntil == second(4))
    let error = #expect(throws: StoreError.self) {
      try store.write([.running(second(1))], as: FencingToken(number: 1))
    }
    #expect(error?.kind == .fenced, "a start that is not there is as dead")
  }

  // MARK: connections

  @Test func aLongHistoryDelaysNeitherARecordingNorABatch() async throws {
    let token = try store.load(now: TestStore.now).token
    let other = try connection()
    try other.run([PostgresStatement("BEGIN"), PostgresStatement("LOCK TABLE part IN ACCESS EXCLUSIVE MODE")])
    // Not on a thread of the tests' own tasks, of which there are two on two cores: it waits.
    let history = AsyncStream<Result<Int, any Error>>.makeStream()
    DispatchQueue.global().async { [store] in
      let answer = Result { try store.list(of: alice, before: second(9), limit: 9, rejoinable: [], now: second(9)) }
      history.continuation.yield(answer.map(\.calls.count))
    }
    func isWaiting() throws -> Bool {
      try database.sql("SELECT count(*) FROM pg_locks WHERE relation = 'part'::regclass AND NOT granted") == "1"
    }
    while try !isWaiting() { try await Task.sleep(for: .milliseconds(5)) }
    #expect(try store.recordings().running.isEmpty && store.takeForgotten().isEmpty)
    try store.write([.running(second(1))], as: token)
    #expect(try isWaiting())
    try other.run([PostgresStatement("ROLLBACK")])
    var answers = history.stream.makeAsyncIterator()
    #expect(try await answers.next()?.get() == 0)
  }

  // MARK: the server's condition

  @Test func theConditionIsWhatTheServerSays() throws {
    let server = try PostgresServer()
    let database = try TestDatabase(in: server)
    let store = try PostgresStore(try database.target)
    func condition() throws -> StoreCondition {
      // Its clock is this machine's.
      try #require(try store.condition { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000)) })
    }
    var now = try condition()
    #expect(now.confirmation == .disk && now.standbys == 0 && !now.isClockOff && now.roundTrip > .zero)
    let ahead = try #require(
      try store.condition { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) - 7_000) })
    #expect(ahead.isClockOff && ahead.clockOffset > .seconds(6) && !ahead.isLike(now))
    try server.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (a, b)'")
    try server.sql("SELECT pg_reload_conf()")
    for _ in 0..<500 where now.confirmation == .disk {
      MonotonicClock.sleep(nanoseconds: 10_000_000)
      now = try condition()
    }
    #expect(now.confirmation == .standbys("ANY 1 (a, b)") && now.isSynchronous && now.isStuck)
    let facts = try PostgresStore.check(try database.target) { second(0) }
    #expect(facts.condition.isStuck && facts.commitTime == nil, "no commit is tried that would wait")
    // Its own commit does not wait.
    try server.sql("SET synchronous_commit = local; ALTER ROLE \(PostgresServer.role) SET synchronous_commit = off")
    #expect(try PostgresStore.check(try database.target) { second(0) }.condition.confirmation == .off("off"))
  }

  // MARK: a database that is away

  /// Recordings' rows wait behind each other: each would add its patience.
  @Test func aBatchAfterOneThatFailedIsTriedOnce() throws {
    let server = try PostgresServer()
    let database = try TestDatabase(in: server)
    let patience = Duration.seconds(2)
    let store = try PostgresStore(try database.target, patience: patience)
    let token = try store.load(now: TestStore.now).token
    try server.stop()
    let clock = ContinuousClock()
    func time() -> Duration {
      clock.measure { #expect(throws: StoreError.self) { try store.write([.running(second(1))], as: token) } }
    }
    #expect(time() >= patience)
    #expect(time() < patience)
    try server.start()
    try store.write([.running(second(2))], as: token)
    try server.stop()
    #expect(time() >= patience, "after a success there is patience again")
  }

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

  /// As libpq 15 and PostgreSQL 15 say it.
  @Test(arguments: [
    (#"FATAL:  Peer authentication failed for user "conclave""#, "run as the system user"),
    (#"FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "conclave", database "conclave", SSL on"#, "pg_hba.conf"),
    (#"server certificate for "db2" does not match host name "db1""#, "a certificate for this name"),
    ("SSL error: certificate verify failed", "sslrootcert"),
    ("server does not support SSL, but SSL was required", "ssl = on"),
    (#"could not translate host name "db1" to address: Name or service not known"#, "the resolver"),
    ("timeout expired", "the firewall"),
    ("FATAL:  sorry, too many clients already", "max_connections"),
    ("FATAL:  the database system is starting up", "wait a moment"),
    ("FATAL:  unsupported startup parameter: extra", "session mode"),
    ("eine andere Sprache", "check store.url"),
  ])
  func aSentenceOfLibpqHasItsRemedy(sentence: String, remedy: String) {
    #expect(StoreError.remedy(for: #"connection to server at "db1" failed: "# + sentence).contains(remedy))
  }

  @Test func aMissingServerSaysWhatToDo() throws {
    let target = try PostgresTarget(url: "postgresql://conclave@127.0.0.1:1/conclave", password: nil)
    let error = #expect(throws: StoreError.self) { try PostgresStore(target) }
    #expect(error?.description.hasPrefix("postgresql://127.0.0.1:1/conclave: ") == true)
    #expect(error?.description.contains("start the server") == true)
  }

  @Test func eachHostIsNamedWithWhatItSaid() throws {
    let folder = try PostgresServer.shared.get().folder
    let url = "postgresql://conclave@/nothing?host=/nowhere,\(folder)"
    let error = #expect(throws: StoreError.self) { try PostgresStore(try PostgresTarget(url: url, password: nil)) }
    let words = error?.description ?? ""
    #expect(words.contains("/nowhere/") && words.contains(#"database "nothing" does not exist"#), "\(words)")
    #expect(words.contains("CREATE DATABASE") && !words.contains("\n"))
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

  /// A server that was replaced and has not noticed sweeps, too.
  @Test func twoServersThatSweepAtOnceCountNothingTwice() async throws {
    for call in 0..<40 {
      try store.write(facts("c\(call)", [(alice, 0, 10), (bob, 0, 10), (carol, 0, 10)], ended: 10))
    }
    let stores = [store, try test.openPostgres(), try test.openPostgres()]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in stores {
        group.addTask { while try store.sweep(now: second(91 * 86_400), historyDays: 90) {} }
      }
      try await group.waitForAll()
    }
    #expect(try store.totals(of: alice, with: bob, now: second(0)) == Totals(calls: 40, seconds: 400))
    #expect(try database.sql("SELECT count(*) FROM history") == "0")
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
