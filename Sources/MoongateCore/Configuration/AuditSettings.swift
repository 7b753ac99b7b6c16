/// Where a copy of the audit trail goes: an entry of `audit` in gateway.lua.
package enum AuditSinkSettings: Sendable, Hashable {
  case file(AuditFileSettings)
  case syslog(SyslogSettings)
  case webhook(AuditWebhookSettings)

  /// By which the store knows how far the sink has got. A sink of another name begins anew.
  package var name: String {
    switch self {
    case .file(let file): "file \(file.path)"
    case .syslog(let syslog): "syslog \(syslog.address)"
    // What follows a `?` may be a secret, and the name is in logs and metrics.
    case .webhook(let webhook): "webhook \(webhook.url.prefix { $0 != "?" })"
    }
  }

  /// `file`, `syslog` or `webhook`.
  package var kind: String { String(name.prefix { $0 != " " }) }
}

/// `file { path = "…", rotate = "100MiB", keep = 10 }`.
package struct AuditFileSettings: Sendable, Hashable {
  /// Absolute, or relative to the working folder by now.
  package let path: String
  /// In bytes: a file that has so many is moved away before the next line.
  package let rotate: Int
  /// How many of the files that were moved away are kept.
  package let keep: Int

  package init(path: String, rotate: Int, keep: Int) {
    self.path = path
    self.rotate = rotate
    self.keep = keep
  }
}

/// `syslog { address = "/dev/log", facility = "authpriv" }`.
package struct SyslogSettings: Sendable, Hashable {
  /// Where a syslog server listens.
  package enum Address: Sendable, Hashable, CustomStringConvertible {
    /// A socket of this machine.
    case local(path: String)
    case tcp(host: String, port: Int)

    package var description: String {
      switch self {
      case .local(let path): path
      case .tcp(let host, let port): "tcp://\(host.contains(":") ? "[\(host)]" : host):\(port)"
      }
    }
  }

  /// RFC 5424 section 6.2.1: those that a program like this one may use.
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
  /// Signs what is posted.
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
