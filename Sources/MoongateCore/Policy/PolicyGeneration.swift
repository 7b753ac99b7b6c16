import MoongateSDK

/// One complete, validated set of configuration files.
///
/// Static values are typed. Only functions need an evaluator.
package protocol PolicyGeneration: Sendable {
  /// The SHA-256 of its files, in lower-case hexadecimal.
  var id: String { get }
  /// Identifies the content: like `id`, but independent of `flips_accepted` and of the layout of gateway.lua.
  var changeMark: String { get }
  var gateway: GatewaySettings { get }
  var routes: RouteTable { get }
  var flows: [String: FlowDefinition] { get }
  /// The names of flows that would create accounts, and that are off or whose provider is not configured. Beginning one
  /// is refused with `registration_closed`.
  var closedRegistrations: Set<String> { get }
  var policies: [ProviderName: ProviderPolicy] { get }
  /// `policies/token.lua`: the limits on invalid tokens.
  var tokenPolicy: ProviderPolicy { get }
  /// `accounts.lua`: the rules for accounts, independent of flows.
  var accounts: AccountRules { get }
  /// `apps.lua`: the apps that receive the results of sign-ins.
  var apps: AppTable { get }
  /// The files of `pages/`, sorted by name.
  var pages: [PageFile] { get }
  /// The configured providers whose factor is entered on a digit pad. For policies, an account with one of them has a
  /// PIN.
  var pads: Set<ProviderName> { get }
  /// The providers of the program and those that the generation adds, such as provider programs; nil if it adds none.
  var registry: ProviderRegistry? { get }
  /// The SHA-256 of each file that holds a secret, by its path. `id` does not depend on them.
  var secretFiles: [String: [UInt8]] { get }
  /// The providers of federated identities.
  var identityProvers: IdentityProvers { get }
  /// Problems that the operator should know about but need not fix.
  var warnings: [ConfigurationProblem] { get }
  /// Created with the generation and released with its last copy.
  var lease: GenerationLease { get }

  /// Creates an evaluator of this generation's functions. It must be used by one thread at a time.
  /// - Throws: `PolicyFault` if the functions cannot be loaded again.
  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator
}

extension PolicyGeneration {
  package var changeMark: String { id }
  package var closedRegistrations: Set<String> { [] }
  package var pages: [PageFile] { [] }
  package var tokenPolicy: ProviderPolicy { .tokens }
  package var registry: ProviderRegistry? { nil }
  package var secretFiles: [String: [UInt8]] { [:] }

  /// Whether a user without an account can create one. Pages and answers mention new accounts only then.
  package var registers: Bool { flows.values.contains(where: accounts.creates) }
  package var identityProvers: IdentityProvers { registry?.identityProvers ?? IdentityProvers() }
}

/// Lives as long as its generation is in use. Counts how many generations are in memory.
package final class GenerationLease: Sendable {
  package init() {}
}

/// Runs policy functions synchronously, within its budgets. Must not be shared between threads: each event loop has one
/// for `decide`, and a bounded pool serves the rest.
package protocol PolicyEvaluator: AnyObject {
  /// Runs `send`, `verify` or `decide`.
  func verdict(of function: FunctionName, given facts: Facts) -> Verdict
  /// Runs `admit` of accounts.lua.
  /// - Returns: nil if the answer is not final, because the function has read a fact that may still change
  ///   (`Facts.known`).
  func admission(of function: FunctionName, given facts: Facts) -> Verdict?
  /// Runs `when`.
  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool
  /// Runs the function of a claim. Returns nil if the function returned nothing; the claim is then left out.
  func claim(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> ClaimValue?
  /// Runs the function `claims` of an app.
  /// - Throws: `PolicyFault`, also if it returns a name of `AppClaims.reserved`.
  func appClaims(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> [String: JSONClaim]
  /// Runs the function `identity` of a policy.
  /// - Parameter claims: what another site says about a user, verified.
  func identity(of function: FunctionName, from claims: [String: JSONClaim]) throws(PolicyFault) -> IdentityVerdict
  /// Runs the function of a `vary` over integers. The result is clamped.
  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int
  /// Runs the function of a `vary` over durations. The result is clamped.
  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration
  /// The facts that the last call of the function read; nil if they were not recorded.
  func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence?
}

extension PolicyEvaluator {
  package func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence? { nil }
}

/// The answer of the function `identity`.
package enum IdentityVerdict: Sendable, Equatable {
  case mapped(MappedIdentity)
  /// The reason, as in `Verdict.deny`.
  case deny(String)
}

/// The function `identity` denies: thrown to the provider that asked, and refused where it was called.
struct IdentityDenied: Error {
  let reason: String
}

/// The facts behind a function's answer.
package struct PolicyEvidence: Sendable {
  /// One fact that the function read.
  package struct Fact: Sendable, Equatable {
    /// The path as in scripts, without `f.`.
    package let path: String
    package let value: String
    /// Whether the value is a user's phone number or address, which is stored only as a keyed hash.
    package let namesPerson: Bool

    package init(path: String, value: String, namesPerson: Bool) {
      self.path = path
      self.value = value
      self.namesPerson = namesPerson
    }
  }

  /// The location of the function.
  package let location: SourceLocation
  package let facts: [Fact]

  package init(location: SourceLocation, facts: [Fact]) {
    self.location = location
    self.facts = facts
  }
}

extension PolicyEvidence {
  /// The location and the facts for the audit trail, with personal values as keyed hashes.
  package func traceLines(_ keys: KeyRing) -> [String: String] {
    var lines = ["at": location.description]
    for fact in facts { lines["fact.\(fact.path)"] = fact.namesPerson ? keys.logHash(fact.value) : fact.value }
    return lines
  }
}

/// The decision of a policy function.
package enum Verdict: Sendable, Hashable {
  case allow
  /// The reason in snake case, `^[a-z][a-z0-9_]{0,47}$`.
  case deny(String)
  case requireAlso(ProviderName)
  /// An error, a wrong result type, or an exceeded budget. Refused as `policy_error`.
  case fault(PolicyFault)
}

extension Verdict {
  /// The verdict as a policy writes it, such as `deny "reason"`; `policy_error` for a fault.
  package var text: String {
    switch self {
    case .allow: "allow"
    case .deny(let reason): "deny \"\(reason)\""
    case .requireAlso(let provider): "require_also \"\(provider)\""
    case .fault: "policy_error"
    }
  }
}

/// A failed policy run. Always a refusal: policies never fail open.
package struct PolicyFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// Why a policy run failed.
  package enum Kind: String, Sendable, Codable {
    case error, steps, memory, time, result
  }

  package let kind: Kind
  /// The location, if known.
  package let location: SourceLocation?
  /// The message for the operator. Never shown to a client.
  package let message: String

  package init(kind: Kind, location: SourceLocation?, message: String) {
    self.kind = kind
    self.location = location
    self.message = message
  }

  package var description: String { location.map { "\($0): \(message)" } ?? message }
}
