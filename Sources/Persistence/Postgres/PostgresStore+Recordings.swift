package import CallMessages
package import Contract
import JSON
package import MediaModel
import PostgreSQL
package import Recording

/// Protocol section 13.
extension PostgresStore {
  package func recordings() throws(StoreError) -> StoredRecordings {
    try reading(on: .upkeep) { connection in
      let answers = try connection.run([
        PostgresStatement("SELECT id FROM recording WHERE state = 'running' ORDER BY id"),
        PostgresStatement(
          """
          SELECT recording."user", coalesce(sum(whole.bytes), 0)::bigint, count(*), count(*) FILTER (WHERE draft)
          FROM recording
            LEFT JOIN (SELECT recording, sum(bytes) AS bytes FROM segment GROUP BY recording) AS whole
            ON whole.recording = recording.id
          GROUP BY recording."user"
          """),
      ])
      var stored = StoredRecordings()
      stored.running = try connection.recordings(try answers[0].map { try $0.text(0) })
      for case (let user?, let usage) in try answers[1].map({ (UserID(try $0.text(0)), try $0.usage()) }) {
        stored.usage[user] = usage
      }
      return stored
    }
  }

  package func recording(_ id: RecordingID) throws(StoreError) -> StoredRecording? {
    try reading(on: .upkeep) { connection in try connection.recordings([id.text]).first }
  }

  package func record(of recording: RecordingID) throws(StoreError) -> RecordingRecord? {
    let question = PostgresStatement("SELECT record FROM description WHERE recording = $1", .text(recording.text))
    let records: [RecordingRecord] = try records(question)
    return records.first
  }

  package func grants(of recording: RecordingID, to user: UserID) throws(StoreError) -> [RecordingGrant] {
    try records(
      PostgresStatement(
        #"SELECT record FROM readerGrant WHERE recording = $1 AND "user" = $2 ORDER BY device"#, .text(recording.text),
        .text(user.text)))
  }

  package func notes(
    of recording: RecordingID, from number: UInt32, limit: Int
  ) throws(StoreError) -> [RecordingNote] {
    try records(
      PostgresStatement(
        "SELECT record FROM note WHERE recording = $1 AND number >= $2 ORDER BY number LIMIT $3",
        .text(recording.text), .integer(Int64(number)), .integer(Int64(limit))))
  }

  package func witnesses(of recording: RecordingID) throws(StoreError) -> [ReelWitness] {
    try records(
      PostgresStatement("SELECT record FROM witness WHERE recording = $1 ORDER BY reel", .text(recording.text)))
  }

  package func people(of recording: RecordingID) throws(StoreError) -> [RecordedPerson] {
    try records(
      PostgresStatement("SELECT record FROM person WHERE recording = $1 ORDER BY reel", .text(recording.text)))
  }

  package func trackKeys(of recording: RecordingID) throws(StoreError) -> [TrackKeys] {
    try records(
      PostgresStatement(
        "SELECT record FROM trackKey WHERE recording = $1 ORDER BY reel, epoch, tracks", .text(recording.text)))
  }

  private func records<Value: Decodable & Sendable>(_ question: PostgresStatement) throws(StoreError) -> [Value] {
    try reading(on: .upkeep) { connection in try connection.run([question])[0].map { try $0.record(Value.self, 0) } }
  }

  package func readers(of recording: RecordingID) throws(StoreError) -> [StoredReader] {
    let question = PostgresStatement(
      """
      SELECT known."user", known.grants, coalesce(opened, false), seenAt, alertedAt, reachedAt
      FROM (
        SELECT "user", sum(granted)::bigint AS grants FROM (
          SELECT "user", 1 AS granted FROM readerGrant WHERE recording = $1
          UNION ALL SELECT "user", 0 FROM reader WHERE recording = $1) AS found
        GROUP BY "user") AS known
      LEFT JOIN reader ON reader.recording = $1 AND reader."user" = known."user" ORDER BY known."user"
      """, .text(recording.text))
    return try reading(on: .upkeep) { connection in
      try connection.run([question])[0].map { try $0.reader() }.compactMap { $0 }
    }
  }

  package func unopened(from author: UserID, by user: UserID) throws(StoreError) -> Int {
    let question = PostgresStatement(
      """
      SELECT count(DISTINCT recording) FROM readerGrant WHERE "user" = $1 AND author = $2
        AND NOT EXISTS (
          SELECT FROM reader
          WHERE reader.recording = readerGrant.recording AND reader."user" = readerGrant."user" AND opened)
        AND NOT EXISTS (
          SELECT FROM recording WHERE id = readerGrant.recording AND kind = 'call' AND state = 'running')
      """, .text(user.text), .text(author.text))
    return try reading(on: .upkeep) { connection in Int(try connection.run([question])[0].first?.integer(0) ?? 0) }
  }

