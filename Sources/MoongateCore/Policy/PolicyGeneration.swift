import MoongateSDK

/// One complete, validated set of configuration files.
///
/// What is static in it is typed values; only functions need an evaluator.
package protocol PolicyGeneration: Sendable {
  /// The SHA-256 over its files, in lower-case hexadecimal.
  var id: String { get }
  /// Names what it changes: as `id`, but the same whatever `flips_accepted` says and however gateway.lua is laid out.
  var changeMark: String { get }
  var gateway: GatewaySettings { get }
  var routes: RouteTable { get }
  var flows: [String: FlowDefinition] { get }
  var policies: [ProviderName: ProviderPolicy] { get }
  /// `policies/token.lua`: how many wrong tokens are too many.
  var tokenPolicy: ProviderPolicy { get }
  /// `accounts.lua`: what holds for an account whichever flow is used.
  var accounts: AccountRules { get }
  /// The files of `pages/`, sorted by name.
  var pages: [PageFile] { get }
  /// The configured providers whose factor is entered on a pad of digits: an account that has one has a PIN, as
  /// policies see it.
  var pads: Set<ProviderName> { get }
  /// The providers of the program with those that the generation brought with it, such as other programs; nil where it
  /// brought none.
  var registry: ProviderRegistry? { get }
  /// What the operator should know and may leave as it is.
  var warnings: [ConfigurationProblem] { get }
  /// Made with the generation and let go with its last copy.
  var lease: GenerationLease { get }

  /// Makes an evaluator of this generation's functions. It belongs to one thread at a time.
  /// - Throws: `PolicyFault` where the functions cannot be loaded again.
  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator
}

extension PolicyGeneration {
  package var changeMark: String { id }
  package var pages: [PageFile] { [] }
  package var tokenPolicy: ProviderPolicy { .tokens }
  package var registry: ProviderRegistry? { nil }
}

/// Lives as long as somebody holds its generation: by it is counted how many generations are in memory.
package final class GenerationLease: Sendable {
  package init() {}
}

/// Runs functions. Synchronous, bounded by its budgets, and not safe to share between threads: one per event loop for
/// `decide`, a bounded pool for the rest.
package protocol PolicyEvaluator: AnyObject {
  /// Runs `send`, `verify` or `decide`.
  func verdict(of function: FunctionName, given facts: Facts) -> Verdict
  /// Runs `when`.
  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool
  /// Runs the function of a claim; nil where it returned nothing, and the claim is left out.
  func claim(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> ClaimValue?
  /// Runs the function of a `vary` over whole numbers; the result is clamped.
  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int
  /// Runs the function of a `vary` over durations; the result is clamped.
  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration
  /// What the last call of the function was made from; nil where nobody kept it.
  func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence?
}

extension PolicyEvaluator {
  package func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence? { nil }
}

/// What a function's answer was made from.
package struct PolicyEvidence: Sendable {
  /// One fact that the function read.
  package struct Fact: Sendable, Equatable {
    /// As scripts spell it, behind `f.`.
    package let path: String
    package let value: String
    /// Whether the value is a number or address of a person, which is kept as a keyed hash only.
    package let namesPerson: Bool

    package init(path: String, value: String, namesPerson: Bool) {
      self.path = path
      self.value = value
      self.namesPerson = namesPerson
    }
  }

  /// Where the function stands.
  package let location: SourceLocation
  package let facts: [Fact]

  package init(location: SourceLocation, facts: [Fact]) {
    self.location = location
    self.facts = facts
  }
}

extension PolicyEvidence {
  /// Where, and the facts, as the audit trail keeps them: what names a person as a keyed hash.
  package func notes(_ keys: KeyRing) -> [String: String] {
    var notes = ["at": location.description]
    for fact in facts { notes["fact.\(fact.path)"] = fact.namesPerson ? keys.logHash(fact.value) : fact.value }
    return notes
  }
}

/// What a policy function decided.
package enum Verdict: Sendable, Hashable {
  case allow
  /// A reason in snake case, `^[a-z][a-z0-9_]{0,47}$`.
  case deny(String)
  case requireAlso(ProviderName)
  /// An error, a wrong type, or out of budget: denied as `policy_error`.
  case fault(PolicyFault)
}

extension Verdict {
  /// As a policy says it: `deny "reason"`; `policy_error` where it could not.
  package var text: String {
    switch self {
    case .allow: "allow"
    case .deny(let reason): "deny \"\(reason)\""
    case .requireAlso(let provider): "require_also \"\(provider)\""
    case .fault: "policy_error"
    }
  }
}

/// A policy that could not be run to its end. Always a refusal: there is no way to fail open.
package struct PolicyFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What a run came to grief by.
  package enum Kind: String, Sendable, Codable {
    case error, steps, memory, time, result
  }

  package let kind: Kind
  /// Where, if known.
  package let location: SourceLocation?
  /// For the operator; never shown to a client.
  package let message: String

  package init(kind: Kind, location: SourceLocation?, message: String) {
    self.kind = kind
    self.location = location
    self.message = message
  }

  package var description: String { location.map { "\($0): \(message)" } ?? message }
}
