/// Why the program does not open a store: what is wrong and what to do, in one or two sentences for the operator.
package enum StoreRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  /// Written by a newer program.
  case newerSchema(path: String, found: Int, known: Int)
  /// A database of another program.
  case foreign(path: String)
  /// Not a database, or a damaged one.
  case unreadable(path: String)
  /// The file or folder cannot be created or written.
  case unwritable(path: String, reason: String)
  /// The disk has no room for the file, or the user's quota is used up.
  case diskFull(path: String)
  /// Created with another master key. Its codes, counters and records cannot be used with this one.
  case otherKey(path: String)
  /// The store already belongs to the key that follows `retired`, which is still in the ring: retiring the key was
  /// interrupted.
  case retirementInterrupted(path: String, retired: String, interruptedRetirementKey: String)
  /// No store, or one that no gateway has used yet, and the caller does not create one.
  case nothingThere(path: String)
  /// A connection string that libpq does not accept.
  case address(problem: String)
  /// Another program's tables with names of ours.
  case foreignTables(name: String, table: String)
  /// Why a PostgreSQL database cannot be reached.
  case obstacle(name: String, PostgresErrorClassification)
  /// Any other error of the database.
  case fault(path: String, reason: String)

  package var description: String {
    switch self {
    case .newerSchema(let path, let found, let known):
      """
      The store \(path) was written by a newer Moongate (its schema is \(found), this program knows \(known)). \
      Start the newer program, or name another store in gateway.lua.
      """
    case .foreign(let path):
      "\(path) is the database of another program. Name a file of Moongate's own as `store` in gateway.lua; it is created at the first start."
    case .unreadable(let path):
      "\(path) is not a SQLite database, or it is damaged. Restore it from a backup, or name another file as `store` in gateway.lua."
    case .unwritable(let path, let reason):
      "The store \(path) cannot be written (\(reason)). Let Moongate's user write the file and its folder, or name another file as `store` in gateway.lua."
    case .diskFull(let path):
      "The store \(path) cannot be written: its disk is full, or the quota of its user is used up. Free some space, then start again."
    case .otherKey(let path):
      "The store \(path) was made with another master key. Name that key as `key` in gateway.lua, or name another store."
    case .retirementInterrupted(let path, let retired, _):
      """
      The store \(path) no longer uses the key \(retired): retiring that key was interrupted, or this is an old copy of the ring. \
      `moongate keys retire \(retired)` finishes it; then copy the key file to every gateway.
      """
    case .nothingThere(let path):
      "There is no store at \(path) yet. A gateway creates it at its first start; if one has used it before, `store` names another place."
    case .address(let problem):
      "The store's connection string \(problem)."
    case .foreignTables(let name, let table):
      "\(name) has a table `\(table)` of another program. Create a database for Moongate and name it as `store` in gateway.lua."
    case .obstacle(let name, let obstacle): Self.sentence(name, obstacle)
    case .fault(let path, let reason):
      path.hasPrefix("postgres:")
        ? "The store \(path) cannot be opened (\(reason)). Read the server's log, then start again."
        : "The store \(path) cannot be opened (\(reason)). Check its disk, then start again."
    }
  }

  /// Whether a retry may succeed without any change on this side.
  package var mayPass: Bool { if case .obstacle(_, let obstacle) = self { obstacle.mayPass } else { false } }

  private static func sentence(_ name: String, _ obstacle: PostgresErrorClassification) -> String {
    switch obstacle {
    case .unreachable:
      "Nothing listens at \(name). Start PostgreSQL there, or correct host and port of `store` in gateway.lua."
    case .unknownHost:
      "The host of \(name) has no address. Correct it in `store` of gateway.lua, or check the name server."
    case .silent:
      "\(name) does not answer. Check the network, such as a firewall, and host and port of `store` in gateway.lua."
    case .hangsUp:
      "\(name) accepts connections and closes them. Read the log of the server, or of the load balancer in front of it."
    case .notPostgres: "What listens at \(name) is not PostgreSQL. Correct host and port of `store` in gateway.lua."
    case .wrongPassword:
      "PostgreSQL refuses the password for \(name). Correct user and password of `store` in gateway.lua."
    case .noPassword:
      "PostgreSQL requires a password for \(name). Put it into `store`, preferably by env or file, or into PGPASSWORD."
    case .notAdmitted:
      """
      PostgreSQL does not admit this user to \(name): the user does not exist, pg_hba.conf has no line for user, database, address and TLS, \
      or that line requires a certificate (`sslcert`, `sslkey`).
      """
    case .noTLS:
      "\(name) has no TLS, and `sslmode` requires it. Enable it there (ssl, ssl_cert_file, ssl_key_file), or correct host and port."
    case .tls:
      "No TLS with \(name): there is no common version or cipher. Read the server's log, and check its ssl_ settings."
    case .certificate(let certificate): sentence(name, certificate)
    case .noAuthority:
      """
      `sslmode` verifies who signed the certificate of \(name), but the file of authorities is missing or contains no certificate. \
      Name one that does, such as sslrootcert=/etc/moongate/pg.pem.
      """
    case .ownCertificate:
      "The certificate for \(name) cannot be used: `sslcert` and `sslkey` are the PEM files of a certificate and of its key, and both must exist."
    case .openKey:
      "The key of our certificate for \(name) can be read by other users. Make the file of `sslkey` private: chmod 600."
    case .ownCertificateRefused:
      "\(name) does not accept the certificate of `sslcert`: it is expired or not yet valid, or not signed by an authority of the server (ssl_ca_file there)."
    case .noDatabase:
      "There is no database of that name at \(name). Create it (createdb), or correct `store` in gateway.lua."
    case .tooManyConnections:
      "\(name) has no connection left. Raise max_connections there, or let each gateway use fewer: ?pool=2 at the end of `store`."
    case .startingUp: "\(name) is starting or shutting down. Start again when it is ready."
    case .readOnly:
      """
      \(name) is read-only: a standby, or default_transaction_read_only is on. \
      Name the writable server in `store`, or all of them: postgres://user@one,two/database.
      """
    case .noRights:
      """
      The database user has too few rights in \(name). Let it own the database, or GRANT CREATE, USAGE ON SCHEMA public TO it; \
      if the tables exist, let it own them (REASSIGN OWNED).
      """
    case .superseded:
      """
      Another server was promoted in the place of one of \(name), but that one still accepts writes: stop it, or make it a standby of the new one. \
      No other server of `store` answers.
      """
    case .encoding:
      "The database \(name) is not in UTF8. Create one that is: createdb --encoding=UTF8 --template=template0."
    case .other(let words):
      "The store \(name) cannot be opened (PostgreSQL: \(words)). Read the server's log, then start again."
    }
  }

  private static func sentence(_ name: String, _ certificate: PostgresErrorClassification.Certificate) -> String {
    switch certificate {
    case .untrusted:
      """
      The certificate of \(name) is not signed by an authority of `sslrootcert`. Put the certificate of its authority into that file; \
      if the certificate was not replaced, another server may be answering in its place.
      """
    case .expired:
      "The certificate of \(name), or of its authority, is expired or not yet valid. Give the server a new one, or correct the clock that is wrong."
    case .revoked: "The certificate of \(name) was revoked. Give the server a new one."
    case .otherHost:
      "The certificate of \(name) is for another host. Name the host in `store` as the certificate does, or give the server one for this name."
    case .unknown:
      "The certificate of \(name) is not valid. Inspect it: openssl s_client -starttls postgres -connect HOST:PORT."
    }
  }
}
