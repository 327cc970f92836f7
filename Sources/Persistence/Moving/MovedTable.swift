import Foundation
import GRDB
import PostgreSQL

/// A table as it is moved from one store to the other. Both have the same columns.
struct MovedTable {
  enum Column {
    case text, integer, bytes
    /// 0 or 1 in SQLite.
    case flag
  }

  let name: String
  let columns: [Column]
  /// Declares the cursor `moved` with the table's rows, in the order in which they were written where that counts.
  let cursor: StaticString
  let insertion: StaticString

  /// The same rows in SQLite.
  var selection: String {
    String(text(cursor).trimmingPrefix("DECLARE moved CURSOR FOR").trimmingPrefix { $0.isWhitespace })
      .replacing("ORDER BY ordinal", with: "ORDER BY rowid")
  }

  /// With SQLite's names of parameters.
  var sqliteInsertion: String { text(insertion).replacing("$", with: "?") }

  func values(_ row: Row) throws -> [PostgresValue] {
    try columns.enumerated().map { index, column in
      switch column {
      case .text: .text(try row.decode(String?.self, atIndex: index))
      case .integer: .integer(try row.decode(Int64?.self, atIndex: index))
      case .bytes: .bytes(try row.decode(Data?.self, atIndex: index).map { Array($0) })
      case .flag: .flag(try row.decode(Bool.self, atIndex: index))
      }
    }
  }

  func arguments(_ row: PostgresRow) throws -> StatementArguments {
    StatementArguments(
      try columns.enumerated().map { index, column throws -> DatabaseValue in
        switch column {
        case .text: try row.optionalText(index).databaseValue
        case .integer: try row.optionalInteger(index).databaseValue
        case .bytes: try row.optionalBytes(index).map { Data($0) }.databaseValue
        case .flag: try row.flag(index).databaseValue
        }
      })
  }

  private func text(_ sql: StaticString) -> String { sql.withUTF8Buffer { String(decoding: $0, as: UTF8.self) } }

  /// All tables but that of the server itself, each after those that it refers to.
  static let all = ofCalls + ofPeople + ofHistory + ofRecordings

