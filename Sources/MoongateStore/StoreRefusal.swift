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
  /// Created with another master key. Its codes, counters and records cannot be used with this one.
  case otherKey(path: String)
  /// The store already belongs to the key that follows `retired`, which is still in the ring: retiring the key was
  /// interrupted.
  case retirementInterrupted(path: String, retired: String, heir: String)
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
      "\(path) is the database of another program. Name a file of Moongate's own as `store` in gateway.lua; it is made at the first start."
    case .unreadable(let path):
      "\(path) is no SQLite database, or it is damaged. Restore it from a backup, or name another file as `store` in gateway.lua."
    case .unwritable(let path, let reason):
      "The store \(path) cannot be written (\(reason)). Let Moongate's user write the file and its folder, or name another file as `store` in gateway.lua."
    case .otherKey(let path):
      "The store \(path) was made with another master key. Name that key as `key` in gateway.lua, or name another store."
    case .retirementInterrupted(let path, let retired, _):
      """
      The store \(path) has left the key \(retired) behind: taking that key out of the ring was interrupted, or this is a copy of the ring from before. \
      `moongate keys retire \(retired)` finishes it; then copy the key file to every gateway.
      """
    case .nothingThere(let path):
      "There is no store at \(path) yet. A gateway makes it at its first start; if one has served from it before, `store` names another place."
    case .address(let problem):
      "The store's connection string \(problem)."
    case .foreignTables(let name, let table):
      "\(name) has a table `\(table)` of another program. Make a database of Moongate's own and name it as `store` in gateway.lua."
    case .obstacle(let name, let obstacle): Self.sentence(name, obstacle)
    case .fault(let path, let reason):
      path.hasPrefix("postgres:")
        ? "The store \(path) cannot be opened (\(reason)). Look into the server's log, then start again."
        : "The store \(path) cannot be opened (\(reason)). Look at its disk, then start again."
    }
  }

  /// Whether a retry may succeed without any change on this side.
  package var mayPass: Bool { if case .obstacle(_, let obstacle) = self { obstacle.mayPass } else { false } }

  private static func sentence(_ name: String, _ obstacle: PostgresErrorClassification) -> String {
    switch obstacle {
    case .unreachable:
      "Nobody listens at \(name). Start PostgreSQL there, or correct host and port of `store` in gateway.lua."
    case .unknownHost:
      "The host of \(name) has no address. Correct it in `store` of gateway.lua, or look at the name server."
    case .silent:
      "\(name) does not answer. Look at the network between, a firewall perhaps, and at host and port of `store` in gateway.lua."
    case .hangsUp:
      "\(name) takes connections and ends them. Look into the log of the server, or of the balancer before it."
    case .stranger: "What listens at \(name) is no PostgreSQL. Correct host and port of `store` in gateway.lua."
    case .wrongPassword:
      "PostgreSQL refuses the password for \(name). Correct user and password of `store` in gateway.lua."
    case .noPassword:
      "PostgreSQL wants a password for \(name). Put it into `store`, best by env or file, or into PGPASSWORD."
    case .notAdmitted:
      """
      PostgreSQL lets nobody in to \(name) like that: the user does not exist, pg_hba.conf has no line for user, database, address and TLS, \
      or that line wants a certificate (`sslcert`, `sslkey`).
      """
    case .noTLS:
      "\(name) has no TLS, and `sslmode` demands it. Turn it on there (ssl, ssl_cert_file, ssl_key_file), or correct host and port."
    case .tls:
      "No TLS with \(name): the two agree on no version or cipher. Look into the server's log, and at its ssl_ settings."
    case .certificate(let certificate): sentence(name, certificate)
    case .noAuthority:
      """
      `sslmode` asks who signed the certificate of \(name), and the file that tells is not there or holds no certificate. \
      Name one that does: sslrootcert=/etc/moongate/pg.pem.
      """
    case .ownCertificate:
      "The certificate for \(name) cannot be used: `sslcert` and `sslkey` are the PEM files of a certificate and of its own key, and both must be there."
    case .openKey:
      "The key of our certificate for \(name) can be read by others. Let nobody else read the file of `sslkey`: chmod 600."
    case .ownCertificateRefused:
      "\(name) does not take the certificate of `sslcert`: it is out of its time, or signed by nobody whom the server knows (ssl_ca_file there)."
    case .noDatabase:
      "There is no database of that name at \(name). Make it (createdb), or correct `store` in gateway.lua."
    case .tooManyConnections:
      "\(name) has no connection left. Raise max_connections there, or let each gateway have fewer: ?pool=2 at the end of `store`."
    case .startingUp: "\(name) is starting or shutting down. Start again when it is ready."
    case .readOnly:
      """
      \(name) only reads: a standby, or default_transaction_read_only is on. \
      Name the server that writes in `store`, or all of them: postgres://user@one,two/database.
      """
    case .noRights:
      """
      The database user may not do in \(name) what a store does. Let it own the database, or GRANT CREATE, USAGE ON SCHEMA public TO it; \
      where the tables are there, let it own them (REASSIGN OWNED).
      """
    case .superseded:
      """
      Another server was promoted in the place of one of \(name), and that one takes writes even so: stop it, or make it a standby of the new one. \
      No other server of `store` answers.
      """
    case .encoding:
      "The database \(name) is not in UTF8. Make one that is: createdb --encoding=UTF8 --template=template0."
    case .other(let words):
      "The store \(name) cannot be opened (PostgreSQL: \(words)). Look into the server's log, then start again."
    }
  }

  private static func sentence(_ name: String, _ certificate: PostgresErrorClassification.Certificate) -> String {
    switch certificate {
    case .untrusted:
      """
      The certificate of \(name) is signed by nobody whom `sslrootcert` names. Put the certificate of who signed it into that file; \
      if nobody changed it, somebody else answers in the server's place.
      """
    case .expired:
      "The certificate of \(name), or of who signed it, is out of its time. Give the server a new one, or set the clock that is wrong."
    case .revoked: "The certificate of \(name) was revoked. Give the server a new one."
    case .otherHost:
      "The certificate of \(name) is another host's. Name the host in `store` as its certificate does, or give the server one for this name."
    case .unknown:
      "The certificate of \(name) is not good. Look at it: openssl s_client -starttls postgres -connect HOST:PORT."
    }
  }
}
