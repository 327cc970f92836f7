package import CallMessages
package import Contract
import GRDB
package import MediaModel

/// Protocol section 8.
extension SQLiteStore {
  package func list(
    of user: UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>, now: Timestamp
  ) throws(StoreError) -> HistoryList {
    try reading { db in
      let rows = try Row.fetchAll(
        db,
        sql: """
          SELECT part.call, direction, outcome, media, part.startedAt,
            (SELECT sum(max(0, coalesce(went, ?) - came)) FROM stay WHERE stay.call = part.call AND user = part.user)
          FROM part JOIN history USING (call)
          WHERE user = ? AND part.startedAt < ? AND outcome IS NOT NULL AND NOT hidden
          ORDER BY part.startedAt DESC, part.call LIMIT ?
          """, arguments: [now.milliseconds, user.text, before.milliseconds, limit])
      return HistoryList(
        calls: try rows.compactMap { row in
          func text(_ index: Int) throws -> String { try row.decode(String.self, atIndex: index) }
          guard let id = CallID(try text(0)), let direction = HistoryEntry.Direction(rawValue: try text(1)),
            let outcome = HistoryEntry.Outcome(rawValue: try text(2)), let media = CallMedia(rawValue: try text(3))
          else { return nil }
          return HistoryEntry(
            id: id, direction: direction, outcome: outcome, media: media, members: try db.members(of: id),
            startedAt: Timestamp(milliseconds: try row.decode(Int64.self, atIndex: 4)),
            seconds: (try row.decode(Int?.self, atIndex: 5) ?? 0) / 1_000,
            rejoinable: rejoinable.contains(id))
        })
    }
  }

  package func delete(of user: UserID, calls: [CallID]?) throws(StoreError) {
    guard let calls else { return try deleteAll(of: user) }
    try transaction { db in
      for call in calls {
        try db.run("UPDATE part SET hidden = 1 WHERE user = ? AND call = ?", [user.text, call.text])
      }
    }
  }

  /// Step by step: calls that write meanwhile wait only for one step.
  private func deleteAll(of user: UserID) throws(StoreError) {
    let step = 500
    while try transaction({ db in
      try db.run(
        """
        UPDATE part SET hidden = 1 WHERE rowid IN
          (SELECT rowid FROM part WHERE user = ? AND NOT hidden LIMIT ?)
        """, [user.text, step])
      return db.changesCount == step
    }) {}
  }

  package func totals(of user: UserID, with other: UserID, now: Timestamp) throws(StoreError) -> Totals {
    guard user != other else { return Totals(calls: 0, seconds: 0) }
    return try reading { db in
      let kept = try Row.fetchOne(
        db, sql: "SELECT calls, milliseconds FROM total WHERE low = ? AND high = ?",
        arguments: [min(user, other).text, max(user, other).text])
      let live = try Row.fetchOne(
        db,
        sql: """
          SELECT count(DISTINCT a.call), sum(min(coalesce(a.went, ?1), coalesce(b.went, ?1)) - max(a.came, b.came))
          FROM stay a JOIN stay b ON b.call = a.call AND b.user = ?3
          WHERE a.user = ?2 AND min(coalesce(a.went, ?1), coalesce(b.went, ?1)) >= max(a.came, b.came)
          """, arguments: [now.milliseconds, user.text, other.text])
      func sum(_ index: Int) throws -> Int {
        let (kept, live) = (try kept?.decode(Int?.self, atIndex: index), try live?.decode(Int?.self, atIndex: index))
        // A damaged file may contain any number.
        return ((kept ?? nil) ?? 0).addingReportingOverflow((live ?? nil) ?? 0).partialValue
      }
      return Totals(calls: try sum(0), seconds: try sum(1) / 1_000)
    }
  }

  package func acquainted(_ user: UserID, with others: [UserID]) throws(StoreError) -> Set<UserID> {
    try reading { db in
      Set(
        try others.filter { other in
          let names: StatementArguments = [min(user, other).text, max(user, other).text, user.text, other.text]
          let statement = try db.cachedStatement(
            sql: """
              SELECT EXISTS (SELECT 1 FROM total WHERE low = ? AND high = ?)
                OR EXISTS (SELECT 1 FROM part a JOIN part b ON b.call = a.call WHERE a.user = ? AND b.user = ?)
              """)
          return try Bool.fetchOne(statement, arguments: names) ?? false
        })
    }
  }
}

extension Database {
  fileprivate func members(of call: CallID) throws -> [HistoryEntry.Member] {
    let rows = try Row.fetchAll(
      cachedStatement(sql: "SELECT user, name FROM part WHERE call = ? ORDER BY rowid"), arguments: [call.text])
    return try rows.compactMap { row in
      let name = try row.decode(String?.self, atIndex: 1)
      return UserID(try row.decode(String.self, atIndex: 0)).map { HistoryEntry.Member(user: $0, name: name) }
    }
  }
}
