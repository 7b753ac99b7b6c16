extension Schema {
  /// Step 11: sessions on several root domains, and one-time codes.
  ///
  /// An older gateway that uses the store at the same time knows neither: its configuration has no `domains` setting.
  static let domains = Step(
    sqlite: """
      CREATE TABLE session_domain (
        token BLOB NOT NULL PRIMARY KEY,
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        session TEXT NOT NULL,         -- session.id
        domain TEXT NOT NULL,
        issued_under BLOB NOT NULL,    -- the session's own token at that time
        passed TEXT NOT NULL           -- as it was then
      ) WITHOUT ROWID;
      CREATE INDEX session_domain_of_session ON session_domain (account, session);
      CREATE TABLE spent_code (
        code BLOB NOT NULL PRIMARY KEY,
        expires_at INTEGER NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX spent_code_expired ON spent_code (expires_at);
      """,
    postgres: """
      CREATE TABLE session_domain (
        token BYTEA NOT NULL PRIMARY KEY,
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        session TEXT COLLATE "C" NOT NULL,
        domain TEXT COLLATE "C" NOT NULL,
        issued_under BYTEA NOT NULL,
        passed TEXT COLLATE "C" NOT NULL
      );
      CREATE INDEX session_domain_of_session ON session_domain (account, session);
      CREATE TABLE spent_code (
        code BYTEA NOT NULL PRIMARY KEY,
        expires_at BIGINT NOT NULL
      );
      CREATE INDEX spent_code_expired ON spent_code (expires_at);
      """)
}
