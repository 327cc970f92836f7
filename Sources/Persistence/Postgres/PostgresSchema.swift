import PostgreSQL

/// The tables in PostgreSQL, as made by migrations. A released migration never changes. They are those of SQLite (`Schema`), with these differences: ids sort by
/// their bytes (`COLLATE "C"`), and `ordinal` has the order of a table's rows where SQLite has `rowid`. PostgreSQL reads names without their capital letters.
enum PostgresSchema {
  static let migrations: [[PostgresStatement]] = [starts + calls + people + history + recordings]

  /// The number of the last migration, or 0; one row. The table is in the schema in which an unqualified name is made.
  static let number = PostgresStatement("SELECT coalesce(max(number), 0) FROM migration")
  static let isThere = PostgresStatement(
    "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'migration')")

  private static let starts: [PostgresStatement] = [
    // One row for each start of a server. Each transaction counts `commits` up by one, so of two starts only the one that is not dead can write, and of a
    // start's transactions none twice and none late.
    PostgresStatement("CREATE SEQUENCE incarnation AS bigint MAXVALUE 268435455"),
    PostgresStatement(
      """
      CREATE TABLE node (
        id bigint PRIMARY KEY DEFAULT nextval('incarnation'), commits bigint NOT NULL DEFAULT 0,
        resumed bigint NOT NULL DEFAULT 0, dead boolean NOT NULL DEFAULT false,
        born timestamptz NOT NULL DEFAULT now(), ranUntil bigint) WITH (fillfactor = 50)
      """),
    PostgresStatement(
      """
      CREATE FUNCTION fence(me bigint, n bigint) RETURNS void LANGUAGE plpgsql AS $$
      DECLARE known node%ROWTYPE;
      BEGIN
        UPDATE node SET commits = n WHERE id = me AND NOT dead AND commits = n - 1;
        IF FOUND THEN RETURN; END IF;
        SELECT * INTO known FROM node WHERE id = me;
        IF NOT FOUND OR known.dead THEN RAISE EXCEPTION 'fenced' USING ERRCODE = 'CL001'; END IF;
        IF known.commits >= n THEN RAISE EXCEPTION 'done before' USING ERRCODE = 'CL002'; END IF;
        RAISE EXCEPTION 'earlier ones are missing' USING ERRCODE = 'CL003';
      END $$
      """),
    // The number of the last transaction that is in, or NULL for a dead start. Afterwards none up to `sent` can come in.
    PostgresStatement(
      """
      CREATE FUNCTION resume(me bigint, sent bigint) RETURNS bigint LANGUAGE plpgsql AS $$
      DECLARE known bigint;
      BEGIN
        SELECT commits INTO known FROM node WHERE id = me AND NOT dead FOR UPDATE;
        IF FOUND THEN UPDATE node SET commits = greatest(commits, sent), resumed = resumed + 1 WHERE id = me; END IF;
        RETURN known;
      END $$
      """),
  ]

