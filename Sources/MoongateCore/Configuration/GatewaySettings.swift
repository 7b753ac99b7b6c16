import MoongateSDK

/// gateway.lua, typed.
package struct GatewaySettings: Sendable {
  package var listen: ListenAddress
  package var admin: ListenAddress
  /// What calls of the admin listener must carry as `Authorization: Bearer`; nil: it asks nobody who they are.
  package var adminToken: SecretText?
  /// More of them, each with a name and a role.
  package var adminTokens: [AdminToken] = []
  /// Where copies of the audit trail go.
  package var audit: [AuditSinkSettings] = []
  /// Where spans of requests go; nil: there are none.
  package var tracing: TracingSettings?
  /// What a reload must not change; nil: anything goes.
  package var gate: GateSettings?
  /// How people reach the gateway: decides the cookie's name and attributes and where redirects may go.
  package var publicURL: PublicURL
  /// Certificate and key, where the gateway itself speaks TLS.
  package var tls: TLSFiles?
  package var store: StoreLocation
  package var key: KeyLocation
  /// ISO 3166-1 alpha-2, for phone numbers typed without `+`.
  package var region: String
  /// Who may say `X-Forwarded-*`.
  package var trustedProxies: [AddressBlock]
  /// Besides `publicURL`'s, where `return_to` may lead: `host` or `host:port`, in lower case.
  package var redirectHosts: [String]
  /// One session for all subdomains of this domain: `cookie_domain`, or the one of `domains` that `publicURL` belongs
  /// to.
  package var cookieDomain: String?
  /// All root domains that share one sign-in, `cookieDomain` among them; empty where gateway.lua names none.
  package var domains: [String] = []
  /// What messages call us.
  package var service: String
  package var brand: Brand
  /// The languages of pages and messages, by their tags (BCP 47), the first for people who want none of them; empty:
  /// those that are offered by default.
  package var languages: [String] = []
  /// As a probability per 30 days; nil where the operator names none.
  package var riskBudget: Double?
  package var providers: [ProviderName: ProviderSettings]
  /// Connections in all, and per address where limited.
  package var connectionLimits: ConnectionLimits
  /// Origins that may call `/api/auth` from a browser.
  package var corsOrigins: [String]
  /// For how long browsers are told to use https alone (RFC 6797), where `publicURL` is https; nil: they are not told.
  package var hsts: Duration?
  /// How long connections may finish when the gateway ends or hands over to another process: requests, WebSockets and
  /// event streams.
  package var drain = GatewaySettings.usualDrain
  /// Where each setting stands, by its path (`providers.phone_otp.sms`), for problems that are found later.
  package var locations: [String: SourceLocation]

  /// Of `drain`, where nothing is said.
  package static let usualDrain: Duration = .seconds(10)
  /// The values that `drain` may have.
  package static let drains: ClosedRange<Duration> = .seconds(1)...(.seconds(3_600))

  /// Of `hsts`, where nothing is said: a year.
  package static let usualHSTS: Duration = .seconds(365 * 86_400)

  package init(
    listen: ListenAddress, admin: ListenAddress, publicURL: PublicURL, tls: TLSFiles? = nil, store: StoreLocation,
    key: KeyLocation, region: String,
    trustedProxies: [AddressBlock] = [], redirectHosts: [String] = [], cookieDomain: String? = nil, service: String,
    brand: Brand = Brand(),
    riskBudget: Double? = nil, providers: [ProviderName: ProviderSettings],
    connectionLimits: ConnectionLimits = ConnectionLimits(),
    corsOrigins: [String] = [], adminToken: SecretText? = nil, hsts: Duration? = GatewaySettings.usualHSTS,
    locations: [String: SourceLocation] = [:]
  ) {
    self.listen = listen
    self.admin = admin
    self.publicURL = publicURL
    self.tls = tls
    self.store = store
    self.key = key
    self.region = region
    self.trustedProxies = trustedProxies
    self.redirectHosts = redirectHosts
    self.cookieDomain = cookieDomain
    self.service = service
    self.brand = brand
    self.riskBudget = riskBudget
    self.providers = providers
    self.connectionLimits = connectionLimits
    self.corsOrigins = corsOrigins
    self.adminToken = adminToken
    self.hsts = hsts
    self.locations = locations
  }
}

extension GatewaySettings {
  /// The value of `Strict-Transport-Security` (RFC 6797 section 6.1) that answers carry; nil where they carry none.
  /// Browsers do not believe it of an answer that came in the clear (section 8.1), so nobody is locked out of a host
  /// that has no https.
  package var strictTransportSecurity: String? {
    publicURL.isSecure ? hsts.map { "max-age=\($0.components.seconds)" } : nil
  }
}

