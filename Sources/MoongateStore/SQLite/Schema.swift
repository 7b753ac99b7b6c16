import GRDB
import MoongateCore

/// The tables, as a list of steps forward: a step that has shipped never changes, and each one is safe while a program
/// that knows only the steps before it still serves.
///
/// Times are milliseconds since the epoch; `Int64.max` is never. Keys of counters and timers are keyed hashes.
enum Schema {
  /// Marks the file as ours (`PRAGMA application_id`): "MOON".
  static let application: Int32 = 0x4d4f_4f4e
  static var version: Int { migrations.count }

  /// Brings the database up to date, in one transaction: of two processes that start at once, one does it.
  /// - Throws: `StoreRefusal` where another process has taken it beyond what this program knows.
  static func migrate(_ db: Database, path: String) throws {
    try db.inTransaction(.immediate) {
      let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      guard found <= version else { throw StoreRefusal.newerSchema(path: path, found: found, known: version) }
      for migration in migrations[found...] { try db.execute(sql: migration) }
      if found < version { try db.execute(sql: "PRAGMA application_id = \(application); PRAGMA user_version = \(version)") }
      return .commit
    }
  }

  private static let migrations = [first]

  private static let first = """
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
    """
}