  package func alerts() throws(StoreError) -> [StoredAlert] {
    let question = PostgresStatement(
      """
      SELECT recording, "user", alertedAt FROM reader WHERE alertedAt IS NOT NULL AND reachedAt IS NULL
      ORDER BY alertedAt, recording, "user"
      """)
    return try reading(on: .upkeep) { connection in
      try connection.run([question])[0].map { try $0.alert() }.compactMap { $0 }
    }
  }

  package func recordings(of user: UserID?, _ wanted: RecordingFilter) throws(StoreError) -> [StoredRecording] {
    let kind = PostgresValue.text(wanted.kind?.rawValue)
    let before = PostgresValue.integer(wanted.before.milliseconds)
    let limit = PostgresValue.integer(Int64(wanted.limit))
    let ids =
      if let user {
        PostgresStatement(
          """
          SELECT id FROM recording
          WHERE id IN (
              SELECT id FROM recording WHERE $2 AND "user" = $1
              UNION ALL SELECT recording FROM readerGrant WHERE $3 AND "user" = $1)
            AND ($2 OR "user" <> $1) AND ($4 IS NULL OR kind = $4) AND startedAt < $5
          ORDER BY startedAt DESC, id LIMIT $6
          """, .text(user.text), .flag(wanted.role != .reader), .flag(wanted.role != .owner), kind, before, limit)
      } else {
        PostgresStatement(
          """
          SELECT id FROM recording WHERE ($1 IS NULL OR kind = $1) AND startedAt < $2
          ORDER BY startedAt DESC, id LIMIT $3
          """, kind, before, limit)
      }
    return try reading(on: .upkeep) { connection in
      try connection.recordings(try connection.run([ids])[0].map { try $0.text(0) })
    }
  }

  package func segments(
    of recording: RecordingID, reel: UInt32, from: UInt32, limit: Int
  ) throws(StoreError) -> [StoredSegment] {
    try reading(on: .upkeep) { connection in
      try connection.run([
        PostgresStatement(
          """
          SELECT number, bytes, hash, start FROM segment WHERE recording = $1 AND reel = $2 AND number >= $3
          ORDER BY number LIMIT $4
          """, .text(recording.text), .integer(Int64(reel)), .integer(Int64(from)), .integer(Int64(limit)))
      ])[0].map { try $0.segment(at: 0) }
    }
  }

  package func recordings(expiredAt time: Timestamp, limit: Int) throws(StoreError) -> [RecordingID] {
    try reading(on: .upkeep) { connection in
      try connection.run([
        PostgresStatement(
          "SELECT id FROM recording WHERE expiresAt <= $1 ORDER BY expiresAt, id LIMIT $2",
          .integer(time.milliseconds), .integer(Int64(limit)))
      ])[0].map { RecordingID(try $0.text(0)) }.compactMap { $0 }
    }
  }
}

extension PostgresConnection {
  /// The recordings that are there, in the order of the ids. One with an invalid value is left out.
  fileprivate func recordings(_ ids: [String]) throws -> [StoredRecording] {
    let answers = try run([
      PostgresStatement(
        #"SELECT id, kind, "user", device, startedAt, expiresAt, state, draft FROM recording WHERE id = ANY($1)"#,
        .texts(ids)),
      PostgresStatement(
        """
        SELECT reel.recording, reel.reel, reel."user", whole.bytes, whole.start, last.number, last.bytes, last.hash,
          last.start
        FROM reel
          LEFT JOIN LATERAL (
            SELECT sum(bytes)::bigint AS bytes, min(start) AS start FROM segment
            WHERE segment.recording = reel.recording AND segment.reel = reel.reel) AS whole ON true
          LEFT JOIN LATERAL (
            SELECT number, bytes, hash, start FROM segment
            WHERE segment.recording = reel.recording AND segment.reel = reel.reel
            ORDER BY number DESC LIMIT 1) AS last ON true
        WHERE reel.recording = ANY($1) ORDER BY reel.recording, reel.reel
        """, .texts(ids)),
    ])
    var reels: [String: [StoredReel]] = [:]
    for case (let recording, let reel?) in try answers[1].map({ (try $0.text(0), try $0.reel()) }) {
      reels[recording, default: []].append(reel)
    }
    let recordings = try answers[0].map { row in
      let id = try row.text(0)
      return (id, try row.recording(reels: reels[id] ?? []))
    }
    let byID = Dictionary(recordings) { first, _ in first }
    return ids.compactMap { byID[$0] ?? nil }
  }
}

