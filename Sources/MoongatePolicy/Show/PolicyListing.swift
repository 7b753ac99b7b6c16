import MoongateCore
import MoongateSDK

/// Every effective value of a provider's policy or of accounts.lua, or the settings of routes.lua, with their source.
package struct PolicyListing: Sendable, Codable {
  /// One value with its source.
  package struct Line: Sendable, Codable, Equatable {
    /// `limits.verify.max`, or `/wiki/** strip` of a route.
    package let path: String
    /// The value in Lua syntax.
    package let value: String
    /// The file that sets the value; nil for a default.
    package let file: String?
    package let line: Int?

    var place: String { file.map { file in line.map { "\(file):\($0)" } ?? file } ?? "by default" }
  }

  /// The provider; nil for accounts.lua, and `routes` for routes.lua.
  package let provider: String?
  package let values: [Line]

  /// - Parameter provider: the provider; nil for accounts.lua, and `routes` for routes.lua.
  package init(provider: String?, values: [Line]) {
    self.provider = provider
    self.values = values
  }

  package init(_ accounts: AccountRules) {
    provider = nil
    var lines: [Line] = []
    func add(_ path: String, _ value: String) {
      let location = accounts.locations[path]
      lines.append(Line(path: path, value: value, file: location?.file, line: location?.line))
    }
    let domains = accounts.registration.domains.map(Self.quoted).joined(separator: ", ")
    let word = Self.quoted(accounts.registration.word.rawValue)
    add("registration", domains.isEmpty ? word : "{ \(word), domains = { \(domains) } }")
    if accounts.admit != nil { add("admit", "function") }
    for (reason, text) in accounts.reasons.sorted(by: { $0.key < $1.key }) {
      add("reasons.\(reason)", Self.quoted(text))
    }
    if accounts.signIn.isEmpty { add("sign_in", "{}") }
    for (index, requirement) in accounts.signIn.enumerated() {
      let path = "sign_in[\(index + 1)]"
      let choices = requirement.choices.map { Self.quoted($0.rawValue) }.joined(separator: ", ")
      add(path, requirement.choices.count == 1 ? choices : "any_of { \(choices) }")
      if requirement.when != nil { add("\(path).when", "function") }
      add("\(path).enroll", "\(requirement.enroll)")
    }
    for (index, offer) in accounts.offers.enumerated() {
      let path = "offer[\(index + 1)]"
      add(path, Self.quoted(offer.provider.rawValue))
      add("\(path).every", Self.quoted(offer.every.asWritten))
      if offer.when != nil { add("\(path).when", "function") }
    }
    add("change_within", Self.quoted(accounts.changeWithin.asWritten))
    add("recovery_delay", Self.quoted(accounts.recoveryDelay.asWritten))
    add("unverified_lifetime", Self.quoted(accounts.unverifiedLifetime.asWritten))
    for (name, definition) in accounts.groups.sorted(by: { $0.key < $1.key }) {
      add(EntitlementReader.path("groups", name.rawValue), definition == .members ? "members()" : "function")
    }
    for name in accounts.claims.keys.sorted() { add("claims.\(name)", "function") }
    values = lines
  }

  package init(_ policy: ProviderPolicy) {
    provider = policy.provider.rawValue
    var lines: [Line] = []
    func add(_ path: String, _ value: String) {
      let location = policy.locations[path]
      lines.append(Line(path: path, value: value, file: location?.file, line: location?.line))
    }
    let sendsCodes = policy.code != .none
    if sendsCodes {
      add("code.length", String(policy.code.length))
      add("code.alphabet", Self.quoted(policy.code.alphabet.rawValue))
      add("code.ttl", Self.quoted(policy.code.lifetime.asWritten))
      add("timers.resend_after", "{ \(policy.resendAfter.map(Self.text).joined(separator: ", ")) }")
    }
    for limit in policy.limits {
      let path = "limits.\(limit.name)"
      add("\(path).on", Self.quoted(limit.action.rawValue))
      add("\(path).per", Self.quoted(limit.key.rawValue))
      add("\(path).max", Self.text(limit.max))
      if let window = limit.window { add("\(path).window", Self.text(window)) }
      add("\(path).counts", Self.quoted(limit.counts.rawValue))
      if limit.lock.count == 1 { add("\(path).lock", Self.text(limit.lock[0])) }
      if limit.lock.count > 1 { add("\(path).lock", "{ \(limit.lock.map(Self.text).joined(separator: ", ")) }") }
      if limit.disables { add("\(path).disable", "true") }
    }
    add("unknown_account", Self.quoted(policy.unknownAccount.rawValue))
    if sendsCodes { add("message", Self.quoted(policy.message)) }
    if policy.send != nil { add("send", "function") }
    if policy.verify != nil { add("verify", "function") }
    if policy.identity != nil { add("identity", "function") }
    for (reason, text) in policy.reasons.sorted(by: { $0.key < $1.key }) { add("reasons.\(reason)", Self.quoted(text)) }
    values = lines
  }

  private var heading: String {
    switch provider {
    case nil: "accounts"
    case Self.routes: Self.routes
    case let provider?: "policy \"\(provider)\""
    }
  }

  /// The listing as text for terminals, one value per line with its source.
  /// - Parameter colour: whether to use terminal colours.
  /// - Parameter origin: a description of the configuration.
  package func text(colour: Bool, origin: String? = nil) -> String {
    let style = TerminalStyle(isOn: colour)
    let path = values.map(\.path.count).max() ?? 0
    let place = values.map(\.place.count).max() ?? 0
    let value = max(10, 80 - path - place - 8)
    var lines = [
      style.bold(heading) + (origin.map { "  " + style.dim($0) } ?? ""), "",
    ]
    for line in values {
      let head = "  \(Columns.pad(line.path, to: path))  "
      if line.value.count <= value {
        lines.append(head + Columns.pad(line.value, to: value) + "  " + style.dim(line.place))
      } else {
        lines.append(head + line.value)
        lines.append(String(repeating: " ", count: head.count + value + 2) + style.dim(line.place))
      }
    }
    return lines.joined(separator: "\n")
  }

  static func quoted(_ text: String) -> String { text.quotedInLua }

  private static func text(_ varying: Varying<Int>) -> String {
    switch varying {
    case .fixed(let value): String(value)
    case .varying(let lowest, let highest, _): "vary(\(lowest), \(highest), function)"
    }
  }

  private static func text(_ varying: Varying<Duration>) -> String {
    switch varying {
    case .fixed(let value): quoted(value.asWritten)
    case .varying(let lowest, let highest, _):
      "vary(\(quoted(lowest.asWritten)), \(quoted(highest.asWritten)), function)"
    }
  }
}
