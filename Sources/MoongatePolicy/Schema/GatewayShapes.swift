import MoongateCore
import MoongateSDK

/// The tables of gateway.lua.
extension TableShape {
  static let gateway = TableShape(
    name: "Gateway", summary: "The settings of the gateway: listeners, storage, delivery and providers.",
    entries: [
      .optional("listen", "string", "an address, such as \"127.0.0.1:8080\"", .text("127.0.0.1:8080")),
      .optional("admin", "string|moongate.Admin", "an address, such as \"127.0.0.1:9901\"", .text("127.0.0.1:9901")),
      .required("public_url", "string", "the URL of the gateway in browsers, such as \"https://auth.example.com\""),
      .optional("tls", "moongate.TLS", "a table with cert and key"),
      .optional(
        "store", "string|moongate.Secret", "the database, such as \"sqlite:data/moongate.db\"",
        .text("sqlite:data/moongate.db")),
      .optional(
        "key", "moongate.Secret",
        "the master key: file \"data/master.key\", env \"MOONGATE_KEY\" or credential \"master.key\"",
        .call("file", "data/master.key")),
      .optional("region", "string", "a country in two letters, such as \"IN\""),
      .optional("trusted_proxies", "string[]", "a list of address blocks"),
      .optional(
        "proxy_protocol", "boolean", "whether connections of trusted_proxies begin with a PROXY protocol header",
        .flag(false)),
      .optional(
        "geo", "moongate.Geo",
        "databases of client addresses, as in { database = \"GeoLite2-Country.mmdb\", asn = \"GeoLite2-ASN.mmdb\" }"),
      .optional(
        "forward_auth_credentials", "boolean",
        "whether forward-auth answers carry the Authorization of identity.basic and bearer", .flag(false)),
      .optional("redirect_hosts", "string[]", "a list of hosts"),
      .optional("cookie_domain", "string", "a domain, such as \"example.com\""),
      .optional(
        "domains", "string[]", "the root domains that share one sign-in, such as { \"example.com\", \"example.org\" }"),
      .optional("cors_origins", "string[]", "a list of origins"),
      .optional(
        "app_api", "boolean", "true: adds the calls of the App API (v1), and hosted pages report events", .flag(false)),
      .optional(
        "hsts", "moongate.Duration|false", "the max-age of Strict-Transport-Security, or false to omit the header",
        .text("365d")),
      .optional("service", "string", "the name of the service in messages", .text("Moongate")),
      .optional("brand", "moongate.Brand", "the name, logo, colour and links of the hosted pages"),
      .optional("languages", "string[]", "the languages of pages and messages, such as { \"en\", \"hi\" }"),
      .optional("risk_budget", "string", "a probability, such as \"0.1% per 30d\""),
      .optional("limits", "moongate.ConnectionLimits", "limits on connections and flows"),
      .optional(
        "drain", "moongate.Duration",
        "how long open connections may take to finish when the gateway stops, such as \"30s\"", .text("10s")),
      .optional(
        "audit", "moongate.AuditSink[]",
        "the destinations of copies of the audit trail, as in { file { path = \"data/audit.log\" } }"),
      .optional(
        "tracing", "moongate.Tracing",
        "the destination of request spans, as in otlp { url = \"http://127.0.0.1:4318\" }"),
      .optional(
        "gate", "moongate.Gate",
        "the limit on decisions that a reload may change, as in { replay = \"24h\", most_flips = \"0.5%\" }"),
      .required("providers", "moongate.Providers", "a table of providers, as in { phone_otp = { sms = outbox() } }"),
    ])

  static let admin = TableShape(
    name: "Admin", summary: "An admin listener that other hosts can reach.",
    entries: [
      .required("address", "string", "an address, such as \"10.0.0.5:9901\""),
      .optional(
        "token", "moongate.Secret",
        "the token that each call must send as Authorization: Bearer, as in env \"MOONGATE_ADMIN_TOKEN\""),
      .optional(
        "tokens", "moongate.AdminToken[]",
        "tokens with names and roles, as in { { name = \"grafana\", role = \"read\", token = env \"…\" } }"),
    ])

  static let adminToken = TableShape(
    name: "AdminToken",
    summary: "A named token of the admin listener. The audit trail records its name.",
    entries: [
      .required("name", "string", "a name, such as \"grafana\""),
      .required("role", "\"read\"|\"act\"", "\"read\" or \"act\""),
      .required("token", "moongate.Secret", "a secret, as in env \"GRAFANA_TOKEN\""),
    ])

