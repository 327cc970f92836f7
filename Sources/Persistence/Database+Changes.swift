import CallMessages
import Contract
import Foundation
import GRDB
import JSON
import MediaModel

extension Database {
  /// With a cached prepared statement.
  func run(_ sql: String, _ arguments: StatementArguments) throws {
    try cachedStatement(sql: sql).execute(arguments: arguments)
  }

  func apply(_ change: StoreChange) throws {
    switch change {
    case .reset:
      for table in ["call", "device", "lastingLink", "mailbox", "presence", "revokes"] {
        try run("DELETE FROM \(table)", [])
      }
    case .call(let call):
      try run(
        "INSERT INTO call VALUES (?, ?) ON CONFLICT DO UPDATE SET record = excluded.record",
        [call.id.text, try blob(call)])
    case .progress(let id, let progress):
      try run("INSERT OR REPLACE INTO progress VALUES (?, ?)", [id.text, try blob(progress)])
    case .epoch(let id, let epoch):
      try run("INSERT OR REPLACE INTO epoch VALUES (?, ?)", [id.text, try blob(epoch)])
      try run("DELETE FROM confirmation WHERE call = ?", [id.text])
    case .entry(let id, let entry):
      try run("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", [id.text, entry.participant, try blob(entry)])
    case .entryGone(let id, let participant):
      try run("DELETE FROM entry WHERE call = ? AND participant = ?", [id.text, participant])
    case .link(let id, let link):
      try run("INSERT OR REPLACE INTO link VALUES (?, ?, ?)", [id.text, link.epoch, Data(link.roster.bytes)])
      guard let last = link.endOfForgotten else { break }
      try run("DELETE FROM link WHERE call = ? AND epoch <= ?", [id.text, last])
    case .confirmation(let id, let participant, let tag):
      try run("INSERT OR IGNORE INTO confirmation VALUES (?, ?, ?)", [id.text, participant, Data(tag.bytes)])
    case .word(let id, let word):
      try run("INSERT OR REPLACE INTO word VALUES (?, ?, ?)", [id.text, word.subject.text, try blob(word)])
    case .wordGone(let id, let subject):
      try run("DELETE FROM word WHERE call = ? AND subject = ?", [id.text, subject.text])
    case .signer(let id, let signer):
      try run(
        "INSERT OR REPLACE INTO signer VALUES (?, ?, ?)",
        [id.text, Data(signer.fingerprint.bytes), try blob(signer)])
    case .signerGone(let id, let fingerprint):
      try run("DELETE FROM signer WHERE call = ? AND fingerprint = ?", [id.text, Data(fingerprint.bytes)])
    case .member(let id, let member):
      try run("INSERT OR REPLACE INTO member VALUES (?, ?, ?)", [id.text, member.user.text, try blob(member)])
    case .memberGone(let id, let user): try run("DELETE FROM member WHERE call = ? AND user = ?", [id.text, user.text])
    case .number(let id, let number, let join): try apply(join, number, of: id)
    case .ringEnvelope(let id, let envelope):
      let to = envelope.to
      try run(
        "INSERT OR REPLACE INTO ringEnvelope VALUES (?, ?, ?, ?)",
        [id.text, to.user.text, to.device.text, try blob(envelope)])
    case .ringEnvelopeOver(let id, let device):
      try run(
        "DELETE FROM ringEnvelope WHERE call = ? AND user = ? AND device = ?",
        [id.text, device.user.text, device.device.text])
    case .ended(let end): try apply(end)
    case .device(let device):
      try run(
        "INSERT OR REPLACE INTO device VALUES (?, ?, ?)",
        [device.entry.user.text, device.entry.device.text, try blob(device)])
    case .deviceGone(let device):
      try run("DELETE FROM device WHERE user = ? AND device = ?", [device.user.text, device.device.text])
    case .revokes(let user, let revokes):
      try run("INSERT OR REPLACE INTO revokes VALUES (?, ?)", [user.text, try blob(revokes)])
    case .mailbox(let device, let mailbox): try apply(mailbox, of: device)
    case .presence(let user, let setting?):
      try run("INSERT OR REPLACE INTO presence VALUES (?, ?)", [user.text, try blob(setting)])
    case .presence(let user, nil): try run("DELETE FROM presence WHERE user = ?", [user.text])
    case .lastingLink(let link):
      try run(
        "INSERT OR REPLACE INTO lastingLink VALUES (?, ?, ?, ?)",
        [link.id.text, link.device.user.text, link.madeAt.milliseconds, try blob(link)])
    case .lastingLinkGone(let id): try run("DELETE FROM lastingLink WHERE id = ?", [id.text])
    case .history(let fact): try apply(fact)
    case .report(let report): try add(report)
    case .recording(let fact): try apply(fact)
    case .forgotten(let user):
      // A guest is forgotten with its call. Its id identifies nobody, and what it did there must remain available for
      // review.
      try forget(user, reports: !user.isGuest)
      try run("DELETE FROM forgotten WHERE user = ?", [user.text])
    case .running(let at): try run("UPDATE server SET ranUntil = ?", [at.milliseconds])
    }
  }

