package import CallMessages
import Contract
package import MediaModel
import PostgreSQL

extension PostgresStore {
  package func reports(since: Timestamp, limit: Int) throws(StoreError) -> (reports: [StoredReport], total: Int) {
    try reading(on: .history) { connection in
      let answers = try connection.run([
        PostgresStatement(
          """
          SELECT id, at, call, author, "user", participant, words FROM report WHERE at >= $1
          ORDER BY at DESC, ordinal DESC LIMIT $2
          """, .integer(since.milliseconds), .integer(Int64(limit))),
        PostgresStatement("SELECT count(*) FROM report WHERE at >= $1", .integer(since.milliseconds)),
      ])
      let reports = try answers[0].map { try storedReport($0) }.compactMap { $0 }
      return (reports, Int(try answers[1].first?.integer(0) ?? 0))
    }
  }

  package func report(_ id: ReportID) throws(StoreError) -> StoredReport? {
    try reading(on: .history) { connection in
      try connection.run([
        PostgresStatement(
          #"SELECT id, at, call, author, "user", participant, words FROM report WHERE id = $1"#, .text(id.text))
      ])[0].first.flatMap(storedReport)
    }
  }
}

/// nil if an id in the row is invalid.
private func storedReport(_ row: PostgresRow) throws -> StoredReport? {
  guard let id = ReportID(try row.text(0)), let call = CallID(try row.text(2)), let by = UserID(try row.text(3)),
    let user = UserID(try row.text(4))
  else { return nil }
  let participant = try row.optionalInteger(5).flatMap { ParticipantNumber(exactly: $0) }
  return StoredReport(
    id: id, at: Timestamp(milliseconds: try row.integer(1)), call: call,
    report: Report(by: by, user: user, participant: participant, text: try row.text(6)))
}
