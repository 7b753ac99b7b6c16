import CPostgres

extension PostgresErrorClassification {
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
    (["expected authentication request", "invalid response to SSL negotiation", "lost synchronization"], .notPostgres),
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

extension PostgresErrorClassification.Certificate {
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
