import MoongateCore
import MoongateSDK

/// What a flow says beside its `purpose`.
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

/// The kinds of identifier that a flow can be about.
enum GivenIdentifierKind: String, CaseIterable {
  case phone, email, federated

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
    }
  }
}

/// Reads `purpose`, `provider` and `identifier` of flows/NAME.lua.
struct FlowPurposeReader {
  let flow: String
  let providers: ProviderCatalog
  let problems: Problems

  /// The provider that the flow names and that gateway.lua does not configure; nil where there is none. Such a flow is
  /// left out.
  func unconfiguredProvider(_ reader: TableReader) -> ProviderName? {
    guard case .text(let text)? = reader.said("provider")?.value, let name = providers.known(text),
      !providers.isConfigured(name)
    else { return nil }
    return name
  }

  /// Whether the flow says that it is about a factor or an identifier of an account, and so has nothing to do where no
  /// provider of that is configured.
  func isOfAccount(_ reader: TableReader) -> Bool {
    guard case .text(let text)? = reader.said("purpose")?.value, let word = FlowPurposeKind(rawValue: text) else {
      return false
    }
    return word != .signIn && word != .register && word != .stepUp
  }

  /// The flow's purpose; nil, with a problem, where it cannot be told.
  /// - Parameters:
  ///   - steps: those that could be read.
  ///   - account: the flow's rule; nil where it could not be read.
  func read(_ reader: TableReader, steps: [StepRule], account: AccountRule?) -> FlowPurpose? {
    guard reader.said("purpose") != nil else { return byName(reader, steps) }
    guard let word = reader.choice("purpose", FlowPurposeKind.self), let purpose = purpose(word, reader) else {
      return nil
    }
    checkSteps(of: purpose, reader, steps)
    check(account, for: purpose, reader)
    return purpose
  }

  private func purpose(_ word: FlowPurposeKind, _ reader: TableReader) -> FlowPurpose? {
    let before = problems.all.count
    let hasProvider = reader.said("provider") != nil
    let hasIdentifier = reader.said("identifier") != nil
    switch word.subject {
    case .nothing: refuse(["provider", "identifier"], word, reader)
    case .provider, .optionalProvider: refuse(["identifier"], word, reader)
    case .identifier: refuse(["provider"], word, reader)
    case .either:
      if hasProvider == hasIdentifier {
        problems.add(
          location("purpose", reader), reader.path("purpose"),
          "\"change\" takes `provider = \"NAME\"` for a factor, or `identifier = \"phone\"` or \"email\" for an identifier: "
            + (hasProvider ? "remove one of them" : "add one of them"))
      }
    }
    guard problems.all.count == before else { return nil }
    switch word {
    // A sign-in by one provider may name it, and is then left out with it.
    case .signIn: return hasProvider ? provider(word, reader).map { _ in .signIn } : .signIn
    case .stepUp: return .stepUp
    case .register: return hasProvider ? provider(word, reader).map { .register(setting: $0) } : .register(setting: nil)
    case .verify: return ownIdentifier(word, reader).map { .verify($0) }
    case .join: return joined(reader)
    case .change where hasIdentifier: return ownIdentifier(word, reader).map { .change($0) }
    case .change, .set, .disable, .reset, .unlock:
      guard let operation = FlowPurpose.FactorOperation(rawValue: word.rawValue), let name = provider(word, reader)
      else { return nil }
      return .factor(name, operation == .reset && identifiesPeople(name) ? .recover : operation)
    }
  }

  private func refuse(_ names: [String], _ word: FlowPurposeKind, _ reader: TableReader) {
    for name in names where reader.said(name) != nil {
      problems.add(
        location(name, reader), reader.path(name), "has no meaning where the purpose is \"\(word.rawValue)\": remove it"
      )
    }
  }

