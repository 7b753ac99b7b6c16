import MoongateCore
import MoongateSDK

extension FunctionSituation {
  /// The situations of all functions of a generation.
  static func all(of generation: Generation, _ providers: ProviderRegistry) -> [FunctionName: Self] {
    var questions: [FunctionName: Question] = [:]
    for policy in generation.policies.values { questions.merge(Self.questions(of: policy)) { first, _ in first } }
    for function in generation.accounts.claims.values { questions[function] = .claim }
    for function in generation.apps.apps.compactMap(\.claims) { questions[function] = .appClaims }
    if let admit = generation.accounts.admit { questions[admit] = .verdict(nil) }
    let literals = generation.sources.keys.reduce(into: [:]) { literals, file in
      literals[file] = FileLiterals(Array(generation.texts(of: file).joined(separator: [UInt8(ascii: "\n")])))
    }
    var situations: [FunctionName: Self] = [:]
    for (name, entry) in generation.functions.entries {
      let question: Question
      switch entry.audience {
      case .policy:
        // A policy of an unconfigured provider is never called.
        guard let asked = questions[name] else { continue }
        question = asked
      // Its claims are those of another site.
      case .identity: continue
      case .route: question = questions[name] ?? .verdict(nil)
      case .flow: question = questions[name] ?? .condition
      case .entitlement: question = questions[name] ?? .condition
      }
      situations[name] = Self(
        question: question, audience: entry.audience, generation: generation,
        literals: literals[entry.function.file] ?? FileLiterals())
    }
    placePolicies(in: &situations, generation, providers)
    placeSteps(in: &situations, generation, providers)
    for name in situations.keys where name.path.hasPrefix("accounts.") {
      // These functions are only called for existing accounts, except `admit`, which is asked about new accounts too.
      let isAdmit = name == generation.accounts.admit
      situations[name]?.exists = isAdmit && generation.registers ? [true, false] : [true]
      // An account that does not exist yet can have an invitation into groups.
      situations[name]?.isOfInvited = isAdmit
      let isEntitlement = situations[name]?.audience == .entitlement
      situations[name]?.kinds = isEntitlement ? [.phone, .email, nil] : [.phone, .email]
      situations[name]?.flows = generation.flows.values.filter { !$0.purpose.needsSession }.map(\.name).sorted()
    }
    for function in generation.apps.apps.flatMap({ [$0.decide, $0.claims] }).compactMap(\.self) {
      situations[function]?.isOfApp = true
    }
    for route in generation.routes.routes { if let decide = route.decide { situations[decide]?.route = route } }
    return situations
  }

  private static func questions(of policy: ProviderPolicy) -> [FunctionName: Question] {
    var questions: [FunctionName: Question] = [:]
    if let send = policy.send { questions[send] = .verdict(.send) }
    if let verify = policy.verify { questions[verify] = .verdict(.verify) }
    let durations = policy.resendAfter + policy.limits.flatMap { $0.lock + [$0.window].compactMap(\.self) }
    for case .varying(let lowest, let highest, let name) in durations {
      questions[name] = .duration(.varying(lowest: lowest, highest: highest, name))
    }
    for case .varying(let lowest, let highest, let name) in policy.limits.map(\.max) {
      questions[name] = .number(.varying(lowest: lowest, highest: highest, name))
    }
    return questions
  }

  /// Policy functions are called in the flows that have a step of the provider.
  private static func placePolicies(
    in situations: inout [FunctionName: Self], _ generation: Generation, _ providers: ProviderRegistry
  ) {
    for (provider, policy) in generation.policies {
      let flows = generation.flows.values.filter { $0.steps.contains { $0.choices.contains(provider) } }.map(\.name)
        .sorted()
      let kinds = providers.descriptor(provider)?.identifierKinds ?? []
      for name in questions(of: policy).keys {
        situations[name]?.provider = provider
        situations[name]?.flows = flows
        situations[name]?.kinds = kinds.isEmpty ? [nil] : kinds.map { $0 }
        // A secret belongs to an account; without an account, the policy is not called.
        situations[name]?.exists = kinds.isEmpty ? [true] : [true, false]
      }
    }
  }

  /// `when` of a step is called with the facts that the preceding steps establish.
  private static func placeSteps(
    in situations: inout [FunctionName: Self], _ generation: Generation, _ providers: ProviderRegistry
  ) {
    for flow in generation.flows.values {
      let begins = flow.needsSession(by: providers)
      var kinds: [IdentifierKind?] = [nil]
      var exists = [begins]
      for step in flow.steps {
        if let when = step.when {
          situations[when]?.flows = [flow.name]
          situations[when]?.kinds = kinds
          situations[when]?.exists = exists
        }
        let proved = step.choices.flatMap { providers.descriptor($0)?.identifierKinds ?? [] }
        if !proved.isEmpty, !step.isSkippable, step.when == nil {
          kinds = Array(Set(proved)).sorted { $0.rawValue < $1.rawValue }
          exists =
            begins || flow.account == .existing && flow.registers.isEmpty
            ? [true] : flow.account == .new ? [false] : [true, false]
        }
      }
    }
  }
}