extension PostgresRow {
  /// nil if a value is invalid.
  fileprivate func recording(reels: [StoredReel]) throws -> StoredRecording? {
    guard let id = RecordingID(try text(0)), let kind = RecordingKind(rawValue: try text(1)),
      let user = UserID(try text(2)), let device = DeviceID(try text(3)),
      let state = RecordingState(rawValue: try text(6))
    else { return nil }
    return StoredRecording(
      id: id, kind: kind, owner: Device(user: user, device: device), startedAt: Timestamp(milliseconds: try integer(4)),
      expiresAt: Timestamp(milliseconds: try integer(5)), state: state, isDraft: try flag(7), reels: reels)
  }

  /// A user's bytes, recordings and drafts.
  fileprivate func usage() throws -> StoredUsage {
    StoredUsage(bytes: try integer(1), recordings: Int(try integer(2)), drafts: Int(try integer(3)))
  }

  /// nil for an invalid user.
  fileprivate func reader() throws -> StoredReader? {
    guard let user = UserID(try text(0)) else { return nil }
    return StoredReader(
      user: user, grants: Int(try integer(1)), isOpened: try flag(2), seenAt: try optionalTime(3),
      alertedAt: try optionalTime(4), reachedAt: try optionalTime(5))
  }

  /// nil if a value is invalid.
  fileprivate func alert() throws -> StoredAlert? {
    guard let recording = RecordingID(try text(0)), let user = UserID(try text(1)) else { return nil }
    return StoredAlert(recording: recording, user: user, at: Timestamp(milliseconds: try integer(2)))
  }

  private func optionalTime(_ column: Int) throws -> Timestamp? {
    try optionalInteger(column).map(Timestamp.init(milliseconds:))
  }

  /// nil for an invalid user.
  fileprivate func reel() throws -> StoredReel? {
    guard let number = UInt32(exactly: try integer(1)) else { throw PostgresError.malformed }
    guard let user = UserID(try text(2)) else { return nil }
    var position = ReelPosition()
    if let bytes = try optionalInteger(3) {
      position.append(try segment(at: 5))
      position.byteCount = bytes
      position.start = try integer(4)
    }
    return StoredReel(number: number, user: user, position: position)
  }

  /// A segment's number, bytes, hash and start.
  fileprivate func segment(at column: Int) throws -> StoredSegment {
    guard let number = UInt32(exactly: try integer(column)), number <= SegmentHeader.maximumNumber,
      let byteCount = Int(exactly: try integer(column + 1)), let hash = SegmentHash(try bytes(column + 2))
    else { throw JSONError(reason: "a segment without its hash") }
    return StoredSegment(number: number, byteCount: byteCount, hash: hash, start: try integer(column + 3))
  }
}

