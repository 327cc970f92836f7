package import CallMessages
package import MediaModel
import PostgreSQL

/// Retention (`historyDays`).
extension PostgresStore {
  /// Each statement, or pair of statements, is a transaction by itself.
  package func sweep(now: Timestamp, historyDays: Int) throws(StoreError) -> Bool {
    let forgetEndedBefore = (now - Retention.endedTime).milliseconds
    let forgetBefore = (now - .seconds(86_400 * historyDays)).milliseconds
    return try reading(on: .upkeep) { connection in
      if try connection.forgetEnded(before: forgetEndedBefore) == Retention.stepEnded { return true }
      var rows = try connection.forgetReports(before: forgetBefore)
      while rows < Retention.stepRows {
        guard let call = try connection.callToForget(before: forgetBefore) else { return false }
        rows += try connection.fold(call, rows: Retention.stepRows - rows)
      }
      return true
    }
  }
}

extension PostgresConnection {
  /// Returns how many calls were forgotten.
  fileprivate func forgetEnded(before time: Int64) throws -> Int {
    try run([
      PostgresStatement(
        """
        WITH old AS (SELECT call FROM ended WHERE endedAt <= $1 ORDER BY endedAt LIMIT $2),
          numbers AS (DELETE FROM number WHERE call IN (SELECT call FROM old))
        DELETE FROM ended WHERE call IN (SELECT call FROM old)
        """, .integer(time), .integer(Int64(Retention.stepEnded)))
    ])[0].changed
  }

  /// Returns how many rows were deleted.
  fileprivate func forgetReports(before time: Int64) throws -> Int {
    try run([
      PostgresStatement(
        "DELETE FROM report WHERE ordinal IN (SELECT ordinal FROM report WHERE at < $1 ORDER BY at LIMIT $2)",
        .integer(time), .integer(Int64(Retention.stepRows)))
    ])[0].changed
  }

  /// The oldest ended call whose history must be deleted. A running call is kept, however long ago it began.
  fileprivate func callToForget(before time: Int64) throws -> String? {
    try run([
      PostgresStatement(
        """
        SELECT call FROM history WHERE startedAt < $1 AND coalesce(endedAt, startedAt) < $1
        AND NOT EXISTS (SELECT FROM call WHERE id = history.call) ORDER BY startedAt LIMIT 1
        """, .integer(time))
    ])[0].first?.text(0)
  }

  /// Works user by user. A user's stays are deleted in the transaction that adds them to the totals, so nothing is counted twice, not even if a server that was
  /// replaced sweeps, too: it waits for the lock, and finds them deleted. Returns how many rows were written.
  fileprivate func fold(_ call: String, rows limit: Int) throws -> Int {
    let id = PostgresValue.text(call)
    var rows = 0
    while rows < limit {
      let next = try run([PostgresStatement(#"SELECT "user" FROM stay WHERE call = $1 LIMIT 1"#, id)])[0].first
      guard let user = try next?.text(0) else {
        try run([PostgresStatement("DELETE FROM history WHERE call = $1", id)])
        return rows + 1
      }
      let answers = try run([
        PostgresStatement("SELECT FROM history WHERE call = $1 FOR UPDATE", id),
        PostgresStatement(
          """
          INSERT INTO total (low, high, calls, milliseconds)
          SELECT least(a."user", b."user"), greatest(a."user", b."user"), 1,
            sum(least(a.went, b.went) - greatest(a.came, b.came))::bigint
          FROM stay a JOIN stay b ON b.call = a.call AND b."user" <> a."user"
          WHERE a.call = $1 AND a."user" = $2 AND least(a.went, b.went) >= greatest(a.came, b.came)
          GROUP BY a."user", b."user"
          ON CONFLICT (low, high) DO UPDATE SET calls = total.calls + 1,
            milliseconds = total.milliseconds + excluded.milliseconds
          """, id, .text(user)),
        PostgresStatement(#"DELETE FROM stay WHERE call = $1 AND "user" = $2"#, id, .text(user)),
      ])
      rows += answers[1].changed + 1
    }
    return rows
  }
}
