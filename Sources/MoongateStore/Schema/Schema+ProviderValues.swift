extension Schema {
  /// Step 7: the key-value stores of providers, and leases for tasks that run on one gateway at a time.
  ///
  /// An older gateway that uses the store at the same time knows neither: it runs no provider that needs them.
  static let providerValues = Step(
    sqlite: """
      CREATE TABLE provider_value (
        provider TEXT NOT NULL,
        key BLOB NOT NULL,               -- a keyed hash
        sealed BLOB NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (provider, key)
      ) WITHOUT ROWID;
      CREATE INDEX provider_value_alive ON provider_value (provider, expires_at);
      CREATE INDEX provider_value_expired ON provider_value (expires_at);
      CREATE TABLE lease (
        name TEXT NOT NULL PRIMARY KEY,
        holder TEXT NOT NULL,
        fence INTEGER NOT NULL,          -- grows with each holder
        held_until INTEGER NOT NULL,
        due_at INTEGER NOT NULL          -- nobody takes it before
      ) WITHOUT ROWID;
      """,
    postgres: """
      CREATE TABLE provider_value (
        provider TEXT COLLATE "C" NOT NULL,
        key BYTEA NOT NULL,
        sealed BYTEA NOT NULL,
        expires_at BIGINT NOT NULL,
        PRIMARY KEY (provider, key)
      );
      CREATE INDEX provider_value_alive ON provider_value (provider, expires_at);
      CREATE INDEX provider_value_expired ON provider_value (expires_at);
      CREATE TABLE lease (
        name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        holder TEXT COLLATE "C" NOT NULL,
        fence BIGINT NOT NULL,
        held_until BIGINT NOT NULL,
        due_at BIGINT NOT NULL
      );
      """)
}
