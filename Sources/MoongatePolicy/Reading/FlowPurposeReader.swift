import MoongateCore
import MoongateSDK

/// The fields that a flow with a `purpose` takes.
private enum Subject {
  case nothing, provider, optionalProvider, identifier, either
}

extension FlowPurposeKind {
  fileprivate var subject: Subject {
    switch self {
    case .stepUp: .nothing
    case .signIn, .register: .optionalProvider
    case .verify, .join: .identifier
    case .change: .either
    case .set, .disable, .reset, .unlock: .provider
    }
  }
}

extension GivenIdentifierKind {
  fileprivate var kind: IdentifierKind {
    switch self {
    case .phone: .phone
    case .email: .email
    case .federated: .federated
    }
  }
}

extension IdentifierKind {
  fileprivate var spoken: String {
    switch self {
    case .phone: "a phone number"
    case .email: "an email address"
    case .federated: "an identity at another site"
    case .name: "a user name"
    }
  }
}

/// Reads `purpose`, `provider` and `identifier` of flows/NAME.lua.
struct FlowPurposeReader {
  let flow: String
  let providers: ProviderCatalog
  let problems: Problems

  /// The provider that the flow names but gateway.lua does not configure; nil if none exists. Such a flow is left
  /// out.
  func unconfiguredProvider(_ reader: TableReader) -> ProviderName? {
    guard case .text(let text)? = reader.explicitValue("provider")?.value, let name = providers.known(text),
      !providers.isConfigured(name)
    else { return nil }
    return name
  }

  /// Whether the flow manages a factor or an identifier of an account. Without a configured provider for it, the flow
  /// has no purpose.
  func isOfAccount(_ reader: TableReader) -> Bool {
    guard case .text(let text)? = reader.explicitValue("purpose")?.value, let kind = FlowPurposeKind(rawValue: text)
    else {
      return false
    }
    return switch kind {
    case .verify, .change, .join, .set, .disable, .reset, .unlock: true
    case .signIn, .register, .stepUp: false
    }
  }

  /// Whether a flow that is left out would create accounts, by its account rule and its purpose. A file that only turns
  /// a flow off names no purpose: it is that of which the flow has the usual name, as in
  /// `flow "register" { enabled = false }`.
  func createsAccounts(_ reader: TableReader) -> Bool {
    if case .text(AccountRule.new.rawValue)? = reader.explicitValue("account")?.value { return true }
    if let purpose = reader.explicitValue("purpose")?.value {
      return if case .text(FlowPurposeKind.register.rawValue) = purpose { true } else { false }
    }
    let settings: [ProviderName?] = [nil] + providers.descriptors.map(\.name)
    return settings.contains { FlowPurpose.register(setting: $0).usualName == flow }
  }

  /// Reads the purpose of the flow; nil with a problem if it is invalid.
  /// - Parameters:
  ///   - steps: the steps that could be read.
  ///   - account: the account rule of the flow; nil if it could not be read.
  func read(_ reader: TableReader, steps: [StepRule], account: AccountRule?) -> FlowPurpose? {
    guard reader.explicitValue("purpose") != nil else { return signIn(reader, steps) }
    guard let kind = reader.choice("purpose", FlowPurposeKind.self), let purpose = purpose(kind, reader) else {
      return nil
    }
    checkSteps(of: purpose, reader, steps)
    check(account, for: purpose, reader)
    return purpose
  }

