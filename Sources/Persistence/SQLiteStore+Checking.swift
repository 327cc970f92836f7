package import CallMessages
import Foundation
import GRDB
package import MediaModel

/// `conclave check-config`.
extension SQLiteStore {
  /// Finds everything that prevents a server from starting with the file, without changing it: it is damaged, a newer version created it, or its contents
  /// cannot be read. A missing file is not a fault. No server may use it meanwhile.
  /// - Throws: `StoreError`, as opening and loading do.
  package static func check(path: String, now: Timestamp) throws(StoreError) {
    guard FileManager.default.fileExists(atPath: path) else { return }
    // SQLite creates both beside a file in WAL mode, even for reading.
    let made = ["-wal", "-shm"].map { path + $0 }.filter { !FileManager.default.fileExists(atPath: $0) }
    defer { for file in made { try? FileManager.default.removeItem(atPath: file) } }
    do {
      var configuration = GRDB.Configuration()
      configuration.readonly = true
      let file = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? file.close() }
      try file.read { db in
        guard try String.fetchAll(db, sql: "PRAGMA quick_check(1)") == ["ok"] else {
          throw DatabaseError(resultCode: .SQLITE_CORRUPT)
        }
        guard try !Schema.migrator.hasBeenSuperseded(db) else { throw StoreError.newer(path) }
        // Otherwise a start creates tables first.
        if try Schema.migrator.hasCompletedMigrations(db) { _ = try db.stored(now: now) }
      }
    } catch {
      throw StoreError(error, path: path)
    }
  }
}
