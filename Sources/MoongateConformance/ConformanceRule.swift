/// What every provider has to hold. The suite says of each rule whether it was held, was broken, or does not apply.
public enum ConformanceRule: String, Sendable, CaseIterable, Codable {
  /// The declaration is well formed, the same at every call, and its policy limits tries by what names a person.
  case descriptor
  /// One person has one identifier, however it is spelled, and two have two.
  case spelling
  /// Identifiers carry the attributes that are declared, and no others.
  case facts
  /// What cannot be read is an `InputProblem`, never an error, a refusal or a pass.
  case malformed
  /// A code goes out once, to whom it is for, as the policy words it.
  case delivery
  /// Who knows the answer is proved, by `submit` and nothing else, to be who the provider declares to prove.
  case proof
  /// A second `begin` opens a step as good as the first, and takes nothing from it.
  case beginTwice = "begin_twice"
  /// A proof that lives for a time lives until just before its end.
  case expiry
  /// Of submits at once, each is judged by itself; a proof that is good once is good once.
  case concurrency
  /// A wrong answer is `refused`, is no error, and changes nothing.
  case refusals
  /// A refusal's reason is one of those that are declared.
  case outcomes
  /// What fails elsewhere (a message, another site, the hashing) is thrown, and nobody is refused or proved by it.
  case faults
  /// No secret is in a log, an error, a record, a sentence or an address.
  case secrets
  /// Who is not known takes the same work and gets the same answer as who is wrong.
  case unknown
  /// A cancelled call ends soon.
  case cancellation
  /// Nothing of a call is left behind when it has ended.
  case cleanup

  /// In a few words, for lists.
  public var summary: String {
    switch self {
    case .descriptor: "its declaration is well formed and stable"
    case .spelling: "one person has one identifier"
    case .facts: "identifiers carry what is declared"
    case .malformed: "what cannot be read is said to be malformed"
    case .delivery: "a code goes out once, to whom it is for"
    case .proof: "the right answer is proved, by submit alone"
    case .beginTwice: "a step can be begun twice"
    case .expiry: "a proof ends when it should"
    case .concurrency: "answers at once are judged one by one"
    case .refusals: "a wrong answer is refused and changes nothing"
    case .outcomes: "refusals are among those declared"
    case .faults: "what fails is an error"
    case .secrets: "no secret gets out"
    case .unknown: "unknown people look like known ones"
    case .cancellation: "a cancelled call ends"
    case .cleanup: "nothing is left behind"
    }
  }
}

/// One thing that is not as it has to be.
public struct ConformanceFinding: Sendable, Equatable, Codable, CustomStringConvertible {
  public let rule: ConformanceRule
  /// A sentence: what was seen.
  public let seen: String
  /// A sentence: what to do.
  public let advice: String

  public init(rule: ConformanceRule, seen: String, advice: String) {
    self.rule = rule
    self.seen = seen
    self.advice = advice
  }

  public var description: String { "\(rule.rawValue): \(seen) \(advice)" }
}

/// What came of a run.
public struct ConformanceReport: Sendable, Equatable, Codable {
  /// What came of one rule.
  public enum Verdict: Sendable, Equatable, Codable {
    case held
    case broken
    /// - Parameter why: what is not there to be judged.
    case doesNotApply(why: String)
  }

  /// One rule with its verdict.
  public struct Line: Sendable, Equatable, Codable {
    public let rule: ConformanceRule
    public let verdict: Verdict

    public init(rule: ConformanceRule, verdict: Verdict) {
      self.rule = rule
      self.verdict = verdict
    }
  }

  /// The name that the provider declares.
  public let provider: String
  /// All rules, in their order.
  public let lines: [Line]
  /// In the order of their rules; empty where the provider holds all that applies.
  public let findings: [ConformanceFinding]

  public init(provider: String, lines: [Line], findings: [ConformanceFinding]) {
    self.provider = provider
    self.lines = lines
    self.findings = findings
  }

  /// Whether a rule was found to be broken.
  public func isBroken(_ rule: ConformanceRule) -> Bool { findings.contains { $0.rule == rule } }
}
