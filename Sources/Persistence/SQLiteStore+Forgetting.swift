package import CallMessages
import GRDB
package import MediaModel
import Synchronization

/// `conclave forget`.
extension SQLiteStore {
  /// A server that runs, or starts, is told by `takeForgotten`, and does the rest.
  package func forget(_ user: UserID) throws(StoreError) {
    try transaction { db in
      try db.forget(user, reports: true)
      try db.run("INSERT OR IGNORE INTO forgotten VALUES (?)", [user.text])
    }
    do {
      // `secure_delete` overwrites a row, but not the copies that stay in a page's unused part when others move: all pages are written
      // again.
      try writer.writeWithoutTransaction { try $0.execute(sql: "VACUUM") }
    } catch {
      throw StoreError(error, path: path)
    }
    // Until then the log beside the file contains old pages. If a reader is in the way, the server's next checkpoint empties
    // it.
    do {
      _ = try writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    } catch {
      let error = StoreError(error, path: path)
      if error.kind != .busy { throw error }
    }
  }

  /// Users that another process has deleted since the last check, for the server that owns the file; `.forgotten` settles each.
  package func takeForgotten() throws(StoreError) -> [UserID] {
    do {
      return try writer.read { db in
        let current = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA data_version"))
        let isNew = version.withLock { version in
          defer { version = current }
          return version != current
        }
        guard isNew else { return [] }
        return try String.fetchAll(db, sql: "SELECT user FROM forgotten").compactMap { UserID($0) }
      }
    } catch {
      throw StoreError(error, path: path)
    }
  }
}

extension Database {
  /// Only the server may end the membership in a running call.
  /// - Parameter reports: whether reports by and about the user are deleted, too.
  func forget(_ user: UserID, reports: Bool) throws {
    let name = user.text
    if reports { try run("DELETE FROM report WHERE author = ? OR user = ?", [name, name]) }
    if !user.isGuest { try forgetRecordings(of: name) }
    for table in ["device", "lastingLink", "mailbox", "number", "presence", "revokes"] {
      try run("DELETE FROM \(table) WHERE user = ?", [name])
    }
    try forgetEnds(of: user)
    try run("DELETE FROM total WHERE low = ? OR high = ?", [name, name])
    try run("DELETE FROM stay WHERE user = ?", [name])
    let calls = try String.fetchAll(self, sql: "SELECT call FROM part WHERE user = ?", arguments: [name])
    try run("DELETE FROM part WHERE user = ?", [name])
    for call in calls {
      try run(
        """
        DELETE FROM history WHERE call = ? AND endedAt IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM part WHERE part.call = history.call)
        """, [call])
    }
  }

  /// The records that the calls existed stay, for the others.
  private func forgetEnds(of user: UserID) throws {
    let sql = "SELECT call, record FROM ended WHERE call IN (SELECT call FROM endedUser WHERE user = ?)"
    for row in try Row.fetchAll(self, sql: sql, arguments: [user.text]) {
      var end = try record(StoredEnd.self, row)
      end.forget(user)
      try run(
        "UPDATE ended SET record = ? WHERE call = ?", [try blob(end), try row.decode(String.self, forColumn: "call")])
    }
    try run("DELETE FROM endedUser WHERE user = ?", [user.text])
  }
}
