/// Why a connection could not be established.
package enum PostgresErrorClassification: Sendable, Equatable {
  case unreachable
  case unknownHost
  /// No reply within the timeout.
  case silent
  /// The peer accepts connections and closes them.
  case hangsUp
  /// The peer does not speak PostgreSQL's protocol.
  case notPostgres
  case wrongPassword
  /// The server requires a password, and none is configured.
  case noPassword
  /// The server's rules (pg_hba.conf) do not allow the connection, or the user does not exist.
  case notAdmitted
  /// We require TLS and the server does not support it.
  case noTLS
  /// Any other failure of the TLS handshake.
  case tls
  /// The server's certificate is not valid.
  case certificate(Certificate)
  /// The trusted certificates are unknown: `sslrootcert` does not exist or is empty.
  case noAuthority
  /// Our own certificate or its key cannot be used.
  case ownCertificate
  /// Other users can read our key.
  case openKey
  /// The server does not accept our certificate.
  case ownCertificateRefused
  case noDatabase
  case tooManyConnections
  case startingUp
  /// A standby, or several servers none of which accepts writes.
  case readOnly
  /// A primary that came back after another server was promoted in its place.
  case superseded
  /// The user lacks rights that a store needs.
  case noRights
  /// The encoding cannot represent texts of all languages.
  case encoding
  case other(String)

  /// What is wrong with a server's certificate.
  package enum Certificate: Sendable, Equatable {
    /// Not signed by an authority in `sslrootcert`.
    case untrusted
    case expired
    case revoked
    /// It belongs to another host.
    case otherHost
    /// OpenSSL does not report the reason.
    case unknown
  }

  /// For logs, after "PostgreSQL is not available:".
  var words: String {
    switch self {
    case .unreachable: "nothing listens at its address"
    case .unknownHost: "its host's name is not known"
    case .silent: "its address does not answer"
    case .hangsUp: "its address accepts connections and closes them"
    case .notPostgres: "what listens at its address is not PostgreSQL"
    case .wrongPassword: "wrong password"
    case .noPassword: "it requires a password"
    case .notAdmitted: "it does not admit this user from here"
    case .noTLS: "it has no TLS, and `sslmode` requires it"
    case .tls: "no TLS with it"
    case .certificate(.untrusted): "its certificate is not signed by an authority of `sslrootcert`"
    case .certificate(.expired): "its certificate has expired"
    case .certificate(.revoked): "its certificate was revoked"
    case .certificate(.otherHost): "its certificate is for another host"
    case .certificate(.unknown): "its certificate is not valid"
    case .noAuthority: "`sslrootcert` is missing or contains no certificate"
    case .ownCertificate: "our own certificate or its key cannot be used"
    case .openKey: "other users can read the key of our certificate"
    case .ownCertificateRefused: "it does not accept our certificate"
    case .noDatabase: "there is no such database"
    case .tooManyConnections: "it has no connection left"
    case .startingUp: "it is starting or shutting down"
    case .readOnly: "it only reads"
    case .superseded: "another server was promoted in its place, but it still accepts writes: stop it"
    case .noRights: "permission denied"
    case .encoding: "the database is not in UTF8"
    case .other(let words): words
    }
  }

  /// Whether it may resolve itself without intervention.
  package var mayPass: Bool {
    switch self {
    case .unreachable, .unknownHost, .silent, .hangsUp, .tooManyConnections, .startingUp, .readOnly, .superseded: true
    default: false
    }
  }
}
