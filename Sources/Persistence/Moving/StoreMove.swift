package import CallMessages
import Foundation
import GRDB
package import PostgreSQL

/// `conclave migrate`: moves everything from SQLite's file into a PostgreSQL database, or back. No server may use either meanwhile.
package enum StoreMove {
  /// Rows that travel together.
  fileprivate static let step = 500

  /// The file is kept under the name with `.moved`, so that no server uses it again by mistake.
  /// - Returns: how many rows there were.
  /// - Throws: `StoreError`; nothing has changed then.
  package static func move(file: String, to target: PostgresTarget) throws(StoreError) -> Int {
    guard FileManager.default.fileExists(atPath: file) else {
      throw StoreError(
        .cannotOpen, "\(file): there is no such file; name the server's state folder by --state or --config")
    }
    let kept = file + ".moved"
    guard !FileManager.default.fileExists(atPath: kept) else {
      throw StoreError(
        .cannotOpen, "\(kept): there is such a file from an earlier move already; delete it, or move it away")
    }
    var count = 0
    try with(file: file, place: target.place) { queue in
      try queue.read { db in
        try inDatabase(target) { connection in
          guard try connection.isEmpty else { throw notEmpty(target.place) }
          try connection.begin(after: db)
          for table in MovedTable.all { count += try connection.fill(table, from: db) }
          try connection.run([PostgresStatement("COMMIT")])
        }
      }
      _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    }
    do {
      try FileManager.default.moveItem(atPath: file, toPath: kept)
    } catch {
      throw StoreError(
        .readOnly, "\(file): everything is in the database now, but the file cannot be renamed; move it away")
    }
    return count
  }

  /// No server can use the database any more. Its contents stay.
  /// - Returns: how many rows there were.
  /// - Throws: `StoreError`; nothing has changed then.
  package static func move(_ target: PostgresTarget, to file: String) throws(StoreError) -> Int {
    guard !FileManager.default.fileExists(atPath: file) else {
      throw StoreError(.cannotOpen, "\(file): there is such a file already; move it away")
    }
    var count = 0
    do throws(StoreError) {
      // With its mode and tables.
      _ = try SQLiteStore(path: file)
      try with(file: file, place: target.place) { queue in
        try queue.write { db in
          try inDatabase(target) { connection in
            try connection.end(into: db)
            for table in MovedTable.all { count += try connection.empty(table, into: db) }
            try connection.run([PostgresStatement("COMMIT")])
          }
        }
        _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      }
    } catch {
      for name in [file, file + "-wal", file + "-shm"] { try? FileManager.default.removeItem(atPath: name) }
      throw error
    }
    return count
  }

  private static func inDatabase(_ target: PostgresTarget, _ body: (PostgresConnection) throws -> Void) throws {
    let connection = try PostgresConnection(
      target,
      PostgresConnection.Settings(
        name: "conclave migrate", statement: nil, lock: .seconds(5), idle: .seconds(600), silence: .seconds(600)))
    try connection.migrate(place: target.place)
    try body(connection)
  }

  /// An error of the file names it, every other one the database.
  private static func with(
    file: String, place: String, _ body: (DatabaseQueue) throws -> Void
  ) throws(StoreError) {
    do {
      // Brings an older version's tables up to date.
      _ = try SQLiteStore(path: file)
      let queue = try DatabaseQueue(path: file)
      defer { try? queue.close() }
      try body(queue)
    } catch {
      throw error is DatabaseError ? StoreError(error, path: file) : StoreError(error, place: place)
    }
  }

  private static func notEmpty(_ place: String) -> StoreError {
    StoreError(.cannotOpen, "\(place): there is something in the database already; make an empty one")
  }
}

extension PostgresConnection {
  fileprivate var isEmpty: Bool {
    get throws {
      try run([
        PostgresStatement(
          """
          SELECT NOT EXISTS (SELECT FROM node) AND NOT EXISTS (SELECT FROM device)
            AND NOT EXISTS (SELECT FROM history) AND NOT EXISTS (SELECT FROM report)
          """)
      ])[0].first?.flag(0) == true
    }
  }

  /// Begins the transaction, and goes on with the numbers of starts.
  fileprivate func begin(after db: Database) throws {
    let boots = try Int64.fetchOne(db, sql: "SELECT boots FROM server") ?? 0
    let ranUntil = try Int64.fetchOne(db, sql: "SELECT ranUntil FROM server")
    var statements = [PostgresStatement("BEGIN")]
    if boots > 0 {
      statements += [
        PostgresStatement("SELECT setval('incarnation', $1)", .integer(boots)),
        PostgresStatement(
          "INSERT INTO node (id, dead, ranUntil) VALUES ($1, true, $2)", .integer(boots), .integer(ranUntil)),
      ]
    }
    try run(statements)
  }

  fileprivate func fill(_ table: MovedTable, from db: Database) throws -> Int {
    var count = 0
    var waiting: [PostgresStatement] = []
    let rows = try Row.fetchCursor(db, sql: table.selection)
    while let row = try rows.next() {
      waiting.append(PostgresStatement(table.insertion, values: try table.values(row)))
      count += 1
      if waiting.count == StoreMove.step {
        try run(waiting)
        waiting = []
      }
    }
    try run(waiting)
    return count
  }

  /// Begins the transaction, ends all starts, and writes how many there were.
  fileprivate func end(into db: Database) throws {
    let answers = try run([
      PostgresStatement("BEGIN ISOLATION LEVEL REPEATABLE READ"),
      PostgresStatement("UPDATE node SET dead = true WHERE NOT dead"),
      PostgresStatement("SELECT coalesce(max(id), 0) FROM node"),
      PostgresStatement("SELECT ranUntil FROM node WHERE ranUntil IS NOT NULL ORDER BY id DESC LIMIT 1"),
    ])
    let boots = try answers[2].first?.integer(0)
    let ranUntil = try answers[3].first?.optionalInteger(0)
    try db.execute(sql: "UPDATE server SET boots = ?, ranUntil = ?", arguments: [boots, ranUntil])
  }

  fileprivate func empty(_ table: MovedTable, into db: Database) throws -> Int {
    try run([PostgresStatement(table.cursor)])
    let insertion = try db.makeStatement(sql: table.sqliteInsertion)
    var count = 0
    while true {
      let rows = try run([PostgresStatement("FETCH 500 FROM moved")])[0]
      for arguments in try rows.map({ try table.arguments($0) }) { try insertion.execute(arguments: arguments) }
      count += rows.count
      if rows.count < StoreMove.step { break }
    }
    try run([PostgresStatement("CLOSE moved")])
    return count
  }
}
