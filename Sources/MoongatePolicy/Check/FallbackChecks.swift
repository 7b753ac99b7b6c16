import MoongateCore
import MoongateSDK

/// Checks the providers of a `fallback`.
///
/// A user enters the code of any of them into the same input, so their codes must have the same format. The answers
/// must not reveal whether an account exists.
struct FallbackChecks {
  let flows: [String: FlowDefinition]
  let policies: [ProviderName: ProviderPolicy]
  let catalog: ProviderCatalog
  let problems: Problems

  func check() {
    for flow in flows.values.sorted(by: { $0.name < $1.name }) {
      for (index, step) in flow.steps.enumerated() where step.isFallback {
        check(
          step, "steps[\(index + 1)]", at: index < flow.stepLocations.count ? flow.stepLocations[index] : flow.location)
      }
    }
  }

  private func check(_ step: StepRule, _ path: String, at location: SourceLocation) {
    // A policy that could not be read is already reported.
    let members = step.choices.compactMap { policies[$0] }
    guard members.count == step.choices.count, let first = members.first else { return }
    if let full = members.first(where: { $0.code == .none }) {
      problems.add(
        location, path,
        "`\(full.provider)` sends no codes: fallback takes only code providers")
      return
    }
    for other in members.dropFirst() {
      guard kinds(of: other.provider) == kinds(of: first.provider) else {
        problems.add(
          location, path,
          "`\(first.provider)` sends to \(described(first.provider)) and `\(other.provider)` to \(described(other.provider)): "
            + "all providers of a fallback must reach the same user at the same identifier. Use any_of { … } for a choice"
        )
        continue
      }
      if other.code.length != first.code.length || other.code.alphabet != first.code.alphabet {
        problems.add(
          location, path,
          "codes of `\(first.provider)` are \(described(first.code)) and codes of `\(other.provider)` are \(described(other.code)), and users enter "
            + "both into the same input: give both policies the same code.length and code.alphabet")
      }
      // Attack: one provider conceals whether an account exists, and its fallback reveals it.
      if other.unknownAccount != first.unknownAccount {
        problems.add(
          location, path,
          "`\(first.provider)` has unknown_account = \"\(first.unknownAccount.rawValue)\" and `\(other.provider)` \"\(other.unknownAccount.rawValue)\": "
            + "give both policies the same value, or the fallback reveals whether an account exists")
      }
    }
  }

  private func kinds(of provider: ProviderName) -> Set<IdentifierKind> {
    Set(catalog.descriptor(provider.rawValue)?.identifierKinds ?? [])
  }

  private func described(_ provider: ProviderName) -> String {
    let kinds = catalog.descriptor(provider.rawValue)?.identifierKinds ?? []
    return kinds.map { $0 == .phone ? "phone numbers" : $0 == .email ? "email addresses" : "other identities" }.joined(
      separator: " and ")
  }

  private func described(_ rule: CodeRule) -> String {
    "\(rule.length) \(rule.alphabet == .digits ? "digits" : rule.alphabet.rawValue)"
  }
}
