import Logging
import MoongateSDK

/// A step as its provider sees it, with what the core needs beside it.
struct StepCapabilities: Sendable {
  var context: StepContext
  /// The hash of the sealed record in `context.account`; nil if the account has no record.
  let record: TokenHash?
  /// The record in the provider's newest format if the stored one is older. Stored once a step with it has passed.
  var upgraded: [UInt8]?
  /// Removes sensitive values from what the provider logs.
  let redaction: Redaction
}

/// Calls providers: with what they may use for the call, and only with answers that they are allowed to give.
struct ProviderCalls: FlowPart {
  let services: FlowServices
  let seals: FlowSeals
  let lookup: AccountLookup
  let messengers: Messengers
  let web: any WebClient
  /// The counts and durations of provider calls, for `/metrics`.
  let metrics: ProviderMetrics

  /// Builds the context of a call to a full provider.
  /// - Parameter input: what the client sent in this step.
  func makeCapabilities(
    _ provider: any FullProvider, _ step: StepRecord, _ input: ProviderInput, _ flow: FlowTransaction
  ) async throws(FlowError) -> StepCapabilities {
    let (record, request) = (flow.record, flow.request)
    let name = step.provider
    let known = try await lookup.loadAccount(step.account ?? record.account, flow)
    var account = known.map { known in
      StepAccount(
        id: known.id, record: nil, identifiers: known.identifiers.map(\.identifier),
        names: [known.firstName, known.lastName].compactMap(\.self), mustReplace: known.dueChanges[name] != nil)
    }
    let sealed = try await sealedRecord(of: account, for: step)
    let redaction = redaction(
      of: name, input, ([step.identifier].compactMap(\.self)) + (account?.identifiers ?? []), request)
    var upgraded: [UInt8]?
    if let known = account, let stored = sealed {
      let record = try seals.open(stored, of: name, for: known.id)
      upgraded = try await upgrade(record, by: provider, for: known.id, redaction, request)
      account = StepAccount(
        id: known.id, record: upgraded ?? record.bytes, identifiers: known.identifiers, names: known.names,
        mustReplace: known.mustReplace)
    }
    let context = StepContext(
      flow: record.name, flowPurpose: record.purpose.kind, purpose: record.stepPurpose(of: name), account: account,
      identifier: step.identifier,
      state: try seals.unseal(step.state, for: name, id: flow.id), now: request.now.milliseconds,
      callback: try seals.callback(name, id: flow.id, request),
      asked: step.asked(provider.descriptor), tools: tools(for: provider, redaction, request))
    return StepCapabilities(
      context: context, record: sealed.map { TokenHash(of: $0) }, upgraded: upgraded, redaction: redaction)
  }

  /// The sealed record of the step's provider for the account.
  ///
  /// Attack: the time of a step that begins tells whether its address is known, at no cost. Without an account, or
  /// without a record, the same is read, and the same work is done.
  private func sealedRecord(of account: StepAccount?, for step: StepRecord) async throws(FlowError) -> [UInt8]? {
    guard account != nil || step.identifier != nil else { return nil }
    let sealed = try await asking { () async throws(StoreFault) in
      try await store.providerRecord(of: account?.id ?? AccountLookup.nobody, for: step.provider)
    }
    // Sealing takes as long as opening.
    if sealed == nil { _ = try? keys.seal(Self.recordOfNobody, for: AccountLookup.nobody) }
    return sealed
  }

  /// As long as a hash of a password.
  private static let recordOfNobody = [UInt8](repeating: 0, count: 128)

  /// Builds the tools that every provider receives for a call.
  func tools(for provider: any Provider, _ redaction: Redaction, _ request: RequestContext) -> StepTools {
    let name = provider.descriptor.name
    let settings = request.generation.gateway.providers[name]
    let decision = request.client.decision
    let trace = request.trace
    return StepTools(
      randomBytes: { [random] in random.bytes($0) }, settings: settings?.forSteps ?? StepSettings(), web: web,
      messenger: messengers.messenger(for: provider, request),
      log: StepLog(explaining: { trace.note("because", redaction($0)) }) { [logger] level, sentence, values in
        var metadata: Logger.Metadata = ["decision": "\(decision)"]
        for (key, value) in values.prefix(Self.maxLogged) {
          metadata["\(name).\(redaction(key))"] = "\(redaction(value))"
        }
        logger.log(level: level.ofLogger, "\(name): \(redaction(sentence))", metadata: metadata)
      }, clock: StepClock { [clock] in clock.now().milliseconds },
      store: ProviderKeyValues(of: name, in: store, keys: keys, clock: clock, logger: logger),
      identity: identityMapper(for: name, request))
  }

  /// What a webhook or a maintenance may do to the sessions of the provider's identities.
  ///
  /// Attack: a provider ends sessions that identities of another one have opened.
  func siteSessions(of provider: ProviderName, _ request: RequestContext) -> SiteSessions {
    let ending = SessionEnding(store: store, clock: clock, random: random)
    return SiteSessions { [keys, registry = registry(request)] identity, siteSession in
      let hash = siteSession.map { keys.siteSessionHash($0, at: provider) }
      guard let identity else {
        guard let hash else { return 0 }
        return try await ending.end(openedBy: hash, at: provider)
      }
      guard registry.proves(identity, by: provider) else { throw ForeignIdentity() }
      return try await ending.end(of: identity, provedBy: provider, siteSession: hash)
    }
  }

  /// A provider names an identity that it does not prove.
  private struct ForeignIdentity: Error {}

