extension Schema {
  /// Step 10: access tokens.
  ///
  /// An older gateway that uses the store at the same time does not know them: its routes accept none.
  static let accessTokens = Step(
    sqlite: """
      CREATE TABLE access_token (
        id TEXT NOT NULL PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,         -- a keyed hash of the secret
        master TEXT NOT NULL,              -- the name of the master key that the hash's key follows from
        name TEXT NOT NULL,
        account TEXT REFERENCES account (id) ON DELETE CASCADE, -- NULL: a service token
        epoch INTEGER,                     -- the account's, when it was made
        member_of TEXT NOT NULL,           -- JSON
        networks TEXT NOT NULL,            -- JSON
        created_at INTEGER NOT NULL,
        expires_at INTEGER,                -- NULL: never
        is_superseded INTEGER NOT NULL,
        is_end_noted INTEGER NOT NULL,     -- 1: the trail tells that it expired; 2: its account has changed, which is to be told
        last_used_at INTEGER,
        last_used_from TEXT,
        used_from TEXT NOT NULL            -- JSON: the networks that it was used from, the latest last
      ) WITHOUT ROWID;
      CREATE UNIQUE INDEX access_token_name ON access_token (coalesce(account, ''), name) WHERE is_superseded = 0;
      CREATE INDEX access_token_of_account ON access_token (account);
      CREATE INDEX access_token_end ON access_token (expires_at) WHERE expires_at IS NOT NULL;
      CREATE INDEX access_token_outdated ON access_token (id) WHERE is_end_noted = 2;
      """,
    postgres: """
      CREATE TABLE access_token (
        id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        hash BYTEA NOT NULL UNIQUE,
        master TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        account TEXT COLLATE "C" REFERENCES account (id) ON DELETE CASCADE,
        epoch BIGINT,
        member_of TEXT COLLATE "C" NOT NULL,
        networks TEXT COLLATE "C" NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT,
        is_superseded BIGINT NOT NULL,
        is_end_noted BIGINT NOT NULL,
        last_used_at BIGINT,
        last_used_from TEXT COLLATE "C",
        used_from TEXT COLLATE "C" NOT NULL
      );
      CREATE UNIQUE INDEX access_token_name ON access_token (coalesce(account, ''), name) WHERE is_superseded = 0;
      CREATE INDEX access_token_of_account ON access_token (account);
      CREATE INDEX access_token_end ON access_token (expires_at) WHERE expires_at IS NOT NULL;
      CREATE INDEX access_token_outdated ON access_token (id) WHERE is_end_noted = 2;
      """)
}
