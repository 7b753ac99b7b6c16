import MoongateCore
import MoongateSDK

/// Which cases can be played with the providers that gateway.lua configures.
struct CaseSelection {
  let catalog: ProviderCatalog
  /// Flows that are known and not there: of the folder, left out for want of a provider, and those that come with
  /// providers that are not configured.
  let absentFlows: Set<String>
  private let flows: [String: FlowDefinition]
  /// The kinds of identifier that codes go to.
  private let reachable: Set<IdentifierKind>

  init(
    files: ConfigurationFiles, catalog: ProviderCatalog, flows: [String: FlowDefinition],
    policies: [ProviderName: ProviderPolicy]
  ) {
    self.catalog = catalog
    self.flows = flows
    let configured = catalog.descriptors.filter { catalog.isConfigured($0.name) }
    reachable = Set(
      configured.filter { policies[$0.name].map { $0.code != .none } ?? false }.flatMap(\.identifierKinds))
    let known =
      files.files(in: "flows").map { ConfigurationLoader.title(of: $0.name) }
      + catalog.descriptors.flatMap(\.flows).map(\.name)
    absentFlows = Set(known).subtracting(flows.keys)
  }

  /// Of an operator's cases those that can be played; each of the others is told as a warning.
  func playable(_ cases: [PolicyCase], _ problems: Problems) -> [PolicyCase] {
    cases.filter { one in
      guard let missing = missing(for: one) else { return true }
      problems.warn(one.location, "", "case \"\(one.name)\" is left out: \(missing)")
      return false
    }
  }

  /// Whether a case that comes with a provider can be played: all its flows come with the same provider, and a code of
  /// it can arrive.
  func plays(_ one: PolicyCase, comingWith descriptor: ProviderDescriptor) -> Bool {
    let sources = Set(descriptor.flows.map(\.file))
    return one.flows.allSatisfy { name in flows[name].map { sources.contains($0.location.file) } ?? false }
      && !lacksSender(one)
  }

  /// What an operator's case needs that is not configured, as a sentence; nil where nothing is missing.
  private func missing(for one: PolicyCase) -> String? {
    if let flow = one.flows.filter(absentFlows.contains).min() {
      return "there is no flow `\(flow)`, since it is switched off or its provider is not configured"
    }
    if let provider = one.providers.filter({ !catalog.isConfigured($0) }).min(by: { $0.rawValue < $1.rawValue }) {
      return "gateway.lua does not configure `\(provider)`"
    }
    if one.holdings.pad, !isAnyConfigured(\.showsPad) { return "gateway.lua configures no provider of a PIN" }
    if one.holdings.password, !isAnyConfigured({ $0.hashesSecrets && $0.passwordField != nil }) {
      return "gateway.lua configures no provider of a password"
    }
    if lacksSender(one) { return "gateway.lua configures no provider that sends codes to whom it names" }
    return nil
  }

  private func isAnyConfigured(_ condition: (ProviderDescriptor) -> Bool) -> Bool {
    catalog.configured == nil || catalog.descriptors.contains { condition($0) && catalog.isConfigured($0.name) }
  }

  private func lacksSender(_ one: PolicyCase) -> Bool { one.asksCodeForNobody(among: reachable) }
}
