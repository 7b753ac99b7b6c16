/// A rule for all providers. The suite reports whether a provider holds the rule or breaks it, or whether it does not
/// apply.
public enum ConformanceRule: String, Sendable, CaseIterable, Codable {
  /// The descriptor is valid and constant, and its policy limits attempts per user.
  case descriptor
  /// All spellings of one user give one identifier, and two users have two identifiers.
  case spelling
  /// Identifiers have only declared attributes.
  case facts
  /// Unreadable input causes an `InputProblem`, not an error, a refusal or a success.
  case malformed
  /// A code is sent once, to its recipient, with the text of the policy.
  case delivery
  /// The right answer is proved, only by `submit`, and only for declared kinds of identifiers.
  case proof
  /// Every round can be shown and answered, the rounds end, and a refusal that asks again asks for the wrong answer
  /// again.
  case rounds
  /// Only fields that the round asks for are read.
  case askedFields = "asked_fields"
  /// A second `begin` opens an equivalent step and does not affect the first.
  case beginTwice = "begin_twice"
  /// A proof with a lifetime is accepted until just before its end.
  case expiry
  /// Concurrent submits are checked independently, and a one-time proof is accepted once.
  case concurrency
  /// A wrong answer is `refused`, without an error or a side effect.
  case refusals
  /// The refusal of a wrong answer counts as a failure.
  case counted
  /// The whole answer is compared: each field, each word, each character.
  case wholeAnswer = "whole_answer"
  /// Of concurrent flows that set or change a secret, only one completes.
  case once
  /// A secret is stored as a slow hash with its own salt.
  case hashing
  /// A record of an older version is read and accepts the same answer as before.
  case upgrade
  /// The reason of a refusal is declared.
  case outcomes
  /// A failure elsewhere (message, site, hashing) is thrown, and causes neither a refusal nor a success.
  case faults
  /// Logs, errors, records, messages and URLs contain no secret.
  case secrets
  /// An unknown account causes the same work and the same answer as a wrong answer for a known account.
  case unknown
  /// An answer takes the same time for known and unknown accounts.
  case timing
  /// A cancelled call ends soon.
  case cancellation
  /// A call leaves nothing behind when it has ended.
  case cleanup

  /// A short summary for lists.
  public var summary: String {
    switch self {
    case .descriptor: "its declaration is well formed and stable"
    case .spelling: "one person has one identifier"
    case .facts: "identifiers and proofs have only declared facts"
    case .malformed: "unreadable input is reported as malformed"
    case .delivery: "a code is sent once, to its recipient"
    case .proof: "the right answer is proved, by submit alone"
    case .rounds: "each round can be asked and answered"
    case .askedFields: "only requested fields are read"
    case .beginTwice: "a step can be begun twice"
    case .expiry: "a proof ends when it should"
    case .concurrency: "concurrent answers are checked independently"
    case .refusals: "a wrong answer is refused and changes nothing"
    case .counted: "a wrong answer counts as a failure"
    case .wholeAnswer: "all of an answer is compared"
    case .once: "a secret is set or changed once"
    case .hashing: "secrets are kept as salted, slow hashes"
    case .upgrade: "records of older versions are read"
    case .outcomes: "reasons of refusals are declared"
    case .faults: "failures are errors"
    case .secrets: "no secret is disclosed"
    case .unknown: "unknown accounts look like known ones"
    case .timing: "response times do not reveal accounts"
    case .cancellation: "a cancelled call ends"
    case .cleanup: "nothing is left behind"
    }
  }
}

/// A finding: one violation of a rule.
public struct ConformanceFinding: Sendable, Equatable, Codable, CustomStringConvertible {
  public let rule: ConformanceRule
  /// The observation as a sentence, most likely cause first.
  public let seen: String
  /// How to fix it, as a sentence.
  public let advice: String
  /// The related field of the step, if any.
  public let field: String?

  public init(rule: ConformanceRule, seen: String, advice: String, field: String? = nil) {
    self.rule = rule
    self.seen = seen
    self.advice = advice
    self.field = field
  }

  public var description: String { "\(rule.rawValue): \(seen) \(advice)" }
}

/// The result of a run.
public struct ConformanceReport: Sendable, Equatable, Codable {
  /// The result for one rule.
  public enum Verdict: Sendable, Equatable, Codable {
    case held
    case broken
    /// - why: why the rule does not apply.
    case doesNotApply(why: String)
  }

  /// A rule with its verdict.
  public struct Line: Sendable, Equatable, Codable {
    public let rule: ConformanceRule
    public let verdict: Verdict

    public init(rule: ConformanceRule, verdict: Verdict) {
      self.rule = rule
      self.verdict = verdict
    }
  }

  /// The declared name of the provider.
  public let provider: String
  /// The selected rules, in order.
  public let lines: [Line]
  /// In the order of their rules; empty if the provider holds all rules that apply.
  public let findings: [ConformanceFinding]
  /// All messages between the suite and the provider, if a trace was requested.
  public let messages: [String]

  public init(provider: String, lines: [Line], findings: [ConformanceFinding], messages: [String] = []) {
    self.provider = provider
    self.lines = lines
    self.findings = findings
    self.messages = messages
  }

  /// Whether the rule is broken.
  public func isBroken(_ rule: ConformanceRule) -> Bool { findings.contains { $0.rule == rule } }
}