  private static let calls: [PostgresStatement] = [
    PostgresStatement(#"CREATE TABLE call (id text COLLATE "C" PRIMARY KEY, record bytea NOT NULL)"#),
    PostgresStatement(
      """
      CREATE TABLE progress (
        call text COLLATE "C" PRIMARY KEY REFERENCES call ON DELETE CASCADE, record bytea NOT NULL)
      """),
    PostgresStatement(
      """
      CREATE TABLE epoch (
        call text COLLATE "C" PRIMARY KEY REFERENCES call ON DELETE CASCADE, record bytea NOT NULL)
      """),
    PostgresStatement(
      """
      CREATE TABLE entry (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, participant bigint NOT NULL,
        record bytea NOT NULL, PRIMARY KEY (call, participant))
      """),
    PostgresStatement(
      """
      CREATE TABLE link (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, epoch bigint NOT NULL, roster bytea NOT NULL,
        PRIMARY KEY (call, epoch))
      """),
    PostgresStatement(
      """
      CREATE TABLE confirmation (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, participant bigint NOT NULL,
        tag bytea NOT NULL, PRIMARY KEY (call, participant))
      """),
    PostgresStatement(
      """
      CREATE TABLE word (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, subject text COLLATE "C" NOT NULL,
        record bytea NOT NULL, ordinal bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (call, subject))
      """),
    PostgresStatement(
      """
      CREATE TABLE signer (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, fingerprint bytea NOT NULL,
        record bytea NOT NULL, ordinal bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (call, fingerprint))
      """),
    PostgresStatement(
      """
      CREATE TABLE member (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        record bytea NOT NULL, ordinal bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (call, "user"))
      """),
    PostgresStatement(
      """
      CREATE TABLE ringEnvelope (
        call text COLLATE "C" NOT NULL REFERENCES call ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        device text COLLATE "C" NOT NULL, record bytea NOT NULL, ordinal bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (call, "user", device))
      """),
    PostgresStatement(
      """
      CREATE TABLE number (
        call text COLLATE "C" NOT NULL, number bigint NOT NULL, "user" text COLLATE "C" NOT NULL,
        device text COLLATE "C" NOT NULL, joinId bytea, cameBy text, PRIMARY KEY (call, number))
      """),
    PostgresStatement(#"CREATE INDEX numberByUser ON number ("user")"#),
  ]

  private static let people: [PostgresStatement] = [
    PostgresStatement(
      """
      CREATE TABLE device (
        "user" text COLLATE "C" NOT NULL, device text COLLATE "C" NOT NULL, record bytea NOT NULL,
        PRIMARY KEY ("user", device))
      """),
    PostgresStatement(
      """
      CREATE TABLE mailbox (
        "user" text COLLATE "C" NOT NULL, device text COLLATE "C" NOT NULL, record bytea NOT NULL,
        PRIMARY KEY ("user", device))
      """),
    PostgresStatement(#"CREATE TABLE presence ("user" text COLLATE "C" PRIMARY KEY, record bytea NOT NULL)"#),
    PostgresStatement(#"CREATE TABLE revokes ("user" text COLLATE "C" PRIMARY KEY, record bytea NOT NULL)"#),
    PostgresStatement(
      """
      CREATE TABLE lastingLink (
        id text COLLATE "C" PRIMARY KEY, "user" text COLLATE "C" NOT NULL, madeAt bigint NOT NULL,
        record bytea NOT NULL)
      """),
    PostgresStatement(#"CREATE INDEX lastingLinkByUser ON lastingLink ("user")"#),
    PostgresStatement(#"CREATE TABLE forgotten ("user" text COLLATE "C" PRIMARY KEY)"#),
  ]

  private static let history: [PostgresStatement] = [
    PostgresStatement(
      """
      CREATE TABLE ended (
        call text COLLATE "C" PRIMARY KEY, endedAt bigint NOT NULL, record bytea NOT NULL)
      """),
    PostgresStatement("CREATE INDEX endedByTime ON ended (endedAt)"),
    PostgresStatement(
      """
      CREATE TABLE endedUser (
        call text COLLATE "C" NOT NULL REFERENCES ended ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        PRIMARY KEY (call, "user"))
      """),
    PostgresStatement(#"CREATE INDEX endedByUser ON endedUser ("user")"#),

    PostgresStatement(
      """
      CREATE TABLE history (
        call text COLLATE "C" PRIMARY KEY, media text NOT NULL, startedAt bigint NOT NULL, endedAt bigint)
      """),
    PostgresStatement("CREATE INDEX historyByTime ON history (startedAt)"),
    PostgresStatement(
      """
      CREATE TABLE part (
        call text COLLATE "C" NOT NULL REFERENCES history ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        name text, direction text NOT NULL, outcome text, startedAt bigint NOT NULL,
        hidden boolean NOT NULL DEFAULT false, ordinal bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (call, "user"))
      """),
    PostgresStatement(#"CREATE INDEX partByUser ON part ("user", startedAt)"#),
    PostgresStatement(
      """
      CREATE TABLE stay (
        call text COLLATE "C" NOT NULL REFERENCES history ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        came bigint NOT NULL, went bigint)
      """),
    PostgresStatement(#"CREATE INDEX stayByCall ON stay (call, "user")"#),
    PostgresStatement(#"CREATE INDEX stayByUser ON stay ("user", call)"#),
    PostgresStatement(
      """
      CREATE TABLE total (
        low text COLLATE "C" NOT NULL, high text COLLATE "C" NOT NULL, calls bigint NOT NULL,
        milliseconds bigint NOT NULL, PRIMARY KEY (low, high))
      """),
    PostgresStatement("CREATE INDEX totalByHigh ON total (high)"),

    PostgresStatement(
      """
      CREATE TABLE report (
        id text COLLATE "C" PRIMARY KEY, at bigint NOT NULL, call text COLLATE "C" NOT NULL,
        author text COLLATE "C" NOT NULL, "user" text COLLATE "C" NOT NULL, participant bigint, words text NOT NULL,
        ordinal bigint GENERATED ALWAYS AS IDENTITY)
      """),
    PostgresStatement("CREATE INDEX reportByTime ON report (at)"),
    PostgresStatement("CREATE INDEX reportByAuthor ON report (author, at)"),
    PostgresStatement(#"CREATE INDEX reportByUser ON report ("user")"#),
  ]

  /// The files of their segments are in a folder.
  private static let recordings: [PostgresStatement] = [
    PostgresStatement(
      """
      CREATE TABLE recording (
        id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, "user" text COLLATE "C" NOT NULL,
        device text COLLATE "C" NOT NULL, startedAt bigint NOT NULL, expiresAt bigint NOT NULL, state text NOT NULL,
        draft boolean NOT NULL)
      """),
    PostgresStatement(#"CREATE INDEX recordingByUser ON recording ("user")"#),
    PostgresStatement("CREATE INDEX recordingByExpiry ON recording (expiresAt)"),
    PostgresStatement("CREATE INDEX recordingByState ON recording (state)"),
    PostgresStatement(
      """
      CREATE TABLE reel (
        recording text COLLATE "C" NOT NULL REFERENCES recording ON DELETE CASCADE, reel bigint NOT NULL,
        "user" text COLLATE "C" NOT NULL, PRIMARY KEY (recording, reel))
      """),
    PostgresStatement(#"CREATE INDEX reelByUser ON reel ("user")"#),
    PostgresStatement(
      """
      CREATE TABLE segment (
        recording text COLLATE "C" NOT NULL, reel bigint NOT NULL, number bigint NOT NULL, bytes bigint NOT NULL,
        hash bytea NOT NULL, start bigint NOT NULL, PRIMARY KEY (recording, reel, number),
        FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE)
      """),
    PostgresStatement(
      """
      CREATE TABLE witness (
        recording text COLLATE "C" NOT NULL, reel bigint NOT NULL, record bytea NOT NULL,
        PRIMARY KEY (recording, reel), FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE)
      """),
    PostgresStatement(
      """
      CREATE TABLE description (
        recording text COLLATE "C" PRIMARY KEY REFERENCES recording ON DELETE CASCADE, record bytea NOT NULL)
      """),
    PostgresStatement(
      """
      CREATE TABLE readerGrant (
        recording text COLLATE "C" NOT NULL REFERENCES recording ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        device text COLLATE "C" NOT NULL, author text COLLATE "C" NOT NULL, record bytea NOT NULL,
        PRIMARY KEY (recording, "user", device))
      """),
    PostgresStatement(#"CREATE INDEX readerGrantByUser ON readerGrant ("user")"#),
    PostgresStatement("CREATE INDEX readerGrantByAuthor ON readerGrant (author)"),
    PostgresStatement(
      """
      CREATE TABLE reader (
        recording text COLLATE "C" NOT NULL REFERENCES recording ON DELETE CASCADE, "user" text COLLATE "C" NOT NULL,
        opened boolean NOT NULL DEFAULT false, seenAt bigint, alertedAt bigint, reachedAt bigint,
        PRIMARY KEY (recording, "user"))
      """),
    PostgresStatement(#"CREATE INDEX readerByUser ON reader ("user")"#),
    PostgresStatement(
      "CREATE INDEX readerToReach ON reader (alertedAt) WHERE alertedAt IS NOT NULL AND reachedAt IS NULL"),
    PostgresStatement(
      """
      CREATE TABLE note (
        recording text COLLATE "C" NOT NULL REFERENCES recording ON DELETE CASCADE, number bigint NOT NULL,
        record bytea NOT NULL, PRIMARY KEY (recording, number))
      """),
    // Recordings of calls: whose the reels are, and the keys of their tracks. They go with the reel.
    PostgresStatement(
      """
      CREATE TABLE person (
        recording text COLLATE "C" NOT NULL, reel bigint NOT NULL, record bytea NOT NULL,
        PRIMARY KEY (recording, reel), FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE)
      """),
    PostgresStatement(
      """
      CREATE TABLE trackKey (
        recording text COLLATE "C" NOT NULL, reel bigint NOT NULL, epoch bigint NOT NULL, tracks bytea NOT NULL,
        record bytea NOT NULL, PRIMARY KEY (recording, reel, epoch, tracks),
        FOREIGN KEY (recording, reel) REFERENCES reel ON DELETE CASCADE)
      """),
  ]
}
