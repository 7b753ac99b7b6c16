import MoongateSDK

/// A compiled-in provider with the name or title that gateway.lua gives it: `sms_us = phone_otp { title = "SMS (USA)"
/// }`.
///
/// It behaves like the provider itself; only the descriptor differs. It conforms to each protocol of the SDK that the
/// provider conforms to.
package struct ProviderInstance<Base: Provider>: Provider {
  package let base: Base
  package let descriptor: ProviderDescriptor

  fileprivate init(of base: Base, as descriptor: ProviderDescriptor) {
    self.base = base
    self.descriptor = descriptor
  }

  package func maintain(with tools: StepTools) async throws { try await base.maintain(with: known(tools)) }
}

extension Provider {
  /// The same provider with another descriptor. An instance of an instance wraps the original provider, so that
  /// identities get only one prefix.
  package func instance(_ descriptor: ProviderDescriptor) -> any Provider {
    if let instance = self as? any ProviderWrapper { return instance.represented.instance(descriptor) }
    return ProviderInstance(of: self, as: descriptor)
  }
}

/// A provider that wraps another one.
package protocol ProviderWrapper: Provider {
  /// The wrapped provider.
  var represented: any Provider { get }
}

extension ProviderInstance: ProviderWrapper {
  package var represented: any Provider { base }
}

// MARK: - Identities

/// Federated identities (`IdentifierKind.federated`) are prefixed with the name of the instance that proved them.
///
/// Attack: two instances of one provider lead to two sites, and someone has the same subject at one site as the owner
/// of an account has at the other. Because of the prefix, identities of one instance never equal those of another,
/// regardless of their content.
extension ProviderInstance {
  private var prefix: String? { descriptor.instanceOf == nil ? nil : "\(descriptor.name) " }

  /// Adds the prefix: the provider's identifier as the gateway stores it.
  fileprivate func kept(_ identifier: Identifier) -> Identifier {
    guard let prefix, identifier.kind == .federated else { return identifier }
    return identifier.with(value: prefix + identifier.value)
  }

  /// Removes the prefix: the stored identifier as the provider knows it; nil for an identity of another provider.
  fileprivate func known(_ identifier: Identifier) -> Identifier? {
    guard let prefix, identifier.kind == .federated else { return identifier }
    guard identifier.value.hasPrefix(prefix) else { return nil }
    return identifier.with(value: String(identifier.value.dropFirst(prefix.count)))
  }

  fileprivate func known(_ step: StepContext) -> StepContext {
    guard prefix != nil else { return step }
    var step = step
    step.identifier = step.identifier.flatMap(known)
    step.account = step.account.map { account in
      StepAccount(
        id: account.id, record: account.record, identifiers: account.identifiers.compactMap(known),
        names: account.names,
        mustReplace: account.mustReplace)
    }
    return step
  }

  /// Tools that take the provider's identifiers as it knows them.
  fileprivate func known(_ tools: StepTools) -> StepTools {
    guard prefix != nil else { return tools }
    var tools = tools
    tools.sessions = tools.sessions.mapping { kept($0) }
    return tools
  }

  fileprivate func kept(_ answer: StepAnswer) -> StepAnswer {
    guard prefix != nil, case .proved(var proof) = answer else { return answer }
    proof.proved = proof.proved.map(kept)
    proof.attested = proof.attested.map(kept)
    proof.claimed = proof.claimed.map(kept)
    return .proved(proof)
  }
}

// MARK: - Provider protocols

extension ProviderInstance: CodeProvider where Base: CodeProvider {
  package func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    kept(try base.readIdentifier(input))
  }

  package func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools)
    async throws(DeliveryFault)
  {
    try await base.deliver(code, to: known(identifier) ?? identifier, with: tools)
  }
}

extension ProviderInstance: FullProvider where Base: FullProvider {
  package func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    try base.readIdentifier(input).map(kept)
  }

  package func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    try base.check(known(step), input)
  }

  package func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    kept(try await base.begin(known(step), input))
  }

  package func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    kept(try await base.submit(known(step), input))
  }

  package func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    try await base.upgrade(record, from: version)
  }

  package func holdings(in record: [UInt8]) throws -> [HeldItem] { try base.holdings(in: record) }
}

