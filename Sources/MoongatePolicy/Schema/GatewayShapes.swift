import MoongateCore
import MoongateSDK

/// gateway.lua, field by field.
extension TableShape {
  static let gateway = TableShape(
    name: "Gateway", summary: "The gateway itself: where it listens, where its state lies, how messages leave.",
    entries: [
      .optional("listen", "string", "an address, such as \"127.0.0.1:8080\"", .text("127.0.0.1:8080")),
      .optional("admin", "string|moongate.Admin", "an address, such as \"127.0.0.1:9901\"", .text("127.0.0.1:9901")),
      .required("public_url", "string", "how people reach the gateway, such as \"https://auth.example.com\""),
      .optional("tls", "moongate.TLS", "a table with cert and key"),
      .optional(
        "store", "string|moongate.Secret", "where state is kept, such as \"sqlite:data/moongate.db\"",
        .text("sqlite:data/moongate.db")),
      .optional(
        "key", "moongate.Secret", "file \"data/master.key\", env \"MOONGATE_KEY\" or credential \"master.key\"",
        .call("file", "data/master.key")),
      .optional("region", "string", "a country in two letters, such as \"IN\"", .text("IN")),
      .optional("trusted_proxies", "string[]", "a list of address blocks"),
      .optional("redirect_hosts", "string[]", "a list of hosts"),
      .optional("cookie_domain", "string", "a domain, such as \"example.com\""),
      .optional(
        "domains", "string[]", "the root domains that share one sign-in, such as { \"example.com\", \"example.org\" }"),
      .optional("cors_origins", "string[]", "a list of origins"),
      .optional("hsts", "moongate.Duration|false", "how long browsers are to use https alone, or false", .text("365d")),
      .optional("service", "string", "what messages call us", .text("Moongate")),
      .optional("brand", "moongate.Brand", "what pages show"),
      .optional("languages", "string[]", "the languages of pages and messages, such as { \"en\", \"hi\" }"),
      .optional("risk_budget", "string", "a probability, such as \"0.1% per 30d\""),
      .optional("limits", "moongate.ConnectionLimits", "bounds on connections"),
      .optional(
        "drain", "moongate.Duration", "how long open connections may finish at the end, such as \"30s\"", .text("10s")),
      .optional(
        "audit", "moongate.AuditSink[]",
        "where copies of the audit trail go, as in { file { path = \"data/audit.log\" } }"),
      .optional(
        "tracing", "moongate.Tracing", "where spans of requests go, as in otlp { url = \"http://127.0.0.1:4318\" }"),
      .optional(
        "gate", "moongate.Gate", "what a reload must not change, as in { replay = \"24h\", most_flips = \"0.5%\" }"),
      .required("providers", "moongate.Providers", "a table of providers, as in { phone_otp = { sms = outbox() } }"),
    ])

  static let admin = TableShape(
    name: "Admin", summary: "An admin listener that other machines reach.",
    entries: [
      .required("address", "string", "an address, such as \"10.0.0.5:9901\""),
      .optional(
        "token", "moongate.Secret",
        "what each call must carry as Authorization: Bearer, as in env \"MOONGATE_ADMIN_TOKEN\""),
      .optional(
        "tokens", "moongate.AdminToken[]",
        "a list of tokens with names and roles, as in { { name = \"grafana\", role = \"read\", token = env \"…\" } }"),
    ])

  static let adminToken = TableShape(
    name: "AdminToken",
    summary: "A token of the admin listener, with the name by which the audit trail knows who acted.",
    entries: [
      .required("name", "string", "a name, such as \"grafana\""),
      .required("role", "\"read\"|\"act\"", "\"read\" or \"act\""),
      .required("token", "moongate.Secret", "a secret, as in env \"GRAFANA_TOKEN\""),
    ])