  private func provider(_ word: FlowPurposeKind, _ reader: TableReader) -> ProviderName? {
    guard reader.said("provider") != nil else {
      problems.add(
        location("purpose", reader), reader.path("provider"),
        "is missing: purpose \"\(word.rawValue)\" is about a provider's factor, as in provider = \"\(exampleProvider)\""
      )
      return nil
    }
    guard let text = reader.text("provider") else { return nil }
    if let name = providers.known(text) { return name }
    problems.add(
      location("provider", reader), reader.path("provider"),
      "no provider is called \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
    return nil
  }

  private var exampleProvider: String { providers.descriptors.first { $0.hashesSecrets }?.name.rawValue ?? "NAME" }

  private func identifier(_ word: FlowPurposeKind, _ reader: TableReader) -> IdentifierKind? {
    guard reader.said("identifier") != nil else {
      problems.add(
        location("purpose", reader), reader.path("identifier"),
        "is missing: purpose \"\(word.rawValue)\" is about a kind of identifier, as in identifier = \"phone\"")
      return nil
    }
    return reader.choice("identifier", GivenIdentifierKind.self)?.kind
  }

  /// An identifier that a code can go to.
  private func ownIdentifier(_ word: FlowPurposeKind, _ reader: TableReader) -> IdentifierKind? {
    guard let kind = identifier(word, reader) else { return nil }
    guard kind != .federated else {
      problems.add(
        location("identifier", reader), reader.path("identifier"),
        "an identity at another site is added by purpose = \"join\" and removed on the account page: write \"phone\" or \"email\""
      )
      return nil
    }
    return kind
  }

  /// Accounts become one only by a phone number; an identity at another site is only added.
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
    reader.said(name)?.location ?? reader.location
  }

  /// Whether a forgotten factor of the provider is recovered without a session: it goes with an email address that the
  /// account claims, as a password does.
  private func identifiesPeople(_ name: ProviderName) -> Bool {
    let kinds = providers.descriptor(name.rawValue)?.identifierKinds ?? []
    return kinds.contains(.email) && !kinds.contains(.federated)
  }

  // MARK: - What has to fit

  /// A flow about a factor or an identifier has a step that is about it.
  private func checkSteps(of purpose: FlowPurpose, _ reader: TableReader, _ steps: [StepRule]) {
    // Steps that could not be read are told of already.
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
        "no step of this flow proves \(kind.spoken)"
          + (able.isEmpty ? "" : ": add a step of \(Suggestion.list(able))"))
    }
  }

  private func check(_ account: AccountRule?, for purpose: FlowPurpose, _ reader: TableReader) {
    guard let account else { return }
    if case .register = purpose, account == .existing {
      problems.add(
        location("account", reader), reader.path("account"),
        "a flow that registers people cannot be for existing accounts only: write account = \"new\" or account = \"any\""
      )
    } else if account == .new, purpose.needsSession || purpose.isReset {
      problems.add(
        location("account", reader), reader.path("account"),
        "the purpose is about an account that exists: write account = \"existing\"")
    }
  }

  // MARK: - Flows without the field

  /// The name of a flow used to tell its purpose. It still does, for flows without the field.
  private func byName(_ reader: TableReader, _ steps: [StepRule]) -> FlowPurpose? {
    for name in ["provider", "identifier"] where reader.said(name) != nil {
      problems.add(
        location(name, reader), reader.path(name),
        "has no meaning without `purpose`: add, for instance, purpose = \"\(name == "provider" ? "set" : "change")\"")
      return nil
    }
    let purpose = FlowPurpose(nameOfFlow: flow, steps: steps, identifiesPeople: identifiesPeople)
    if let fields = Self.fields(purpose) {
      problems.warn(
        reader.location, "purpose",
        "is missing. The flow's name says what it is for, which a later version does not read any more: add \(fields)")
    }
    return purpose
  }

  /// The purpose as a file says it; nil for a sign-in, which needs no field.
  private static func fields(_ purpose: FlowPurpose) -> String? {
    guard purpose != .signIn else { return nil }
    var said = "purpose = \"\(purpose.kind.rawValue)\""
    if let provider = purpose.provider { said += ", provider = \"\(provider)\"" }
    switch purpose {
    case .verify(let kind), .change(let kind), .join(let kind): said += ", identifier = \"\(kind.rawValue)\""
    default: break
    }
    return said
  }
}
