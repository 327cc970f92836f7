package import CallMessages
package import Contract
import Foundation
import GRDB
import JSON
package import MediaModel
package import Recording

extension SQLiteStore {
  package func recordings() throws(StoreError) -> StoredRecordings {
    try reading { db in
      let running = try String.fetchAll(db, sql: "SELECT id FROM recording WHERE state = 'running' ORDER BY id")
      var stored = StoredRecordings()
      stored.running = try running.compactMap { try db.recording($0) }
      let counts = "SELECT user, count(*) AS recordings, sum(draft) AS drafts FROM recording GROUP BY user"
      for row in try Row.fetchAll(db, sql: counts) {
        guard let user = UserID(try row.decode(String.self, forColumn: "user")) else { continue }
        stored.usage[user] = StoredUsage(
          recordings: try row.decode(Int.self, forColumn: "recordings"),
          drafts: try row.decode(Int.self, forColumn: "drafts"))
      }
      let bytes = """
        SELECT recording.user, sum(segment.bytes) AS bytes FROM recording JOIN segment ON segment.recording = recording.id
        GROUP BY recording.user
        """
      for row in try Row.fetchAll(db, sql: bytes) {
        guard let user = UserID(try row.decode(String.self, forColumn: "user")) else { continue }
        stored.usage[user]?.bytes = try row.decode(Int64.self, forColumn: "bytes")
      }
      return stored
    }
  }

  package func recording(_ id: RecordingID) throws(StoreError) -> StoredRecording? {
    try reading { db in try db.recording(id.text) }
  }

  package func record(of recording: RecordingID) throws(StoreError) -> RecordingRecord? {
    try reading { db in
      let sql = "SELECT record FROM description WHERE recording = ?"
      return try Row.fetchOne(db, sql: sql, arguments: [recording.text]).map {
        try Persistence.record(RecordingRecord.self, $0)
      }
    }
  }

  package func grants(of recording: RecordingID, to user: UserID) throws(StoreError) -> [RecordingGrant] {
    try records("readerGrant", of: recording, "AND user = ? ORDER BY device", [user.text])
  }

  package func notes(
    of recording: RecordingID, from number: UInt32, limit: Int
  ) throws(StoreError) -> [RecordingNote] {
    try records("note", of: recording, "AND number >= ? ORDER BY number LIMIT ?", [number, limit])
  }

  package func witnesses(of recording: RecordingID) throws(StoreError) -> [ReelWitness] {
    try records("witness", of: recording, "ORDER BY reel")
  }

  package func people(of recording: RecordingID) throws(StoreError) -> [RecordedPerson] {
    try records("person", of: recording, "ORDER BY reel")
  }

  package func trackKeys(of recording: RecordingID) throws(StoreError) -> [TrackKeys] {
    try records("trackKey", of: recording, "ORDER BY reel, epoch, tracks")
  }

  private func records<Value: Decodable & Sendable>(
    _ table: String, of recording: RecordingID, _ rest: String, _ arguments: StatementArguments = []
  ) throws(StoreError) -> [Value] {
    try reading { db in
      let sql = "SELECT record FROM \(table) WHERE recording = ? \(rest)"
      return try Row.fetchAll(db, sql: sql, arguments: [recording.text] + arguments).map {
        try Persistence.record(Value.self, $0)
      }
    }
  }