  private static let ofCalls = [
    MovedTable(
      name: "call", columns: [.text, .bytes], cursor: "DECLARE moved CURSOR FOR SELECT id, record FROM call",
      insertion: "INSERT INTO call VALUES ($1, $2)"),
    MovedTable(
      name: "progress", columns: [.text, .bytes], cursor: "DECLARE moved CURSOR FOR SELECT call, record FROM progress",
      insertion: "INSERT INTO progress VALUES ($1, $2)"),
    MovedTable(
      name: "epoch", columns: [.text, .bytes], cursor: "DECLARE moved CURSOR FOR SELECT call, record FROM epoch",
      insertion: "INSERT INTO epoch VALUES ($1, $2)"),
    MovedTable(
      name: "entry", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, participant, record FROM entry",
      insertion: "INSERT INTO entry VALUES ($1, $2, $3)"),
    MovedTable(
      name: "link", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, epoch, roster FROM link",
      insertion: "INSERT INTO link VALUES ($1, $2, $3)"),
    MovedTable(
      name: "confirmation", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, participant, tag FROM confirmation",
      insertion: "INSERT INTO confirmation VALUES ($1, $2, $3)"),
    MovedTable(
      name: "word", columns: [.text, .text, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, subject, record FROM word ORDER BY ordinal",
      insertion: "INSERT INTO word (call, subject, record) VALUES ($1, $2, $3)"),
    MovedTable(
      name: "signer", columns: [.text, .bytes, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, fingerprint, record FROM signer ORDER BY ordinal",
      insertion: "INSERT INTO signer (call, fingerprint, record) VALUES ($1, $2, $3)"),
    MovedTable(
      name: "member", columns: [.text, .text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT call, "user", record FROM member ORDER BY ordinal"#,
      insertion: #"INSERT INTO member (call, "user", record) VALUES ($1, $2, $3)"#),
    MovedTable(
      name: "ringEnvelope", columns: [.text, .text, .text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT call, "user", device, record FROM ringEnvelope ORDER BY ordinal"#,
      insertion: #"INSERT INTO ringEnvelope (call, "user", device, record) VALUES ($1, $2, $3, $4)"#),
    MovedTable(
      name: "number", columns: [.text, .integer, .text, .text, .bytes, .text],
      cursor: #"DECLARE moved CURSOR FOR SELECT call, number, "user", device, joinId, cameBy FROM number"#,
      insertion: "INSERT INTO number VALUES ($1, $2, $3, $4, $5, $6)"),
  ]

  private static let ofPeople = [
    MovedTable(
      name: "device", columns: [.text, .text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT "user", device, record FROM device"#,
      insertion: "INSERT INTO device VALUES ($1, $2, $3)"),
    MovedTable(
      name: "mailbox", columns: [.text, .text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT "user", device, record FROM mailbox"#,
      insertion: "INSERT INTO mailbox VALUES ($1, $2, $3)"),
    MovedTable(
      name: "presence", columns: [.text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT "user", record FROM presence"#,
      insertion: "INSERT INTO presence VALUES ($1, $2)"),
    MovedTable(
      name: "revokes", columns: [.text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT "user", record FROM revokes"#,
      insertion: "INSERT INTO revokes VALUES ($1, $2)"),
    MovedTable(
      name: "lastingLink", columns: [.text, .text, .integer, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT id, "user", madeAt, record FROM lastingLink"#,
      insertion: "INSERT INTO lastingLink VALUES ($1, $2, $3, $4)"),
    MovedTable(
      name: "forgotten", columns: [.text], cursor: #"DECLARE moved CURSOR FOR SELECT "user" FROM forgotten"#,
      insertion: "INSERT INTO forgotten VALUES ($1)"),
  ]

  private static let ofHistory = [
    MovedTable(
      name: "ended", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT call, endedAt, record FROM ended",
      insertion: "INSERT INTO ended VALUES ($1, $2, $3)"),
    MovedTable(
      name: "endedUser", columns: [.text, .text],
      cursor: #"DECLARE moved CURSOR FOR SELECT call, "user" FROM endedUser"#,
      insertion: "INSERT INTO endedUser VALUES ($1, $2)"),
    MovedTable(
      name: "history", columns: [.text, .text, .integer, .integer],
      cursor: "DECLARE moved CURSOR FOR SELECT call, media, startedAt, endedAt FROM history",
      insertion: "INSERT INTO history VALUES ($1, $2, $3, $4)"),
    MovedTable(
      name: "part", columns: [.text, .text, .text, .text, .text, .integer, .flag],
      cursor: """
        DECLARE moved CURSOR FOR
        SELECT call, "user", name, direction, outcome, startedAt, hidden FROM part ORDER BY ordinal
        """,
      insertion: """
        INSERT INTO part (call, "user", name, direction, outcome, startedAt, hidden)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """),
    MovedTable(
      name: "stay", columns: [.text, .text, .integer, .integer],
      cursor: #"DECLARE moved CURSOR FOR SELECT call, "user", came, went FROM stay"#,
      insertion: #"INSERT INTO stay (call, "user", came, went) VALUES ($1, $2, $3, $4)"#),
    MovedTable(
      name: "total", columns: [.text, .text, .integer, .integer],
      cursor: "DECLARE moved CURSOR FOR SELECT low, high, calls, milliseconds FROM total",
      insertion: "INSERT INTO total (low, high, calls, milliseconds) VALUES ($1, $2, $3, $4)"),
    MovedTable(
      name: "report", columns: [.text, .integer, .text, .text, .text, .integer, .text],
      cursor: """
        DECLARE moved CURSOR FOR
        SELECT id, at, call, author, "user", participant, words FROM report ORDER BY ordinal
        """,
      insertion: """
        INSERT INTO report (id, at, call, author, "user", participant, words) VALUES ($1, $2, $3, $4, $5, $6, $7)
        """),
  ]

  private static let ofRecordings = [
    MovedTable(
      name: "recording", columns: [.text, .text, .text, .text, .integer, .integer, .text, .flag],
      cursor: """
        DECLARE moved CURSOR FOR SELECT id, kind, "user", device, startedAt, expiresAt, state, draft FROM recording
        """,
      insertion: "INSERT INTO recording VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"),
    MovedTable(
      name: "reel", columns: [.text, .integer, .text],
      cursor: #"DECLARE moved CURSOR FOR SELECT recording, reel, "user" FROM reel"#,
      insertion: "INSERT INTO reel VALUES ($1, $2, $3)"),
    MovedTable(
      name: "segment", columns: [.text, .integer, .integer, .integer, .bytes, .integer],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, reel, number, bytes, hash, start FROM segment",
      insertion: "INSERT INTO segment VALUES ($1, $2, $3, $4, $5, $6)"),
    MovedTable(
      name: "witness", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, reel, record FROM witness",
      insertion: "INSERT INTO witness VALUES ($1, $2, $3)"),
    MovedTable(
      name: "description", columns: [.text, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, record FROM description",
      insertion: "INSERT INTO description VALUES ($1, $2)"),
    MovedTable(
      name: "readerGrant", columns: [.text, .text, .text, .text, .bytes],
      cursor: #"DECLARE moved CURSOR FOR SELECT recording, "user", device, author, record FROM readerGrant"#,
      insertion: "INSERT INTO readerGrant VALUES ($1, $2, $3, $4, $5)"),
    MovedTable(
      name: "reader", columns: [.text, .text, .flag, .integer, .integer, .integer],
      cursor: """
        DECLARE moved CURSOR FOR SELECT recording, "user", opened, seenAt, alertedAt, reachedAt FROM reader
        """,
      insertion: "INSERT INTO reader VALUES ($1, $2, $3, $4, $5, $6)"),
    MovedTable(
      name: "note", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, number, record FROM note",
      insertion: "INSERT INTO note VALUES ($1, $2, $3)"),
    MovedTable(
      name: "person", columns: [.text, .integer, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, reel, record FROM person",
      insertion: "INSERT INTO person VALUES ($1, $2, $3)"),
    MovedTable(
      name: "trackKey", columns: [.text, .integer, .integer, .bytes, .bytes],
      cursor: "DECLARE moved CURSOR FOR SELECT recording, reel, epoch, tracks, record FROM trackKey",
      insertion: "INSERT INTO trackKey VALUES ($1, $2, $3, $4, $5)"),
  ]
}
