import MoongateCore
import MoongateSDK

/// Selects the cases that can run with the providers that gateway.lua configures.
struct CaseSelection {
  let catalog: ProviderCatalog
  /// Flows that are left out: flows of the folder whose provider is not configured, and flows of providers that are not
  /// configured.
  let absentFlows: Set<String>
  private let flows: [String: FlowDefinition]
  /// The kinds of identifier that can receive codes.
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
      files.files(in: "flows").map(\.title)
      + catalog.descriptors.flatMap(\.flows).map(\.name)
    absentFlows = Set(known).subtracting(flows.keys)
  }

  /// The operator's cases that can run. Each of the others causes a warning.
  func playable(_ cases: [PolicyCase], _ problems: Problems) -> [PolicyCase] {
    cases.filter { one in
      guard let missing = missing(for: one) else { return true }
      problems.warn(one.location, "", "case \"\(one.name)\" is left out: \(missing)")
      return false
    }
  }

  /// Whether a shipped case can run: the same provider ships all its flows, and its codes can be delivered.
  func plays(_ one: PolicyCase, comingWith descriptor: ProviderDescriptor) -> Bool {
    let sources = Set(descriptor.flows.map(\.file))
    return one.flows.allSatisfy { name in flows[name].map { sources.contains($0.location.file) } ?? false }
      && !lacksSender(one)
  }

  /// The configuration that an operator's case lacks, as a sentence; nil if nothing is missing.
  private func missing(for one: PolicyCase) -> String? {
    if let flow = one.flows.filter(absentFlows.contains).min() {
      return "the flow `\(flow)` is disabled or its provider is not configured"
    }
    if let provider = one.providers.filter({ !catalog.isConfigured($0) }).min(by: { $0.rawValue < $1.rawValue }) {
      return "gateway.lua does not configure `\(provider)`"
    }
    if one.holdings.pad, !isAnyConfigured(\.showsPad) { return "gateway.lua does not configure a PIN provider" }
    if one.holdings.password, !isAnyConfigured({ $0.hashesSecrets && $0.passwordField != nil }) {
      return "gateway.lua does not configure a password provider"
    }
    if lacksSender(one) { return "gateway.lua does not configure a provider that sends codes to its identifier" }
    return nil
  }

  private func isAnyConfigured(_ condition: (ProviderDescriptor) -> Bool) -> Bool {
    catalog.configured == nil || catalog.descriptors.contains { condition($0) && catalog.isConfigured($0.name) }
  }

  private func lacksSender(_ one: PolicyCase) -> Bool { one.sendsCodeWithoutIdentifier(among: reachable) }
}
