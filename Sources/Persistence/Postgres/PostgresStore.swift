package import CallMessages
import Dispatch
import LinuxIO
package import MediaModel
package import PostgreSQL
import Synchronization

/// Calls, devices, envelopes and history in a PostgreSQL database.
///
/// `write` and `load` are for the one server that owns the database; `forget` is also for other processes. A token is the number of the start, of which the
/// database keeps a row. Batches have a connection, history has another one, and all else has a third: a long history delays neither a batch nor a recording.
package final class PostgresStore: Storage {
  package let place: String

  /// The target of a configuration.
  /// - Throws: `StoreError` for an invalid URL, and for one with a password.
  package static func target(url: String, password: PostgresPassword?) throws(StoreError) -> PostgresTarget {
    do {
      return try PostgresTarget(url: url, password: password)
    } catch {
      throw StoreError(error, place: "store")
    }
  }

  private let queue = DispatchQueue(label: "conclave.store")
  private let writer: Mutex<PostgresWriter>
  private let history: Mutex<PostgresSession>
  private let upkeep: Mutex<PostgresSession>

  /// The connections beside that of the batches.
  enum Reader {
    case history, upkeep
  }

  /// How long a query may take.
  private static let queryTime = Duration.seconds(10)
  /// How long another transaction is waited for.
  private static let lockTime = Duration.seconds(1)
  /// The name of the sessions that write batches.
  static let writerName = "conclave writer"

  /// Connects, and makes the tables or brings them up to date. A pooler that does not keep sessions is refused. Blocks.
  /// - Parameter patience: how long a batch is tried before its failure is reported: less than the server waits for it.
  package init(_ target: PostgresTarget, patience: Duration = .seconds(4)) throws(StoreError) {
    place = target.place
    // Without a time for statements: the end of that would cancel a commit's wait for a standby, but not the commit.
    let writing = PostgresConnection.Settings(
      name: Self.writerName, statement: nil, lock: Self.lockTime, idle: .seconds(2), silence: .seconds(10))
    writer = Mutex(PostgresWriter(PostgresSession(target, writing), place: target.place, patience: patience))
    history = Mutex(PostgresSession(target, Self.reading("conclave history")))
    upkeep = Mutex(PostgresSession(target, Self.reading("conclave upkeep")))
    try writer.withLock { (writer) throws(StoreError) in
      try writer.use { connection in
        _ = try connection.checkPooler(target)
        try connection.migrate(place: target.place)
      }
    }
  }

  static func reading(_ name: String) -> PostgresConnection.Settings {
    PostgresConnection.Settings(
      name: name, statement: queryTime, lock: lockTime, idle: .seconds(10), silence: queryTime + .seconds(2))
  }

  package func load(now: Timestamp) throws(StoreError) -> Stored {
    try writer.withLock { (writer) throws(StoreError) in
      let stored = try writer.use { connection in try connection.load(now: now) }
      writer.begin(stored.token)
      return stored
    }
  }

  /// On a thread of the store, which waits for the database.
  package func write(
    _ changes: [StoreChange], as token: FencingToken, done: @escaping @Sendable (StoreError?) -> Void
  ) {
    queue.async { [self] in
      do throws(StoreError) {
        try writer.withLock { (writer) throws(StoreError) in try writer.write(changes, as: token) }
        done(nil)
      } catch {
        done(error)
      }
    }
  }

  /// PostgreSQL has its own.
  package func checkpoint(failed: @escaping @Sendable (StoreError) -> Void) {}

  /// - Parameter body: may run twice, if the connection was lost.
  func reading<Value: Sendable>(
    on reader: Reader, _ body: @Sendable (PostgresConnection) throws -> Value
  ) throws(StoreError) -> Value {
    switch reader {
    case .history: try history.withLock { (session) throws(StoreError) in try reading(on: &session, body) }
    case .upkeep: try upkeep.withLock { (session) throws(StoreError) in try reading(on: &session, body) }
    }
  }

  private func reading<Value: Sendable>(
    on session: inout PostgresSession, _ body: @Sendable (PostgresConnection) throws -> Value
  ) throws(StoreError) -> Value {
    do {
      return try session.repeatedly(body)
    } catch {
      throw StoreError(error, place: place)
    }
  }
}

extension PostgresConnection {
  /// Makes the tables, or brings them up to date. Two processes that do so at once wait for each other.
  func migrate(place: String) throws {
    let all = PostgresSchema.migrations
    if try run([PostgresSchema.isThere])[0].first?.flag(0) == true, try migrated() == all.count { return }
    let lock = PostgresStatement("SELECT pg_advisory_xact_lock($1)", .integer(0x636f_6e63_6c61_7665))
    let table = PostgresStatement("CREATE TABLE IF NOT EXISTS migration (number bigint PRIMARY KEY)")
    let patience = PostgresStatement("SELECT set_config('lock_timeout', '8000', true)")
    try run([PostgresStatement("BEGIN"), patience, lock, table])
    let done = try migrated()
    guard done <= all.count else { throw StoreError.newer(place) }
    for (index, statements) in all.enumerated() where index >= done {
      try run(statements + [PostgresStatement("INSERT INTO migration VALUES ($1)", .integer(Int64(index + 1)))])
    }
    try run([PostgresStatement("COMMIT")])
  }

  /// The number of the last migration; 0 if there was none.
  func migrated() throws -> Int { Int(try run([PostgresSchema.number])[0].first?.integer(0) ?? 0) }
}
