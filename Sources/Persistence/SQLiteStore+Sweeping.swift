package import CallMessages
import GRDB
package import MediaModel

/// Retention (`historyDays`).
extension SQLiteStore {
  package func sweep(now: Timestamp, historyDays: Int) throws(StoreError) -> Bool {
    let forgetEndedBefore = (now - Retention.endedTime).milliseconds
    let forgetBefore = (now - .seconds(86_400 * historyDays)).milliseconds
    return try transaction { db in
      let ended = "SELECT call FROM ended WHERE endedAt <= ? ORDER BY endedAt LIMIT \(Retention.stepEnded)"
      try db.run("DELETE FROM number WHERE call IN (\(ended))", [forgetEndedBefore])
      try db.run("DELETE FROM ended WHERE call IN (\(ended))", [forgetEndedBefore])
      if db.changesCount == Retention.stepEnded { return true }
      var rows = try db.forgetReports(before: forgetBefore, rows: Retention.stepRows)
      while rows < Retention.stepRows {
        guard let call = try db.callToForget(before: forgetBefore) else { return false }
        rows += try db.fold(call, rows: Retention.stepRows - rows)
      }
      return true
    }
  }
}

extension Database {
  /// The oldest ended call whose history must be deleted. A running call is kept, however long ago it began.
  fileprivate func callToForget(before time: Int64) throws -> String? {
    try String.fetchOne(
      self,
      sql: """
        SELECT call FROM history WHERE startedAt < ? AND coalesce(endedAt, startedAt) < ?
        AND NOT EXISTS (SELECT 1 FROM call WHERE id = history.call) ORDER BY startedAt LIMIT 1
        """, arguments: [time, time])
  }

  /// Works user by user. A user's stays are deleted in the step that adds them to the totals, so nothing is counted twice. Returns how many
  /// rows were written.
  fileprivate func fold(_ call: String, rows limit: Int) throws -> Int {
    var rows = 0
    while rows < limit {
      let next = try String.fetchOne(self, sql: "SELECT user FROM stay WHERE call = ? LIMIT 1", arguments: [call])
      guard let user = next else {
        try run("DELETE FROM history WHERE call = ?", [call])
        return rows + 1
      }
      try run(
        """
        INSERT INTO total (low, high, calls, milliseconds)
        SELECT min(a.user, b.user), max(a.user, b.user), 1, sum(min(a.went, b.went) - max(a.came, b.came))
        FROM stay a JOIN stay b ON b.call = a.call AND b.user <> a.user
        WHERE a.call = ? AND a.user = ? AND min(a.went, b.went) >= max(a.came, b.came) GROUP BY b.user
        ON CONFLICT DO UPDATE SET calls = calls + 1, milliseconds = milliseconds + excluded.milliseconds
        """, [call, user])
      rows += changesCount + 1
      try run("DELETE FROM stay WHERE call = ? AND user = ?", [call, user])
    }
    return rows
  }
}
