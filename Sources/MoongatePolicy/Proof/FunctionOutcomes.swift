import MoongateCore
import MoongateSDK

/// Determines the possible results of functions by calling them with every combination of the boolean facts that they
/// read.
///
/// A function that reads a fact with unbounded values, such as a time or a number, is assumed to return any possible
/// result.
final class FunctionOutcomes {
  /// The possible results of a function at some point.
  enum Outcome<Answer: Hashable> {
    /// The result depends on an undecided fact.
    case depends(on: BooleanFact)
    /// In the order in which they were found; empty if every call fails. `areAssumed`: the function reads facts with
    /// unbounded values.
    case answers([Answer], areAssumed: Bool)
  }

  private let evaluator: LuaEvaluator
  private let generation: Generation
  /// The providers that can store a record of an account.
  private let keeping: [ProviderName]
  private let budget: ProofBudget
  /// The providers that `require_also` can name, by file.
  private var required: [String: [ProviderName]] = [:]

  /// - Parameter providers: the providers of the generation.
  /// - Throws: `PolicyFault` if the functions cannot be loaded.
  init(_ generation: Generation, _ providers: ProviderRegistry, _ budget: ProofBudget) throws(PolicyFault) {
    self.generation = generation
    self.budget = budget
    evaluator = try LuaEvaluator(generation)
    evaluator.noteSetReads()
    keeping = generation.providers.filter { providers[$0]?.keepsRecords ?? false }.sorted()
  }

  /// The possible results of `when`.
  func condition(_ function: FunctionName, _ moment: Moment, _ known: KnownFacts) throws(ProofBudget.Exhausted)
    -> Outcome<Bool>
  {
    try outcome(moment, known, anything: [false, true]) { facts in
      do throws(PolicyFault) { return .success(try evaluator.condition(of: function, given: facts)) } catch {
        return .failure(error)
      }
    }
  }

  /// The possible results of `send`, `verify` or `decide` except refusals: `allow` and `require_also`.
  func verdict(_ function: FunctionName, _ moment: Moment, _ known: KnownFacts) throws(ProofBudget.Exhausted)
    -> Outcome<Verdict>
  {
    let anything = [Verdict.allow] + requirable(function).map(Verdict.requireAlso)
    let outcome = try outcome(moment, known, anything: anything) { facts in
      let verdict = evaluator.verdict(of: function, given: facts)
      if case .fault(let fault) = verdict { return .failure(fault) }
      return .success(verdict)
    }
    guard case .answers(let answers, let areAssumed) = outcome else { return outcome }
    return .answers(answers.filter { if case .deny = $0 { false } else { true } }, areAssumed: areAssumed)
  }

  private func outcome<Answer: Hashable>(
    _ moment: Moment, _ known: KnownFacts, anything: [Answer], _ call: (Facts) -> Result<Answer, PolicyFault>
  ) throws(ProofBudget.Exhausted) -> Outcome<Answer> {
    let declared = generation.declaredFacts
    let groups = Set(generation.accounts.groups.keys)
    var answers: [Answer] = []
    var pending: [[Moment.FreeFact: Bool]] = [[:]]
    while let free = pending.popLast() {
      try budget.spend()
      let answer = call(moment.facts(known, free, in: generation))
      let reads = evaluator.reads
      if let open = moment.openFact(reads, known, keeping: keeping, in: generation) {
        return .depends(on: open)
      }
      if let next = moment.freeFacts(reads, known, declared: declared, groups: groups).first(where: { free[$0] == nil })
      {
        for value in [true, false] { pending.append(free.merging([next: value]) { $1 }) }
        continue
      }
      if moment.readsUnbounded(reads, declared: declared) { return .answers(anything, areAssumed: true) }
      switch answer {
      case .success(let answer): if !answers.contains(answer) { answers.append(answer) }
      // A failing function refuses. A function that exceeded its budget could return a result on a faster machine.
      case .failure(let fault):
        if ![.error, .result].contains(fault.kind) { return .answers(anything, areAssumed: true) }
      }
    }
    return .answers(answers, areAssumed: false)
  }

  /// The location of the function.
  func location(_ function: FunctionName) -> SourceLocation? {
    generation.functions.entries[function]?.function.location
  }

  /// The providers that the function can name in `require_also`.
  private func requirable(_ function: FunctionName) -> [ProviderName] {
    guard let file = generation.functions.entries[function]?.function.file, generation.sources[file] != nil else {
      return generation.providers.sorted()
    }
    if let known = required[file] { return known }
    // Attack on the proof: the answer of a function is made by a shared file that its own file includes.
    let names = generation.texts(of: file).map(LuaNames.init)
    let calls = names.flatMap(\.calls).filter { $0.function == "require_also" }
    let texts = calls.compactMap { $0.texts.first.flatMap(\.self) }.compactMap {
      ProviderName(rawValue: String($0.dropFirst().dropLast()))
    }
    // If an argument is not a literal, it could be any name.
    let isPlain = texts.count == names.flatMap(\.globals).count { $0.path.first == "require_also" }
    let found = isPlain ? Set(texts).intersection(generation.providers).sorted() : generation.providers.sorted()
    required[file] = found
    return found
  }
}

extension Provider {
  /// Whether the provider can store a record of an account, such as a PIN: `f.account.factors.NAME`.
  var keepsRecords: Bool { self is any FullProvider && descriptor.role.contains(.keepsFactor) }
}
