package import CallMessages
import Contract
import Foundation
import GRDB
import JSON
package import MediaModel

extension SQLiteStore {
  /// Counts this start.
  package func load(now: Timestamp) throws(StoreError) -> Stored {
    try transaction { db in
      let stored = try db.stored(now: now)
      try db.execute(sql: "UPDATE server SET boots = boots + 1")
      return stored
    }
  }
}

extension Database {
  /// The state that the last run left.
  func stored(now: Timestamp) throws -> Stored {
    let db = self
    let boots = try UInt32.fetchOne(db, sql: "SELECT boots FROM server") ?? 0
    guard boots < .max else { throw JSONError(reason: "more starts than there can be") }
    var stored = Stored(boots: boots)
    stored.ranUntil = try Int64.fetchOne(db, sql: "SELECT ranUntil FROM server").map { Timestamp(milliseconds: $0) }
    stored.calls = try db.calls()
    stored.devices = try db.records(StoredDevice.self, "SELECT record FROM device ORDER BY user, device")
    for row in try Row.fetchAll(db, sql: "SELECT user, device, record FROM mailbox") {
      stored.mailboxes[try device(row)] = try record(StoredMailbox.self, row)
    }
    for row in try Row.fetchAll(db, sql: "SELECT user, record FROM presence") {
      if let user = UserID(try row.decode(String.self, forColumn: "user")) {
        stored.presence[user] = try record(StoredPresence.self, row)
      }
    }
    for row in try Row.fetchAll(db, sql: "SELECT user, record FROM revokes") {
      if let user = UserID(try row.decode(String.self, forColumn: "user")) {
        stored.revokes[user] = try record([Revoke].self, row)
      }
    }
    stored.links = try db.records(StoredLastingLink.self, "SELECT record FROM lastingLink ORDER BY madeAt, id")
    let endedSince = (now - Retention.endedTime).milliseconds
    for row in try Row.fetchAll(db, sql: "SELECT call, endedAt FROM ended WHERE endedAt > \(endedSince)") {
      if let call = CallID(try row.decode(String.self, atIndex: 0)) {
        stored.endedIDs[call] = Timestamp(milliseconds: try row.decode(Int64.self, atIndex: 1))
      }
    }
    stored.ended = try db.ended(since: now - Retention.endedTime)
    for call in stored.calls.map(\.call.id) + stored.ended.map(\.call) {
      stored.numbers[call] = try db.numbers(of: call)
    }
    return stored
  }
}

extension Database {
  fileprivate func records<Value: Decodable>(_ type: Value.Type, _ sql: String) throws -> [Value] {
    try Row.fetchAll(self, sql: sql).map { try record(type, $0) }
  }

  fileprivate func calls() throws -> [Stored.CallRecord] {
    let progress = try byCall(StoredProgress.self, "progress")
    let epochs = try byCall(StoredEpoch.self, "epoch")
    let entries = try byCall(ListEntry.self, "entry", order: "participant")
    let members = try byCall(StoredMember.self, "member")
    let envelopes = try byCall(Envelope.self, "ringEnvelope")
    let links = try chains()
    let confirmations = try confirmations()
    let words = try byCall(StoredWord.self, "word")
    let signers = try byCall(Signer.self, "signer")
    return try records(StoredCall.self, "SELECT record FROM call ORDER BY id").map { call in
      let id = call.id.text
      guard let progress = progress[id]?.first, let epoch = epochs[id]?.first else {
        throw JSONError(reason: "a call without its epoch")
      }
      return Stored.CallRecord(
        call: call, progress: progress, epoch: epoch, entries: entries[id] ?? [], members: members[id] ?? [],
        ringEnvelopes: envelopes[id] ?? [], epochLinks: links[id] ?? [], confirmations: confirmations[id] ?? [:],
        words: words[id] ?? [], signers: signers[id] ?? [])
    }
  }

  private func chains() throws -> [String: [EpochLink]] {
    var chains: [String: [EpochLink]] = [:]
    for row in try Row.fetchAll(self, sql: "SELECT call, epoch, roster FROM link ORDER BY call, epoch") {
      let roster = Base64Bytes(Array(try row.decode(Data.self, atIndex: 2)))
      let link = EpochLink(epoch: try row.decode(UInt32.self, atIndex: 1), roster: roster)
      chains[try row.decode(String.self, atIndex: 0), default: []].append(link)
    }
    return chains
  }

  private func confirmations() throws -> [String: [ParticipantNumber: Base64Bytes]] {
    var confirmations: [String: [ParticipantNumber: Base64Bytes]] = [:]
    for row in try Row.fetchAll(self, sql: "SELECT call, participant, tag FROM confirmation") {
      let tag = Base64Bytes(Array(try row.decode(Data.self, atIndex: 2)))
      let participant = try row.decode(ParticipantNumber.self, atIndex: 1)
      confirmations[try row.decode(String.self, atIndex: 0), default: [:]][participant] = tag
    }
    return confirmations
  }

  /// - Parameter order: of a call's rows; by default that in which they were written.
  private func byCall<Value: Decodable>(
    _ type: Value.Type, _ table: String, order: String = "rowid"
  ) throws -> [String: [Value]] {
    var values: [String: [Value]] = [:]
    for row in try Row.fetchAll(self, sql: "SELECT call, record FROM \(table) ORDER BY call, \(order)") {
      values[try row.decode(String.self, atIndex: 0), default: []].append(try record(type, row))
    }
    return values
  }

  fileprivate func ended(since time: Timestamp) throws -> [StoredEnd] {
    let ends = try records(
      StoredEnd.self,
      """
      SELECT record FROM ended WHERE endedAt > \(time.milliseconds)
      ORDER BY endedAt DESC, call LIMIT \(Retention.maximumEnded)
      """)
    return try ends.reversed().map { end in
      var end = end
      end.users = try String.fetchAll(
        self, sql: "SELECT user FROM endedUser WHERE call = ?", arguments: [end.call.text]
      )
      .compactMap { UserID($0) }
      return end
    }
  }
}

extension Database {
  fileprivate func numbers(of call: CallID) throws -> [ParticipantNumber: StoredNumber] {
    var numbers: [ParticipantNumber: StoredNumber] = [:]
    let sql = "SELECT user, device, number, joinId, cameBy FROM number WHERE call = ?"
    for row in try Row.fetchAll(cachedStatement(sql: sql), arguments: [call.text]) {
      let joinId = try row.decode(Data?.self, forColumn: "joinId").map { Base64Bytes(Array($0)) }
      numbers[try row.decode(ParticipantNumber.self, forColumn: "number")] = StoredNumber(
        device: try device(row), joinId: joinId, cameBy: try row.decode(String?.self, forColumn: "cameBy"))
    }
    return numbers
  }
}

/// Columns are decoded, not subscripted: a value of another type than its column's, as in a damaged file, is then an error and not a trap.
func record<Value: Decodable>(_ type: Value.Type, _ row: Row) throws -> Value {
  let data = try row.decode(Data.self, forColumn: "record")
  return try JSONCoding.decode(type, from: Array(data))
}

private func device(_ row: Row) throws -> Device {
  guard let user = UserID(try row.decode(String.self, forColumn: "user")),
    let device = DeviceID(try row.decode(String.self, forColumn: "device"))
  else {
    throw JSONError(reason: "an id that is none")
  }
  return Device(user: user, device: device)
}