/// `host:port` to listen on; an IPv6 host stands in brackets where it is written out.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
  package let host: String
  /// 0 lets the system choose.
  package let port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Reads `host:port`; an IPv6 host stands in brackets. nil where the text is neither.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
      (0...65535).contains(port)
    else { return nil }
    let host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") {
      let inner = String(host.dropFirst().dropLast())
      guard IPAddressText.parseV6(Array(inner.utf8)) != nil else { return nil }
      self.init(host: inner, port: port)
    } else {
      guard let name = HostName(host), name.port == nil else { return nil }
      self.init(host: host, port: port)
    }
  }

  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// An origin: scheme, host and port, with nothing after them.
package struct PublicURL: Sendable, Hashable, CustomStringConvertible {
  package let isSecure: Bool
  /// In lower case.
  package let host: String
  package let port: Int

  package init(isSecure: Bool, host: String, port: Int) {
    self.isSecure = isSecure
    self.host = host
    self.port = port
  }

  package var scheme: String { isSecure ? "https" : "http" }
  /// `host`, with the port where it is not the scheme's own.
  package var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }
  /// The serialised origin (RFC 6454 section 6.2).
  package var description: String { "\(scheme)://\(authority)" }
}

/// PEM files.
package struct TLSFiles: Sendable, Hashable {
  package let certificate: String
  package let key: String

  package init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }
}

/// Where state is kept.
package enum StoreLocation: Sendable, Hashable {
  /// A file, absolute or relative to the working folder by now; `:memory:` for tests.
  case sqlite(path: String)
  /// A connection string of libpq.
  case postgres(url: String)

  /// Whether gateways on other machines may serve from it too.
  package var isShared: Bool { if case .postgres = self { true } else { false } }
}

/// Where the master key comes from.
package enum KeyLocation: Sendable, Equatable {
  /// A file that is made at the first start.
  case file(path: String)
  /// The value of an environment variable.
  case value(SecretText)
  /// The file of a credential that systemd hands over. It is there, and does not change while the process lives.
  case credential(path: String)
}

/// What pages call and show us as.
package struct Brand: Sendable, Hashable {
  package var name: String?
  /// An https address, or a file of the configuration folder.
  package var logo: String?
  /// The content of the logo's file, named as the file is without its folder; nil for an address.
  package var logoFile: PageFile?
  /// `#rrggbb`.
  package var primary: String?
  /// A link for "Contact us": `mailto:` or `https:`.
  package var support: String?
  /// An https address of the terms of service, linked on every page.
  package var terms: String?
  /// An https address of the privacy policy, linked on every page.
  package var privacy: String?

  package init(
    name: String? = nil, logo: String? = nil, primary: String? = nil, support: String? = nil, terms: String? = nil,
    privacy: String? = nil
  ) {
    self.name = name
    self.logo = logo
    self.primary = primary
    self.support = support
    self.terms = terms
    self.privacy = privacy
  }
}

/// A provider's entry in gateway.lua, checked against what the provider declares.
package struct ProviderSettings: Sendable {
  package var texts: [String: String]
  package var secrets: [String: SecretText]
  /// Secrets whose file is not there, by the setting's name: the file's path. The demo's are made at the first start;
  /// others are missing.
  package var missingFiles: [String: String] = [:]
  /// Ways for messages to leave, by the setting's name.
  package var deliveries: [String: DeliverySettings]
  /// Settings of the other kinds, by name: numbers, flags, choices, lists, files. What has a default is there.
  package var values: [String: SettingValue]
  /// What people read as the provider's name: `title`; nil for the name that the provider declares.
  package var title: String?

  package init(
    texts: [String: String] = [:], secrets: [String: SecretText] = [:], deliveries: [String: DeliverySettings] = [:],
    values: [String: SettingValue] = [:]
  ) {
    self.texts = texts
    self.secrets = secrets
    self.deliveries = deliveries
    self.values = values
  }

  /// As their provider reads them.
  package var forSteps: StepSettings {
    StepSettings(
      texts: texts, secrets: secrets.mapValues { secret in { @Sendable in secret.reveal() } }, values: values)
  }
}

/// Bounds on connections of the public listener.
package struct ConnectionLimits: Sendable, Hashable {
  /// In all.
  package var connections: Int
  /// Per client address, trusted proxies left out; nil: no limit.
  package var connectionsPerAddress: Int?
  /// Requests per second and client address; nil: no limit.
  package var requestsPerSecondPerAddress: Int?
  /// Flows in which nobody has proved anything.
  package var flows: FlowBound
  /// Of request bodies, where a route says nothing else; nil: no limit.
  package var bodyRate: BodyRate? = .standard

  package init(
    connections: Int = 50_000, connectionsPerAddress: Int? = 1_000, requestsPerSecondPerAddress: Int? = nil,
    flows: FlowBound = FlowBound()
  ) {
    self.flows = flows
    self.connections = connections
    self.connectionsPerAddress = connectionsPerAddress
    self.requestsPerSecondPerAddress = requestsPerSecondPerAddress
  }
}
