import MoongateCore
import MoongateSDK

/// The settings of routes.lua, route by route, in Lua syntax and without secrets.
struct RouteListing {
  /// One route.
  struct Entry {
    /// What the route matches: methods, host and path, such as `GET,POST wallet.example.com/pay/**`. No two routes
    /// have the same name, because the second one could never match.
    let name: String
    let location: SourceLocation
    /// In the order of the reference.
    let settings: [Setting]

    subscript(field: String) -> Setting? { settings.first { $0.field == field } }
  }

  /// One field of a route.
  struct Setting {
    let field: String
    let value: String
    /// Whether the route would have this value without the field.
    var isUsual = false
    /// What `value` does not show, such as a password or the contents of a file. Only for comparison.
    var hidden: [[UInt8]] = []
    var function: FunctionName?

    init(_ field: String, _ value: String, isUsual: Bool = false, hidden: [[UInt8]?] = []) {
      self.field = field
      self.value = value
      self.isUsual = isUsual
      self.hidden = hidden.map { $0 ?? [] }
    }
  }

  let entries: [Entry]

  init(_ routes: RouteTable, _ gateway: GatewaySettings) {
    entries = routes.routes.map { route in
      let methods = route.methods.map { $0.sorted().joined(separator: ",") + " " } ?? ""
      return Entry(
        name: methods + (route.host ?? "") + route.path.text, location: route.location,
        settings: route.access + route.request(gateway) + route.service + route.identitySettings
          + route.upstreamSettings)
    }
  }
}

extension PolicyListing {
  /// The name of the listing of routes.lua.
  package static let routes = "routes"

  /// The settings of routes that differ from the defaults, and their upstreams.
  package init(_ routes: RouteTable, _ gateway: GatewaySettings) {
    self.init(
      provider: Self.routes,
      values: RouteListing(routes, gateway).entries.flatMap { entry in
        entry.settings.filter { !$0.isUsual }.map { setting in
          Line(
            path: "\(entry.name) \(setting.field)", value: setting.value, file: entry.location.file,
            line: entry.location.line)
        }
      })
  }
}

private typealias Setting = RouteListing.Setting

private func quoted(_ text: String) -> String { text.quotedInLua }
private func list(_ texts: some Sequence<String>) -> String { "{ \(texts.map(quoted).joined(separator: ", ")) }" }

/// A table in Lua syntax.
private func table(_ fields: [(String, String)]) -> String {
  "{ \(fields.map { "\($0.0) = \($0.1)" }.joined(separator: ", ")) }"
}

/// A table whose keys are names of headers.
private func headerTable(_ headers: [(name: String, value: String)]) -> String {
  table(headers.map { ("[\(quoted($0.name))]", $0.value) })
}

extension Route {
  /// Who may pass.
  fileprivate var access: [Setting] {
    let to = upstreams.map { "\($0)\(rewrite.base)" }
    var all = [Setting("to", to.count == 1 ? quoted(to[0]) : list(to))]
    if isOpen { all.append(Setting("allow", "true")) }
    if !openNetworks.isEmpty {
      all.append(Setting("allow", table([("networks", list(openNetworks.map(\.description)))])))
    }
    if !isOpen { all.append(Setting("flow", quoted(flow), isUsual: flow == FlowPurpose.signIn.usualName)) }
    let required = AppRequirement(groups: groups, steps: [requirement].compactMap(\.self), factors: nil)
    if !required.isEmpty { all.append(Setting("require", required.asWritten)) }
    if let tokens { all.append(Setting("tokens", tokens.asWritten)) }
    if let decide {
      var setting = Setting("decide", "function")
      setting.function = decide
      all.append(setting)
    }
    return all
  }

  /// What the gateway does with requests and responses.
  fileprivate func request(_ gateway: GatewaySettings) -> [Setting] {
    var all = [
      Setting("timeout", quoted(timeout.asWritten), isUsual: timeout == .seconds(30)),
      Setting("websocket", "\(allowsUpgrade)", isUsual: !allowsUpgrade),
      Setting("service_worker", "\(allowsServiceWorker)", isUsual: !allowsServiceWorker),
    ]
    if !headers.isEmpty {
      let shown = headers.map { (name: $0.name, value: Self.isSecret($0.name) ? "a secret" : quoted($0.value)) }
      all.append(Setting("headers", headerTable(shown), hidden: headers.map { Array($0.value.utf8) }))
    }
    if let bodyLimit { all.append(Setting("body", quoted(Self.size(bodyLimit)))) }
    let rate = bodyRate.map { quoted("\(Self.size($0.bytes))/\($0.window.asWritten)") } ?? "false"
    all.append(Setting("body_rate", rate, isUsual: bodyRate == gateway.connectionLimits.bodyRate))
    if let rate = self.rate { all.append(Setting("rate", rate.asWritten)) }
    if !frames.isEmpty { all.append(Setting("frames", list(frames))) }
    if let errorPages { all.append(Setting("error_pages", quoted(errorPages))) }
    return all
  }

  /// How the service sees the request, and clients its responses.
  fileprivate var service: [Setting] {
    var all: [Setting] = []
    if !rewrite.strip.isEmpty { all.append(Setting("strip", quoted(rewrite.strip))) }
    let host =
      switch hostHeader {
      case .kept: "keep"
      case .upstream: "upstream"
      case .named(let name): name
      }
    all.append(Setting("host_header", quoted(host), isUsual: hostHeader == .kept))
    let bytes: [(EncodedPathBytes, String)] = [(.slash, "slash"), (.backslash, "backslash"), (.empty, "empty")]
    if !encoded.isEmpty { all.append(Setting("encoded", list(bytes.filter { encoded.contains($0.0) }.map(\.1)))) }
    if !responseHeaders.isEmpty {
      let headers = responseHeaders.map { (name: $0.name, value: $0.value.map(quoted) ?? "false") }
      all.append(Setting("response_headers", headerTable(headers)))
    }
    return all
  }

