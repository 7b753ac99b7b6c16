import MoongateSDK

/// The settings of gateway.lua.
package struct GatewaySettings: Sendable {
  package var listen: ListenAddress
  package var admin: ListenAddress
  /// The token that admin requests must carry as `Authorization: Bearer`; nil for no authentication.
  package var adminToken: SecretText?
  /// Further tokens, each with a name and a role.
  package var adminTokens: [AdminToken] = []
  /// The sinks for copies of the audit trail.
  package var audit: [AuditSinkSettings] = []
  /// Where request spans are sent; nil for no tracing.
  package var tracing: TracingSettings?
  /// Which changes of decisions prevent a reload; nil for none.
  package var gate: GateSettings?
  /// The address under which users reach the gateway. Determines cookie names and attributes, and allowed redirects.
  package var publicURL: PublicURL
  /// Certificate and key, if the gateway terminates TLS.
  package var tls: TLSFiles?
  package var store: StoreLocation
  package var key: KeyLocation
  /// ISO 3166-1 alpha-2, for phone numbers entered without `+`; empty if gateway.lua names none.
  package var region: String
  /// The proxies whose `X-Forwarded-*` headers are trusted.
  package var trustedProxies: [AddressBlock]
  /// `proxy_protocol`: whether connections of `trustedProxies` begin with a PROXY protocol header, version 1 or 2. Not
  /// without `trustedProxies`.
  package var takesProxyProtocol = false
  /// `forward_auth_credentials`: whether forward-auth answers carry the Authorization that routes state
  /// (`identity.basic`, `bearer`). Whoever may ask can read it.
  package var answersCredentials = false
  /// Further hosts that `return_to` may lead to: `host` or `host:port`, in lower case.
  package var redirectHosts: [String]
  /// The domain whose subdomains share one session: `cookie_domain`, or the one of `domains` that `publicURL` belongs
  /// to.
  package var cookieDomain: String?
  /// All root domains that share one sign-in, including `cookieDomain`; empty if gateway.lua names none.
  package var domains: [String] = []
  /// The service name in messages.
  package var service: String
  package var brand: Brand
  /// The languages of pages and messages as BCP 47 tags. The first is the default. Empty: the built-in selection.
  package var languages: [String] = []
  /// The probability per 30 days; nil if not set.
  package var riskBudget: Double?
  package var providers: [ProviderName: ProviderSettings]
  /// Limits on connections, in total and per address.
  package var connectionLimits: ConnectionLimits
  /// The origins that may call `/api/auth` from a browser.
  package var corsOrigins: [String]
  /// The `max-age` of HSTS (RFC 6797) if `publicURL` is https; nil for no HSTS.
  package var hsts: Duration?
  /// How long open connections (requests, WebSockets, event streams) may finish when the gateway stops or hands over to
  /// another process.
  package var drain = GatewaySettings.usualDrain
  /// Whether the public listener has the calls of the App API (v1).
  package var appAPI = false
  /// The files of `geo`; nil without it.
  package var geo: GeoSettings?
  /// The open databases of `geo`.
  package var places: (any ClientPlaces)?
  /// The source location of each setting, by its path (`providers.phone_otp.sms`), for problems that are found later.
  package var locations: [String: SourceLocation]

  /// The default of `drain`.
  package static let usualDrain: Duration = .seconds(10)
  /// The allowed range of `drain`.
  package static let drains: ClosedRange<Duration> = .seconds(1)...(.seconds(3_600))

  /// The default of `hsts`: one year.
  package static let usualHSTS: Duration = .seconds(365 * 86_400)

  /// More than five parameters: one for each field.
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
  /// The provider's declaration with the kinds of identifier that its entry chooses.
  package func identified(_ descriptor: ProviderDescriptor) -> ProviderDescriptor {
    providers[descriptor.name]?.identifyBy.map(descriptor.identifying) ?? descriptor
  }

  /// The value of the `Strict-Transport-Security` header (RFC 6797 section 6.1); nil for none. Browsers ignore it in
  /// responses over plain HTTP (section 8.1), so a host without https stays reachable.
  package var strictTransportSecurity: String? {
    publicURL.isSecure ? hsts.map { "max-age=\($0.components.seconds)" } : nil
  }
}

/// The paths of databases of client addresses, in MaxMind's format (.mmdb). At least one of them is set.
package struct GeoSettings: Sendable, Hashable {
  /// `database`: the countries.
  package let countries: String?
  /// `asn`: the numbers of autonomous systems.
  package let systems: String?

  package init(countries: String?, systems: String?) {
    self.countries = countries
    self.systems = systems
  }
}

extension GatewaySettings {
  /// Where a client address is. Empty without `geo`.
  package func place(of address: ClientAddress) -> ClientPlace { places?.place(of: address) ?? ClientPlace() }
}