  static let auditFile = TableShape(
    name: "AuditFile", summary: "A log file with one event per line.",
    entries: [
      .required("path", "string", "the path of the file, such as \"data/audit.log\""),
      .optional("rotate", "string", "the size at which the file is rotated, such as \"100MiB\"", .text("100MiB")),
      .optional("keep", "integer", "the number of rotated files to keep", .integer(10)),
    ])

  static let auditSyslog = TableShape(
    name: "AuditSyslog", summary: "A syslog server.",
    entries: [
      .optional("address", "string", "\"/dev/log\", or \"tcp://logs.example.com:514\"", .text("/dev/log")),
      .optional(
        "facility", SyslogSettings.Facility.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: "|"),
        "a facility of syslog",
        .text(SyslogSettings.Facility.authpriv.rawValue)),
    ])

  static let auditWebhook = TableShape(
    name: "AuditWebhook", summary: "A URL that receives signed events as JSON lines.",
    entries: [
      .required("url", "string", "the URL, such as \"https://siem.example.com/moongate\""),
      .required("secret", "moongate.Secret", "the signing key, as in env \"AUDIT_SECRET\""),
    ])

  static let otlp = TableShape(
    name: "OTLP", summary: "A collector that receives spans over OTLP/HTTP as JSON.",
    entries: [
      .required("url", "string", "the URL of the collector, such as \"http://127.0.0.1:4318\""),
      .optional("sample", "number", "the share of requests that are traced, from 0 to 1", .number(0.01)),
      .optional(
        "headers", "table<string, string|moongate.Secret>",
        "additional request headers, as in { [\"Authorization\"] = env \"OTLP_TOKEN\" }"),
    ])

  static let tls = TableShape(
    name: "TLS", summary: "The gateway's own certificate.",
    entries: [.required("cert", "string", "a PEM file"), .required("key", "string", "a PEM file")])

  static let brand = TableShape(
    name: "Brand", summary: "The appearance of the hosted pages.",
    entries: [
      .optional("name", "string", "a text"), .optional("logo", "string", "a file or an address"),
      .optional("primary", "string", "a colour, such as \"#0D7377\""),
      .optional("support", "string", "a link: mailto: or https:"),
      .optional("terms", "string", "a link to the terms of service: https:"),
      .optional("privacy", "string", "a link to the privacy policy: https:"),
    ])

  static let connectionLimits = TableShape(
    name: "ConnectionLimits",
    summary: "Limits on client connections, and on flows in which no step has been passed yet.",
    entries: [
      .optional("connections", "integer", "a whole number", .integer(Int64(ConnectionLimits().connections))),
      .optional("per_ip", "moongate.AddressLimits", "limits per client address"),
      .optional("flows", "moongate.FlowLimits", "limits on flows in which no step has been passed yet"),
      .optional("body_rate", "string|false", Entry.bodyRateKind, .text("1KiB/10s")),
    ])

  static let addressLimits = TableShape(
    name: "AddressLimits", summary: "Limits per client address. By default, the number of requests is unlimited.",
    entries: [
      .optional(
        "connections", "integer", "a whole number", .integer(Int64(ConnectionLimits().connectionsPerAddress ?? 0))),
      .optional("requests", "string", "a rate, such as \"100/s\""),
    ])

  static let flowLimits = TableShape(
    name: "FlowLimits",
    summary:
      "Limits on flows in which no step has been passed yet. When a limit is exceeded, the client address with the most flows loses its oldest ones.",
    entries: [
      .optional("count", "integer", "a whole number, from 1000", .integer(Int64(FlowBound().count))),
      .optional("bytes", "string", "a size, such as \"64MiB\"", .text("64MiB")),
    ])

  /// `exec { … }`: the fields that the gateway defines. The settings of the program stand in the same table.
  static let program = TableShape(
    name: "Program",
    summary:
      "A provider that runs as a separate program. The gateway starts and supervises it. Its own settings go in the same table.",
    items: "string the program, then its arguments",
    entries: [
      .optional(
        "env", "table<string, string|moongate.Secret>",
        "environment variables of the program, as in { TOKEN = env \"SMS_TOKEN\" }"),
      .optional("timeout", "moongate.Duration", "the timeout of one call, at most \"30s\"", .text("5s")),
    ])

  /// The shape of a provider's entry under `providers`, built from the settings that its descriptor declares.
  static func settings(of descriptor: ProviderDescriptor) -> TableShape {
    TableShape(
      name: "Provider." + descriptor.name.rawValue, summary: "Settings of `\(descriptor.name)`.",
      entries: entries(of: descriptor)
        + (descriptor.choosableKinds.isEmpty ? [] : [identifyBy(descriptor)])
        + (descriptor.rechecks
          ? [
            .optional(
              ProviderDescriptor.recheck, "moongate.Duration",
              "how often the site is asked again about users with live sessions, such as \"1h\"; by default never"),
            .optional(
              ProviderDescriptor.recheckGrace, "moongate.Duration",
              "how long sessions go on while the site does not answer; by default \"24h\""),
          ] : [])
        + (descriptor.hasOwnTitleSetting
          ? [] : [.optional("title", "string", "the name that users see, as in \"SMS (USA)\"")])
        + (descriptor.hasButton
          ? [
            .optional("label", "string", "the text of its button and its name, as in \"Example Inc.\""),
            .optional("icon", "string", "the SVG file of the button's icon, such as \"icons/work.svg\""),
          ] : []))
  }
}

