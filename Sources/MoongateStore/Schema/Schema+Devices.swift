extension Schema {
  /// Step 16: trusted devices, replaced tokens of sessions, resets of factors, and identifiers that wait.
  static let devices = Step(
    sqlite: """
      CREATE TABLE trusted_device (
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        last_seen_at INTEGER NOT NULL,
        user_agent TEXT,
        PRIMARY KEY (account, id)
      ) WITHOUT ROWID;
      CREATE TABLE replaced_token (
        token BLOB NOT NULL PRIMARY KEY,
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        session TEXT NOT NULL,         -- session.id
        replaced_at INTEGER NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX replaced_token_of_session ON replaced_token (account, session, replaced_at);
      CREATE TABLE factor_reset (
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        provider TEXT NOT NULL,
        reset_at INTEGER NOT NULL,     -- stays if the factor is removed or set anew
        PRIMARY KEY (account, provider)
      ) WITHOUT ROWID;
      ALTER TABLE identifier ADD COLUMN waits_until INTEGER;
      """,
    postgres: """
      CREATE TABLE trusted_device (
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        id TEXT COLLATE "C" NOT NULL,
        created_at BIGINT NOT NULL,
        last_seen_at BIGINT NOT NULL,
        user_agent TEXT COLLATE "C",
        PRIMARY KEY (account, id)
      );
      CREATE TABLE replaced_token (
        token BYTEA NOT NULL PRIMARY KEY,
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        session TEXT COLLATE "C" NOT NULL,
        replaced_at BIGINT NOT NULL
      );
      CREATE INDEX replaced_token_of_session ON replaced_token (account, session, replaced_at);
      CREATE TABLE factor_reset (
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        provider TEXT COLLATE "C" NOT NULL,
        reset_at BIGINT NOT NULL,
        PRIMARY KEY (account, provider)
      );
      ALTER TABLE identifier ADD COLUMN waits_until BIGINT;
      """)
}