  /// How the service learns who the user is.
  fileprivate var identitySettings: [Setting] {
    var fields = ServiceIdentity.Statement.allCases.compactMap { statement in
      identity.headers[statement].map { header in
        let name = quoted(header.name)
        return (
          statement.rawValue,
          header.value == statement.usualTemplate ? name : "{ \(name), value = \(quoted(header.value.asWritten)) }"
        )
      }
    }
    if let basic = identity.basic {
      fields.append(("basic", table([("user", quoted(basic.user.asWritten)), ("password", "a secret")])))
    }
    var all: [Setting] = []
    if !fields.isEmpty {
      let password = identity.basic.map { Array($0.password.reveal().utf8) }
      all.append(Setting("identity", table(fields), hidden: [password]))
    }
    let encoding = identity.encoding
    all.append(Setting("encoding", quoted(encoding.rawValue), isUsual: encoding == .utf8))
    if let bearer { all.append(Setting("bearer", quoted(bearer))) }
    return all
  }

  /// How the upstreams are chosen and spoken to.
  fileprivate var upstreamSettings: [Setting] {
    var all: [Setting] = []
    if let retry { all.append(Setting("retry", retry.asWritten)) }
    all.append(Setting("balance", quoted(balance.rawValue), isUsual: balance == .first))
    if let health {
      let fields = [("path", quoted(health.path)), ("every", quoted(health.interval.asWritten))]
      all.append(Setting("health", table(fields)))
    }
    if upstreams.contains(where: { $0.isSecure && $0.usesHTTP2 }) { all.append(Setting("http2", "true")) }
    if let trust = upstreams.compactMap(\.trust).first {
      var fields: [(String, String)] = []
      if trust.authorities != nil { fields.append(("ca", "a file")) }
      if trust.certificate != nil { fields.append(("cert", "a file")) }
      if trust.key != nil { fields.append(("key", "a secret")) }
      if let name = trust.name { fields.append(("name", quoted(name))) }
      all.append(
        Setting("upstream_tls", table(fields), hidden: [trust.authorities, trust.certificate, trust.key]))
    }
    return all
  }

  /// Whether a header of this name usually carries a credential.
  private static func isSecret(_ name: String) -> Bool {
    let name = name.lowercased()
    return ["auth", "token", "secret", "key", "pass", "cookie", "credential"].contains { name.contains($0) }
  }

  private static func size(_ bytes: Int) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    guard bytes > 0, let (unit, size) = units.first(where: { bytes % $0.1 == 0 }) else { return "\(bytes)B" }
    return "\(bytes / size)\(unit)"
  }
}

extension ServiceIdentity.Statement {
  /// What the header states without a template.
  fileprivate var usualTemplate: IdentityTemplate {
    switch self {
    case .user: IdentityTemplate([.id])
    case .email: IdentityTemplate([.email])
    case .phone: IdentityTemplate([.phone])
    case .name: IdentityTemplate([.name])
    case .groups: IdentityTemplate([.groups])
    }
  }
}

extension IdentityTemplate {
  fileprivate var asWritten: String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .id: "{id}"
      case .email: "{email}"
      case .phone: "{phone}"
      case .name: "{name}"
      case .username: "{username}"
      case .firstName: "{first_name}"
      case .lastName: "{last_name}"
      case .groups: "{groups}"
      case .claim(let name): "{claim.\(name)}"
      }
    }.joined()
  }
}

extension RouteTokens {
  fileprivate var asWritten: String {
    if takesAllServices, !takesPersonal { return "true" }
    let fields = names.sorted().map(quoted) + (takesPersonal ? ["personal = true"] : [])
    return "{ \(fields.joined(separator: ", ")) }"
  }
}

extension RetryRule {
  fileprivate var asWritten: String {
    let causes = (onConnect ? ["connect"] : []) + statuses.sorted().map(String.init)
    return table([("on", list(causes)), ("times", "\(times)")])
  }
}

extension RouteRate {
  /// Such as `{ "100/s", per = "account" }`.
  fileprivate var asWritten: String {
    let window = window.asWritten
    let unit = window.first == "1" && window.dropFirst().allSatisfy(\.isLetter) ? String(window.dropFirst()) : window
    return "{ \(quoted("\(count)/\(unit)")), per = \(quoted(subject.rawValue)) }"
  }
}

extension AppRequirement {
  /// The table in Lua syntax.
  package var asWritten: String {
    var fields: [String] = []
    if let names = groups?.anyOf.map({ "\"\($0)\"" }) {
      fields.append("group = " + (names.count == 1 ? names[0] : "any_of { \(names.joined(separator: ", ")) }"))
    }
    for step in steps {
      switch step {
      case .passed(let provider, let within):
        fields.append("passed = \"\(provider)\"")
        if let within { fields.append("within = \"\(within.asWritten)\"") }
      case .emailVerified: fields.append("email_verified = true")
      }
    }
    if let factors { fields.append("factors = \(factors)") }
    return "{ \(fields.joined(separator: ", ")) }"
  }
}
