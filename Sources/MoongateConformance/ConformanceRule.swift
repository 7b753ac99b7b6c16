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
  /// The right answer is proved, by `submit` alone, and proves only identifiers that the provider declares.
  case proof
  /// Each round can be asked and answered, the rounds come to an end, and a refusal that asks again asks for the wrong
  /// answer again.
  case rounds
  /// Only fields that were asked for in the round are read.
  case askedFields = "asked_fields"
  /// A second `begin` opens a step as good as the first, and takes nothing from it.
  case beginTwice = "begin_twice"
  /// A proof that lives for a time lives until just before its end.
  case expiry
  /// Of submits at once, each is judged by itself; a proof that is good once is good once.
  case concurrency
  /// A wrong answer is `refused`, is no error, and changes nothing.
  case refusals
  /// The refusal of a wrong answer counts as a failure.
  case counted
  /// All of an answer is compared: each field, each word, each character.
  case wholeAnswer = "whole_answer"
  /// What sets or changes a secret completes in one of several flows at once.
  case once
  /// What is kept of a secret is a slow hash with a salt of its own.
  case hashing
  /// A record of an older version is read, and proves the same answer as before.
  case upgrade
  /// A refusal's reason is one of those that are declared.
  case outcomes
  /// What fails elsewhere (a message, another site, the hashing) is thrown, and nobody is refused or proved by it.
  case faults
  /// No secret is in a log, an error, a record, a sentence or an address.
  case secrets
  /// An unknown account takes the same work and gets the same answer as a wrong answer for a known one.
  case unknown
  /// An answer takes as long for a known account as for an unknown one.
  case timing
  /// A cancelled call ends soon.
  case cancellation
  /// Nothing of a call is left behind when it has ended.
  case cleanup

  /// In a few words, for lists.
  public var summary: String {
    switch self {
    case .descriptor: "its declaration is well formed and stable"
    case .spelling: "one person has one identifier"
    case .facts: "identifiers and proofs tell the facts that are declared, and no others"
    case .malformed: "what cannot be read is said to be malformed"
    case .delivery: "a code goes out once, to whom it is for"
    case .proof: "the right answer is proved, by submit alone"
    case .rounds: "each round can be asked and answered"
    case .askedFields: "only fields that were asked for are read"
    case .beginTwice: "a step can be begun twice"
    case .expiry: "a proof ends when it should"
    case .concurrency: "answers at once are judged one by one"
    case .refusals: "a wrong answer is refused and changes nothing"
    case .counted: "a wrong answer counts as a failure"
    case .wholeAnswer: "all of an answer is compared"
    case .once: "a secret is set or changed once"
    case .hashing: "secrets are kept as salted, slow hashes"
    case .upgrade: "records of older versions are read"
    case .outcomes: "refusals are among those declared"
    case .faults: "what fails is an error"
    case .secrets: "no secret gets out"
    case .unknown: "unknown accounts look like known ones"
    case .timing: "response times do not reveal accounts"
    case .cancellation: "a cancelled call ends"
    case .cleanup: "nothing is left behind"
    }
  }
}

/// One thing that is not as it has to be.
public struct ConformanceFinding: Sendable, Equatable, Codable, CustomStringConvertible {
  public let rule: ConformanceRule
  /// A sentence: what was seen, its likeliest cause first.
  public let seen: String
  /// A sentence: what to do.
  public let advice: String
  /// The field of the step that it is about, if it is about one.
  public let field: String?

  public init(rule: ConformanceRule, seen: String, advice: String, field: String? = nil) {
    self.rule = rule
    self.seen = seen
    self.advice = advice
    self.field = field
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
  /// The rules that were asked for, in their order.
  public let lines: [Line]
  /// In the order of their rules; empty where the provider holds all that applies.
  public let findings: [ConformanceFinding]
  /// Every message between the suite and the provider, if a trace was asked for.
  public let messages: [String]

  public init(provider: String, lines: [Line], findings: [ConformanceFinding], messages: [String] = []) {
    self.provider = provider
    self.lines = lines
    self.findings = findings
    self.messages = messages
  }

  /// Whether a rule was found to be broken.
  public func isBroken(_ rule: ConformanceRule) -> Bool { findings.contains { $0.rule == rule } }
}
