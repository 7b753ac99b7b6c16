import MoongateCore
import MoongateSDK

/// A generation made from values, with Swift closures in place of Lua functions, so that the core's use of policies can
/// be tested without files.
package struct TestGeneration: PolicyGeneration {
  package var id: String
  package var gateway: GatewaySettings
  package var routes: RouteTable
  package var flows: [String: FlowDefinition]
  /// The flows that would create accounts and are off.
  package var closedRegistrations: Set<String> = []
  package var policies: [ProviderName: ProviderPolicy]
  /// The rules of `accounts.lua`.
  package var accounts = AccountRules.standard
  /// The apps of `apps.lua`.
  package var apps = AppTable.none
  package var warnings: [ConfigurationProblem] = []
  /// The files of `pages/`.
  package var pages: [PageFile] = []
  /// The providers whose factor is a PIN.
  package var pads: Set<ProviderName> = ["pin"]
  /// The providers of federated identities.
  package var identityProvers = IdentityProvers()
  package var lease = GenerationLease()
  /// The verdicts of `send`, `verify` and `decide`, by function name. A missing function allows.
  package var verdicts: [FunctionName: @Sendable (Facts) -> Verdict] = [:]
  /// The results of `when`, by function name. A missing function returns true.
  package var conditions: [FunctionName: @Sendable (Facts) throws(PolicyFault) -> Bool] = [:]
  /// The facts that `admit` reads, by function name: it has no final answer until they are known. A missing function
  /// reads only what is always known.
  package var reads: [FunctionName: FactKnowledge] = [:]
  /// The results of claim functions.
  package var claims: [FunctionName: @Sendable (Facts) throws(PolicyFault) -> ClaimValue?] = [:]
  /// The results of `claims` of apps, by function name. A missing function returns none.
  package var appClaims: [FunctionName: @Sendable (Facts) throws(PolicyFault) -> [String: JSONClaim]] = [:]
  /// The results of `identity`; nil: it fails. A missing function returns nothing about the user.
  package var identities: [FunctionName: @Sendable ([String: JSONClaim]) -> IdentityVerdict?] = [:]
  /// The results of `vary`, as integers or milliseconds. A missing function returns its lowest value.
  package var values: [FunctionName: @Sendable (Facts) throws(PolicyFault) -> Int64] = [:]
  /// If set, creating an evaluator throws this fault.
  package var evaluatorFault: PolicyFault?

  package init(
    id: String = "test", gateway: GatewaySettings, routes: [Route] = [], flows: [FlowDefinition],
    policies: [ProviderPolicy]
  ) {
    self.id = id
    self.gateway = gateway
    self.routes = RouteTable(routes: routes)
    self.flows = Dictionary(flows.map { ($0.name, $0) }) { first, _ in first }
    self.policies = Dictionary(policies.map { ($0.provider, $0) }) { first, _ in first }
  }

  package func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator {
    if let evaluatorFault { throw evaluatorFault }
    return TestEvaluator(generation: self)
  }
}

/// Calls the closures of a `TestGeneration`.
private final class TestEvaluator: PolicyEvaluator {
  private let generation: TestGeneration

  init(generation: TestGeneration) { self.generation = generation }

  func verdict(of function: FunctionName, given facts: Facts) -> Verdict {
    generation.verdicts[function]?(facts) ?? .allow
  }

  func admission(of function: FunctionName, given facts: Facts) -> Verdict? {
    guard facts.known.isSuperset(of: generation.reads[function] ?? []) else { return nil }
    return verdict(of: function, given: facts)
  }

  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool {
    guard let condition = generation.conditions[function] else { return true }
    return try condition(facts)
  }

  func claim(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> ClaimValue? {
    try generation.claims[function]?(facts)
  }

  func appClaims(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> [String: JSONClaim] {
    try generation.appClaims[function]?(facts) ?? [:]
  }

  func identity(of function: FunctionName, from claims: [String: JSONClaim]) throws(PolicyFault) -> IdentityVerdict {
    guard let identity = generation.identities[function] else { return .mapped(MappedIdentity()) }
    guard let verdict = identity(claims) else {
      throw PolicyFault(kind: .error, location: nil, message: "broken")
    }
    return verdict
  }

  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int {
    switch varying {
    case .fixed(let value): return value
    case .varying(let lowest, let highest, let function):
      guard let answer = generation.values[function] else { return lowest }
      return min(highest, max(lowest, Int(try answer(facts))))
    }
  }

  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration {
    switch varying {
    case .fixed(let value): return value
    case .varying(let lowest, let highest, let function):
      guard let answer = generation.values[function] else { return lowest }
      return min(highest, max(lowest, .milliseconds(try answer(facts))))
    }
  }
}
