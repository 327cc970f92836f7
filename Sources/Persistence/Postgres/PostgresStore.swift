package import Calls
import Dispatch
import LinuxIO
package import MediaModel
package import PostgreSQL
import Synchronization

/// Calls, devices, envelopes and history in a PostgreSQL database.
///
/// `write` and `load` are for the one server that owns the database; `forget` is also for other processes. A token is the number of the start, of which the
/// database keeps a row. Batches go through one connection, everything else through another one: a long history delays no batch.
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
  private let reader: Mutex<PostgresSession>

  /// How long a query may take.
  private static let queryTime = Duration.seconds(10)
  /// How long another transaction is waited for.
  private static let lockTime = Duration.seconds(1)
  /// The name of the sessions that write batches.
  static let writerName = "conclave writer"

  /// Connects, and makes the tables or brings them up to date. Blocks.
  /// - Parameter patience: how long a batch is tried before its failure is reported: less than the server waits for it.
  package init(_ target: PostgresTarget, patience: Duration = .seconds(4)) throws(StoreError) {
    place = target.place
    // Without a time for statements: the end of that would cancel a commit's wait for a standby, but not the commit.
    let writing = PostgresConnection.Settings(
      name: Self.writerName, statement: nil, lock: Self.lockTime, idle: .seconds(2), silence: .seconds(10))
    writer = Mutex(PostgresWriter(PostgresSession(target, writing), place: target.place, patience: patience))
    reader = Mutex(PostgresSession(target, Self.reading))
    try writer.withLock { (writer) throws(StoreError) in
      try writer.use { connection in try connection.migrate(place: target.place) }
    }
  }

  static let reading = PostgresConnection.Settings(
    name: "conclave", statement: queryTime, lock: lockTime, idle: .seconds(10), silence: queryTime + .seconds(2))

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
    _ body: @Sendable (PostgresConnection) throws -> Value
  ) throws(StoreError) -> Value {
    try reader.withLock { (reader) throws(StoreError) in
      do {
        return try reader.repeatedly(body)
      } catch {
        throw StoreError(error, place: place)
      }
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
