package import CallMessages
package import Contract
package import MediaModel
import PostgreSQL

/// Protocol section 8.
extension PostgresStore {
  package func list(
    of user: UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>, now: Timestamp
  ) throws(StoreError) -> HistoryList {
    try reading(on: .history) { connection in
      let rows = try connection.run([
        PostgresStatement(
          """
          SELECT part.call, direction, outcome, media, part.startedAt,
            (SELECT sum(greatest(0, coalesce(went, $3) - came))::bigint FROM stay
              WHERE stay.call = part.call AND stay."user" = part."user")
          FROM part JOIN history USING (call)
          WHERE part."user" = $1 AND part.startedAt < $2 AND outcome IS NOT NULL AND NOT hidden
          ORDER BY part.startedAt DESC, part.call LIMIT $4
          """, .text(user.text), .integer(before.milliseconds), .integer(now.milliseconds), .integer(Int64(limit)))
      ])[0]
      let members = try connection.members(of: rows.map { try $0.text(0) })
      return HistoryList(
        calls: try rows.map { row in
          let call = try row.text(0)
          guard let id = CallID(call), let direction = HistoryEntry.Direction(rawValue: try row.text(1)),
            let outcome = HistoryEntry.Outcome(rawValue: try row.text(2)),
            let media = CallMedia(rawValue: try row.text(3))
          else { return nil }
          return HistoryEntry(
            id: id, direction: direction, outcome: outcome, media: media, members: members[call] ?? [],
            startedAt: Timestamp(milliseconds: try row.integer(4)),
            seconds: Int(try row.optionalInteger(5) ?? 0) / 1_000, rejoinable: rejoinable.contains(id))
        }.compactMap { $0 })
    }
  }

  package func delete(of user: UserID, calls: [CallID]?) throws(StoreError) {
    guard let calls else { return try deleteAll(of: user) }
    try reading(on: .history) { connection in
      _ = try connection.run([
        PostgresStatement(
          #"UPDATE part SET hidden = true WHERE "user" = $1 AND call = ANY($2)"#, .text(user.text),
          .texts(calls.map(\.text)))
      ])
    }
  }

  /// Step by step: calls that write meanwhile wait only for one step.
  private func deleteAll(of user: UserID) throws(StoreError) {
    let step = PostgresStatement(
      """
      UPDATE part SET hidden = true WHERE "user" = $1 AND call IN
        (SELECT call FROM part WHERE "user" = $1 AND NOT hidden LIMIT $2)
      """, .text(user.text), .integer(Int64(Retention.stepRows)))
    while try reading(on: .history, { try $0.run([step])[0].changed }) == Retention.stepRows {}
  }

  package func totals(of user: UserID, with other: UserID, now: Timestamp) throws(StoreError) -> Totals {
    guard user != other else { return Totals(calls: 0, seconds: 0) }
    return try reading(on: .history) { connection in
      let answers = try connection.run([
        PostgresStatement(
          "SELECT calls, milliseconds FROM total WHERE low = $1 AND high = $2", .text(min(user, other).text),
          .text(max(user, other).text)),
        PostgresStatement(
          """
          SELECT count(DISTINCT a.call),
            sum(least(coalesce(a.went, $3), coalesce(b.went, $3)) - greatest(a.came, b.came))::bigint
          FROM stay a JOIN stay b ON b.call = a.call AND b."user" = $2
          WHERE a."user" = $1
            AND least(coalesce(a.went, $3), coalesce(b.went, $3)) >= greatest(a.came, b.came)
          """, .text(user.text), .text(other.text), .integer(now.milliseconds)),
      ])
      func sum(_ column: Int) throws -> Int {
        let parts = try answers.map { try $0.first?.optionalInteger(column) ?? 0 }
        return Int(parts[0].addingReportingOverflow(parts[1]).partialValue)
      }
      return Totals(calls: try sum(0), seconds: try sum(1) / 1_000)
    }
  }

  package func acquainted(_ user: UserID, with others: [UserID]) throws(StoreError) -> Set<UserID> {
    try reading(on: .history) { connection in
      let rows = try connection.run([
        PostgresStatement(
          """
          SELECT other FROM unnest($2::text[]) AS other
          WHERE EXISTS (
              SELECT FROM total
              WHERE low = least($1 COLLATE "C", other COLLATE "C") AND high = greatest($1 COLLATE "C", other COLLATE "C"))
            OR EXISTS (
              SELECT FROM part a JOIN part b ON b.call = a.call WHERE a."user" = $1 AND b."user" = other)
          """, .text(user.text), .texts(others.map(\.text)))
      ])[0]
      return Set(try rows.map { try $0.text(0) }.compactMap { UserID($0) })
    }
  }
}

extension PostgresConnection {
  fileprivate func members(of calls: [String]) throws -> [String: [HistoryEntry.Member]] {
    let rows = try run([
      PostgresStatement(
        #"SELECT call, "user", name FROM part WHERE call = ANY($1) ORDER BY call, ordinal"#, .texts(calls))
    ])[0]
    var members: [String: [HistoryEntry.Member]] = [:]
    for (call, user, name) in try rows.map({ (try $0.text(0), UserID(try $0.text(1)), try $0.optionalText(2)) }) {
      if let user { members[call, default: []].append(HistoryEntry.Member(user: user, name: name)) }
    }
    return members
  }
}