  package func readers(of recording: RecordingID) throws(StoreError) -> [StoredReader] {
    try reading { db in
      let sql = """
        SELECT known.user, known.grants, opened, seenAt, alertedAt, reachedAt
        FROM (
          SELECT user, sum(granted) AS grants FROM (
            SELECT user, 1 AS granted FROM readerGrant WHERE recording = ?
            UNION ALL SELECT user, 0 FROM reader WHERE recording = ?) AS rows
          GROUP BY user) AS known
        LEFT JOIN reader ON reader.recording = ? AND reader.user = known.user ORDER BY known.user
        """
      let id = recording.text
      return try Row.fetchAll(db, sql: sql, arguments: [id, id, id]).compactMap { row in
        guard let user = UserID(try row.decode(String.self, forColumn: "user")) else { return nil }
        func time(_ column: String) throws -> Timestamp? {
          try row.decode(Int64?.self, forColumn: column).map(Timestamp.init(milliseconds:))
        }
        return StoredReader(
          user: user, grants: try row.decode(Int.self, forColumn: "grants"),
          isOpened: try row.decode(Bool?.self, forColumn: "opened") ?? false, seenAt: try time("seenAt"),
          alertedAt: try time("alertedAt"), reachedAt: try time("reachedAt"))
      }
    }
  }

  package func unopened(from author: UserID, by user: UserID) throws(StoreError) -> Int {
    try reading { db in
      let sql = """
        SELECT count(DISTINCT recording) FROM readerGrant WHERE user = ? AND author = ?
        AND NOT EXISTS (
          SELECT 1 FROM reader
          WHERE reader.recording = readerGrant.recording AND reader.user = readerGrant.user AND opened)
        AND NOT EXISTS (
          SELECT 1 FROM recording WHERE id = readerGrant.recording AND kind = 'call' AND state = 'running')
        """
      return try Int.fetchOne(db, sql: sql, arguments: [user.text, author.text]) ?? 0
    }
  }

  package func alerts() throws(StoreError) -> [StoredAlert] {
    try reading { db in
      let sql = """
        SELECT recording, user, alertedAt FROM reader WHERE alertedAt IS NOT NULL AND reachedAt IS NULL
        ORDER BY alertedAt, recording, user
        """
      return try Row.fetchAll(db, sql: sql).compactMap { row in
        guard let recording = RecordingID(try row.decode(String.self, forColumn: "recording")),
          let user = UserID(try row.decode(String.self, forColumn: "user"))
        else { return nil }
        return StoredAlert(
          recording: recording, user: user,
          at: Timestamp(milliseconds: try row.decode(Int64.self, forColumn: "alertedAt")))
      }
    }
  }

  package func recordings(of user: UserID?, _ wanted: RecordingFilter) throws(StoreError) -> [StoredRecording] {
    try reading { db in
      let owned = "SELECT id FROM recording WHERE user = ?"
      let granted = "SELECT recording FROM readerGrant WHERE user = ?"
      var conditions = ["startedAt < ?"]
      var arguments: StatementArguments = [wanted.before.milliseconds]
      if let user = user?.text {
        // Each of them by an index; with OR all recordings would be looked at.
        switch wanted.role {
        case .owner: conditions.append("id IN (\(owned))")
        case .reader: conditions.append("id IN (\(granted) EXCEPT \(owned))")
        case nil: conditions.append("id IN (\(owned) UNION \(granted))")
        }
        arguments += wanted.role == .owner ? [user] : [user, user]
      }
      if let kind = wanted.kind {
        conditions.append("kind = ?")
        arguments += [kind.rawValue]
      }
      arguments += [wanted.limit]
      let sql = """
        SELECT id FROM recording WHERE \(conditions.joined(separator: " AND ")) ORDER BY startedAt DESC, id LIMIT ?
        """
      return try String.fetchAll(db, sql: sql, arguments: arguments).compactMap { try db.recording($0) }
    }
  }

  package func segments(
    of recording: RecordingID, reel: UInt32, from: UInt32, limit: Int
  ) throws(StoreError) -> [StoredSegment] {
    try reading { db in
      let sql = """
        SELECT number, bytes, hash, start FROM segment WHERE recording = ? AND reel = ? AND number >= ?
        ORDER BY number LIMIT ?
        """
      return try Row.fetchAll(db, sql: sql, arguments: [recording.text, reel, from, limit]).map(storedSegment)
    }
  }

