import CallMessages
import Contract
import JSON
import MediaModel
import PostgreSQL

extension PostgresConnection {
  /// Enters this start, refuses the batches of all earlier ones from now on, and reads what they left. If it cannot be read, nothing has changed.
  func load(now: Timestamp) throws -> Stored {
    // A server that was stopped within a transaction would keep its row locked.
    try run([
      PostgresStatement(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user
        AND datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
        """, .text(PostgresStore.writerName))
    ])
    let answers = try run(
      [
        PostgresStatement("BEGIN"),
        // The state of a large server takes seconds to be read.
        PostgresStatement("SELECT set_config('idle_in_transaction_session_timeout', '60000', true)"),
        PostgresStatement("INSERT INTO node DEFAULT VALUES RETURNING id"),
        PostgresStatement("UPDATE node SET dead = true WHERE id < currval('incarnation') AND NOT dead"),
        // A start that is not there is as dead. The last one that says when it ran is read below.
        PostgresStatement(
          "DELETE FROM node WHERE dead AND id < (SELECT max(id) FROM node WHERE ranUntil IS NOT NULL)"),
      ])
    guard let id = try answers[2].first?.integer(0), let number = UInt32(exactly: id), number > 0 else {
      throw JSONError(reason: "a start with a number that is none")
    }
    let stored = try stored(boots: number - 1, now: now)
    try run([PostgresStatement("COMMIT")])
    return stored
  }

  /// The state that the last run left.
  /// - Parameter boots: how many starts there were.
  func stored(boots: UInt32, now: Timestamp) throws -> Stored {
    let endedSince = PostgresValue.integer((now - Retention.endedTime).milliseconds)
    let answers = try run([
      PostgresStatement("SELECT ranUntil FROM node WHERE ranUntil IS NOT NULL ORDER BY id DESC LIMIT 1"),
      PostgresStatement(#"SELECT record FROM device ORDER BY "user", device"#),
      PostgresStatement(#"SELECT "user", device, record FROM mailbox"#),
      PostgresStatement(#"SELECT "user", record FROM presence"#),
      PostgresStatement(#"SELECT "user", record FROM revokes"#),
      PostgresStatement("SELECT call, endedAt FROM ended WHERE endedAt > $1", endedSince),
      PostgresStatement(
        "SELECT call, record FROM ended WHERE endedAt > $1 ORDER BY endedAt DESC, call LIMIT $2", endedSince,
        .integer(Int64(Retention.maximumEnded))),
      PostgresStatement(
        #"SELECT call, "user" FROM endedUser JOIN ended USING (call) WHERE endedAt > $1 ORDER BY "user""#, endedSince),
      PostgresStatement("SELECT record FROM lastingLink ORDER BY madeAt, id"),
    ])
    var stored = Stored(boots: boots)
    stored.ranUntil = try answers[0].first?.optionalInteger(0).map { Timestamp(milliseconds: $0) }
    stored.devices = try answers[1].map { try $0.record(StoredDevice.self, 0) }
    for row in try answers[2].map({ (try $0.device(0, 1), try $0.record(StoredMailbox.self, 2)) }) {
      stored.mailboxes[row.0] = row.1
    }
    stored.presence = try answers[3].byUser(StoredPresence.self)
    stored.revokes = try answers[4].byUser([Revoke].self)
    stored.links = try answers[8].map { try $0.record(StoredLastingLink.self, 0) }
    for case (let call?, let at) in try answers[5].map({ (CallID(try $0.text(0)), try $0.integer(1)) }) {
      stored.endedIDs[call] = Timestamp(milliseconds: at)
    }
    stored.ended = try ends(answers[6], users: answers[7])
    stored.calls = try calls()
    stored.numbers = try numbers(of: stored.calls.map(\.call.id) + stored.ended.map(\.call))
    return stored
  }

  /// The calls that ended first come first.
  private func ends(_ rows: PostgresRows, users: PostgresRows) throws -> [StoredEnd] {
    var usersOfCalls: [String: [UserID]] = [:]
    for case (let call, let user?) in try users.map({ (try $0.text(0), UserID(try $0.text(1))) }) {
      usersOfCalls[call, default: []].append(user)
    }
    return try rows.map { row in
      var end = try row.record(StoredEnd.self, 1)
      end.users = usersOfCalls[end.call.text] ?? []
      return end
    }.reversed()
  }

  private func calls() throws -> [Stored.CallRecord] {
    let answers = try run([
      PostgresStatement("SELECT id, record FROM call ORDER BY id"),
      PostgresStatement("SELECT call, record FROM progress"),
      PostgresStatement("SELECT call, record FROM epoch"),
      PostgresStatement("SELECT call, record FROM member ORDER BY call, ordinal"),
      PostgresStatement("SELECT call, record FROM ringEnvelope ORDER BY call, ordinal"),
      PostgresStatement("SELECT call, record FROM word ORDER BY call, ordinal"),
      PostgresStatement("SELECT call, record FROM signer ORDER BY call, ordinal"),
      PostgresStatement("SELECT call, epoch, roster FROM link ORDER BY call, epoch"),
      PostgresStatement("SELECT call, participant, tag FROM confirmation"),
      PostgresStatement("SELECT call, record FROM entry ORDER BY call, participant"),
    ])
    let progress = try answers[1].byCall(StoredProgress.self)
    let epochs = try answers[2].byCall(StoredEpoch.self)
    let entries = try answers[9].byCall(ListEntry.self)
    let members = try answers[3].byCall(StoredMember.self)
    let envelopes = try answers[4].byCall(Envelope.self)
    let words = try answers[5].byCall(StoredWord.self)
    let signers = try answers[6].byCall(Signer.self)
    var links: [String: [EpochLink]] = [:]
    for row in try answers[7].map({ (try $0.text(0), try $0.number(1), try $0.bytes(2)) }) {
      links[row.0, default: []].append(EpochLink(epoch: row.1, roster: Base64Bytes(row.2)))
    }
    var confirmations: [String: [ParticipantNumber: Base64Bytes]] = [:]
    for row in try answers[8].map({ (try $0.text(0), try $0.number(1), try $0.bytes(2)) }) {
      confirmations[row.0, default: [:]][row.1] = Base64Bytes(row.2)
    }
    return try answers[0].map { row in
      let id = try row.text(0)
      guard let progress = progress[id]?.first, let epoch = epochs[id]?.first else {
        throw JSONError(reason: "a call without its epoch")
      }
      return Stored.CallRecord(
        call: try row.record(StoredCall.self, 1), progress: progress, epoch: epoch, entries: entries[id] ?? [],
        members: members[id] ?? [], ringEnvelopes: envelopes[id] ?? [], epochLinks: links[id] ?? [],
        confirmations: confirmations[id] ?? [:], words: words[id] ?? [], signers: signers[id] ?? [])
    }
  }

  private func numbers(of calls: [CallID]) throws -> [CallID: [ParticipantNumber: StoredNumber]] {
    let answer = try run([
      PostgresStatement(
        #"SELECT call, number, "user", device, joinId, cameBy FROM number WHERE call = ANY($1)"#,
        .texts(calls.map(\.text)))
    ])[0]
    // Also the calls that have none.
    var numbers = Dictionary(calls.map { ($0, [ParticipantNumber: StoredNumber]()) }) { first, _ in first }
    let rows = try answer.map { row in
      let joinId = try row.optionalBytes(4).map { Base64Bytes($0) }
      let join = StoredNumber(device: try row.device(2, 3), joinId: joinId, cameBy: try row.optionalText(5))
      return (call: CallID(try row.text(0)), number: try row.number(1), join: join)
    }
    for row in rows {
      if let call = row.call { numbers[call]?[row.number] = row.join }
    }
    return numbers
  }
}

extension PostgresRows {
  /// Rows of a call's id and a record.
  fileprivate func byCall<Value: Decodable>(_ type: Value.Type) throws -> [String: [Value]] {
    var values: [String: [Value]] = [:]
    for (call, value) in try map({ (try $0.text(0), try $0.record(type, 1)) }) {
      values[call, default: []].append(value)
    }
    return values
  }

  /// Rows of a user's id and a record.
  fileprivate func byUser<Value: Decodable>(_ type: Value.Type) throws -> [UserID: Value] {
    var values: [UserID: Value] = [:]
    for (user, value) in try map({ (UserID(try $0.text(0)), try $0.record(type, 1)) }) {
      if let user { values[user] = value }
    }
    return values
  }
}

extension PostgresRow {
  func record<Value: Decodable>(_ type: Value.Type, _ column: Int) throws -> Value {
    try JSONCoding.decode(type, from: try bytes(column))
  }

  fileprivate func device(_ user: Int, _ device: Int) throws -> Device {
    guard let user = UserID(try text(user)), let device = DeviceID(try text(device)) else {
      throw JSONError(reason: "an id that is none")
    }
    return Device(user: user, device: device)
  }

  fileprivate func number(_ column: Int) throws -> UInt32 {
    guard let number = UInt32(exactly: try integer(column)) else { throw PostgresError.malformed }
    return number
  }
}