  /// The function `identity` of the provider's policy.
  private func identityMapper(for provider: ProviderName, _ request: RequestContext) -> IdentityMapper {
    guard let function = request.generation.policies[provider]?.identity else { return IdentityMapper() }
    return IdentityMapper { [generations] claims in
      let verdict: IdentityVerdict
      do throws(PolicyFault) {
        verdict = try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
          try evaluator.identity(of: function, from: claims)
        }
      } catch {
        request.trace.rule(function.path, at: error.location)
        throw error
      }
      // The claims are personal: the decision has the answer only.
      request.trace.note("rule", function.path)
      switch verdict {
      case .mapped(let identity): return identity
      case .deny(let reason):
        request.trace.note("verdict", Verdict.deny(reason).text)
        throw IdentityDenied(reason: reason)
      }
    }
  }

  /// The maximum number of named values in a provider's log line.
  private static let maxLogged = 32

  /// Builds the redaction for a step: everything that the client sent, the identifiers, and the provider's secrets.
  func redaction(
    of provider: ProviderName, _ input: ProviderInput?, _ identifiers: [Identifier], code: CodeMessage? = nil,
    _ request: RequestContext
  ) -> Redaction {
    let sent = (input?.fields ?? [:]).filter { !ProviderDescriptor.plainCallbackFields.contains($0.key) }.values
    let secrets = request.generation.gateway.providers[provider]?.secrets.values.map { $0.reveal() } ?? []
    return Redaction(
      sent.compactMap { if case .text(let text) = $0 { text } else { nil } }
        + identifiers.flatMap { [$0.value, $0.display] } + secrets
        + [code?.code, code?.text].compactMap(\.self))
  }

  /// Converts a record to the provider's newest format.
  /// - Returns: nil if the record has that format already.
  func upgrade(
    _ record: ProviderRecord, by provider: any FullProvider, for account: String, _ redaction: Redaction,
    _ request: RequestContext
  ) async throws(FlowError) -> [UInt8]? {
    let (name, newest) = (provider.descriptor.name, provider.descriptor.recordVersion)
    if record.version == newest { return nil }
    guard record.version < newest else {
      throw .store(
        StoreFault(
          """
          the record of \(name) for \(account) has version \(record.version), and \(name) of this gateway reads versions up to \(newest): update it, or \
          remove the record by `moongate account reset \(account) --provider \(name)`
          """))
    }
    let start = ContinuousClock.now
    do {
      let upgraded = try await provider.upgrade(record.bytes, from: record.version)
      guard upgraded.count <= FlowSeals.maxRecordBytes else {
        throw StoreFault("its record is larger than \(FlowSeals.maxRecordBytes) bytes")
      }
      metrics.record(.upgrade, of: name, .upgraded, since: start)
      return upgraded
    } catch {
      metrics.record(.upgrade, of: name, .fault, since: start)
      logger.error(
        "a provider could not upgrade a record",
        metadata: [
          "decision": "\(request.client.decision)", "provider": "\(name)", "version": "\(record.version)",
          "fault": "\(redaction("\(error)"))",
        ])
      throw request.refusal(.busy)
    }
  }

  /// Runs a full provider. An error that it throws is a fault and never a pass.
  func callProvider(
    _ call: ProviderMetrics.Call, of provider: ProviderName, _ capabilities: StepCapabilities, _ flow: FlowTransaction,
    _ body: () async throws -> StepAnswer
  ) async throws(FlowError) -> StepAnswer {
    let request = flow.request
    // The provider may take a while.
    defer { flow.accounts.forget() }
    let start = ContinuousClock.now
    let answer: StepAnswer
    do {
      let attributes = [("moongate.provider", provider.rawValue)]
      answer = try await traced(
        "provider \(call.rawValue)", .internal, attributes, outcome: { ProviderMetrics.Outcome($0).rawValue }
      ) {
        try await body()
      }
    } catch let denied as IdentityDenied {
      metrics.record(call, of: provider, .refused, since: start)
      throw request.refusal(
        .policyReason(denied.reason), detail: request.generation.text(ofReason: denied.reason, by: provider))
    } catch let fault as PolicyFault {
      // The policy failed, not the provider.
      metrics.record(call, of: provider, .refused, since: start)
      throw .policy(fault)
    } catch {
      metrics.record(call, of: provider, .fault, since: start)
      // Attack: a decoder's error quotes what it could not decode, such as the code that was entered.
      let fault = capabilities.redaction("\(error)")
      request.trace.note(faultDetail(fault, of: provider, in: call, at: request.now))
      logger.error(
        "a provider failed",
        metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)", "fault": "\(fault)"])
      throw request.refusal(.busy)
    }
    do {
      try demandProper(answer, of: provider, request)
    } catch {
      metrics.record(call, of: provider, .fault, since: start)
      request.trace.note(faultDetail(request.trace.lines["fault"] ?? "", of: provider, in: call, at: request.now))
      throw error
    }
    metrics.record(call, of: provider, ProviderMetrics.Outcome(answer), since: start)
    return answer
  }
}

extension StepCapabilities {
  /// A copy with a permit to hash.
  func granting(_ hasher: (any SecretHasher)?) -> StepCapabilities {
    var capabilities = self
    capabilities.context.tools.hasher = hasher
    return capabilities
  }

  /// A copy without an account.
  var withoutAccount: StepCapabilities {
    var capabilities = StepCapabilities(context: context, record: nil, upgraded: nil, redaction: redaction)
    capabilities.context.account = nil
    return capabilities
  }

  /// A copy for use before authentication: without the account's names and identifiers.
  var anonymous: StepCapabilities {
    var capabilities = self
    capabilities.context.account = context.account.map { StepAccount(id: $0.id, record: nil) }
    return capabilities
  }
}

extension StepLog.Level {
  fileprivate var ofLogger: Logger.Level {
    switch self {
    case .info: .info
    case .notice: .notice
    case .warning: .warning
    case .error: .error
    }
  }
}
