import MoongateCore
import MoongateSDK

/// Default values for tests that need a configuration but depend on little of it.
extension GatewaySettings {
  /// A gateway on loopback with an in-memory store.
  package static func test(
    publicURL: PublicURL = PublicURL(isSecure: false, host: "localhost", port: 8080),
    providers: [ProviderName: ProviderSettings] = [:]
  ) -> Self {
    Self(
      listen: ListenAddress(host: "127.0.0.1", port: 0), admin: ListenAddress(host: "127.0.0.1", port: 0),
      publicURL: publicURL,
      store: .sqlite(path: ":memory:"), key: .value(SecretText(String(repeating: "k", count: 32))), region: "IN",
      service: "Moongate",
      providers: providers)
  }
}

extension Limit {
  /// A limit with fixed numbers. More than five parameters: the members that tests vary, with defaults.
  package static func test(
    _ name: String, on action: LimitAction, per key: LimitKey, max: Int, window: Duration? = nil,
    counts: LimitCounts? = nil,
    lock: [Duration] = [], disables: Bool = false
  ) -> Self {
    Self(
      name: name, action: action, key: key, max: .fixed(max), window: window.map { .fixed($0) },
      counts: counts ?? (action == .verify ? .failures : .all), lock: lock.map { .fixed($0) }, disables: disables,
      location: SourceLocation(file: "policies/test.lua", line: 1))
  }
}

extension ProviderPolicy {
  /// More than five parameters: the members of a policy that tests vary, with defaults.
  /// The shipped numbers for phone codes, for the named provider: 6 digits valid for 10 minutes, resends after 60 and
  /// 120 s, 4 sends per 15 min, 5 wrong attempts.
  package static func test(
    _ provider: ProviderName, code: CodeRule = CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(600)),
    resendAfter: [Duration] = [.seconds(60), .seconds(120)],
    limits: [Limit] = [
      .test("send", on: .send, per: .identifier, max: 4, window: .seconds(900)),
      .test("send_ip", on: .send, per: .ip, max: 30, window: .seconds(3600)),
      .test(
        "verify", on: .verify, per: .identifier, max: 5, window: .seconds(86_400),
        lock: [.seconds(900), .seconds(3600), .seconds(21_600), .seconds(86_400)]),
    ], unknownAccount: UnknownAccount = .reveal, message: String = "{code} is your {service} verification code",
    send: FunctionName? = nil,
    verify: FunctionName? = nil, identity: FunctionName? = nil, reasons: [String: String] = [:]
  ) -> Self {
    Self(
      provider: provider, code: code, resendAfter: resendAfter.map { .fixed($0) },
      limits: limits.sorted { $0.name < $1.name },
      unknownAccount: unknownAccount, message: message, send: send, verify: verify, identity: identity,
      reasons: reasons, locations: [:])
  }
}

extension FlowPurpose {
  /// The purpose of a flow with this name in most tests: `toy_set` sets the factor of `toy`, and so on.
  package static func usual(of name: String, steps: [StepRule]) -> FlowPurpose {
    switch name {
    case "register_email": return .register(setting: steps.first?.choices.first)
    case "verify_email": return .verify(.email)
    case "change_email": return .change(.email)
    case "change_phone": return .change(.phone)
    case "join_phone": return .join(.phone)
    case "step_up": return .stepUp
    default: break
    }
    guard let end = name.lastIndex(of: "_"),
      let operation = FactorOperation(rawValue: String(name[name.index(after: end)...])),
      let provider = ProviderName(rawValue: String(name[..<end]))
    else { return .signIn }
    return .factor(provider, operation == .reset && provider.rawValue == "password" ? .recover : operation)
  }
}

extension FlowDefinition {
  /// A flow with the given steps, a lifetime of 15 minutes, and sessions of 12 hours with an idle timeout of one hour.
  /// - Parameters:
  ///   - purpose: nil for the usual one of a flow with this name (`FlowPurpose.usual(of:steps:)`).
  ///   - remember: the times of a session whose user stays signed in; nil: the flow does not offer that.
  package static func test(
    _ name: String, purpose: FlowPurpose? = nil, account: AccountRule, registers: Set<ProviderName> = [],
    steps: [StepRule], remember: RememberedTimes? = nil
  ) -> Self {
    Self(
      name: name,
      purpose: purpose ?? .usual(of: name, steps: steps),
      account: account,
      steps: steps, lifetime: .seconds(900),
      session: SessionRule(lifetime: .seconds(43_200), idle: .seconds(3600), remember: remember),
      next: NextPaths(new: "/profile-setup", returning: "/home"),
      location: SourceLocation(file: "flows/\(name).lua", line: 1), registers: registers)
  }
}

extension StepRule {
  /// A step with these choices.
  package static func test(_ choices: ProviderName..., isSkippable: Bool = false, when: FunctionName? = nil) -> Self {
    Self(choices: choices, isSkippable: isSkippable, when: when)
  }
}

extension ProviderName {
  /// A provider name as a literal.
  package init(test name: StaticString) { self.init(stringLiteral: name) }
}
