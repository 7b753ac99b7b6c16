extension Schema {
  /// Step 12: the failed attempts behind locks, and how far the audit trail was sent to each sink.
  ///
  /// An older gateway beside writes no failed attempts: a lock that it begins is one without a name. It knows no sinks;
  /// what it stores in the trail is sent by the others; and it forgets events after a day, also those that a sink does
  /// not have yet.
  ///
  /// PostgreSQL commits transactions in another order than that of `event.number`. `xact` says which one wrote an event
  /// (also where an older gateway did), so that sending can wait for those that are still under way.
  static let operations = Step(
    sqlite: """
      CREATE TABLE failed_attempt (
        counter BLOB NOT NULL,
        at INTEGER NOT NULL,
        reservation BLOB NOT NULL,
        account TEXT,                    -- keyed hashes
        identifier TEXT,
        sealed BLOB NOT NULL,            -- whom it was about, and from which address
        PRIMARY KEY (counter, at, reservation)
      ) WITHOUT ROWID;
      CREATE INDEX failed_attempt_account ON failed_attempt (account) WHERE account IS NOT NULL;
      CREATE INDEX failed_attempt_identifier ON failed_attempt (identifier) WHERE identifier IS NOT NULL;
      CREATE INDEX failed_attempt_at ON failed_attempt (at);
      CREATE TABLE audit_cursor (
        sink TEXT NOT NULL PRIMARY KEY,
        number INTEGER NOT NULL,         -- everything up to this event was sent
        xact INTEGER NOT NULL,
        seen_at INTEGER NOT NULL         -- when a gateway last had the sink
      ) WITHOUT ROWID;
      """,
    postgres: """
      CREATE TABLE failed_attempt (
        counter BYTEA NOT NULL,
        at BIGINT NOT NULL,
        reservation BYTEA NOT NULL,
        account TEXT COLLATE "C",
        identifier TEXT COLLATE "C",
        sealed BYTEA NOT NULL,
        PRIMARY KEY (counter, at, reservation)
      );
      CREATE INDEX failed_attempt_account ON failed_attempt (account) WHERE account IS NOT NULL;
      CREATE INDEX failed_attempt_identifier ON failed_attempt (identifier) WHERE identifier IS NOT NULL;
      CREATE INDEX failed_attempt_at ON failed_attempt (at);
      CREATE TABLE audit_cursor (
        sink TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        number BIGINT NOT NULL,
        xact BIGINT NOT NULL,
        seen_at BIGINT NOT NULL
      );
      ALTER TABLE event ADD COLUMN xact BIGINT NOT NULL DEFAULT (CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT));
      CREATE INDEX event_xact ON event (xact, number);
      """)
}
