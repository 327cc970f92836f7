import DatabaseServers
import LinuxIO
import Seeded
import Testing

@testable import PostgreSQL

@Suite(.timeLimit(.minutes(5))) struct PostgresConnectionTests {
  private func connection(statement: Duration? = nil) throws -> PostgresConnection {
    let target = try PostgresTarget(url: try PostgresServer.shared.get().url("postgres"), password: nil)
    return try PostgresConnection(
      target,
      PostgresConnection.Settings(
        name: "test", statement: statement, lock: .seconds(5), idle: .seconds(5), silence: .seconds(20)))
  }

  // MARK: values

  @Test(arguments: [0, 1, -1, .min, .max] as [Int64]) func numbersComeBack(number: Int64) throws {
    let row = try connection().run([PostgresStatement("SELECT $1", .integer(number))])[0].first
    #expect(try row?.integer(0) == number)
  }

  @Test(arguments: ["", "'; DROP TABLE x; --", "$1", "\\", "👩‍👩‍👧\u{202E}\n", String(repeating: "ä", count: 100_000)])
  func textsComeBack(text: String) throws {
    let row = try connection().run([
      PostgresStatement("SELECT $1, ($2::text[])[2], cardinality($2)::bigint", .text(text), .texts(["a", text, ""]))
    ])[0].first
    #expect(try row?.text(0) == text)
    #expect(try row?.text(1) == text)
    #expect(try row?.integer(2) == 3)
  }

  @Test func bytesFlagsAndNullsComeBack() throws {
    let bytes = (0...255).map { UInt8($0) }
    let row = try #require(
      try connection().run([
        PostgresStatement(
          "SELECT $1, $2, $3, $4, $5, $6", .bytes(bytes), .bytes([]), .flag(true), .integer(nil), .text(nil),
          .bytes(nil))
      ])[0].first)
    #expect(try row.bytes(0) == bytes && row.bytes(1) == [] && row.flag(2))
    #expect(try row.optionalInteger(3) == nil && row.optionalText(4) == nil && row.optionalBytes(5) == nil)
    #expect(throws: PostgresError.malformed) { try row.integer(3) }
  }

  @Test func aColumnOfAnotherTypeIsAnErrorAndNoTrap() throws {
    let row = try #require(try connection().run([PostgresStatement("SELECT 1::int, 'a'::text, 1.5")])[0].first)
    for column in [0, 1, 2, 3, -1, .max] {
      #expect(throws: PostgresError.malformed) { try row.integer(column) }
      #expect(throws: PostgresError.malformed) { try row.bytes(column) }
    }
    #expect(try row.text(1) == "a")
  }

  // MARK: pipelines

  /// More than the buffers of both sides hold, in both directions.
  @Test func aLongPipelineDoesNotStandStill() throws {
    let connection = try connection()
    let text = String(repeating: "x", count: 10_000)
    let answers = try connection.run((0..<3_000).map { _ in PostgresStatement("SELECT $1", .text(text)) })
    #expect(answers.count == 3_000)
    #expect(try answers.allSatisfy { try $0.first?.text(0) == text })
  }

  @Test func anErrorUndoesTheWholePipelineAndLeavesTheConnection() throws {
    let connection = try connection()
    try connection.run([PostgresStatement("CREATE TEMPORARY TABLE kept (number bigint)")])
    #expect(throws: PostgresError.refused("22012")) {
      try connection.run([
        PostgresStatement("INSERT INTO kept VALUES ($1)", .integer(1)), PostgresStatement("SELECT 1 / 0"),
        PostgresStatement("INSERT INTO kept VALUES ($1)", .integer(2)), PostgresStatement("SELECT 'new'"),
      ])
    }
    // The server knew the first, skipped the preparation of the second, and does not know the third.
    let answers = try connection.run([
      PostgresStatement("INSERT INTO kept VALUES ($1)", .integer(3)), PostgresStatement("SELECT 'new'"),
      PostgresStatement("SELECT number FROM kept"),
    ])
    #expect(try answers[2].map { try $0.integer(0) } == [3])
    #expect(throws: PostgresError.refused("42601")) { try connection.run([PostgresStatement("SELEKT")]) }
    #expect(throws: PostgresError.refused("42601")) { try connection.run([PostgresStatement("SELEKT")]) }
  }

  @Test func aStatementThatTakesTooLongIsRefused() throws {
    let connection = try connection(statement: .milliseconds(50))
    #expect(throws: PostgresError.refused("57014")) { try connection.run([PostgresStatement("SELECT pg_sleep(5)")]) }
    #expect(try connection.run([PostgresStatement("SELECT 'on'")])[0].first?.text(0) == "on")
  }

  @Test func aSilentServerIsGivenUp() throws {
    let target = try PostgresTarget(url: try PostgresServer.shared.get().url("postgres"), password: nil)
    let connection = try PostgresConnection(
      target,
      PostgresConnection.Settings(
        name: "test", statement: nil, lock: .seconds(1), idle: .seconds(1), silence: .milliseconds(200)))
    #expect(throws: PostgresError.lost(after: .milliseconds(200))) {
      try connection.run([PostgresStatement("SELECT pg_sleep(3)")])
    }
    #expect(throws: PostgresError.lost(after: nil)) { try connection.run([PostgresStatement("SELECT 1")]) }
  }

  @Test func aSessionThatTheServerEndsIsLost() throws {
    let connection = try connection()
    #expect(throws: PostgresError.lost(after: nil)) {
      try connection.run([PostgresStatement("SELECT pg_terminate_backend(pg_backend_pid())")])
    }
  }

  @Test func aWarningIsNoSuccess() throws {
    let connection = try connection()
    #expect(throws: PostgresError.unconfirmed) {
      try connection.run([PostgresStatement("DO $$ BEGIN RAISE WARNING 'w'; END $$")])
    }
    try connection.run([PostgresStatement("DO $$ BEGIN RAISE NOTICE 'n'; END $$")])
  }

  /// A database or a role may have settings of its own.
  @Test func theSettingsOfASessionAreItsOwn() throws {
    let server = try PostgresServer.shared.get()
    let name = "settings\(UInt32.random(in: 0 ... .max))"
    try server.sql("CREATE DATABASE \(name)")
    defer { _ = try? server.sql("DROP DATABASE \(name) WITH (FORCE)") }
    let settings = [
      "statement_timeout = '17s'", "lock_timeout = '17s'", "idle_session_timeout = '17s'", "timezone = 'Asia/Tokyo'",
      "default_transaction_isolation = 'serializable'",
    ]
    for setting in settings { try server.sql("ALTER DATABASE \(name) SET \(setting)") }
    let connection = try PostgresConnection(
      try PostgresTarget(url: server.url(name), password: nil),
      PostgresConnection.Settings(
        name: "test", statement: nil, lock: .seconds(5), idle: .seconds(5), silence: .seconds(20)))
    let row = try connection.run([
      PostgresStatement(
        """
        SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
          current_setting('idle_session_timeout'), current_setting('timezone'), current_setting('transaction_isolation')
        """)
    ])[0].first
    #expect(try (0..<5).map { try row?.text($0) } == ["0", "5s", "0", "UTC", "read committed"])
  }

  // MARK: where it is

  @Test(arguments: [
    ("postgresql://conclave@/calls", "postgresql:///calls", true),
    ("postgres://a@localhost/b", "postgresql://localhost/b", true),
    ("postgresql://a@[::1]:5433/b", "postgresql://[::1]:5433/b", true),
    ("postgresql://a@db1,db2:6000/b", "postgresql://db1,db2:6000/b", true),
    ("postgresql://a@db1/b?sslmode=require", "postgresql://db1/b", false),
    ("postgresql://a@db1/b?sslmode=verify-full&sslrootcert=/x.pem", "postgresql://db1/b", true),
  ])
  func aPlaceHasHostsAndADatabase(url: String, place: String, provesServer: Bool) throws {
    let target = try PostgresTarget(url: url, password: PostgresPassword("hunter2hunter2"))
    #expect(target.place == place)
    #expect(target.provesServer == provesServer)
    var dumped = ""
    dump(target, to: &dumped)
    for text in [dumped, "\(target)", String(reflecting: target)] { #expect(!text.contains("hunter2")) }
  }

  @Test(arguments: ["", "conclave", "mysql://a@b/c", "postgresql://a@b:x y/c%", "postgresql://a@b/c%zz"])
  func anotherTextIsNoURL(url: String) {
    #expect(throws: PostgresError.badURL) { try PostgresTarget(url: url, password: nil) }
  }

  @Test(arguments: [
    ("postgresql://a:secret@b/c", "password"), ("postgresql://b/c?password=secret", "password"),
    ("postgresql://b/c?options=-c%20fsync%3Doff", "options"), ("postgresql://b/c?passfile=/x", "passfile"),
    ("postgresql://b/c?application_name=x", "application_name"),
  ])
  func aURLSaysWhereAndNothingElse(url: String, parameter: String) {
    #expect(throws: PostgresError.parameterNotAllowed(parameter)) { try PostgresTarget(url: url, password: nil) }
  }

  @Test func aPasswordIsNotPrinted() {
    let password = PostgresPassword("hunter2")
    var dumped = ""
    dump(password, to: &dumped)
    for text in [dumped, "\(password)", String(reflecting: password)] { #expect(!text.contains("hunter2")) }
  }

  @Test(arguments: [nil, "", "123", "abcde", "12 45", "123456"]) func aCodeHasItsForm(text: String?) {
    #expect(SQLState(text) == "XX000")
    #expect(SQLState("40P01") == "40P01")
  }
}
