import CallMessages
import Contract
import JSON
import MediaModel
import PostgreSQL

extension PostgresStatement {
  /// The statements of a change, in order. Before those of `.forgotten` the records of ended calls are read and changed (`PostgresWriter`).
  static func statements(
    for change: StoreChange, as token: FencingToken
  ) throws(JSONError) -> [PostgresStatement] {
    switch change {
    case .reset:
      return [
        PostgresStatement("DELETE FROM call"), PostgresStatement("DELETE FROM device"),
        PostgresStatement("DELETE FROM lastingLink"), PostgresStatement("DELETE FROM mailbox"),
        PostgresStatement("DELETE FROM presence"), PostgresStatement("DELETE FROM revokes"),
      ]
    case .call, .progress, .epoch, .entry, .entryGone, .link, .confirmation, .word, .wordGone, .signer, .signerGone,
      .member, .memberGone, .number, .ringEnvelope, .ringEnvelopeOver, .ended:
      return try ofCall(change)
    case .device, .deviceGone, .revokes, .mailbox, .presence, .lastingLink, .lastingLinkGone:
      return try ofPeople(change)
    case .history(let fact): return [statement(for: fact)]
    case .report(let report): return statements(for: report)
    case .recording(let fact): return try statements(for: fact)
    case .forgotten(let user):
      // A guest is forgotten with its call. Its id identifies nobody, and what it did there must remain available for
      // review.
      return forget(user, reports: !user.isGuest) + [
        PostgresStatement(#"DELETE FROM forgotten WHERE "user" = $1"#, .text(user.text))
      ]
    case .running(let at):
      return [
        PostgresStatement(
          "UPDATE node SET ranUntil = $1 WHERE id = $2", .integer(at.milliseconds), .integer(Int64(token.number)))
      ]
    }
  }

  private static func ofCall(_ change: StoreChange) throws(JSONError) -> [PostgresStatement] {
    switch change {
    case .call(let call):
      return [
        PostgresStatement(
          "INSERT INTO call VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET record = excluded.record",
          .text(call.id.text),
          try record(call))
      ]
    case .progress(let id, let progress):
      return [
        PostgresStatement(
          "INSERT INTO progress VALUES ($1, $2) ON CONFLICT (call) DO UPDATE SET record = excluded.record",
          .text(id.text), try record(progress))
      ]
    case .epoch(let id, let epoch):
      return [
        PostgresStatement(
          "INSERT INTO epoch VALUES ($1, $2) ON CONFLICT (call) DO UPDATE SET record = excluded.record",
          .text(id.text), try record(epoch)),
        PostgresStatement("DELETE FROM confirmation WHERE call = $1", .text(id.text)),
      ]
    case .entry(let id, let entry):
      return [
        PostgresStatement(
          """
          INSERT INTO entry VALUES ($1, $2, $3) ON CONFLICT (call, participant) DO UPDATE SET record = excluded.record
          """, .text(id.text), .integer(Int64(entry.participant)), try record(entry))
      ]
    case .entryGone(let id, let participant):
      return [
        PostgresStatement(
          "DELETE FROM entry WHERE call = $1 AND participant = $2", .text(id.text), .integer(Int64(participant)))
      ]
    case .link(let id, let link):
      let insertion = PostgresStatement(
        "INSERT INTO link VALUES ($1, $2, $3) ON CONFLICT (call, epoch) DO UPDATE SET roster = excluded.roster",
        .text(id.text), .integer(Int64(link.epoch)), .bytes(link.roster.bytes))
      guard let last = link.endOfForgotten else { return [insertion] }
      return [
        insertion,
        PostgresStatement(
          "DELETE FROM link WHERE call = $1 AND epoch <= $2", .text(id.text), .integer(Int64(last))),
      ]
    case .confirmation(let id, let participant, let tag):
      return [
        PostgresStatement(
          "INSERT INTO confirmation VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", .text(id.text),
          .integer(Int64(participant)), .bytes(tag.bytes))
      ]
    case .word(let id, let word):
      return [
        PostgresStatement(
          """
          INSERT INTO word (call, subject, record) VALUES ($1, $2, $3)
          ON CONFLICT (call, subject) DO UPDATE SET record = excluded.record
          """, .text(id.text), .text(word.subject.text), try record(word))
      ]
    case .wordGone(let id, let subject):
      return [
        PostgresStatement(
          "DELETE FROM word WHERE call = $1 AND subject = $2", .text(id.text), .text(subject.text))
      ]
    case .signer(let id, let signer):
      return [
        PostgresStatement(
          """
          INSERT INTO signer (call, fingerprint, record) VALUES ($1, $2, $3)
          ON CONFLICT (call, fingerprint) DO UPDATE SET record = excluded.record
          """, .text(id.text), .bytes(signer.fingerprint.bytes), try record(signer))
      ]
    case .signerGone(let id, let fingerprint):
      return [
        PostgresStatement(
          "DELETE FROM signer WHERE call = $1 AND fingerprint = $2", .text(id.text), .bytes(fingerprint.bytes))
      ]
    default: return try ofMembers(change)
    }
  }

  private static func ofMembers(_ change: StoreChange) throws(JSONError) -> [PostgresStatement] {
    switch change {
    case .member(let id, let member):
      return [
        PostgresStatement(
          """
          INSERT INTO member (call, "user", record) VALUES ($1, $2, $3)
          ON CONFLICT (call, "user") DO UPDATE SET record = excluded.record
          """, .text(id.text), .text(member.user.text), try record(member))
      ]
    case .memberGone(let id, let user):
      return [
        PostgresStatement(#"DELETE FROM member WHERE call = $1 AND "user" = $2"#, .text(id.text), .text(user.text))
      ]
    case .number(let id, let number, let join): return statements(for: join, number, of: id)
    case .ringEnvelope(let id, let envelope):
      return [
        PostgresStatement(
          """
          INSERT INTO ringEnvelope (call, "user", device, record) VALUES ($1, $2, $3, $4)
          ON CONFLICT (call, "user", device) DO UPDATE SET record = excluded.record
          """, .text(id.text), .text(envelope.to.user.text), .text(envelope.to.device.text), try record(envelope))
      ]
    case .ringEnvelopeOver(let id, let device):
      return [
        PostgresStatement(
          #"DELETE FROM ringEnvelope WHERE call = $1 AND "user" = $2 AND device = $3"#, .text(id.text),
          .text(device.user.text), .text(device.device.text))
      ]
    case .ended(let end): return try statements(for: end)
    default: return []
    }
  }

  private static func ofPeople(_ change: StoreChange) throws(JSONError) -> [PostgresStatement] {
    switch change {
    case .device(let device):
      return [
        PostgresStatement(
          """
          INSERT INTO device VALUES ($1, $2, $3) ON CONFLICT ("user", device) DO UPDATE SET record = excluded.record
          """, .text(device.entry.user.text), .text(device.entry.device.text), try record(device))
      ]
    case .deviceGone(let device):
      return [
        PostgresStatement(
          #"DELETE FROM device WHERE "user" = $1 AND device = $2"#, .text(device.user.text),
          .text(device.device.text))
      ]
    case .revokes(let user, let revokes):
      return [
        PostgresStatement(
          #"INSERT INTO revokes VALUES ($1, $2) ON CONFLICT ("user") DO UPDATE SET record = excluded.record"#,
          .text(user.text), try record(revokes))
      ]
    case .mailbox(let device, let mailbox) where mailbox.isEmpty:
      return [
        PostgresStatement(
          #"DELETE FROM mailbox WHERE "user" = $1 AND device = $2"#, .text(device.user.text),
          .text(device.device.text))
      ]
    case .mailbox(let device, let mailbox):
      return [
        PostgresStatement(
          """
          INSERT INTO mailbox VALUES ($1, $2, $3) ON CONFLICT ("user", device) DO UPDATE SET record = excluded.record
          """, .text(device.user.text), .text(device.device.text), try record(mailbox))
      ]
    case .presence(let user, let setting?):
      return [
        PostgresStatement(
          #"INSERT INTO presence VALUES ($1, $2) ON CONFLICT ("user") DO UPDATE SET record = excluded.record"#,
          .text(user.text), try record(setting))
      ]
    case .presence(let user, nil):
      return [PostgresStatement(#"DELETE FROM presence WHERE "user" = $1"#, .text(user.text))]
    case .lastingLink(let link):
      return [
        PostgresStatement(
          """
          INSERT INTO lastingLink VALUES ($1, $2, $3, $4) ON CONFLICT (id)
          DO UPDATE SET "user" = excluded."user", madeAt = excluded.madeAt, record = excluded.record
          """, .text(link.id.text), .text(link.device.user.text), .integer(link.madeAt.milliseconds),
          try record(link))
      ]
    case .lastingLinkGone(let id):
      return [PostgresStatement("DELETE FROM lastingLink WHERE id = $1", .text(id.text))]
    default: return []
    }
  }

  private static func statements(
    for join: StoredNumber, _ number: ParticipantNumber, of call: CallID
  ) -> [PostgresStatement] {
    let insertion = PostgresStatement(
      "INSERT INTO number VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", .text(call.text),
      .integer(Int64(number)), .text(join.device.user.text), .text(join.device.device.text),
      .bytes(join.joinId?.bytes), .text(join.cameBy))
    guard number > StoredNumber.capacity else { return [insertion] }
    return [
      insertion,
      PostgresStatement(
        "DELETE FROM number WHERE call = $1 AND number <= $2", .text(call.text),
        .integer(Int64(number - StoredNumber.capacity))),
    ]
  }

  private static func statements(for end: StoredEnd) throws(JSONError) -> [PostgresStatement] {
    // The users have separate rows, so that one can be forgotten.
    var rest = end
    rest.users = []
    let call = PostgresValue.text(end.call.text)
    return [
      PostgresStatement("DELETE FROM call WHERE id = $1", call),
      PostgresStatement(
        """
        INSERT INTO ended VALUES ($1, $2, $3)
        ON CONFLICT (call) DO UPDATE SET endedAt = excluded.endedAt, record = excluded.record
        """, call, .integer(end.endedAt.milliseconds), try record(rest)),
      PostgresStatement("DELETE FROM endedUser WHERE call = $1", call),
      PostgresStatement(
        "INSERT INTO endedUser SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING", call,
        .texts(end.users.map(\.text))),
    ]
  }

  /// A fact may be applied twice, if the store failed in between.
  private static func statement(for fact: HistoryFact) -> PostgresStatement {
    switch fact {
    case .call(let id, let media, let startedAt):
      PostgresStatement(
        "INSERT INTO history (call, media, startedAt) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", .text(id.text),
        .text(media.rawValue), .integer(startedAt.milliseconds))
    case .part(let id, let user, let name, let direction, let outcome):
      PostgresStatement(
        """
        INSERT INTO part (call, "user", name, direction, outcome, startedAt)
        SELECT call, $2, $3, $4, $5, startedAt FROM history WHERE call = $1
        ON CONFLICT (call, "user") DO UPDATE SET name = excluded.name, outcome = excluded.outcome
        """, .text(id.text), .text(user.text), .text(name), .text(direction.rawValue), .text(outcome?.rawValue))
    case .came(let id, let user, let at):
      PostgresStatement(
        """
        INSERT INTO stay (call, "user", came) SELECT call, $2, $3 FROM history WHERE call = $1
        AND NOT EXISTS (
          SELECT FROM stay WHERE stay.call = history.call AND stay."user" = $2 AND (went IS NULL OR came = $3))
        """, .text(id.text), .text(user.text), .integer(at.milliseconds))
    case .went(let id, let user, let at):
      PostgresStatement(
        #"UPDATE stay SET went = $3 WHERE call = $1 AND "user" = $2 AND went IS NULL"#, .text(id.text),
        .text(user.text), .integer(at.milliseconds))
    case .ended(let id, let at):
      PostgresStatement(
        "UPDATE history SET endedAt = $2 WHERE call = $1", .text(id.text), .integer(at.milliseconds))
    }
  }

  private static func statements(for report: StoredReport) -> [PostgresStatement] {
    let author = PostgresValue.text(report.report.by.text)
    return [
      PostgresStatement(
        """
        INSERT INTO report (id, at, call, author, "user", participant, words) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT DO NOTHING
        """, .text(report.id.text), .integer(report.at.milliseconds), .text(report.call.text), author,
        .text(report.report.user.text), .integer(report.report.participant.map(Int64.init)),
        .text(report.report.text)),
      PostgresStatement(
        """
        DELETE FROM report WHERE ordinal IN
          (SELECT ordinal FROM report WHERE author = $1 ORDER BY at DESC, ordinal DESC OFFSET $2)
        """, author, .integer(Int64(StoredReport.capacityOfAuthor))),
      PostgresStatement(
        """
        DELETE FROM report WHERE (SELECT count(*) FROM report) > $1 AND ordinal =
          (SELECT ordinal FROM report WHERE author =
            (SELECT author FROM report GROUP BY author ORDER BY count(*) DESC, min(at) LIMIT 1)
          ORDER BY at, ordinal LIMIT 1)
        """, .integer(Int64(StoredReport.capacity))),
    ]
  }

  static func record(_ value: some Encodable) throws(JSONError) -> PostgresValue {
    .bytes(try JSONCoding.encode(value))
  }
}