extension ProviderInstance: ExposureChecking where Base: ExposureChecking {
  package func checksExposure(_ settings: StepSettings) -> Bool { base.checksExposure(settings) }

  package func exposure(_ step: StepContext, _ input: ProviderInput) async -> SecretExposure {
    await base.exposure(known(step), input)
  }
}

extension ProviderInstance: WebhookReceiver where Base: WebhookReceiver {
  package func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    try await base.receive(webhook, with: known(tools))
  }
}

extension ProviderInstance: SettingsChecking where Base: SettingsChecking {
  package func findings(in settings: StepSettings) -> [SettingFinding] { base.findings(in: settings) }
}

extension ProviderInstance: SettingsNaming where Base: SettingsNaming {
  package func naming(for settings: StepSettings) -> SiteNaming? { base.naming(for: settings) }
}

extension ProviderInstance: ClaimsMapping where Base: ClaimsMapping {
  package func identity(from claims: [String: JSONClaim], settings: StepSettings) throws -> MappedIdentity {
    try base.identity(from: claims, settings: settings)
  }

  package func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim] {
    try base.readable(claims, settings: settings)
  }
}

extension ProviderInstance: SignOutLeading where Base: SignOutLeading {
  package func signOutAddress(returningTo address: String, with tools: StepTools) async throws -> String? {
    try await base.signOutAddress(returningTo: address, with: known(tools))
  }
}

extension ProviderInstance: SignOutEmbedding where Base: SignOutEmbedding {
  package func embeddedSignOut(issuer: String, session: String, settings: StepSettings) -> EmbeddedSignOut? {
    base.embeddedSignOut(issuer: issuer, session: session, settings: settings)
  }
}

extension ProviderInstance: Rechecking where Base: Rechecking {
  package func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    guard let identity = self.known(known.identity) else { throw ForeignRecheck() }
    switch try await base.recheck(known.with(identity: identity), with: self.known(tools)) {
    case .confirmed(let identity): return .confirmed(kept(identity))
    case .ended(let because): return .ended(because: because)
    }
  }
}

/// An identity of another provider is rechecked.
private struct ForeignRecheck: Error {}

extension ProviderInstance: SiteProbing where Base: SiteProbing {
  package func probe(with tools: StepTools) async throws -> String? { try await base.probe(with: tools) }
}

extension ProviderInstance: WellKnownPublisher where Base: WellKnownPublisher {
  package func document(_ name: String, of site: PublicSite) throws -> String? { try base.document(name, of: site) }
}

extension ProviderInstance: IdentifierFormatting where Base: IdentifierFormatting {
  package var identifierKind: IdentifierKind { base.identifierKind }

  package func knows(region: String) -> Bool { base.knows(region: region) }
  package func callingCode(region: String) -> String? { base.callingCode(region: region) }

  package func draft(_ typed: String, region: String) -> IdentifierDraft { base.draft(typed, region: region) }
}

extension ProviderInstance: RehearsableProvider where Base: RehearsableProvider {
  package func rehearsal(sending messenger: any Messenger) -> any Provider {
    base.rehearsal(sending: messenger).instance(descriptor)
  }
}

extension ProviderInstance: DecidedRehearsal where Base: DecidedRehearsal {
  package func decide(_ isApproved: Bool) { base.decide(isApproved) }
}

extension ProviderInstance: SecretImporting where Base: SecretImporting {
  package var importedHashes: Set<SecretHashKind> { base.importedHashes }

  package func record(importing hash: String) -> [UInt8] { base.record(importing: hash) }

  package func hash(exporting record: [UInt8]) -> String? { base.hash(exporting: record) }
}

extension ProviderInstance: FactorImporting where Base: FactorImporting {
  package var importedField: String { descriptor.instanceOf == nil ? base.importedField : descriptor.name.rawValue }

  package func record(importing json: [UInt8], at now: Int64) throws(FactorImportProblem) -> [UInt8] {
    try base.record(importing: json, at: now)
  }
}
