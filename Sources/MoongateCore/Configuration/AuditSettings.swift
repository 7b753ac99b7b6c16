/// A sink for copies of the audit trail: an entry of `audit` in gateway.lua.
package enum AuditSinkSettings: Sendable, Hashable {
  case file(AuditFileSettings)
  case syslog(SyslogSettings)
  case webhook(AuditWebhookSettings)

  /// The name under which the store records the sink's position. A sink with a new name starts from the beginning.
  package var name: String {
    switch self {
    case .file(let file): "file \(file.path)"
    case .syslog(let syslog): "syslog \(syslog.address)"
    // The query may contain a secret, and the name appears in logs and metrics.
    case .webhook(let webhook): "webhook \(webhook.url.prefix { $0 != "?" })"
    }
  }

  /// `file`, `syslog` or `webhook`.
  package var kind: String { String(name.prefix { $0 != " " }) }
}

/// `file { path = "…", rotate = "100MiB", keep = 10 }`.
package struct AuditFileSettings: Sendable, Hashable {
  /// Absolute, or already resolved against the working directory.
  package let path: String
  /// The size in bytes at which the file is rotated before the next line.
  package let rotate: Int
  /// How many rotated files are kept.
  package let keep: Int

  package init(path: String, rotate: Int, keep: Int) {
    self.path = path
    self.rotate = rotate
    self.keep = keep
  }
}

/// `syslog { address = "/dev/log", facility = "authpriv" }`.
package struct SyslogSettings: Sendable, Hashable {
  /// The address of a syslog server.
  package enum Address: Sendable, Hashable, CustomStringConvertible {
    /// A local socket.
    case local(path: String)
    case tcp(host: String, port: Int)

    package var description: String {
      switch self {
      case .local(let path): path
      case .tcp(let host, let port): "tcp://\(host.contains(":") ? "[\(host)]" : host):\(port)"
      }
    }
  }

  /// The facilities of RFC 5424 section 6.2.1 that suit a gateway.
  package enum Facility: String, Sendable, CaseIterable {
    case auth, authpriv, daemon, local0, local1, local2, local3, local4, local5, local6, local7

    package var number: Int {
      switch self {
      case .auth: 4
      case .authpriv: 10
      case .daemon: 3
      default: 16 + (Int(rawValue.dropFirst(5)) ?? 0)
      }
    }
  }

  package let address: Address
  package let facility: Facility

  package init(address: Address, facility: Facility) {
    self.address = address
    self.facility = facility
  }
}

/// `webhook { url = "…", secret = env "…" }`.
package struct AuditWebhookSettings: Sendable, Hashable {
  /// http or https.
  package let url: String
  /// The key that signs the requests.
  package let secret: SecretText

  package init(url: String, secret: SecretText) {
    self.url = url
    self.secret = secret
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.url == right.url && left.secret.reveal() == right.secret.reveal()
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(url) }
}
