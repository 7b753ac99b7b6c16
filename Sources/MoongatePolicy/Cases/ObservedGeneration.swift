import MoongateCore
import MoongateSDK

/// A generation whose functions are watched as they are called. They answer as they always do.
struct ObservedGeneration: PolicyGeneration {
  let observed: any PolicyGeneration
  let record: CoverageRecord

  var id: String { observed.id }
  var gateway: GatewaySettings { observed.gateway }
  var routes: RouteTable { observed.routes }
  var flows: [String: FlowDefinition] { observed.flows }
  var policies: [ProviderName: ProviderPolicy] { observed.policies }
  var warnings: [ConfigurationProblem] { observed.warnings }
  var lease: GenerationLease { observed.lease }

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator {
    ObservedEvaluator(observed: try observed.makeEvaluator(), record: record)
  }
}

private final class ObservedEvaluator: PolicyEvaluator {
  private let observed: any PolicyEvaluator
  private let record: CoverageRecord

  init(observed: any PolicyEvaluator, record: CoverageRecord) {
    self.observed = observed
    self.record = record
  }

  func verdict(of function: FunctionName, given facts: Facts) -> Verdict {
    let verdict = observed.verdict(of: function, given: facts)
    let answer =
      switch verdict {
      case .allow: "allow"
      case .deny(let reason): "deny \"\(reason)\""
      case .requireAlso(let provider): "require_also \"\(provider)\""
      case .fault: "policy_error"
      }
    record.called(function, answer)
    return verdict
  }

  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool {
    try noting(function) { () throws(PolicyFault) in
      try observed.condition(of: function, given: facts)
    } told: {
      String($0)
    }
  }

  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int {
    guard case .varying(_, _, let function) = varying else { return try observed.value(of: varying, given: facts) }
    return try noting(function) { () throws(PolicyFault) in
      try observed.value(of: varying, given: facts)
    } told: {
      String($0)
    }
  }

  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration {
    guard case .varying(_, _, let function) = varying else { return try observed.value(of: varying, given: facts) }
    return try noting(function) { () throws(PolicyFault) in
      try observed.value(of: varying, given: facts)
    } told: {
      "\"\($0.asWritten)\""
    }
  }

  private func noting<Value>(_ function: FunctionName, _ body: () throws(PolicyFault) -> Value, told: (Value) -> String) throws(PolicyFault) -> Value
  {
    do {
      let value = try body()
      record.called(function, told(value))
      return value
    } catch {
      record.called(function, "policy_error")
      throw error
    }
  }
}
