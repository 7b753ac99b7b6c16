import CPostgres

/// Why a connection could not be established.
package enum PostgresErrorClassification: Sendable, Equatable {
  case unreachable
  case unknownHost
  /// No reply within the timeout.
  case silent
  /// The peer accepts connections and closes them.
  case hangsUp
  /// The peer does not speak PostgreSQL's protocol.
  case stranger
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

    /// - Parameter found: what this thread recorded about the last certificate that it verified.
    init(_ found: cpostgres_certificate) {
      switch found {
      case CPOSTGRES_CERTIFICATE_EXPIRED: self = .expired
      case CPOSTGRES_CERTIFICATE_UNTRUSTED: self = .untrusted
      case CPOSTGRES_CERTIFICATE_REVOKED: self = .revoked
      default: self = .unknown
      }
    }
  }

  /// For logs, after "PostgreSQL is not available:".
  var words: String {
    switch self {
    case .unreachable: "nothing listens at its address"
    case .unknownHost: "its host's name is not known"
    case .silent: "its address does not answer"
    case .hangsUp: "its address accepts connections and closes them"
    case .stranger: "what listens at its address is not PostgreSQL"
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

  /// Whether it only says that no server is reachable.
  var isAbsence: Bool { [.unreachable, .unknownHost, .silent].contains(self) }

  init(_ state: SQLState) {
    self =
      switch state.rawValue {
      case "28P01": .wrongPassword
      case "28000": .notAdmitted
      case "3D000": .noDatabase
      case "53300", "55000": .tooManyConnections
      case "57P01", "57P02", "57P03": .startingUp
      case "42501", "3F000": .noRights
      case "25006": .readOnly
      default: .other(state.words)
      }
  }

  /// - Parameters:
  ///   - words: libpq's message about a failed connection, at the verbosity at which the server's errors are only
  ///     codes.
  ///   - found: what this thread recorded about the server's certificate.
  init(libpq words: String, certificate found: Certificate = .unknown) {
    // The message has a part for each address and for each method that `sslmode` allows there. The last part that is
    // not just absence is the most informative.
    let tried = words.split(separator: "connection to server").map { Self(attempt: $0, found) }
    self = tried.last { !$0.isAbsence } ?? tried.last ?? .unreachable
  }

  /// Libpq's messages for failures that it detects itself. The order matters, because some texts are part of later
  /// ones.
  private static let wordings: [(words: [String], obstacle: Self)] = [
    (["could not translate host name"], .unknownHost),
    (["session is read-only", "hot standby"], .readOnly),
    (["no password supplied"], .noPassword),
    (["expected authentication request", "invalid response to SSL negotiation", "lost synchronization"], .stranger),
    (["does not support SSL"], .noTLS),
    (["root certificate"], .noAuthority),
    (["does not match host name", "host name from server certificate"], .certificate(.otherHost)),
    (["group or world access", "has permissions"], .openKey),
    (["private key file", "could not read certificate file", "could not load certificate"], .ownCertificate),
    (
      [
        "alert unknown ca", "alert bad certificate", "alert certificate expired", "alert certificate revoked",
        "alert certificate unknown",
        "alert certificate required", "alert unsupported certificate",
      ], .ownCertificateRefused
    ),
    (["certificate verify failed"], .certificate(.unknown)),
    // A server that dies during the TLS handshake does not refuse TLS.
    (
      [
        "SSL SYSCALL error", "closed unexpectedly", "closed the connection unexpectedly", "Connection reset",
        "Broken pipe",
      ], .hangsUp
    ),
    (["SSL", "certificate"], .tls),
    (["timed out", "timeout expired", "No route to host", "Network is unreachable"], .silent),
  ]

  private init(attempt words: Substring, _ found: Certificate) {
    let last = words.split(whereSeparator: \.isNewline).last ?? ""
    if let state = last.split(separator: " ").last.flatMap({ SQLState($0) }), last.contains(":  ") {
      self.init(state)
      return
    }
    let known =
      Self.wordings.first { wording in wording.words.contains { words.contains($0) } }?.obstacle ?? .unreachable
    self = known == .certificate(.unknown) ? .certificate(found) : known
  }
}
