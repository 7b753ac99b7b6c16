import MoongateCore
import MoongateSDK

// PINs, passwords and other input: `enter { … }`, and `right()` and `wrong()` if no code was sent.

extension CaseReader {
  /// The fields of `enter { … }`. Each provider has its own fields.
  func entered(_ node: LuaNode) -> [String: String]? {
    guard let reader = TableReader(node, nil, path: "enter", problems: problems) else { return nil }
    if reader.names.isEmpty {
      problems.add(node.location, "enter", "is empty; write, for example, enter { pin = \"739154\" }")
    }
    var fields: [String: String] = [:]
    for name in reader.names { fields[name] = reader.text(name) }
    return fields
  }
}

/// A step that asks for a secret.
struct SecretStep {
  let provider: any FullProvider
  /// The first required field, such as `pin` or `password`.
  let field: String
  let kind: InputField.Kind
}

extension CaseRun {
  /// The current step, if its provider verifies a secret itself.
  func secretStep() async throws -> SecretStep? {
    guard let full = await dueProvider() as? any FullProvider,
      let field = full.descriptor.submitFields.first(where: \.isRequired)
    else {
      return nil
    }
    return SecretStep(provider: full, field: field.name, kind: field.kind)
  }

  /// The provider that ships the case, then those that gateway.lua configures, then all others.
  private var ordered: [any Provider] {
    let rank = { [generation, one] (name: ProviderName) in
      name == one.origin ? 0 : generation.policies[name] != nil ? 1 : 2
    }
    return providers.all.enumerated().sorted {
      (rank($0.element.descriptor.name), $0.offset) < (rank($1.element.descriptor.name), $1.offset)
    }
    .map(\.element)
  }

  /// The provider of `pin` in an account of a case: the first with a PIN pad.
  var padProvider: ProviderName? { ordered.first { $0.descriptor.showsPad }?.descriptor.name }

  /// The provider of `password` in an account of a case: the first that only asks for a password.
  var passwordProvider: ProviderName? {
    ordered.first { $0.descriptor.hashesSecrets && $0.descriptor.passwordField != nil }?.descriptor.name
  }

  /// The provider of the current step. If the step has a choice, the selected one.
  func dueProvider() async -> (any Provider)? {
    let view = await view()
    let due = view?.step.map { [$0.provider] } ?? view?.choices ?? []
    let name = chosen.flatMap { due.contains($0) ? $0 : nil } ?? due.first
    return name.flatMap { providers[$0] }
  }

  /// A wrong secret in the right format.
  func wrongSecret(_ step: SecretStep) -> String {
    guard let own = secrets[step.provider.descriptor.name] else {
      return step.kind == .digits ? "739155" : "not the right one"
    }
    guard step.kind == .digits, let last = own.last?.wholeNumberValue else { return own + "x" }
    return own.dropLast() + String((last + 1) % 10)
  }

  mutating func enter(_ typed: [String: String]) async throws -> String {
    let view = await view()
    let choices = view?.choices ?? []
    let name =
      chosen.flatMap { choices.contains($0) ? $0 : nil }
      ?? choices.first { name in
        guard let descriptor = providers[name]?.descriptor else { return false }
        return (descriptor.beginFields + descriptor.submitFields).contains { typed[$0.name] != nil }
      } ?? choices.first
    let asking = (view?.step?.provider ?? name).flatMap { providers[$0] }
    await give(typed, to: asking)
    // From now on, the new secret is the right one.
    if case .view(let view)? = answer, view.status == .complete {
      if let descriptor = asking?.descriptor, let field = descriptor.pad?.new ?? descriptor.passwordField,
        let chosen = typed[field]
      {
        secrets[descriptor.name] = chosen
      }
    }
    return outcomeText
  }

  /// Submits the fields to the open step, or begins the next step with them and the identifiers.
  mutating func give(_ typed: [String: String], to provider: (any Provider)?) async {
    guard let flow else { return }
    let entered = typed.mapValues { InputValue.text($0) }
    if await view()?.step != nil {
      take(await gateway.submit(flow.id, fields: entered, by: client))
      return
    }
    let named = provider.map { fields(of: $0.descriptor, identifiers) } ?? [:]
    take(
      await gateway.begin(
        flow.id, provider: provider?.descriptor.name, fields: named.merging(entered) { $1 }, by: client))
  }
}
