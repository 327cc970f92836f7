package import CallMessages
import Foundation
import GRDB
import JSON
package import MediaModel
import Synchronization

/// Calls, devices, envelopes and history in one SQLite file.
///
/// `write` and `load` are for the one server that owns the file; `forget` is also for other processes. A token is the number of the server's starts with
/// the file.
package final class SQLiteStore: Storage {
  package let path: String
  package var place: String { path }

  let writer: DatabaseQueue
  /// Long answers of history block no transaction.
  let reader: DatabaseQueue
  /// Waits for the disk (fsync), so that no call has to.
  let checkpointer: DatabaseQueue
  let clearing = Mutex(Clearing())
  /// SQLite's count of changes by others, as last seen.
  let version = Mutex<Int?>(nil)

  /// Opens the file, or creates it with mode 600, and brings its tables up to date.
  /// - Parameter patience: how many seconds to wait for another process's transaction: short if clients wait meanwhile.
  package init(path: String, patience: Double = 0.25) throws(StoreError) {
    self.path = path
    let configuration = Self.configuration(patience: patience)
    do {
      try Self.make(path)
      writer = try DatabaseQueue(path: path, configuration: configuration)
      if try writer.read({ try Schema.migrator.hasBeenSuperseded($0) }) {
        throw StoreError.newer(path)
      }
      try Schema.migrator.migrate(writer)
      var reading = configuration
      reading.readonly = true
      reader = try DatabaseQueue(path: path, configuration: reading)
      checkpointer = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw StoreError(error, path: path)
    }
  }

  /// With its mode from the first moment: the files that SQLite creates beside it get the same mode.
  private static func make(_ path: String) throws(StoreError) {
    guard !FileManager.default.fileExists(atPath: path) else { return }
    let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    guard FileManager.default.createFile(atPath: path, contents: nil, attributes: attributes) else {
      throw StoreError(.cannotOpen, "\(path): cannot be made; check that its folder exists and is the server's own")
    }
  }

  private static func configuration(patience: Double) -> GRDB.Configuration {
    var configuration = GRDB.Configuration()
    configuration.journalMode = .wal
    configuration.busyMode = .timeout(patience)
    configuration.prepareDatabase { db in
      // A commit survives the server's death immediately, and the machine's death after the next checkpoint.
      try db.execute(sql: "PRAGMA synchronous = NORMAL")
      // Only `checkpoint` does it, never a commit.
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
      // Deleted rows are overwritten in the file, too.
      try db.execute(sql: "PRAGMA secure_delete = ON")
    }
    return configuration
  }

  /// On the database's thread.
  package func write(
    _ changes: [StoreChange], as token: FencingToken, done: @escaping @Sendable (StoreError?) -> Void
  ) {
    writer.asyncWrite({ [path] db in
      try db.checkFence(token, path: path)
      for change in changes { try db.apply(change) }
    }) { [self] _, result in
      switch result {
      case .success:
        noteForgotten(changes)
        done(nil)
      case .failure(let error): done(StoreError(error, path: path))
      }
    }
  }

  package func condition(now: @Sendable () -> Timestamp) -> StoreCondition? { nil }

  func transaction<Value: Sendable>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
    do {
      return try writer.write(body)
    } catch {
      throw StoreError(error, path: path)
    }
  }

  func reading<Value: Sendable>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
    do {
      return try reader.read(body)
    } catch {
      throw StoreError(error, path: path)
    }
  }
}

extension Database {
  fileprivate func checkFence(_ token: FencingToken, path: String) throws {
    let newest = try UInt32.fetchOne(cachedStatement(sql: "SELECT boots FROM server")) ?? 0
    guard token.number < newest else { return }
    throw StoreError.fenced(path, own: token, newest: newest)
  }
}
