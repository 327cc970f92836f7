package import CallMessages
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
  package var condition: StoreCondition
  /// How long a commit takes: the median of 20. nil: none was confirmed.
  package var commitTime: Duration?
  /// The last migration; 0: the tables are made by the first start.
  package var migration: Int
  /// Other processes that are connected as a server is.
  package var servers: Int
}

/// `conclave check-config`, and what a running server asks now and then.
extension PostgresStore {
  private static let commits = 20

  /// Finds everything that prevents a server from starting with the database, and reads what is in it. It changes nothing.
  /// - Parameter now: the machine's time, read several times.
  /// - Throws: `StoreError`, as opening and loading do.
  package static func check(_ target: PostgresTarget, now: () -> Timestamp) throws(StoreError) -> PostgresFacts {
    do {
      let connection = try PostgresConnection(target, reading("conclave check-config"))
      let hasPooler = try connection.checkPooler(target)
      let migration = try connection.checkTables(place: target.place)
      if migration == PostgresSchema.migrations.count { _ = try connection.stored(boots: 0, now: now()) }
      var facts = try connection.facts(
        target, hasPooler: hasPooler, migration: migration, condition: try connection.condition(now))
      // Last, because a connection is of no use after a commit that waits in vain.
      if !facts.condition.isStuck { facts.commitTime = try connection.commitTime(of: commits) }
      return facts
    } catch {
      throw StoreError(error, place: target.place)
    }
  }

  package func condition(now: @Sendable () -> Timestamp) throws(StoreError) -> StoreCondition? {
    try reading(on: .upkeep) { connection in try connection.condition(now) }
  }
}

extension PostgresConnection {
  /// A pooler tells a process of its own. In transaction mode two connections share a process of the server, which they never do otherwise.
  /// - Returns: whether there is a pooler.
  /// - Throws: `StoreError` if it does not keep sessions.
  func checkPooler(_ target: PostgresTarget) throws -> Bool {
    guard try process() != announcedProcess else { return false }
    let other = try PostgresConnection(target, PostgresStore.reading("conclave check-pooler"))
    for _ in 0..<3 where try process() == other.process() { throw StoreError.transactionPooler(target.place) }
    return true
  }

  /// The server's process that has the session.
  private func process() throws -> Int {
    Int(try run([PostgresStatement("SELECT pg_backend_pid()::bigint")])[0].first?.integer(0) ?? 0)
  }

  /// A role without further rights sees how many standbys there are, and not which.
  fileprivate func condition(_ now: () -> Timestamp) throws -> StoreCondition {
    let answer = try run([
      PostgresStatement(
        """
        SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
          (SELECT count(*) FROM pg_stat_replication)
        """)
    ])[0]
    guard let row = answer.first else { throw PostgresError.malformed }
    let (commit, names, standbys) = (try row.text(0), try row.text(1), Int(try row.integer(2)))
    let confirmation: StoreCondition.Confirmation =
      ["off", "local"].contains(commit) ? .off(commit) : names.isEmpty ? .disk : .standbys(names)
    let (offset, roundTrip) = try clockOffset(now)
    return StoreCondition(
      confirmation: confirmation, standbys: standbys, clockOffset: offset, roundTrip: roundTrip)
  }

  fileprivate func facts(
    _ target: PostgresTarget, hasPooler: Bool, migration: Int, condition: StoreCondition
  ) throws -> PostgresFacts {
    let answers = try run([
      PostgresStatement(
        """
        SELECT current_setting('fsync'), current_setting('server_version'),
          (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1)
        """, .text(PostgresStore.writerName))
    ])
    guard let row = answers[0].first else { throw PostgresError.malformed }
    return PostgresFacts(
      place: target.place, version: String(try row.text(1).prefix { $0.isNumber || $0 == "." }), usesTLS: usesTLS,
      provesServer: target.provesServer, hasPooler: hasPooler, isDurable: try row.text(0) == "on",
      condition: condition, migration: migration, servers: Int(try row.integer(2)))
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

  /// The median; nil if a commit was not confirmed. Each commit writes a message to the log that no reader takes, so it waits for disk and standby like any
  /// other.
  fileprivate func commitTime(of count: Int) throws -> Duration? {
    let clock = ContinuousClock()
    let message = PostgresStatement("SELECT pg_logical_emit_message(true, 'conclave', '')::text")
    do {
      let times = try (0..<count).map { _ in try clock.measure { _ = try run([message]) } }
      return times.sorted()[count / 2]
    } catch PostgresError.unconfirmed {
      return nil
    }
  }

  /// Measured by the quickest of five answers; also how long that took.
  private func clockOffset(_ now: () -> Timestamp) throws -> (offset: Duration, roundTrip: Duration) {
    let question = PostgresStatement("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    let clock = ContinuousClock()
    var best = (offset: Duration.zero, roundTrip: Duration.seconds(1_000))
    for _ in 0..<5 {
      let (before, began) = (now(), clock.now)
      let there = Timestamp(milliseconds: try run([question])[0].first?.integer(0) ?? 0)
      let time = clock.now - began
      if time < best.roundTrip { best = (there - (before + time / 2), time) }
    }
    return best
  }
}
