extension Schema {
  /// Step 1 for SQLite.
  static let firstSQLite = """
    -- One row: whose store this is, and the latest time that it has recorded.
    CREATE TABLE meta (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      fingerprint BLOB NOT NULL,
      moment INTEGER NOT NULL
    );

    -- What a counter knows beyond its attempts. A counter without a row has neither attempts nor a lock.
    CREATE TABLE counter (
      key BLOB NOT NULL PRIMARY KEY,
      provider TEXT NOT NULL,
      name TEXT NOT NULL,
      counted INTEGER NOT NULL,      -- the number of its rows in `tally`
      oldest INTEGER,                -- the time of the first of them
      locked_since INTEGER,
      locked_until INTEGER,
      lock_level INTEGER NOT NULL,
      disabled_since INTEGER,
      expires_at INTEGER NOT NULL    -- from then on the row has no effect
    ) WITHOUT ROWID;
    CREATE INDEX counter_locked ON counter (locked_until) WHERE locked_until IS NOT NULL;
    CREATE INDEX counter_disabled ON counter (disabled_since) WHERE disabled_since IS NOT NULL;

    -- Attempts that are being judged.
    CREATE TABLE pending (
      counter BLOB NOT NULL,
      reservation BLOB NOT NULL,
      at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      PRIMARY KEY (counter, reservation)
    ) WITHOUT ROWID;

    -- Attempts that stay counted.
    CREATE TABLE tally (
      counter BLOB NOT NULL,
      at INTEGER NOT NULL,
      reservation BLOB NOT NULL,
      PRIMARY KEY (counter, at, reservation)
    ) WITHOUT ROWID;

    -- Failed attempts, for the details of locks.
    CREATE TABLE failed_attempt (
      counter BLOB NOT NULL,
      at INTEGER NOT NULL,
      reservation BLOB NOT NULL,
      account TEXT,                  -- keyed hashes
      identifier TEXT,
      sealed BLOB NOT NULL,          -- the user's account and address
      PRIMARY KEY (counter, at, reservation)
    ) WITHOUT ROWID;
    CREATE INDEX failed_attempt_account ON failed_attempt (account) WHERE account IS NOT NULL;
    CREATE INDEX failed_attempt_identifier ON failed_attempt (identifier) WHERE identifier IS NOT NULL;
    CREATE INDEX failed_attempt_at ON failed_attempt (at);

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
      record BLOB NOT NULL,          -- JSON
      origin TEXT,                   -- who began it; NULL once somebody has proved anything in it, so that it is not evicted
      size INTEGER NOT NULL DEFAULT 0 -- bytes of its record
    );
    CREATE INDEX flow_forgotten ON flow (forgotten_at);
    CREATE INDEX flow_unproved ON flow (origin, number, size) WHERE origin IS NOT NULL;

    CREATE TABLE account (
      id TEXT NOT NULL PRIMARY KEY,
      first_name TEXT,
      last_name TEXT,
      created_at INTEGER NOT NULL,
      last_seen_at INTEGER NOT NULL,
      is_locked INTEGER NOT NULL,    -- 1: by an operator; 2 is added while its import is not complete
      epoch INTEGER NOT NULL DEFAULT 0, -- the number of changes that invalidate earlier proofs
      is_unproved INTEGER,           -- 1: without a verified identifier when it was created
      language TEXT                  -- of messages to its owner
    ) WITHOUT ROWID;
    -- By age and not by last use, which changes with every sign-in: PostgreSQL can then keep the new version of a row on the
    -- same page (HOT).
    CREATE INDEX account_unproved ON account (created_at) WHERE is_unproved = 1;
    CREATE INDEX account_pending ON account (is_locked) WHERE is_locked >= 2;

    -- What providers store for an account, sealed under a key outside the database.
    CREATE TABLE provider_record (
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      provider TEXT NOT NULL,
      sealed BLOB NOT NULL,
      created_at INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      imported_hash TEXT,            -- the kind of an imported hash (`HashWork.description`), known without opening the record
      change_due TEXT,               -- why the account must replace it before its next session (`DueChange`)
      PRIMARY KEY (account, provider)
    ) WITHOUT ROWID;
    CREATE INDEX provider_record_imported ON provider_record (provider, imported_hash) WHERE imported_hash IS NOT NULL;

    -- Resets of factors by operators. A row stays if the factor is removed or set again.
    CREATE TABLE factor_reset (
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      provider TEXT NOT NULL,
      reset_at INTEGER NOT NULL,
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
      member_of TEXT,                -- JSON: the groups of a federated identity at its site; NULL: none
      waits_until INTEGER,
      skeleton TEXT,                 -- of a name: what names that look like it have in common (`Identifier.skeleton`)
      rechecked_by TEXT,             -- the provider that asks the site of a federated identity about it again; NULL: none
      recheck_state BLOB,            -- what it needs for that, such as a refresh token, sealed
      rechecked_at INTEGER,          -- the last time at which the site has confirmed the identity
      recheck_due INTEGER,           -- while a gateway asks: when another one may take over
      recheck_fence INTEGER NOT NULL DEFAULT 0, -- increases with each sign-in and each gateway that asks
      PRIMARY KEY (account, position)
    ) WITHOUT ROWID;
    -- Only one account can hold it verified, whatever the program does.
    CREATE UNIQUE INDEX identifier_verified ON identifier (kind, value) WHERE verified_at IS NOT NULL;
    -- Of names that look alike, only one account has one. Both indexes, because a later Unicode version can give a name
    -- another skeleton than the one that was stored.
    CREATE UNIQUE INDEX identifier_skeleton ON identifier (skeleton) WHERE skeleton IS NOT NULL;
    CREATE UNIQUE INDEX identifier_name ON identifier (kind, value) WHERE skeleton IS NOT NULL;
    CREATE INDEX identifier_claimed ON identifier (kind, value) WHERE verified_at IS NULL;
    CREATE INDEX identifier_recheck ON identifier (recheck_due) WHERE recheck_due IS NOT NULL;

    CREATE TABLE group_member (
      name TEXT NOT NULL,            -- of the group; accounts.lua says whether there is such a group
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      added_at INTEGER NOT NULL,
      PRIMARY KEY (name, account)
    ) WITHOUT ROWID;
    CREATE INDEX group_member_account ON group_member (account, name);

    CREATE TABLE session (
      token BLOB NOT NULL PRIMARY KEY,
      id TEXT NOT NULL,
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      idle INTEGER NOT NULL,
      last_seen_at INTEGER NOT NULL,
      passed TEXT NOT NULL,          -- JSON
      user_agent TEXT,
      address TEXT,                  -- the client's, when the session began
      last_address TEXT,             -- the client's, when the session was last used
      is_remembered INTEGER NOT NULL -- 1: the user chose to stay signed in
    ) WITHOUT ROWID;
    CREATE INDEX session_of_account ON session (account, created_at);

    -- The users' sessions at other sites by which sessions were opened.
    CREATE TABLE site_session (
      hash TEXT NOT NULL,            -- `PassedStep.siteSession`
      token BLOB NOT NULL REFERENCES session (token) ON DELETE CASCADE,
      PRIMARY KEY (hash, token)
    ) WITHOUT ROWID;
    CREATE INDEX site_session_of_token ON site_session (token);

    -- Tokens of a session on further root domains.
    CREATE TABLE session_domain (
      token BLOB NOT NULL PRIMARY KEY,
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      session TEXT NOT NULL,         -- session.id
      domain TEXT NOT NULL,
      issued_under BLOB NOT NULL,    -- the session's own token at that time
      passed TEXT NOT NULL           -- the session's at that time
    ) WITHOUT ROWID;
    CREATE INDEX session_domain_of_session ON session_domain (account, session);

    CREATE TABLE trusted_device (
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      id TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      last_seen_at INTEGER NOT NULL,
      user_agent TEXT,
      PRIMARY KEY (account, id)
    ) WITHOUT ROWID;

    -- Tokens of sessions that were replaced by new ones.
    CREATE TABLE replaced_token (
      token BLOB NOT NULL PRIMARY KEY,
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      session TEXT NOT NULL,         -- session.id
      replaced_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX replaced_token_of_session ON replaced_token (account, session, replaced_at);

    -- One-time codes that were used, and sessions at other sites that have ended there.
    CREATE TABLE spent_code (
      code BLOB NOT NULL PRIMARY KEY,
      expires_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX spent_code_expired ON spent_code (expires_at);

    -- Changes of sessions and accounts, numbered without gaps. The newest row always stays, so that no number is used twice.
    CREATE TABLE session_change (
      number INTEGER PRIMARY KEY,
      at INTEGER NOT NULL,
      token BLOB,
      account TEXT
    );

    CREATE TABLE access_token (
      id TEXT NOT NULL PRIMARY KEY,
      hash BLOB NOT NULL UNIQUE,     -- a keyed hash of the secret
      master TEXT NOT NULL,          -- the name of the master key from which the hash's key is derived
      name TEXT NOT NULL,
      account TEXT REFERENCES account (id) ON DELETE CASCADE, -- NULL: a service token
      epoch INTEGER,                 -- the account's, when it was made
      member_of TEXT NOT NULL,       -- JSON
      networks TEXT NOT NULL,        -- JSON
      created_at INTEGER NOT NULL,
      expires_at INTEGER,            -- NULL: never
      is_superseded INTEGER NOT NULL,
      is_end_noted INTEGER NOT NULL, -- 1: the audit trail has its expiry; 2: its account has changed, which is not yet in the trail
      last_used_at INTEGER,
      last_used_from TEXT,
      used_from TEXT NOT NULL        -- JSON: the networks that it was used from, the latest last
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX access_token_name ON access_token (coalesce(account, ''), name) WHERE is_superseded = 0;
    CREATE INDEX access_token_of_account ON access_token (account);
    CREATE INDEX access_token_end ON access_token (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX access_token_outdated ON access_token (id) WHERE is_end_noted = 2;

    -- Invitations, until some time after they have ended.
    CREATE TABLE invitation (
      id TEXT NOT NULL PRIMARY KEY,
      hash BLOB NOT NULL UNIQUE,     -- of the code
      kind TEXT,                     -- of the identifier that the new account must have verified; NULL: any
      value TEXT,
      display TEXT,
      attributes TEXT,               -- JSON
      member_of TEXT NOT NULL,       -- JSON: the groups of the new account
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      ended TEXT                     -- `used` or `revoked` (`InvitationProblem`); NULL: neither
    ) WITHOUT ROWID;
    CREATE INDEX invitation_end ON invitation (expires_at);

    -- The grants of apps (OpenID Connect clients), one for each authorization that was redeemed. No reference to the account:
    -- a grant outlives it until its app was told that the session has ended.
    CREATE TABLE app_grant (
      id TEXT NOT NULL PRIMARY KEY,
      app TEXT NOT NULL,
      account TEXT,                  -- NULL: of the app itself
      session TEXT,                  -- session.id, as long as that session lives
      sid TEXT,                      -- what tokens say about the session
      epoch INTEGER NOT NULL,        -- the account's, when the user agreed
      is_offline INTEGER NOT NULL,   -- 1: its tokens outlive the session
      scopes TEXT NOT NULL,          -- JSON
      sign_in TEXT NOT NULL,         -- JSON
      created_at INTEGER NOT NULL,
      used_at INTEGER NOT NULL,
      refresh BLOB,                  -- the hash of the refresh token
      previous BLOB,                 -- of the one before
      refreshed_at INTEGER,          -- when the token before was replaced
      expires_at INTEGER NOT NULL,
      ended_at INTEGER,
      session_due INTEGER,           -- when its session ends, unless that is used until then
      notice_due INTEGER,            -- when its app is told that the session has ended; NULL: not, or not any more
      notice_since INTEGER,          -- when the session ended
      notice_tries INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX app_grant_refresh ON app_grant (refresh) WHERE refresh IS NOT NULL;
    CREATE INDEX app_grant_previous ON app_grant (previous) WHERE previous IS NOT NULL;
    CREATE INDEX app_grant_of_account ON app_grant (account, app, created_at);
    CREATE INDEX app_grant_session ON app_grant (session_due) WHERE session_due IS NOT NULL;
    CREATE INDEX app_grant_notice ON app_grant (notice_due) WHERE notice_due IS NOT NULL;
    -- Grants of which nothing is owed any more.
    CREATE INDEX app_grant_over ON app_grant (expires_at) WHERE session IS NULL AND notice_due IS NULL;

    -- The apps that a user has connected.
    CREATE TABLE app_connection (
      account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
      app TEXT NOT NULL,
      scopes TEXT NOT NULL,          -- JSON
      created_at INTEGER NOT NULL,
      used_at INTEGER NOT NULL,
      is_agreed INTEGER NOT NULL,    -- 1: the user was asked and has agreed
      PRIMARY KEY (account, app)
    ) WITHOUT ROWID;

    -- Sign-ins that devices without a browser have begun (RFC 8628).
    CREATE TABLE device_request (
      device BLOB NOT NULL PRIMARY KEY, -- the hash of the device code
      user_code BLOB NOT NULL UNIQUE, -- a keyed hash of the letters that the user enters
      app TEXT NOT NULL,
      scopes TEXT NOT NULL,          -- JSON
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      address TEXT NOT NULL,         -- the device's
      polled_at INTEGER,
      poll_interval INTEGER NOT NULL, -- seconds
      outcome INTEGER NOT NULL,      -- 0: the user has not decided; 1: denied; 2: allowed
      code BLOB                      -- if allowed: the authorization code, sealed
    ) WITHOUT ROWID;
    CREATE INDEX device_request_of_app ON device_request (app, address, expires_at);
    CREATE INDEX device_request_end ON device_request (expires_at);

    CREATE TABLE event (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL,
      at INTEGER NOT NULL,
      event BLOB NOT NULL,           -- JSON
      quota INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX event_id ON event (id);
    CREATE INDEX event_quota ON event (quota, number);

    -- The positions of sinks in the audit trail.
    CREATE TABLE audit_cursor (
      sink TEXT NOT NULL PRIMARY KEY,
      number INTEGER NOT NULL,       -- everything up to this event was sent
      xact INTEGER NOT NULL,
      seen_at INTEGER NOT NULL       -- when a gateway last had the sink
    ) WITHOUT ROWID;

    -- The key-value stores of providers.
    CREATE TABLE provider_value (
      provider TEXT NOT NULL,
      key BLOB NOT NULL,             -- a keyed hash
      sealed BLOB NOT NULL,
      expires_at INTEGER NOT NULL,
      PRIMARY KEY (provider, key)
    ) WITHOUT ROWID;
    CREATE INDEX provider_value_alive ON provider_value (provider, expires_at);
    CREATE INDEX provider_value_expired ON provider_value (expires_at);

    -- Tasks that run on one gateway at a time.
    CREATE TABLE lease (
      name TEXT NOT NULL PRIMARY KEY,
      holder TEXT NOT NULL,
      fence INTEGER NOT NULL,        -- grows with each holder
      held_until INTEGER NOT NULL,
      due_at INTEGER NOT NULL        -- no gateway takes it before
    ) WITHOUT ROWID;

    -- The gateways that serve from this store.
    CREATE TABLE node (
      id TEXT NOT NULL PRIMARY KEY,
      generation TEXT NOT NULL,
      seen_at INTEGER NOT NULL,
      keys TEXT NOT NULL             -- the names of the master keys that it knows
    ) WITHOUT ROWID;
    """
}
