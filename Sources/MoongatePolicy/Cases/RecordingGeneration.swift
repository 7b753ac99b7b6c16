import MoongateCore
import MoongateSDK

/// A generation that records the calls of its functions. Their results are unchanged.
struct RecordingGeneration: WrappingGeneration {
  let base: any PolicyGeneration
  let record: CoverageRecord

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator {
    let generation = base as? Generation
    var probe: BranchProbe?
    if let generation, let index = record.branches { probe = try BranchProbe(generation, index) }
    return RecordingEvaluator(base: try base.makeEvaluator(), record: record, probe: probe)
  }
}

private final class RecordingEvaluator: PolicyEvaluator {
  private let base: any PolicyEvaluator
  private let record: CoverageRecord
  private let probe: BranchProbe?

  init(base: any PolicyEvaluator, record: CoverageRecord, probe: BranchProbe?) {
    self.base = base
    self.record = record
    self.probe = probe
  }

  func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence? {
    base.evidence(of: function, given: facts)
  }

  private func record(_ function: FunctionName, _ answer: String, _ facts: Facts) {
    guard record.isWatching else { return }
    record.called(function, answer)
    guard let probe else { return }
    probe.follow(function, facts)
    record.covered(probe.sides)
  }

  func verdict(of function: FunctionName, given facts: Facts) -> Verdict {
    let verdict = base.verdict(of: function, given: facts)
    record(function, verdict.text, facts)
    return verdict
  }

  func admission(of function: FunctionName, given facts: Facts) -> Verdict? {
    let verdict = base.admission(of: function, given: facts)
    record(function, verdict?.text ?? "undecided", facts)
    return verdict
  }

  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool {
    try noting(function, facts, { String($0) }) { () throws(PolicyFault) in
      try base.condition(of: function, given: facts)
    }
  }

  func claim(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> ClaimValue? {
    try noting(function, facts, { $0?.asWritten ?? "nil" }) { () throws(PolicyFault) in
      try base.claim(of: function, given: facts)
    }
  }

  func appClaims(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> [String: JSONClaim] {
    try noting(function, facts, { $0.isEmpty ? "{}" : "{ \($0.keys.sorted().joined(separator: ", ")) }" }) {
      () throws(PolicyFault) in
      try base.appClaims(of: function, given: facts)
    }
  }

  func identity(of function: FunctionName, from claims: [String: JSONClaim]) throws(PolicyFault) -> IdentityVerdict {
    try base.identity(of: function, from: claims)
  }

  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int {
    try noting(varying.function, facts, { String($0) }) { () throws(PolicyFault) in
      try base.value(of: varying, given: facts)
    }
  }

  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration {
    try noting(varying.function, facts, { "\"\($0.asWritten)\"" }) { () throws(PolicyFault) in
      try base.value(of: varying, given: facts)
    }
  }

  /// - Parameter function: nil if no function is called.
  private func noting<Value>(
    _ function: FunctionName?, _ facts: Facts, _ describe: (Value) -> String, _ body: () throws(PolicyFault) -> Value
  ) throws(PolicyFault) -> Value {
    guard let function else { return try body() }
    do {
      let value = try body()
      if let clamped = (base as? LuaEvaluator)?.clamped { record.clamped(clamped) }
      record(function, describe(value), facts)
      return value
    } catch {
      record(function, "policy_error", facts)
      throw error
    }
  }
}