extension TableShape {
  /// The shape of a table in the entry of a provider, such as `bind`.
  static func settings(in table: String, of descriptor: ProviderDescriptor) -> TableShape {
    TableShape(
      name: "Provider.\(descriptor.name).\(table)", summary: "Settings of `\(descriptor.name)`.",
      entries: descriptor.settings.compactMap { field in
        field.placeInTable.flatMap { $0.table == table ? entry($0.name, field) : nil }
      })
  }

  /// The fields that the provider declares. Those with a table are one entry.
  private static func entries(of descriptor: ProviderDescriptor) -> [Entry] {
    var entries: [Entry] = []
    for field in descriptor.settings {
      guard let place = field.placeInTable else {
        entries.append(entry(field.name, field))
        continue
      }
      guard !entries.contains(where: { $0.name == place.table }) else { continue }
      let inner = settings(in: place.table, of: descriptor).entries
      let type = inner.map { "\($0.name)\($0.isRequired ? "" : "?"): \($0.type)" }.joined(separator: ", ")
      let help = inner.map { "`\($0.name)`: \($0.help)" }.joined(separator: " ")
      entries.append(.optional(place.table, "{ \(type) }", help))
    }
    return entries
  }

  private static func entry(_ name: String, _ field: SettingField) -> Entry {
    let type =
      switch field.kind {
      case .text, .file: "string"
      case .secret: "moongate.Secret"
      case .messages: "moongate.Delivery"
      case .number: "number"
      case .flag: "boolean"
      case .choice(let words): words.map { "\"\($0)\"" }.joined(separator: "|")
      case .list: "string[]"
      case .table: "table<string|integer, string>"
      case .source(let flags): "string|{ [1]: string\(flags.map { ", \($0)?: boolean" }.joined()) }"
      }
    return Entry(
      name: name, type: type, help: field.help, isRequired: field.isRequired, standard: field.standard?.asWritten)
  }

  /// The kinds of identifier by which users may identify themselves at the provider.
  private static func identifyBy(_ descriptor: ProviderDescriptor) -> Entry {
    let kinds = descriptor.choosableKinds.map { "\"\($0.rawValue)\"" }
    let standard = descriptor.identifierKinds.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
    return .optional(
      ProviderDescriptor.identifyBy, "(\(kinds.joined(separator: "|")))[]",
      "a list of what users identify themselves by, as in { \(kinds.joined(separator: ", ")) }; by default { \(standard) }"
    )
  }
}

extension ProviderDescriptor {
  /// Whether the provider declares a setting `title` itself, which then replaces the gateway's.
  var hasOwnTitleSetting: Bool { settings.contains { $0.name == "title" } }

  /// Whether the sign-in page offers it with a button of its own, whose text and icon the operator can choose.
  var hasButton: Bool {
    guard case .button? = entrance else { return false }
    return !settings.contains { ["label", "icon"].contains($0.name) }
  }
}

extension SettingValue {
  /// The value in Lua syntax; nil for a list or a table, which would need a source location.
  fileprivate var asWritten: LuaValue? {
    switch self {
    case .text(let text): .text(text)
    case .flag(let flag): .flag(flag)
    case .number(let number): Int64(exactly: number).map { .integer($0) } ?? .number(number)
    case .list, .table: nil
    }
  }
}

extension LuaValue {
  /// The value of a call such as `file "data/master.key"`.
  fileprivate static func call(_ name: String, _ argument: String) -> LuaValue {
    .tagged(name, [LuaNode(value: .text(argument), location: SourceLocation(file: "", line: 0))])
  }
}
