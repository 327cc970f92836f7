package import CallMessages
import Contract
import GRDB
package import MediaModel

extension SQLiteStore {
  package func reports(since: Timestamp, limit: Int) throws(StoreError) -> (reports: [StoredReport], total: Int) {
    try reading { db in
      let sql = "SELECT * FROM report WHERE at >= ? ORDER BY at DESC, rowid DESC LIMIT ?"
      let reports = try Row.fetchAll(db, sql: sql, arguments: [since.milliseconds, limit]).compactMap(storedReport)
      let count = "SELECT count(*) FROM report WHERE at >= ?"
      return (reports, try Int.fetchOne(db, sql: count, arguments: [since.milliseconds]) ?? 0)
    }
  }

  package func report(_ id: ReportID) throws(StoreError) -> StoredReport? {
    try reading { db in
      try Row.fetchOne(db, sql: "SELECT * FROM report WHERE id = ?", arguments: [id.text]).flatMap(storedReport)
    }
  }
}

extension Database {
  func add(_ report: StoredReport) throws {
    let author = report.report.by.text
    try run(
      "INSERT OR IGNORE INTO report VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        report.id.text, report.at.milliseconds, report.call.text, author, report.report.user.text,
        report.report.participant, report.report.text,
      ])
    try run(
      """
      DELETE FROM report WHERE rowid IN
        (SELECT rowid FROM report WHERE author = ? ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)
      """, [author, StoredReport.capacityOfAuthor])
    guard try Int.fetchOne(self, sql: "SELECT count(*) FROM report") ?? 0 > StoredReport.capacity else { return }
    try run(
      """
      DELETE FROM report WHERE rowid =
        (SELECT rowid FROM report WHERE author =
          (SELECT author FROM report GROUP BY author ORDER BY count(*) DESC, min(at) LIMIT 1)
        ORDER BY at, rowid LIMIT 1)
      """, [])
  }

  /// Returns how many rows were deleted.
  func forgetReports(before time: Int64, rows limit: Int) throws -> Int {
    try run(
      "DELETE FROM report WHERE rowid IN (SELECT rowid FROM report WHERE at < ? ORDER BY at LIMIT ?)", [time, limit])
    return changesCount
  }
}

/// nil if an id in the row is invalid.
private func storedReport(_ row: Row) throws -> StoredReport? {
  func text(_ column: String) throws -> String { try row.decode(String.self, forColumn: column) }
  guard let id = ReportID(try text("id")), let call = CallID(try text("call")), let by = UserID(try text("author")),
    let user = UserID(try text("user"))
  else { return nil }
  let report = Report(
    by: by, user: user, participant: try row.decode(ParticipantNumber?.self, forColumn: "participant"),
    text: try text("words"))
  return StoredReport(
    id: id, at: Timestamp(milliseconds: try row.decode(Int64.self, forColumn: "at")), call: call, report: report)
}