  private func purpose(_ kind: FlowPurposeKind, _ reader: TableReader) -> FlowPurpose? {
    let before = problems.all.count
    let hasProvider = reader.explicitValue("provider") != nil
    let hasIdentifier = reader.explicitValue("identifier") != nil
    switch kind.subject {
    case .nothing: refuse(["provider", "identifier"], kind, reader)
    case .provider, .optionalProvider: refuse(["identifier"], kind, reader)
    case .identifier: refuse(["provider"], kind, reader)
    case .either:
      if hasProvider == hasIdentifier {
        problems.add(
          location("purpose", reader), reader.path("purpose"),
          "\"change\" takes `provider = \"NAME\"` for a factor, or `identifier = \"phone\"` or \"email\" for an identifier: "
            + (hasProvider ? "remove one of them" : "add one of them"))
      }
    }
    guard problems.all.count == before else { return nil }
    switch kind {
    // A sign-in flow for one provider may name it. Without that provider, the flow is left out.
    case .signIn: return hasProvider ? provider(kind, reader).map { _ in .signIn } : .signIn
    case .stepUp: return .stepUp
    case .register: return hasProvider ? provider(kind, reader).map { .register(setting: $0) } : .register(setting: nil)
    case .verify: return ownIdentifier(kind, reader).map { .verify($0) }
    case .join: return joined(reader)
    case .change where hasIdentifier: return ownIdentifier(kind, reader).map { .change($0) }
    case .change, .set, .disable, .reset, .unlock:
      guard let operation = FlowPurpose.FactorOperation(rawValue: kind.rawValue), let name = provider(kind, reader)
      else { return nil }
      return .factor(name, operation == .reset && identifiesPeople(name) ? .recover : operation)
    }
  }

  private func refuse(_ names: [String], _ kind: FlowPurposeKind, _ reader: TableReader) {
    for name in names where reader.explicitValue(name) != nil {
      problems.add(
        location(name, reader), reader.path(name), "does not apply to the purpose \"\(kind.rawValue)\": remove it"
      )
    }
  }