  static let auditFile = TableShape(
    name: "AuditFile", summary: "A file with an event a line.",
    entries: [
      .required("path", "string", "a file, such as \"data/audit.log\""),
      .optional("rotate", "string", "a size at which a new file is begun, such as \"100MiB\"", .text("100MiB")),
      .optional("keep", "integer", "how many older files are kept", .integer(10)),
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
    name: "AuditWebhook", summary: "A site that takes events as JSON lines, signed.",
    entries: [
      .required("url", "string", "where to post, such as \"https://siem.example.com/moongate\""),
      .required("secret", "moongate.Secret", "the key of the signature, as in env \"AUDIT_SECRET\""),
    ])

  static let otlp = TableShape(
    name: "OTLP", summary: "A collector that takes spans by OTLP over HTTP, as JSON.",
    entries: [
      .required("url", "string", "the collector, such as \"http://127.0.0.1:4318\""),
      .optional("sample", "number", "the share of requests that are recorded, from 0 to 1", .number(0.01)),
      .optional(
        "headers", "table<string, string|moongate.Secret>",
        "headers to send along, as in { [\"Authorization\"] = env \"OTLP_TOKEN\" }"),
    ])

  static let tls = TableShape(
    name: "TLS", summary: "The gateway's own certificate.",
    entries: [.required("cert", "string", "a PEM file"), .required("key", "string", "a PEM file")])

  static let brand = TableShape(
    name: "Brand", summary: "What pages show.",
    entries: [
      .optional("name", "string", "a text"), .optional("logo", "string", "a file or an address"),
      .optional("primary", "string", "a colour, such as \"#0D7377\""),
      .optional("support", "string", "a link: mailto: or https:"),
      .optional("terms", "string", "a link to the terms of service: https:"),
      .optional("privacy", "string", "a link to the privacy policy: https:"),
    ])

  static let connectionLimits = TableShape(
    name: "ConnectionLimits", summary: "Bounds on connections, and on flows in which nobody has proved anything.",
    entries: [
      .optional("connections", "integer", "a whole number", .integer(Int64(ConnectionLimits().connections))),
      .optional("per_ip", "moongate.AddressLimits", "bounds per address"),
      .optional("flows", "moongate.FlowLimits", "bounds on flows in which nobody has proved anything"),
      .optional("body_rate", "string|false", BodyRateReader.kind, .text("1KiB/10s")),
    ])

  static let addressLimits = TableShape(
    name: "AddressLimits", summary: "Bounds on one client address; requests are unlimited where nothing is said.",
    entries: [
      .optional(
        "connections", "integer", "a whole number", .integer(Int64(ConnectionLimits().connectionsPerAddress ?? 0))),
      .optional("requests", "string", "a rate, such as \"100/s\""),
    ])

  static let flowLimits = TableShape(
    name: "FlowLimits",
    summary:
      "How many flows there may be in which nobody has proved anything. Beyond it the address with the most loses its oldest.",
    entries: [
      .optional("count", "integer", "a whole number, from 1000", .integer(Int64(FlowBound().count))),
      .optional("bytes", "string", "a size, such as \"64MiB\"", .text("64MiB")),
    ])

  /// `exec { … }`: what of it is the gateway's; the program's own settings stand beside it.
  static let program = TableShape(
    name: "Program",
    summary:
      "A provider that is another program, started and supervised by the gateway; its own settings stand beside these.",
    entries: [
      .optional(
        "env", "table<string, string|moongate.Secret>",
        "what its environment holds, as in { TOKEN = env \"SMS_TOKEN\" }"),
      .optional("timeout", "moongate.Duration", "how long it may take for one call, at most \"30s\"", .text("5s")),
    ])

  /// A provider's entry under `providers`, by what its author declared.
  static func settings(of descriptor: ProviderDescriptor) -> TableShape {
    TableShape(
      name: "Provider." + descriptor.name.rawValue, summary: "What `\(descriptor.name)` needs.",
      entries: descriptor.settings.map { field in
        let type =
          switch field.kind {
          case .text, .file: "string"
          case .secret: "moongate.Secret"
          case .messages: "moongate.Delivery"
          case .number: "number"
          case .flag: "boolean"
          case .choice(let words): words.map { "\"\($0)\"" }.joined(separator: "|")
          case .list: "string[]"
          }
        return Entry(
          name: field.name, type: type, help: field.help, isRequired: field.isRequired,
          standard: field.standard?.asWritten)
      }
        + (descriptor.hasOwnTitleSetting
          ? [] : [.optional("title", "string", "what people read as its name, as in \"SMS (USA)\"")]))
  }
}

extension ProviderDescriptor {
  /// Whether `title` is a setting of the provider's own, and so not the gateway's.
  var hasOwnTitleSetting: Bool { settings.contains { $0.name == "title" } }
}

extension SettingValue {
  /// As the file would say it; nil for a list, whose table would stand nowhere.
  fileprivate var asWritten: LuaValue? {
    switch self {
    case .text(let text): .text(text)
    case .flag(let flag): .flag(flag)
    case .number(let number): Int64(exactly: number).map { .integer($0) } ?? .number(number)
    case .list: nil
    }
  }
}

extension LuaValue {
  /// `file "data/master.key"`, as it is when it was loaded.
  fileprivate static func call(_ name: String, _ argument: String) -> LuaValue {
    .tagged(name, [LuaNode(value: .text(argument), location: SourceLocation(file: "", line: 0))])
  }
}