  private func apply(_ join: StoredNumber, _ number: ParticipantNumber, of call: CallID) throws {
    try run(
      "INSERT OR IGNORE INTO number VALUES (?, ?, ?, ?, ?, ?)",
      [
        call.text, number, join.device.user.text, join.device.device.text, join.joinId.map { Data($0.bytes) },
        join.cameBy,
      ])
    guard number > StoredNumber.capacity else { return }
    try run("DELETE FROM number WHERE call = ? AND number <= ?", [call.text, number - StoredNumber.capacity])
  }

  private func apply(_ end: StoredEnd) throws {
    try run("DELETE FROM call WHERE id = ?", [end.call.text])
    // The users have separate rows, so that one can be forgotten.
    var record = end
    record.users = []
    try run(
      "INSERT OR REPLACE INTO ended VALUES (?, ?, ?)", [end.call.text, end.endedAt.milliseconds, try blob(record)])
    for user in end.users { try run("INSERT OR IGNORE INTO endedUser VALUES (?, ?)", [end.call.text, user.text]) }
  }

  private func apply(_ mailbox: StoredMailbox, of device: Device) throws {
    if mailbox.isEmpty {
      try run("DELETE FROM mailbox WHERE user = ? AND device = ?", [device.user.text, device.device.text])
    } else {
      try run(
        "INSERT OR REPLACE INTO mailbox VALUES (?, ?, ?)",
        [device.user.text, device.device.text, try blob(mailbox)])
    }
  }

  /// A fact may be applied twice, if the disk failed in between.
  private func apply(_ fact: HistoryFact) throws {
    switch fact {
    case .call(let id, let media, let startedAt):
      try run(
        "INSERT OR IGNORE INTO history (call, media, startedAt) VALUES (?, ?, ?)",
        [id.text, media.rawValue, startedAt.milliseconds])
    case .part(let id, let user, let name, let direction, let outcome):
      try run(
        """
        INSERT INTO part (call, user, name, direction, outcome, startedAt)
        SELECT call, ?, ?, ?, ?, startedAt FROM history WHERE call = ?
        ON CONFLICT DO UPDATE SET name = excluded.name, outcome = excluded.outcome
        """, [user.text, name, direction.rawValue, outcome?.rawValue, id.text])
    case .came(let id, let user, let at):
      try run(
        """
        INSERT INTO stay (call, user, came) SELECT call, ?, ? FROM history WHERE call = ?
        AND NOT EXISTS
          (SELECT 1 FROM stay WHERE stay.call = history.call AND user = ? AND (went IS NULL OR came = ?))
        """, [user.text, at.milliseconds, id.text, user.text, at.milliseconds])
    case .went(let id, let user, let at):
      try run(
        "UPDATE stay SET went = ? WHERE call = ? AND user = ? AND went IS NULL",
        [at.milliseconds, id.text, user.text])
    case .ended(let id, let at):
      try run("UPDATE history SET endedAt = ? WHERE call = ?", [at.milliseconds, id.text])
    }
  }

  func blob(_ value: some Encodable) throws -> Data { Data(try JSONCoding.encode(value)) }
}