/// The `host:port` to listen on. An IPv6 host is written in brackets.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
  package let host: String
  /// 0 lets the system choose a port.
  package let port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Parses `host:port`, with IPv6 hosts in brackets; nil if the text is invalid.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
      (0...65535).contains(port)
    else { return nil }
    let host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") {
      let inner = String(host.dropFirst().dropLast())
      guard IPAddressBytes.parseV6(Array(inner.utf8)) != nil else { return nil }
      self.init(host: inner, port: port)
    } else {
      guard let name = HostName(host), name.port == nil else { return nil }
      self.init(host: host, port: port)
    }
  }

  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// An origin: scheme, host and port.
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
  /// `host`, with the port unless it is the scheme's default.
  package var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }
  /// The serialised origin (RFC 6454 section 6.2).
  package var description: String { "\(scheme)://\(authority)" }
}

/// Paths of PEM files.
package struct TLSFiles: Sendable, Hashable {
  package let certificate: String
  package let key: String

  package init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }
}

/// The location of the store.
package enum StoreLocation: Sendable, Hashable {
  /// A file, absolute or already resolved against the working directory; `:memory:` for tests.
  case sqlite(path: String)
  /// A libpq connection string.
  case postgres(url: String)

  /// Whether gateways on other machines can use the store.
  package var isShared: Bool { if case .postgres = self { true } else { false } }
}

/// The source of the master key.
package enum KeyLocation: Sendable, Equatable {
  /// A file that is created at the first start.
  case file(path: String)
  /// The value of an environment variable.
  case value(SecretText)
  /// A systemd credential file. It exists before the process starts and does not change while it runs.
  case credential(path: String)
}

/// The branding of pages and messages.
package struct Brand: Sendable, Hashable {
  package var name: String?
  /// An https address, or a file in the configuration folder.
  package var logo: String?
  /// The content of the logo file, named like the file without its folder; nil for an address.
  package var logoFile: PageFile?
  /// `#rrggbb`.
  package var primary: String?
  /// The "Contact us" link: `mailto:` or `https:`.
  package var support: String?
  /// The https address of the terms of service, linked on every page.
  package var terms: String?
  /// The https address of the privacy policy, linked on every page.
  package var privacy: String?

  /// More than five parameters: one for each field.
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

/// A provider's entry in gateway.lua, validated against the provider's declared settings.
package struct ProviderSettings: Sendable {
  package var texts: [String: String]
  package var secrets: [String: SecretText]
  /// Secrets whose file does not exist: the path, by the setting's name. Those of a provider with `localOnly` settings
  /// are created at the first start; others are reported as missing.
  package var missingFiles: [String: String] = [:]
  /// Settings that are accepted only while no other machine reaches the gateway: why, by the setting's name.
  package var localOnly: [String: String] = [:]
  /// Delivery channels, by the setting's name.
  package var deliveries: [String: DeliverySettings]
  /// Settings of all other kinds (numbers, flags, choices, lists, files), by name. Includes defaults.
  package var values: [String: SettingValue]
  /// `title` or `label`: the provider's display name; nil for the name that the provider declares.
  package var title: String?
  /// `identify_by`: the kinds of identifier that the provider reads; nil for those that it declares.
  package var identifyBy: [IdentifierKind]?
  /// `recheck` and `recheck_grace`: how often the site is asked again about its identities; nil: never.
  package var recheck: RecheckSettings?
  /// `icon`: the SVG text of its button's icon; nil for the one that the provider declares.
  package var icon: String?

  package init(
    texts: [String: String] = [:], secrets: [String: SecretText] = [:], deliveries: [String: DeliverySettings] = [:],
    values: [String: SettingValue] = [:]
  ) {
    self.texts = texts
    self.secrets = secrets
    self.deliveries = deliveries
    self.values = values
  }

  /// The settings as the provider reads them.
  package var forSteps: StepSettings {
    StepSettings(
      texts: texts.merging(recheck.map { [ProviderDescriptor.recheck: $0.interval.asWritten] } ?? [:]) { $1 },
      secrets: secrets.mapValues { secret in { @Sendable in secret.reveal() } }, values: values,
      awaited: Set(missingFiles.keys))
  }
}

/// How often a provider asks its site again about the identities that it has proved.
package struct RecheckSettings: Sendable, Equatable {
  /// The minimum of `interval`.
  package static let shortest: Duration = .seconds(1)
  /// The default of `grace`.
  package static let standardGrace: Duration = .seconds(86_400)

  package let interval: Duration
  /// How long sessions go on after the last answer of a site that answers no more.
  package let grace: Duration

  package init(interval: Duration, grace: Duration = Self.standardGrace) {
    self.interval = interval
    self.grace = grace
  }
}

/// Limits on connections of the public listener.
package struct ConnectionLimits: Sendable, Hashable {
  /// In total.
  package var connections: Int
  /// Per client address, except for trusted proxies; nil: no limit.
  package var connectionsPerAddress: Int?
  /// Requests per second per client address; nil: no limit.
  package var requestsPerSecondPerAddress: Int?
  /// The bound on flows without any proof.
  package var flows: FlowBound
  /// The minimum rate of request bodies, unless a route sets another one; nil: no limit.
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
