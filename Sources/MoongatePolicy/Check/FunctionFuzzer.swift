import MoongateCore
import MoongateSDK

/// Calls each function with many combinations of facts, to find failures in branches that no test case covers.
///
/// Only possible facts are tried: an account that does not exist has no age, and a policy for phone numbers receives
/// only phone numbers. Texts and numbers are taken from the function's file. The facts that a function reads are
/// varied, first one at a time, then together. Last, texts that clients choose are made long.
package struct FunctionFuzzer {
  /// A function that fails.
  package struct Fault: Sendable {
    package let location: SourceLocation
    /// The error message of Lua or of the gateway.
    package let fault: String
    /// The facts with which it fails, in Lua syntax.
    package let facts: String

    /// The fault as a problem for the operator.
    package var problem: ConfigurationProblem {
      ConfigurationProblem(location: location, path: "", message: facts.isEmpty ? fault : "\(fault), where \(facts)")
    }
  }

  /// The maximum number of combinations to try for each function.
  private static let maxRuns = 1_500

  /// The time limit for all functions together, because `moongate check` waits for them.
  private static let timeLimit: Duration = .seconds(10)

  private let generation: Generation
  private let situations: [FunctionName: FunctionSituation]

  /// - Parameter providers: the providers of the program.
  /// - Returns: nil for a generation that was not read from files.
  package init?(_ generation: any PolicyGeneration, providers: ProviderRegistry) {
    guard let generation = generation as? Generation else { return nil }
    self.generation = generation
    situations = FunctionSituation.all(of: generation, generation.registry ?? providers)
  }

  /// The maximum number of combinations to try with long texts.
  private static let maxLongRuns = 8

  /// Calls the functions. Returns each failure once, by file and line, and as warnings results of `vary` outside their
  /// bounds and functions that long texts stop.
  package func run() -> (faults: [Fault], warnings: [ConfigurationProblem]) {
    guard !situations.isEmpty, let evaluator = try? LuaEvaluator(generation) else { return ([], []) }
    evaluator.noteSetReads()
    var faults: [SourceLocation: Fault] = [:]
    var warnings: [FunctionName: ConfigurationProblem] = [:]
    let end = ContinuousClock.now + Self.timeLimit
    // Apps come last: there may be a thousand, which must not take the time of the others.
    let order = situations.sorted { ($0.value.isOfApp ? 1 : 0, $0.key.path) < ($1.value.isOfApp ? 1 : 0, $1.key.path) }
    for (name, situation) in order {
      let found = { (fault: Fault) in
        if faults[fault.location] == nil { faults[fault.location] = fault }
      }
      let tried = fuzz(name, situation, evaluator, until: end, found: found) {
        warnings[$0.function] = warnings[$0.function] ?? $0.warning
      }
      guard let tried, let stop = stretch(name, situation, evaluator, tried, until: end, found: found) else { continue }
      warnings[name] = warnings[name] ?? stop
    }
    return (
      faults.values.sorted { ($0.location.file, $0.location.line) < ($1.location.file, $1.location.line) },
      Array(warnings.values)
    )
  }

  /// The combinations that a function was called with, and all facts that it read.
  private struct Tried {
    var choices: [FactChoice] = []
    var slots: Set<FactSlot> = []
  }

  /// More than five parameters: one function with its situation, and two kinds of results.
  /// - Returns: nil if the function exceeded its budget.
  private func fuzz(
    _ name: FunctionName, _ situation: FunctionSituation, _ evaluator: LuaEvaluator, until end: ContinuousClock.Instant,
    found: (Fault) -> Void,
    clamped: (LuaEvaluator.Clamped) -> Void
  ) -> Tried? {
    var tried = Tried()
    var pending: [FactChoice] = [FactChoice()]
    var seen: Set<FactChoice> = [FactChoice()]
    var next = 0
    while next < pending.count, next < Self.maxRuns, ContinuousClock.now < end {
      let choice = pending[next]
      next += 1
      guard let facts = situation.facts(choice) else { continue }
      let fault = situation.call(evaluator, name, facts)
      if let result = evaluator.clamped { clamped(result) }
      let reads = evaluator.reads
      tried.choices.append(choice)
      tried.slots.formUnion(reads.slots)
      if let fault, let location = fault.location, [.error, .result, .steps, .memory].contains(fault.kind),
        !situation.isUncertain(reads)
      {
        found(
          Fault(
            location: location, fault: fault.message, facts: Self.summary(evaluator.evidence(of: name, given: facts))))
      }
      // Attack on the loader: functions that use up their budget, called with each of a thousand combinations of facts.
      if let fault, [.steps, .memory, .time].contains(fault.kind) { return nil }
      for dimension in situation.dimensions(reads) {
        for value in 0..<situation.count(dimension) where value != choice[dimension] {
          let other = choice.setting(dimension, to: value)
          if seen.count < Self.maxRuns * 2, seen.insert(other).inserted { pending.append(other) }
        }
      }
    }
    return tried
  }

  /// More than five parameters: like `fuzz`, whose combinations it repeats.
  /// Calls a function with texts as long as clients may send them.
  ///
  /// Attack: a pattern that searches a long path again and again uses up the budget, so that the request is refused as
  /// `policy_error`. Only the sender's requests are, so this is a warning.
  /// - Returns: the warning; nil if the function returned each time.
  private func stretch(
    _ name: FunctionName, _ situation: FunctionSituation, _ evaluator: LuaEvaluator, _ tried: Tried,
    until end: ContinuousClock.Instant, found: (Fault) -> Void
  ) -> ConfigurationProblem? {
    for choice in tried.choices.prefix(Self.maxLongRuns) {
      guard let facts = situation.facts(choice) else { continue }
      for long in situation.stretched(facts, tried.slots) where ContinuousClock.now < end {
        guard let fault = situation.call(evaluator, name, long.facts) else { continue }
        let location = fault.location ?? SourceLocation(file: "", line: 0)
        guard [.steps, .memory, .time].contains(fault.kind) else {
          if !situation.isUncertain(evaluator.reads) {
            found(Fault(location: location, fault: fault.message, facts: "\(long.fact) has \(long.length) characters"))
          }
          continue
        }
        return ConfigurationProblem(
          location: location, path: "",
          message: "\(fault.message), where \(long.fact) has \(long.length) characters: such a request is refused as "
            + "policy_error. Let a pattern have one `.*` at most, or read only the beginning: \(long.fact):sub(1, 60)")
      }
    }
    return nil
  }

  /// The first few facts as text.
  private static func summary(_ evidence: PolicyEvidence?) -> String {
    (evidence?.facts ?? []).prefix(4).map { fact in
      let isText =
        fact.value != "nil" && fact.value != "true" && fact.value != "false" && Double(fact.value) == nil
        && !fact.value.hasPrefix("{")
      return "f.\(fact.path) is \(isText ? "\"\(fact.value.prefix(40))\"" : fact.value)"
    }.joined(separator: ", ")
  }
}