  private func provider(_ kind: FlowPurposeKind, _ reader: TableReader) -> ProviderName? {
    guard reader.explicitValue("provider") != nil else {
      problems.add(
        location("purpose", reader), reader.path("provider"),
        "is missing: purpose \"\(kind.rawValue)\" requires a provider, as in provider = \"\(exampleProvider)\""
      )
      return nil
    }
    guard let text = reader.text("provider") else { return nil }
    if let name = providers.known(text) { return name }
    problems.add(
      location("provider", reader), reader.path("provider"),
      "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
    return nil
  }

  private var exampleProvider: String { providers.descriptors.first { $0.hashesSecrets }?.name.rawValue ?? "NAME" }

  private func identifier(_ kind: FlowPurposeKind, _ reader: TableReader) -> IdentifierKind? {
    guard reader.explicitValue("identifier") != nil else {
      problems.add(
        location("purpose", reader), reader.path("identifier"),
        "is missing: purpose \"\(kind.rawValue)\" requires a kind of identifier, as in identifier = \"phone\"")
      return nil
    }
    return reader.choice("identifier", GivenIdentifierKind.self)?.kind
  }

  /// An identifier that can receive codes.
  private func ownIdentifier(_ kind: FlowPurposeKind, _ reader: TableReader) -> IdentifierKind? {
    guard let kind = identifier(kind, reader) else { return nil }
    guard kind != .federated else {
      problems.add(
        location("identifier", reader), reader.path("identifier"),
        "an identity at another site is added by purpose = \"join\" and removed on the account page: write \"phone\" or \"email\""
      )
      return nil
    }
    return kind
  }

  /// Joining merges two accounts only for a phone number. A federated identity is only added.
  private func joined(_ reader: TableReader) -> FlowPurpose? {
    guard let kind = identifier(.join, reader) else { return nil }
    guard kind != .email else {
      problems.add(
        location("identifier", reader), reader.path("identifier"),
        "\"join\" adds a number (identifier = \"phone\") or an identity at another site (identifier = \"federated\"): write one of them"
      )
      return nil
    }
    return .join(kind)
  }

  private func location(_ name: String, _ reader: TableReader) -> SourceLocation {
    reader.explicitValue(name)?.location ?? reader.location
  }

  /// Whether a user can recover the provider's factor without a session, by an email address that the account claims,
  /// as with a password.
  private func identifiesPeople(_ name: ProviderName) -> Bool {
    let kinds = providers.descriptor(name.rawValue)?.identifierKinds ?? []
    return kinds.contains(.email) && !kinds.contains(.federated)
  }

  // MARK: - Consistency

  /// A flow that manages a factor or an identifier must have a step for it.
  private func checkSteps(of purpose: FlowPurpose, _ reader: TableReader, _ steps: [StepRule]) {
    // Steps that could not be read are already reported.
    guard !steps.isEmpty else { return }
    let choices = steps.flatMap(\.choices)
    if let name = reader.text("provider").flatMap(providers.known), !choices.contains(name) {
      problems.add(
        location("provider", reader), reader.path("provider"),
        "no step of this flow offers `\(name)`: add { \"\(name)\" } to its steps")
    }
    let kind: IdentifierKind? = if case .verify(let kind) = purpose { kind } else { purpose.newIdentifier }
    guard let kind else { return }
    if !choices.contains(where: { providers.descriptor($0.rawValue)?.identifierKinds.contains(kind) ?? false }) {
      let able = providers.descriptors.filter { descriptor in
        (kind == .federated ? descriptor.identifierKinds.contains(kind) : descriptor.identifierKinds == [kind])
          && providers.isConfigured(descriptor.name)
      }.map(\.name.rawValue)
      problems.add(
        location("identifier", reader), reader.path("identifier"),
        "no step of this flow verifies \(kind.spoken)"
          + (able.isEmpty ? "" : ": add a step of \(Suggestion.list(able))"))
    }
  }

  private func check(_ account: AccountRule?, for purpose: FlowPurpose, _ reader: TableReader) {
    guard let account else { return }
    if case .register = purpose, account == .existing {
      problems.add(
        location("account", reader), reader.path("account"),
        "a registration flow cannot be limited to existing accounts: write account = \"new\" or account = \"any\""
      )
    } else if account == .new, purpose.needsSession || purpose.isReset {
      problems.add(
        location("account", reader), reader.path("account"),
        "this purpose requires an existing account: write account = \"existing\"")
    }
  }

  // MARK: - Flows without the field

  /// The purpose of a flow without the field, which signs people in. The flow is refused if its name or its first step
  /// says otherwise, because it would not do what its author meant.
  private func signIn(_ reader: TableReader, _ steps: [StepRule]) -> FlowPurpose? {
    for name in ["provider", "identifier"] where reader.explicitValue(name) != nil {
      problems.add(
        location(name, reader), reader.path(name),
        "requires `purpose`: add, for instance, purpose = \"\(name == "provider" ? "set" : "change")\"")
      return nil
    }
    let advice: String? =
      if let meant = purposeOfName(steps) {
        "Write \(Self.fields(meant)), or purpose = \"sign_in\" if it signs people in"
      } else if let first = steps.first, !first.choices.contains(where: findsAccount) {
        "The first step of this one finds no account (\(Suggestion.list(first.choices.map(\.rawValue)))): write purpose = \"step_up\" "
          + "or another purpose that begins with a session"
      } else { nil }
    guard let advice else { return .signIn }
    problems.add(reader.location, "purpose", "is missing, and a flow without it signs people in. \(advice)")
    return nil
  }

  /// The purpose that the name of the flow stands for: the usual name of a purpose, or of a flow that a provider ships;
  /// nil if it stands for none.
  private func purposeOfName(_ steps: [StepRule]) -> FlowPurpose? {
    let kinds: [IdentifierKind] = [.phone, .email]
    var known: [FlowPurpose] = [.stepUp, .register(setting: nil), .join(.phone)]
    known += kinds.flatMap { [.verify($0), .change($0)] }
    if let first = steps.first?.choices.first { known.append(.register(setting: first)) }
    for provider in providers.descriptors {
      if flow == "\(provider.name)_join", provider.identifierKinds.contains(.federated) { return .join(.federated) }
      known += FlowPurpose.FactorOperation.allCases.map { .factor(provider.name, $0) }
    }
    return known.first { $0.usualName == flow }
  }

  private func findsAccount(_ name: ProviderName) -> Bool {
    providers.descriptor(name.rawValue).map { !$0.identifierKinds.isEmpty || $0.role.contains(.findsAccount) } ?? true
  }

  /// The purpose in Lua syntax.
  private static func fields(_ purpose: FlowPurpose) -> String {
    var said = "purpose = \"\(purpose.kind.rawValue)\""
    if let provider = purpose.provider { said += ", provider = \"\(provider)\"" }
    switch purpose {
    case .verify(let kind), .change(let kind), .join(let kind): said += ", identifier = \"\(kind.rawValue)\""
    default: break
    }
    return said
  }
}
