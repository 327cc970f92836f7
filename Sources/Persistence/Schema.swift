import GRDB

/// The tables, as created by migrations. A released migration never changes.
enum Schema {
  static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { db in try db.execute(sql: first) }
    migrator.registerMigration("2") { db in try db.execute(sql: second) }
    migrator.registerMigration("3") { db in try db.execute(sql: third) }
    migrator.registerMigration("4") { db in try db.execute(sql: fourth) }
    migrator.registerMigration("5") { db in try db.execute(sql: fifth) }
    migrator.registerMigration("6") { db in try db.execute(sql: sixth) }
    migrator.registerMigration("7") { db in try db.execute(sql: seventh) }
    migrator.registerMigration("8") { db in try db.execute(sql: eighth) }
    migrator.registerMigration("9") { db in try db.execute(sql: ninth) }
    migrator.registerMigration("10") { db in try db.execute(sql: tenth) }
    return migrator
  }

  /// `record` is JSON: the part that no query reads.
  private static let first = """
    CREATE TABLE server (boots INTEGER NOT NULL);
    INSERT INTO server VALUES (0);

    CREATE TABLE call (id TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE progress (
      call TEXT PRIMARY KEY REFERENCES call ON DELETE CASCADE, record BLOB NOT NULL);
    CREATE TABLE epoch (
      call TEXT PRIMARY KEY REFERENCES call ON DELETE CASCADE, record BLOB NOT NULL);
    CREATE TABLE member (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, user TEXT NOT NULL, record BLOB NOT NULL,
      PRIMARY KEY (call, user));
    CREATE TABLE ringEnvelope (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, user TEXT NOT NULL, device TEXT NOT NULL,
      record BLOB NOT NULL, PRIMARY KEY (call, user, device));

    CREATE TABLE number (
      call TEXT NOT NULL, number INTEGER NOT NULL, user TEXT NOT NULL, device TEXT NOT NULL,
      PRIMARY KEY (call, number)) WITHOUT ROWID;
    CREATE INDEX numberByUser ON number (user);

    CREATE TABLE device (
      user TEXT NOT NULL, device TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (user, device));
    CREATE TABLE mailbox (
      user TEXT NOT NULL, device TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (user, device));

    CREATE TABLE ended (call TEXT PRIMARY KEY, endedAt INTEGER NOT NULL, record BLOB NOT NULL);
    CREATE INDEX endedByTime ON ended (endedAt);
    CREATE TABLE endedUser (
      call TEXT NOT NULL REFERENCES ended ON DELETE CASCADE, user TEXT NOT NULL,
      PRIMARY KEY (call, user)) WITHOUT ROWID;
    CREATE INDEX endedByUser ON endedUser (user);

    CREATE TABLE history (
      call TEXT PRIMARY KEY, media TEXT NOT NULL, startedAt INTEGER NOT NULL, endedAt INTEGER) WITHOUT ROWID;
    CREATE INDEX historyByTime ON history (startedAt);
    CREATE TABLE part (
      call TEXT NOT NULL REFERENCES history ON DELETE CASCADE, user TEXT NOT NULL, name TEXT, direction TEXT NOT NULL,
      outcome TEXT, startedAt INTEGER NOT NULL, hidden INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (call, user));
    CREATE INDEX partByUser ON part (user, startedAt);
    CREATE TABLE stay (
      call TEXT NOT NULL REFERENCES history ON DELETE CASCADE, user TEXT NOT NULL, came INTEGER NOT NULL,
      went INTEGER);
    CREATE INDEX stayByCall ON stay (call, user);
    CREATE INDEX stayByUser ON stay (user, call);
    CREATE TABLE total (
      low TEXT NOT NULL, high TEXT NOT NULL, calls INTEGER NOT NULL, milliseconds INTEGER NOT NULL,
      PRIMARY KEY (low, high)) WITHOUT ROWID;
    CREATE INDEX totalByHigh ON total (high);

    CREATE TABLE forgotten (user TEXT PRIMARY KEY) WITHOUT ROWID;
    """

  /// Adds the join that each participant number came from, and users' settings of their presence.
  private static let second = """
    ALTER TABLE number ADD COLUMN joinId BLOB;
    ALTER TABLE number ADD COLUMN cameBy TEXT;
    CREATE TABLE presence (user TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
    """

  /// Key agreement version 2: the chain of lists, confirmations, vouches. Calls that ran under version 1 cannot
  /// continue.
  private static let third = """
    CREATE TABLE link (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, epoch INTEGER NOT NULL, roster BLOB NOT NULL,
      PRIMARY KEY (call, epoch)) WITHOUT ROWID;
    CREATE TABLE confirmation (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, participant INTEGER NOT NULL, tag BLOB NOT NULL,
      PRIMARY KEY (call, participant)) WITHOUT ROWID;
    CREATE TABLE revokes (user TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;

    UPDATE stay SET went = came WHERE went IS NULL;
    UPDATE history SET endedAt = startedAt WHERE endedAt IS NULL;
    DELETE FROM number WHERE call IN (SELECT id FROM call);
    DELETE FROM call;
    DELETE FROM mailbox;
    UPDATE device SET record = CAST(json_set(CAST(record AS TEXT), '$.entry.vouches', json('[]')) AS BLOB);
    """

  /// Abuse reports, for the operator.
  private static let fourth = """
    CREATE TABLE report (
      id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, call TEXT NOT NULL, author TEXT NOT NULL, user TEXT NOT NULL,
      participant INTEGER, words TEXT NOT NULL);
    CREATE INDEX reportByTime ON report (at);
    CREATE INDEX reportByAuthor ON report (author, at);
    CREATE INDEX reportByUser ON report (user);
    """

  /// The words by which people joined a call. A running call continues without them: clients then treat its people as let in by the app's
  /// service.
  private static let fifth = """
    CREATE TABLE word (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, subject TEXT NOT NULL, record BLOB NOT NULL,
      PRIMARY KEY (call, subject));
    CREATE TABLE signer (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, fingerprint BLOB NOT NULL, record BLOB NOT NULL,
      PRIMARY KEY (call, fingerprint));
    """

  /// When the server last ran.
  private static let sixth = "ALTER TABLE server ADD COLUMN ranUntil INTEGER;"

  /// Recordings; the files of their segments are in a folder.
  private static let seventh = """
    CREATE TABLE recording (
      id TEXT PRIMARY KEY, kind TEXT NOT NULL, user TEXT NOT NULL, device TEXT NOT NULL, startedAt INTEGER NOT NULL,
      expiresAt INTEGER NOT NULL, state TEXT NOT NULL, draft INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX recordingByUser ON recording (user);
    CREATE INDEX recordingByExpiry ON recording (expiresAt);
    CREATE INDEX recordingByState ON recording (state);
    CREATE TABLE reel (
      recording TEXT NOT NULL REFERENCES recording ON DELETE CASCADE, reel INTEGER NOT NULL, user TEXT NOT NULL,
      PRIMARY KEY (recording, reel)) WITHOUT ROWID;
    CREATE INDEX reelByUser ON reel (user);
    CREATE TABLE segment (
      recording TEXT NOT NULL, reel INTEGER NOT NULL, number INTEGER NOT NULL, bytes INTEGER NOT NULL,
      hash BLOB NOT NULL, start INTEGER NOT NULL, PRIMARY KEY (recording, reel, number),
      FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE) WITHOUT ROWID;
    CREATE TABLE witness (
      recording TEXT NOT NULL, reel INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (recording, reel),
      FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE);
    CREATE TABLE description (
      recording TEXT PRIMARY KEY REFERENCES recording ON DELETE CASCADE, record BLOB NOT NULL);
    CREATE TABLE readerGrant (
      recording TEXT NOT NULL REFERENCES recording ON DELETE CASCADE, user TEXT NOT NULL, device TEXT NOT NULL,
      author TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (recording, user, device));
    CREATE INDEX readerGrantByUser ON readerGrant (user);
    CREATE INDEX readerGrantByAuthor ON readerGrant (author);
    CREATE TABLE reader (
      recording TEXT NOT NULL REFERENCES recording ON DELETE CASCADE, user TEXT NOT NULL,
      opened INTEGER NOT NULL DEFAULT 0, seenAt INTEGER, alertedAt INTEGER, reachedAt INTEGER,
      PRIMARY KEY (recording, user)) WITHOUT ROWID;
    CREATE INDEX readerByUser ON reader (user);
    CREATE INDEX readerToReach ON reader (alertedAt) WHERE alertedAt IS NOT NULL AND reachedAt IS NULL;
    CREATE TABLE note (
      recording TEXT NOT NULL REFERENCES recording ON DELETE CASCADE, number INTEGER NOT NULL, record BLOB NOT NULL,
      PRIMARY KEY (recording, number));
    """

  /// The entries of an epoch's list by the numbers of their participants, so that an epoch writes only those that differ. Those of devices that ring, which
  /// have no number, stay in the epoch's record.
  private static let eighth = """
    CREATE TABLE entry (
      call TEXT NOT NULL REFERENCES call ON DELETE CASCADE, participant INTEGER NOT NULL, record BLOB NOT NULL,
      PRIMARY KEY (call, participant)) WITHOUT ROWID;
    INSERT INTO entry
      SELECT call, json_extract(value, '$.participant'), CAST(value AS BLOB)
      FROM epoch, json_each(CAST(record AS TEXT), '$.list') WHERE json_extract(value, '$.participant') > 0;
    UPDATE epoch SET record = CAST(json_remove(json_set(CAST(record AS TEXT), '$.ringing', (
      SELECT json_group_array(json(value)) FROM json_each(CAST(epoch.record AS TEXT), '$.list')
      WHERE json_extract(value, '$.participant') = 0)), '$.list') AS BLOB);
    """

  /// Links that are made without a call and last for days.
  private static let ninth = """
    CREATE TABLE lastingLink (id TEXT PRIMARY KEY, user TEXT NOT NULL, madeAt INTEGER NOT NULL, record BLOB NOT NULL);
    CREATE INDEX lastingLinkByUser ON lastingLink (user);
    """

  /// Recordings of calls: whose the reels are, and the keys of their tracks. They go with the reel.
  private static let tenth = """
    CREATE TABLE person (
      recording TEXT NOT NULL, reel INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (recording, reel),
      FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE);
    CREATE TABLE trackKey (
      recording TEXT NOT NULL, reel INTEGER NOT NULL, epoch INTEGER NOT NULL, tracks BLOB NOT NULL,
      record BLOB NOT NULL, PRIMARY KEY (recording, reel, epoch, tracks),
      FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE);
    """
}