extension PostgresStatement {
  /// The statements of a fact, in order.
  static func statements(for fact: RecordingFact) throws(JSONError) -> [PostgresStatement] {
    switch fact {
    case .begun(let recording): return statements(for: recording)
    case .described(let id, let words):
      return [
        PostgresStatement(
          """
          INSERT INTO description SELECT id, $2 FROM recording WHERE id = $1
          ON CONFLICT (recording) DO UPDATE SET record = excluded.record
          """, .text(id.text), try record(words))
      ]
    case .witness(let id, let witness):
      return [
        PostgresStatement(
          """
          INSERT INTO witness SELECT recording, reel, $3 FROM reel WHERE recording = $1 AND reel = $2
          ON CONFLICT (recording, reel) DO UPDATE SET record = excluded.record
          """, .text(id.text), .integer(Int64(witness.reel)), try record(witness))
      ]
    case .grant(let grant):
      return [
        PostgresStatement(
          """
          INSERT INTO readerGrant SELECT id, $2, $3, $4, $5 FROM recording WHERE id = $1
          ON CONFLICT (recording, "user", device) DO UPDATE SET author = excluded.author, record = excluded.record
          """, .text(grant.recording.text), .text(grant.to.user.text), .text(grant.to.device?.text ?? ""),
          .text(grant.from.user.text), try record(grant))
      ]
    case .grantsGone(let id, let user):
      return [
        PostgresStatement(
          #"DELETE FROM readerGrant WHERE recording = $1 AND "user" = $2"#, .text(id.text), .text(user.text)),
        PostgresStatement(
          #"DELETE FROM reader WHERE recording = $1 AND "user" = $2"#, .text(id.text), .text(user.text)),
      ]
    case .note(let id, let note):
      return [
        PostgresStatement(
          "INSERT INTO note SELECT id, $2, $3 FROM recording WHERE id = $1 ON CONFLICT DO NOTHING", .text(id.text),
          .integer(Int64(note.number)), try record(note))
      ]
    case .segment(let id, let reel, let segment):
      return [
        PostgresStatement(
          """
          INSERT INTO segment SELECT recording, reel, $3, $4, $5, $6 FROM reel WHERE recording = $1 AND reel = $2
          ON CONFLICT DO NOTHING
          """, .text(id.text), .integer(Int64(reel)), .integer(Int64(segment.number)),
          .integer(Int64(segment.byteCount)), .bytes(segment.hash.bytes), .integer(segment.start))
      ]
    case .kept(let id, let expiry):
      return [
        PostgresStatement(
          "UPDATE recording SET draft = false, expiresAt = $2 WHERE id = $1", .text(id.text),
          .integer(expiry.milliseconds))
      ]
    case .reader(let id, let user, let mark): return [statement(for: mark, by: .text(user.text), to: .text(id.text))]
    case .reel(let id, let reel, let person):
      return [
        PostgresStatement(
          "INSERT INTO reel SELECT id, $2, $3 FROM recording WHERE id = $1 ON CONFLICT DO NOTHING", .text(id.text),
          .integer(Int64(reel.number)), .text(reel.user.text)),
        PostgresStatement(
          """
          INSERT INTO person SELECT recording, reel, $3 FROM reel WHERE recording = $1 AND reel = $2
          ON CONFLICT (recording, reel) DO UPDATE SET record = excluded.record
          """, .text(id.text), .integer(Int64(reel.number)), try record(person)),
      ]
    case .trackKeys(let id, let keys):
      return [
        PostgresStatement(
          """
          INSERT INTO trackKey SELECT recording, reel, $3, $4, $5 FROM reel WHERE recording = $1 AND reel = $2
          ON CONFLICT DO NOTHING
          """, .text(id.text), .integer(Int64(keys.participant)), .integer(Int64(keys.epoch)), .bytes(keys.tracks),
          try record(keys))
      ]
    case .ended(let id, let state):
      return [
        PostgresStatement(
          "UPDATE recording SET state = $2 WHERE id = $1", .text(id.text), .text(state.rawValue))
      ]
    case .gone(let id): return [PostgresStatement("DELETE FROM recording WHERE id = $1", .text(id.text))]
    case .reelGone(let id, let reel):
      return [
        PostgresStatement(
          "DELETE FROM reel WHERE recording = $1 AND reel = $2", .text(id.text), .integer(Int64(reel)))
      ]
    }
  }

  private static func statements(for recording: StoredRecording) -> [PostgresStatement] {
    let begun = PostgresStatement(
      "INSERT INTO recording VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
      .text(recording.id.text), .text(recording.kind.rawValue), .text(recording.owner.user.text),
      .text(recording.owner.device.text), .integer(recording.startedAt.milliseconds),
      .integer(recording.expiresAt.milliseconds), .text(recording.state.rawValue), .flag(recording.isDraft))
    return [begun]
      + recording.reels.map { reel in
        PostgresStatement(
          "INSERT INTO reel VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", .text(recording.id.text),
          .integer(Int64(reel.number)), .text(reel.user.text))
      }
  }

  /// The first mark of a kind stays.
  private static func statement(
    for mark: ReaderMark, by user: PostgresValue, to recording: PostgresValue
  ) -> PostgresStatement {
    switch mark {
    case .opened:
      PostgresStatement(
        """
        INSERT INTO reader (recording, "user", opened) SELECT id, $2, true FROM recording WHERE id = $1
        ON CONFLICT (recording, "user") DO UPDATE SET opened = true
        """, recording, user)
    case .seen(let at):
      PostgresStatement(
        """
        INSERT INTO reader (recording, "user", seenAt) SELECT id, $2, $3 FROM recording WHERE id = $1
        ON CONFLICT (recording, "user") DO UPDATE SET seenAt = coalesce(reader.seenAt, excluded.seenAt)
        """, recording, user, .integer(at.milliseconds))
    case .alerted(let at):
      PostgresStatement(
        """
        INSERT INTO reader (recording, "user", alertedAt) SELECT id, $2, $3 FROM recording WHERE id = $1
        ON CONFLICT (recording, "user") DO UPDATE SET alertedAt = coalesce(reader.alertedAt, excluded.alertedAt)
        """, recording, user, .integer(at.milliseconds))
    case .reached(let at):
      PostgresStatement(
        """
        INSERT INTO reader (recording, "user", reachedAt) SELECT id, $2, $3 FROM recording WHERE id = $1
        ON CONFLICT (recording, "user") DO UPDATE SET reachedAt = coalesce(reader.reachedAt, excluded.reachedAt)
        """, recording, user, .integer(at.milliseconds))
    }
  }

  /// The user's recordings, the reels of others' with the user in them, and grants to and by the user.
  static func forgetRecordings(of user: PostgresValue) -> [PostgresStatement] {
    [
      PostgresStatement(#"DELETE FROM readerGrant WHERE "user" = $1 OR author = $1"#, user),
      PostgresStatement(#"DELETE FROM reader WHERE "user" = $1"#, user),
      PostgresStatement(#"DELETE FROM recording WHERE "user" = $1"#, user),
      PostgresStatement(#"DELETE FROM reel WHERE "user" = $1"#, user),
    ]
  }
}