  package func recordings(expiredAt time: Timestamp, limit: Int) throws(StoreError) -> [RecordingID] {
    try reading { db in
      let sql = "SELECT id FROM recording WHERE expiresAt <= ? ORDER BY expiresAt LIMIT ?"
      return try String.fetchAll(db, sql: sql, arguments: [time.milliseconds, limit]).compactMap { RecordingID($0) }
    }
  }
}

extension Database {
  func apply(_ fact: RecordingFact) throws {
    switch fact {
    case .begun(let recording):
      try run(
        "INSERT OR IGNORE INTO recording VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
          recording.id.text, recording.kind.rawValue, recording.owner.user.text, recording.owner.device.text,
          recording.startedAt.milliseconds, recording.expiresAt.milliseconds, recording.state.rawValue,
          recording.isDraft,
        ])
      for reel in recording.reels {
        try run("INSERT OR IGNORE INTO reel VALUES (?, ?, ?)", [recording.id.text, reel.number, reel.user.text])
      }
    case .described(let id, let record):
      try run(
        "INSERT OR REPLACE INTO description SELECT id, ? FROM recording WHERE id = ?", [try blob(record), id.text])
    case .witness(let id, let witness):
      try run(
        "INSERT OR REPLACE INTO witness SELECT recording, reel, ? FROM reel WHERE recording = ? AND reel = ?",
        [try blob(witness), id.text, witness.reel])
    case .grant(let grant):
      try run(
        "INSERT OR REPLACE INTO readerGrant SELECT id, ?, ?, ?, ? FROM recording WHERE id = ?",
        [
          grant.to.user.text, grant.to.device?.text ?? "", grant.from.user.text, try blob(grant), grant.recording.text,
        ])
    case .grantsGone(let id, let user):
      for table in ["readerGrant", "reader"] {
        try run("DELETE FROM \(table) WHERE recording = ? AND user = ?", [id.text, user.text])
      }
    case .note(let id, let note):
      try run(
        "INSERT OR IGNORE INTO note SELECT id, ?, ? FROM recording WHERE id = ?",
        [note.number, try blob(note), id.text])
    case .segment(let id, let reel, let segment):
      try run(
        """
        INSERT OR IGNORE INTO segment SELECT recording, reel, ?, ?, ?, ? FROM reel WHERE recording = ? AND reel = ?
        """,
        [segment.number, segment.byteCount, Data(segment.hash.bytes), segment.start, id.text, reel])
    case .kept(let id, let expiry):
      try run("UPDATE recording SET draft = 0, expiresAt = ? WHERE id = ?", [expiry.milliseconds, id.text])
    case .reader(let id, let user, let mark): try apply(mark, by: user.text, to: id.text)
    case .reel(let id, let reel, let person):
      try run(
        "INSERT OR IGNORE INTO reel SELECT id, ?, ? FROM recording WHERE id = ?",
        [reel.number, reel.user.text, id.text])
      try run(
        "INSERT OR REPLACE INTO person SELECT recording, reel, ? FROM reel WHERE recording = ? AND reel = ?",
        [try blob(person), id.text, reel.number])
    case .trackKeys(let id, let keys):
      try run(
        "INSERT OR IGNORE INTO trackKey SELECT recording, reel, ?, ?, ? FROM reel WHERE recording = ? AND reel = ?",
        [keys.epoch, Data(keys.tracks), try blob(keys), id.text, keys.participant])
    case .ended(let id, let state): try run("UPDATE recording SET state = ? WHERE id = ?", [state.rawValue, id.text])
    case .gone(let id): try run("DELETE FROM recording WHERE id = ?", [id.text])
    case .reelGone(let id, let reel):
      try run("DELETE FROM reel WHERE recording = ? AND reel = ?", [id.text, reel])
    }
  }

  private func apply(_ mark: ReaderMark, by user: String, to recording: String) throws {
    try run(
      "INSERT OR IGNORE INTO reader (recording, user) SELECT id, ? FROM recording WHERE id = ?", [user, recording])
    let (column, value): (String, Int64) =
      switch mark {
      case .opened: ("opened", 1)
      case .seen(let at): ("seenAt", at.milliseconds)
      case .alerted(let at): ("alertedAt", at.milliseconds)
      case .reached(let at): ("reachedAt", at.milliseconds)
      }
    try run(
      "UPDATE reader SET \(column) = coalesce(nullif(\(column), 0), ?) WHERE recording = ? AND user = ?",
      [value, recording, user])
  }

  /// The user's recordings, the reels of others' with the user in them, and grants to and by the user.
  func forgetRecordings(of user: String) throws {
    try run("DELETE FROM readerGrant WHERE user = ? OR author = ?", [user, user])
    try run("DELETE FROM reader WHERE user = ?", [user])
    try run("DELETE FROM recording WHERE user = ?", [user])
    try run("DELETE FROM reel WHERE user = ?", [user])
  }

  /// nil if there is none, or a value in the row is invalid.
  fileprivate func recording(_ id: String) throws -> StoredRecording? {
    guard let row = try Row.fetchOne(self, sql: "SELECT * FROM recording WHERE id = ?", arguments: [id]) else {
      return nil
    }
    func text(_ column: String) throws -> String { try row.decode(String.self, forColumn: column) }
    func time(_ column: String) throws -> Timestamp {
      Timestamp(milliseconds: try row.decode(Int64.self, forColumn: column))
    }
    guard let identifier = RecordingID(id), let kind = RecordingKind(rawValue: try text("kind")),
      let user = UserID(try text("user")), let device = DeviceID(try text("device")),
      let state = RecordingState(rawValue: try text("state"))
    else { return nil }
    let reels = try Row.fetchAll(
      self, sql: "SELECT reel, user FROM reel WHERE recording = ? ORDER BY reel", arguments: [id])
    return StoredRecording(
      id: identifier, kind: kind, owner: Device(user: user, device: device), startedAt: try time("startedAt"),
      expiresAt: try time("expiresAt"), state: state, isDraft: try row.decode(Bool.self, forColumn: "draft"),
      reels: try reels.compactMap { row in
        guard let user = UserID(try row.decode(String.self, forColumn: "user")) else { return nil }
        let number = try row.decode(UInt32.self, forColumn: "reel")
        return StoredReel(number: number, user: user, position: try position(of: number, recording: id))
      })
  }

  private func position(of reel: UInt32, recording: String) throws -> ReelPosition {
    var position = ReelPosition()
    let last = """
      SELECT number, bytes, hash, start FROM segment WHERE recording = ? AND reel = ? ORDER BY number DESC LIMIT 1
      """
    guard let row = try Row.fetchOne(self, sql: last, arguments: [recording, reel]) else { return position }
    position.append(try storedSegment(row))
    let all = "SELECT sum(bytes) AS bytes, min(start) AS start FROM segment WHERE recording = ? AND reel = ?"
    if let row = try Row.fetchOne(self, sql: all, arguments: [recording, reel]) {
      position.byteCount = try row.decode(Int64.self, forColumn: "bytes")
      position.start = try row.decode(Int64.self, forColumn: "start")
    }
    return position
  }
}

/// - Throws: if a value in the row is invalid.
private func storedSegment(_ row: Row) throws -> StoredSegment {
  let number = try row.decode(UInt32.self, forColumn: "number")
  guard let hash = SegmentHash(Array(try row.decode(Data.self, forColumn: "hash"))),
    number <= SegmentHeader.maximumNumber
  else { throw JSONError(reason: "a segment without its hash") }
  return StoredSegment(
    number: number, byteCount: try row.decode(Int.self, forColumn: "bytes"), hash: hash,
    start: try row.decode(Int64.self, forColumn: "start"))
}
