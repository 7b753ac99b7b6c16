import Logging
import MoongateSDK

// Holds providers to their declarations, and reports their faults to the log and to `moongate policy explain`.

extension ProviderCalls {
  /// The maximum length of a fault's text in the audit trail, in bytes.
  private static let longestFault = 500

  /// The audit detail of a provider's fault: the provider, the call, the message, and how often that call has failed
  /// recently.
  /// - Parameter text: the redacted message.
  func faultDetail(_ text: String, of provider: ProviderName, in call: ProviderMetrics.Call, at now: Timestamp)
    -> [String: String]
  {
    let tally = metrics.tallyFault(call, of: provider, at: now)
    return [
      "fault": text.utf8.count <= Self.longestFault
        ? text : String(decoding: text.utf8.prefix(Self.longestFault), as: UTF8.self) + "…",
      "fault_provider": provider.rawValue, "fault_call": call.rawValue, "fault_count": String(tally.count),
      "fault_since": tally.since.exactText,
    ]
  }

  /// Logs an answer that the provider is not allowed to give, and adds it to the decision trace. The answer's text is
  /// not logged, because it is arbitrary.
  /// - Returns: a 503 refusal.
  func flaw(_ sentence: String, of provider: ProviderName, _ request: RequestContext, _ more: Logger.Metadata = [:])
    -> FlowError
  {
    logger.error(
      "\(sentence)",
      metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)"].merging(more) { known, _ in known
      })
    request.trace.note("fault", sentence)
    return request.refusal(.busy)
  }

  /// Validates a provider's answer. An invalid answer is a 503 and counts as the provider's fault. Every answer is
  /// validated here and nowhere else.
  func demandProper(_ answer: StepAnswer, of provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    switch answer {
    case .ask(let fields, _, let shown): try demandAskable(fields, showing: shown, by: provider, request)
    case .redirect(let site, _): try demandSite(site, by: provider, request)
    case .wait(let interval, _, _): try demandPollable(interval, by: provider, request)
    case .refused(let reason): _ = try outcome(reason, of: provider, request)
    case .refusedAndAsked(let reason, let round):
      _ = try outcome(reason, of: provider, request)
      try demandAskable(round.fields, showing: round.shown, by: provider, request)
    case .proved(let proof):
      try demandDeclared(proof.proved + proof.attested + proof.claimed, by: provider, request)
      // Attack: a name that a provider "proves" becomes verified, and authorises resets and changes from then on.
      guard (proof.proved + proof.attested).allSatisfy(\.kind.canBeVerified) else {
        throw flaw("a provider proves an identifier that can only be claimed", of: provider, request)
      }
      if let long = proof.facts.first(where: { !ProvidedFacts.fits($0.value) }) {
        throw flaw(
          "a provider reports a fact longer than 300 bytes", of: provider, request,
          ["fact": "\(long.key.prefix(48))"])
      }
      // Refused, not cut: a group that is missing may be one by which a service refuses.
      if let problem = (proof.proved + proof.attested + proof.claimed).lazy.compactMap(\.detailProblem).first {
        throw flaw("a provider's proof cannot be stored: \(problem)", of: provider, request)
      }
      guard proof.siteSession?.utf8.count ?? 0 <= Proof.longestSiteSession else {
        throw flaw("a provider reports a site session that is too long", of: provider, request)
      }
      guard proof.recheck?.count ?? 0 <= Proof.longestRecheck else {
        throw flaw("a provider's state for rechecks is too long", of: provider, request)
      }
      warnOfUndeclaredFacts(proof, of: provider, request)
      try demandFactor(proof.record, by: provider, request)
      // Attack: the prover counts on what providers declare, so that `aal >= 2` of an undeclared proof would open a
      // route that was proved to take two providers.
      guard !proof.isMultiFactor || registry(request).descriptor(provider)?.mayProveSeveralFactors ?? false else {
        throw flaw("a provider proves several factors at once, which it does not declare", of: provider, request)
      }
    case .malformed: break
    }
  }

  /// Warns about undeclared facts. They are dropped before policies see them, so the provider's author should know.
  private func warnOfUndeclaredFacts(_ proof: Proof, of provider: ProviderName, _ request: RequestContext) {
    guard !proof.facts.isEmpty else { return }
    let declared = Set((registry(request).descriptor(provider)?.facts ?? []).map(\.name))
    guard let stray = proof.facts.keys.filter({ !declared.contains($0) }).min() else { return }
    logger.warning(
      "a provider reports an undeclared fact, which is ignored",
      metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)", "fact": "\(stray.prefix(48))"])
  }

  /// Checks that a provider reads and proves only identifiers of kinds that it declares.
  ///
  /// Attack: a provider of chat names, or a compromised provider program, "proves" any user's phone number.
  ///
  /// Attack: a federated provider "proves" an identity that begins with the name of another one, and so opens that
  /// provider's accounts.
  func demandDeclared(_ identifiers: [Identifier], by provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    let registry = registry(request)
    let kinds = registry.descriptor(provider)?.identifierKinds ?? []
    if identifiers.contains(where: { registry.issuer(of: $0) ?? provider != provider }) {
      throw flaw("a provider names an identity of another provider", of: provider, request)
    }
    guard let stray = identifiers.first(where: { !kinds.contains($0.kind) }) else { return }
    throw flaw(
      "a provider names an identifier of a kind that it does not declare", of: provider, request,
      ["kind": "\(stray.kind.rawValue)"])
  }

  /// Checks that only a provider that declares the role `keepsFactor` stores a record.
  ///
  /// Attack: a provider that proves numbers stores a record, becomes a factor of every account, and authorises changes
  /// to them.
  private func demandFactor(_ record: Proof.Record, by provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    if case .keep = record { return }
    if registry(request).descriptor(provider)?.role.contains(.keepsFactor) ?? false { return }
    throw flaw("a provider stores a record, but its role is not to keep a factor", of: provider, request)
  }

  /// The declared outcome for a provider's refusal. An undeclared reason is a fault, because its meaning for the secret
  /// is unknown.
  func outcome(_ reason: RefusalReason, of provider: ProviderName, _ request: RequestContext) throws(FlowError)
    -> Outcome
  {
    if let outcome = registry(request).descriptor(provider)?.outcome(reason) { return outcome }
    throw flaw("a provider refused with a reason that it does not declare as an outcome", of: provider, request)
  }

  /// Checks that the fields that a provider asks for are valid. If they are not, the provider is at fault: the gateway
  /// answers 503, logs it and refunds the attempt.
  func demandAskable(
    _ fields: [InputField], showing shown: [Shown], by provider: ProviderName, _ request: RequestContext
  ) throws(FlowError) {
    if !InputField.mistakes(inRound: fields).isEmpty {
      // The log does not include the fields themselves: their names are arbitrary text.
      throw flaw(
        "a provider asks for a field twice, for a field with an invalid name, or for more than 16 fields",
        of: provider, request)
    }
    if Shown.fit(shown, fields) { return }
    throw flaw(
      "a provider shows a ceremony without options or without its one field of kind json, or asks for such a field without a ceremony",
      of: provider, request)
  }

  /// Checks that the poll interval is within bounds. If it is not, the provider is at fault: the gateway answers 503,
  /// logs it and refunds the attempt.
  ///
  /// Attack: an interval of zero, with which the page and every client would poll without a pause.
  func demandPollable(_ interval: Duration, by provider: ProviderName, _ request: RequestContext) throws(FlowError) {
    if StepAnswer.pollIntervals.contains(interval) { return }
    throw flaw(
      "a provider asks for a poll interval outside 1 to 60 seconds", of: provider, request,
      ["poll": "\(interval)"])
  }

  /// Checks that a redirect leads to a valid site address.
  ///
  /// Attack: `javascript:` behind the button of a page of ours; a line break in a Location header.
  func demandSite(_ address: String, by provider: ProviderName, _ request: RequestContext) throws(FlowError) {
    if SiteAddress.isSite(address) { return }
    throw flaw("a provider redirects to an address that is not allowed", of: provider, request)
  }
}
