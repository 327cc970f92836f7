import CallMessages
import DatabaseServers
import Foundation
import Listening
import Logging
import MediaModel
@testable import Persistence
import Testing

@testable import ConclaveServer

/// A server whose state is in PostgreSQL.
@Suite(.timeLimit(.minutes(5))) struct StoreConfigurationTests {
  /// A state folder and an empty database, which go with it.
  private final class Place {
    let folder = FileManager.default.temporaryDirectory.path + "/state-\(UUID().uuidString)"
    let server: PostgresServer
    let database = "c" + UUID().uuidString.lowercased().replacing("-", with: "")

    init() throws {
      server = try PostgresServer.shared.get()
      try server.sql("CREATE DATABASE \(database)")
    }

    deinit {
      _ = try? server.sql("DROP DATABASE \(database) WITH (FORCE)")
      try? FileManager.default.removeItem(atPath: folder)
    }

    var configuration: Configuration {
      var configuration = Configuration()
      configuration.state = folder
      configuration.store = Configuration.Store(url: server.url(database))
      configuration.listen.stomp = nil
      configuration.listen.http = 0
      configuration.media.port = 0
      configuration.media.workers = 1
      return configuration
    }

    func sql(_ text: String) throws -> String { try server.sql(text, in: database) }
  }

  @Test func theMembersAreRead() throws {
    let text = #"{"store":{"url":"postgresql://conclave@db1,db2/conclave","passwordFile":"/etc/conclave/password"}}"#
    let store = try #require(try Configuration(json: Array(text.utf8)).store)
    #expect(store.url == "postgresql://conclave@db1,db2/conclave" && store.passwordFile == "/etc/conclave/password")
  }

  @Test(arguments: [#"{"store":{}}"#, #"{"store":{"url":"mysql://a@b/c"}}"#, #"{"store":{"url":"conclave"}}"#])
  func aStoreWithoutAURLIsRefused(text: String) {
    let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(text.utf8)) }
    #expect(error?.description.contains("url") == true)
  }

  @Test func aPasswordInTheURLIsRefusedAndNotRepeated() {
    let store = Configuration.Store(url: "postgresql://conclave:hunter2@db/conclave")
    let error = #expect(throws: ConfigurationError.self) { try store.target() }
    #expect(error?.description.contains("store.passwordFile") == true)
    #expect(error?.description.contains("hunter2") == false)
  }

  @Test func theFileOfThePasswordIsForItsOwnerAlone() throws {
    let file = FileManager.default.temporaryDirectory.path + "/password-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: file) }
    let store = Configuration.Store(url: "postgresql://conclave@localhost/conclave", passwordFile: file)
    #expect(throws: ConfigurationError.self) { try store.target() }
    let text = Data("hunter2\n".utf8)
    #expect(FileManager.default.createFile(atPath: file, contents: text, attributes: [.posixPermissions: 0o644]))
    let error = #expect(throws: ConfigurationError.self) { try store.target() }
    #expect(error?.description.contains("chmod 600 \(file)") == true)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    #expect(!"\(try store.target())".contains("hunter2"))
  }

  @Test func theCheckConnectsAndChangesNothing() async throws {
    let place = try Place()
    let remark = try #require(try await Server.check(place.configuration))
    #expect(remark.contains("The store is PostgreSQL 15."))
    #expect(remark.contains("empty: the first start makes the tables"))
    #expect(remark.contains("No standby is synchronous"))
    #expect(try place.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == "0")
    _ = try place.configuration.openStore(file: "").load(now: WallClock().now())
    let nodes = try place.sql("SELECT count(*) FROM node")
    #expect(try await Server.check(place.configuration)?.contains("empty") == false)
    #expect(try place.sql("SELECT count(*) FROM node") == nodes)
  }

  @Test(arguments: [
    ("DROP TABLE node CASCADE", "a table or function is missing"),
    ("INSERT INTO migration VALUES (99)", "newer version"),
    ("INSERT INTO call VALUES ('1', '\\x00')", "cannot be read"),
  ])
  func theCheckFindsWhatAStartWouldRefuse(change: String, sentence: String) async throws {
    let place = try Place()
    _ = try place.configuration.openStore(file: "").load(now: WallClock().now())
    _ = try place.sql(change)
    let error = await #expect(throws: ConfigurationError.self) { _ = try await Server.check(place.configuration) }
    #expect(error?.description.hasPrefix("store: postgresql://") == true)
    #expect(error?.description.contains(sentence) == true, "\(error.map { "\($0)" } ?? "")")
    #expect(throws: ConfigurationError.self) {
      _ = try ServerState.load(
        try place.configuration.openStore(file: ""), isDatabase: true, clock: WallClock())
    }
  }

  @Test func aDatabaseThatIsNotThereIsToldWithItsRemedy() async throws {
    var configuration = try Place().configuration
    configuration.store?.url = try PostgresServer.shared.get().url("nothing")
    let error = await #expect(throws: ConfigurationError.self) { _ = try await Server.check(configuration) }
    #expect(error?.description.contains("make it: CREATE DATABASE") == true)
  }

  @Test func aServerKeepsItsStateThereAndNotInItsFolder() async throws {
    let place = try Place()
    for starts in 1...2 {
      let server = try await Server(
        place.configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      await server.stop()
      #expect(try place.sql("SELECT count(*), max(id) FROM node") == "\(starts)|\(starts)")
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: place.folder)
    #expect(files.contains("secret") && !files.contains { $0.hasPrefix("conclave.sqlite") })
    try Commands.forget(user: "alice", configuration: place.configuration)
    #expect(try place.sql(#"SELECT "user" FROM forgotten"#) == "alice")
  }

  // MARK: remarks

  private var facts: PostgresFacts {
    PostgresFacts(
      place: "postgresql://db/conclave", version: "15.18", usesTLS: true, provesServer: true, hasPooler: false,
      isDurable: true,
      condition: StoreCondition(
        confirmation: .standbys("ANY 1 (a, b)"), standbys: 2, clockOffset: .milliseconds(-3),
        roundTrip: .microseconds(210)),
      commitTime: .microseconds(1_234), migration: 1, servers: 0)
  }

  @Test func aGoodDatabaseHasTwoRemarks() {
    #expect(
      Server.remarks(on: facts) == [
        "The store is PostgreSQL 15.18 at postgresql://db/conclave, with TLS; an answer takes 0.21 ms, a commit 1.23 ms.",
        "A commit is on ANY 1 (a, b), of 2 connected standbys.",
      ])
  }

  @Test func eachFactThatIsNotGoodHasARemark() {
    func remark(_ change: (inout PostgresFacts) -> Void) -> String {
      var facts = facts
      change(&facts)
      return Server.remarks(on: facts).joined(separator: " ")
    }
    #expect(remark { $0.provesServer = false }.contains("sslmode=verify-full"))
    #expect(remark { $0.isDurable = false }.contains("fsync is off"))
    #expect(remark { $0.hasPooler = true }.contains("session mode"))
    #expect(remark { $0.condition.clockOffset = .seconds(2) }.contains("2000 ms ahead of this machine's"))
    #expect(remark { $0.condition.clockOffset = .seconds(-2) }.contains("2000 ms behind this machine's"))
    #expect(remark { $0.condition.confirmation = .off("local") }.contains("synchronous_commit is local"))
    #expect(remark { $0.condition.confirmation = .disk }.contains("No standby is synchronous"))
    #expect(remark { $0.condition.standbys = 0 }.contains("no standby is connected"))
    #expect(remark { $0.commitTime = nil }.contains("No commit was confirmed"))
    #expect(remark { $0.servers = 1 }.contains("A server uses the database now"))
    #expect(remark { $0.migration = 0 }.contains("empty"))
  }

  // MARK: a server that runs

  private func condition(_ confirmation: StoreCondition.Confirmation, milliseconds: Int = 3) -> StoreCondition {
    StoreCondition(
      confirmation: confirmation, standbys: 1, clockOffset: .milliseconds(milliseconds), roundTrip: .microseconds(210))
  }

  @Test func theOperatorIsToldOfEachChangeOnce() {
    let health = StoreHealth()
    #expect(!health.learned(condition(.standbys("a"))), "nothing is wrong")
    #expect(!health.learned(condition(.standbys("a"), milliseconds: 400)), "a clock is never quite right")
    #expect(health.learned(condition(.standbys("a"), milliseconds: 1_001)))
    #expect(!health.learned(condition(.standbys("a"), milliseconds: 1_100)))
    #expect(health.learned(condition(.disk, milliseconds: 1_100)))
    #expect(health.learned(condition(.standbys("a"))), "all is well again")
    #expect(StoreHealth().learned(condition(.disk)), "at the start, too")
  }

  @Test func theConditionIsAskedForAndInTheMetrics() throws {
    let place = try Place()
    let health = StoreHealth()
    let housekeeping = Housekeeping(
      store: try place.configuration.openStore(file: ""), health: health, clock: WallClock(), historyDays: 30,
      log: LimitedLog(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    func lines() -> [Substring] {
      var page = Metrics.Page()
      page.add(health.statistics)
      return page.text.split(separator: "\n")
    }
    #expect(!lines().contains { $0.hasPrefix("conclave_store_synchronous") }, "as with a file")
    health.failed("no standby has confirmed a commit")
    housekeeping.step(now: Instant(nanoseconds: 0)) { _ in }
    #expect(health.statistics.condition?.confirmation == .disk)
    #expect(lines().contains("conclave_store_synchronous 0") && lines().contains("conclave_store_standbys 0"))
    for name in ["clock_offset", "round_trip"] {
      let line = lines().first { $0.hasPrefix("conclave_store_\(name)_seconds ") }
      #expect(line?.split(separator: " ").last.flatMap { Double($0) }.map { abs($0) < 1 } == true, "\(name)")
    }
    health.committed(after: .milliseconds(7))
    #expect(lines().contains(#"conclave_store_commit_seconds_bucket{le="0.005"} 0"#))
    #expect(lines().contains(#"conclave_store_commit_seconds_bucket{le="0.01"} 1"#))
  }
}
