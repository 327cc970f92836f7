package import CallMessages
import JSON
package import MediaModel
import PostgreSQL

/// `conclave forget`.
extension PostgresStore {
  /// A server that runs, or starts, is told by `takeForgotten`, and does the rest.
  package func forget(_ user: UserID) throws(StoreError) {
    try reading(on: .upkeep) { connection in
      let ends = try connection.run([PostgresStatement("BEGIN"), .ends(of: user)]).last
      var statements = try ends.map { try PostgresStatement.forget(user, in: $0) } ?? []
      statements += PostgresStatement.forget(user, reports: true)
      statements += [
        PostgresStatement("INSERT INTO forgotten VALUES ($1) ON CONFLICT DO NOTHING", .text(user.text)),
        PostgresStatement("COMMIT"),
      ]
      try connection.run(statements)
    }
  }

  package func takeForgotten() throws(StoreError) -> [UserID] {
    try reading(on: .upkeep) { connection in
      try connection.run([PostgresStatement(#"SELECT "user" FROM forgotten"#)])[0].map { try $0.text(0) }
        .compactMap { UserID($0) }
    }
  }
}

extension PostgresStatement {
  /// The records of ended calls that name the user.
  static func ends(of user: UserID) -> PostgresStatement {
    PostgresStatement(
      #"SELECT call, record FROM ended WHERE call IN (SELECT call FROM endedUser WHERE "user" = $1)"#,
      .text(user.text))
  }

  /// The records that the calls existed stay, for the others.
  /// - Parameter ends: the answer to `ends`.
  static func forget(_ user: UserID, in ends: PostgresRows) throws -> [PostgresStatement] {
    try ends.map { row in
      var end = try row.record(StoredEnd.self, 1)
      end.forget(user)
      return PostgresStatement(
        "UPDATE ended SET record = $2 WHERE call = $1", .text(try row.text(0)), try record(end))
    }
  }

  /// Only the server may end the membership in a running call.
  /// - Parameter reports: whether reports by and about the user are deleted, too.
  static func forget(_ user: UserID, reports: Bool) -> [PostgresStatement] {
    let name = PostgresValue.text(user.text)
    var statements: [PostgresStatement] = []
    if reports { statements.append(PostgresStatement(#"DELETE FROM report WHERE author = $1 OR "user" = $1"#, name)) }
    if !user.isGuest { statements += forgetRecordings(of: name) }
    return statements + [
      PostgresStatement(#"DELETE FROM device WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM lastingLink WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM mailbox WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM number WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM presence WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM revokes WHERE "user" = $1"#, name),
      PostgresStatement(#"DELETE FROM endedUser WHERE "user" = $1"#, name),
      PostgresStatement("DELETE FROM total WHERE low = $1 OR high = $1", name),
      PostgresStatement(#"DELETE FROM stay WHERE "user" = $1"#, name),
      // The second part does not see what the first one deletes.
      PostgresStatement(
        """
        WITH gone AS (DELETE FROM part WHERE "user" = $1 RETURNING call)
        DELETE FROM history WHERE call IN (SELECT call FROM gone) AND endedAt IS NOT NULL
        AND NOT EXISTS (SELECT FROM part WHERE part.call = history.call AND part."user" <> $1)
        """, name),
    ]
  }
}
