extension Schema {
  /// Step 1: the first schema.
  static let first = Step(
    sqlite: """
      -- One row: whose store this is, and the latest moment that it has recorded.
      CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        fingerprint BLOB NOT NULL,
        moment INTEGER NOT NULL
      );

      -- What a counter remembers beyond its tries. A counter without a row has never kept a try and never locked.
      CREATE TABLE counter (
        key BLOB NOT NULL PRIMARY KEY,
        provider TEXT NOT NULL,
        name TEXT NOT NULL,
        counted INTEGER NOT NULL,      -- how many rows `tally` has for it
        oldest INTEGER,                -- the first of them
        locked_since INTEGER,
        locked_until INTEGER,
        lock_level INTEGER NOT NULL,
        disabled_since INTEGER,
        expires_at INTEGER NOT NULL    -- from then on the row says nothing
      ) WITHOUT ROWID;
      CREATE INDEX counter_locked ON counter (locked_until) WHERE locked_until IS NOT NULL;
      CREATE INDEX counter_disabled ON counter (disabled_since) WHERE disabled_since IS NOT NULL;

      -- Tries that are being judged.
      CREATE TABLE pending (
        counter BLOB NOT NULL,
        reservation BLOB NOT NULL,
        at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (counter, reservation)
      ) WITHOUT ROWID;

      -- Tries that stay counted.
      CREATE TABLE tally (
        counter BLOB NOT NULL,
        at INTEGER NOT NULL,
        reservation BLOB NOT NULL,
        PRIMARY KEY (counter, at, reservation)
      ) WITHOUT ROWID;

      -- Resend timers, each with what a refund of its last send restores.
      CREATE TABLE timer (
        key BLOB NOT NULL PRIMARY KEY,
        sequence INTEGER NOT NULL,
        sent_at INTEGER NOT NULL,
        resend_at INTEGER NOT NULL,
        reservation BLOB,              -- the last send, while it is not settled
        previous_sequence INTEGER,
        previous_sent_at INTEGER,
        previous_resend_at INTEGER
      ) WITHOUT ROWID;

      CREATE TABLE flow (
        number INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        forgotten_at INTEGER NOT NULL, -- its lifetime after its expiry
        record BLOB NOT NULL           -- JSON
      );
      CREATE INDEX flow_forgotten ON flow (forgotten_at);

      CREATE TABLE account (
        id TEXT NOT NULL PRIMARY KEY,
        first_name TEXT,
        last_name TEXT,
        created_at INTEGER NOT NULL,
        last_seen_at INTEGER NOT NULL,
        is_locked INTEGER NOT NULL
      ) WITHOUT ROWID;

      -- What providers keep for an account, sealed under a key outside the database.
      CREATE TABLE provider_record (
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        provider TEXT NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY (account, provider)
      ) WITHOUT ROWID;

      CREATE TABLE identifier (
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        kind TEXT NOT NULL,
        value TEXT NOT NULL,
        display TEXT NOT NULL,
        attributes TEXT NOT NULL,      -- JSON
        verified_at INTEGER,
        PRIMARY KEY (account, position)
      ) WITHOUT ROWID;
      -- Only one account can hold it verified, whatever the program above does.
      CREATE UNIQUE INDEX identifier_verified ON identifier (kind, value) WHERE verified_at IS NOT NULL;
      CREATE INDEX identifier_claimed ON identifier (kind, value) WHERE verified_at IS NULL;

      CREATE TABLE session (
        token BLOB NOT NULL PRIMARY KEY,
        id TEXT NOT NULL,
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        idle INTEGER NOT NULL,
        last_seen_at INTEGER NOT NULL,
        passed TEXT NOT NULL,          -- JSON
        user_agent TEXT
      ) WITHOUT ROWID;
      CREATE INDEX session_of_account ON session (account, created_at);

      -- What happened to sessions and accounts, numbered without gaps; the newest row always stays, so that no number comes twice.
      CREATE TABLE session_change (
        number INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        token BLOB,
        account TEXT
      );

      CREATE TABLE event (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        event BLOB NOT NULL            -- JSON
      );
      CREATE INDEX event_id ON event (id);
      """,
    postgres: """
      -- TEXT is compared byte by byte: the order of keys, and what a value equals, do not depend on a locale.
      CREATE TABLE meta (
        id BIGINT PRIMARY KEY CHECK (id = 1),
        fingerprint BYTEA NOT NULL,
        moment BIGINT NOT NULL
      );

      CREATE TABLE counter (
        key BYTEA NOT NULL PRIMARY KEY,
        provider TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        counted BIGINT NOT NULL,
        oldest BIGINT,
        locked_since BIGINT,
        locked_until BIGINT,
        lock_level BIGINT NOT NULL,
        disabled_since BIGINT,
        expires_at BIGINT NOT NULL
      );
      CREATE INDEX counter_locked ON counter (locked_until) WHERE locked_until IS NOT NULL;
      CREATE INDEX counter_disabled ON counter (disabled_since) WHERE disabled_since IS NOT NULL;

      CREATE TABLE pending (
        counter BYTEA NOT NULL,
        reservation BYTEA NOT NULL,
        at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        PRIMARY KEY (counter, reservation)
      );

      CREATE TABLE tally (
        counter BYTEA NOT NULL,
        at BIGINT NOT NULL,
        reservation BYTEA NOT NULL,
        PRIMARY KEY (counter, at, reservation)
      );

      CREATE TABLE timer (
        key BYTEA NOT NULL PRIMARY KEY,
        sequence BIGINT NOT NULL,
        sent_at BIGINT NOT NULL,
        resend_at BIGINT NOT NULL,
        reservation BYTEA,
        previous_sequence BIGINT,
        previous_sent_at BIGINT,
        previous_resend_at BIGINT
      );

      CREATE TABLE flow (
        number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        hash BYTEA NOT NULL UNIQUE,
        version BIGINT NOT NULL,
        forgotten_at BIGINT NOT NULL,
        record BYTEA NOT NULL
      );
      CREATE INDEX flow_forgotten ON flow (forgotten_at);

      CREATE TABLE account (
        id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        first_name TEXT COLLATE "C",
        last_name TEXT COLLATE "C",
        created_at BIGINT NOT NULL,
        last_seen_at BIGINT NOT NULL,
        is_locked BIGINT NOT NULL
      );

      CREATE TABLE provider_record (
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        provider TEXT COLLATE "C" NOT NULL,
        sealed BYTEA NOT NULL,
        PRIMARY KEY (account, provider)
      );

      CREATE TABLE identifier (
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        position BIGINT NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        value TEXT COLLATE "C" NOT NULL,
        display TEXT COLLATE "C" NOT NULL,
        attributes TEXT COLLATE "C" NOT NULL,
        verified_at BIGINT,
        PRIMARY KEY (account, position)
      );
      CREATE UNIQUE INDEX identifier_verified ON identifier (kind, value) WHERE verified_at IS NOT NULL;
      CREATE INDEX identifier_claimed ON identifier (kind, value) WHERE verified_at IS NULL;

      CREATE TABLE session (
        token BYTEA NOT NULL PRIMARY KEY,
        id TEXT COLLATE "C" NOT NULL,
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        created_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        idle BIGINT NOT NULL,
        last_seen_at BIGINT NOT NULL,
        passed TEXT COLLATE "C" NOT NULL,
        user_agent TEXT COLLATE "C"
      );
      CREATE INDEX session_of_account ON session (account, created_at);

      CREATE TABLE session_change (
        number BIGINT PRIMARY KEY,
        at BIGINT NOT NULL,
        token BYTEA,
        account TEXT COLLATE "C"
      );
      -- One row: the last number that a change has. It is taken at the very end of a transaction, and the row is locked until that one is
      -- committed: numbers become visible in their order. (SQLite lets one transaction in at a time, and needs no such row.)
      CREATE TABLE session_number (
        id BIGINT PRIMARY KEY CHECK (id = 1),
        number BIGINT NOT NULL
      );
      INSERT INTO session_number (id, number) VALUES (1, 0);

      CREATE TABLE event (
        number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        id TEXT COLLATE "C" NOT NULL,
        at BIGINT NOT NULL,
        event BYTEA NOT NULL
      );
      CREATE INDEX event_id ON event (id);
      """)
}
