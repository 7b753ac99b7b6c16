extension Schema {
  /// Step 12: failed attempts for the details of locks, and the sinks' positions in the audit trail.
  ///
  /// An older gateway that uses the store at the same time writes no failed attempts, so locks that it begins have no
  /// details. It knows no sinks; other gateways send its events. It also deletes events after a day, even if a sink has
  /// not received them.
  ///
  /// PostgreSQL commits transactions in a different order from `event.number`. `xact` identifies the transaction that
  /// wrote an event (also for an older gateway), so that sending can wait for running transactions.
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
