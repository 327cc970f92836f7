package import Calls
package import MediaModel
package import PostgreSQL

/// A database as `conclave check-config` finds it, for sentences to the operator.
package struct PostgresFacts: Sendable {
  package var place: String
  /// Such as `15.18`.
  package var version: String
  package var usesTLS: Bool
  /// A server that is not the one meant would be noticed.
  package var provesServer: Bool
  package var hasPooler: Bool
  /// `fsync`: a commit survives the death of the machine.
  package var isDurable: Bool
  /// `synchronous_commit`.
  package var synchronousCommit: String
  /// `synchronous_standby_names`; empty: a commit waits for no standby.
  package var synchronousStandbys: String
  package var standbys: Int
  /// How long a commit takes: the median of 20.
  package var commitTime: Duration
  /// The database's clock minus this machine's.
  package var clockOffset: Duration
  /// The last migration; 0: the tables are made by the first start.
  package var migration: Int
  /// Other processes that are connected as a server is.
  package var servers: Int
}

/// `conclave check-config`.
extension PostgresStore {
  private static let commits = 20

  /// Finds everything that prevents a server from starting with the database, and reads what is in it. It changes nothing.
  /// - Parameter now: the machine's time, read several times.
  /// - Throws: `StoreError`, as opening and loading do.
  package static func check(_ target: PostgresTarget, now: () -> Timestamp) throws(StoreError) -> PostgresFacts {
    do {
      let connection = try PostgresConnection(target, checking)
      let hasPooler = try checkPooler(connection, target)
      var facts = try connection.facts(target, hasPooler: hasPooler)
      facts.migration = try connection.checkTables(place: target.place)
      if facts.migration == PostgresSchema.migrations.count { _ = try connection.stored(boots: 0, now: now()) }
      facts.commitTime = try connection.commitTime(of: commits)
      facts.clockOffset = try connection.clockOffset(now)
      return facts
    } catch {
      throw StoreError(error, place: target.place)
    }
  }

  private static var checking: PostgresConnection.Settings {
    var settings = reading
    settings.name = "conclave check-config"
    return settings
  }

  /// A pooler tells a process of its own. In transaction mode two connections share a process of the server, which they never do otherwise.
  /// - Returns: whether there is a pooler.
  private static func checkPooler(
    _ connection: PostgresConnection, _ target: PostgresTarget
  ) throws -> Bool {
    guard try connection.process() != connection.announcedProcess else { return false }
    let other = try PostgresConnection(target, checking)
    for _ in 0..<3 where try connection.process() == other.process() {
      throw StoreError.transactionPooler(target.place)
    }
    return true
  }
}

extension PostgresConnection {
  /// The server's process that has the session.
  fileprivate func process() throws -> Int {
    Int(try run([PostgresStatement("SELECT pg_backend_pid()::bigint")])[0].first?.integer(0) ?? 0)
  }

  fileprivate func facts(_ target: PostgresTarget, hasPooler: Bool) throws -> PostgresFacts {
    let answers = try run([
      PostgresStatement(
        """
        SELECT current_setting('fsync'), current_setting('synchronous_commit'),
          current_setting('synchronous_standby_names'), current_setting('server_version'),
          (SELECT count(*) FROM pg_stat_replication),
          (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1)
        """, .text(PostgresStore.writerName))
    ])
    guard let row = answers[0].first else { throw PostgresError.malformed }
    return PostgresFacts(
      place: target.place, version: String(try row.text(3).prefix { $0.isNumber || $0 == "." }), usesTLS: usesTLS,
      provesServer: target.provesServer, hasPooler: hasPooler, isDurable: try row.text(0) == "on",
      synchronousCommit: try row.text(1), synchronousStandbys: try row.text(2), standbys: Int(try row.integer(4)),
      commitTime: .zero, clockOffset: .zero, migration: 0, servers: Int(try row.integer(5)))
  }

  /// - Returns: the last migration; 0 if there are no tables.
  /// - Throws: `StoreError` if the role may not make the tables, or does not own those that are there.
  fileprivate func checkTables(place: String) throws -> Int {
    let answers = try run([
      PostgresSchema.isThere,
      PostgresStatement("SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"),
      PostgresStatement(
        """
        SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace
          AND relname IN ('migration', 'node', 'call', 'history') AND NOT pg_has_role(relowner, 'USAGE'))
        """),
    ])
    guard try answers[1].first?.flag(0) == true, try answers[2].first?.flag(0) == false else {
      throw PostgresError.refused("42501")
    }
    guard try answers[0].first?.flag(0) == true else { return 0 }
    let last = try migrated()
    guard last <= PostgresSchema.migrations.count else { throw StoreError.newer(place) }
    return last
  }

  /// The median. Each commit writes a message to the log that no reader takes, so it waits for disk and standby like any other.
  fileprivate func commitTime(of count: Int) throws -> Duration {
    let clock = ContinuousClock()
    let message = PostgresStatement("SELECT pg_logical_emit_message(true, 'conclave', '')::text")
    let times = try (0..<count).map { _ in try clock.measure { _ = try run([message]) } }
    return times.sorted()[count / 2]
  }

  /// Measured by the quickest of five answers.
  fileprivate func clockOffset(_ now: () -> Timestamp) throws -> Duration {
    let question = PostgresStatement("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    var best = (time: Duration.seconds(1_000), offset: Duration.zero)
    for _ in 0..<5 {
      let before = now()
      let there = Timestamp(milliseconds: try run([question])[0].first?.integer(0) ?? 0)
      let time = now() - before
      if time < best.time { best = (time, there - (before + time / 2)) }
    }
    return best.offset
  }
}
