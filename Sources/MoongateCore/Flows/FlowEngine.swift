import Logging
import MoongateSDK

/// Runs flows. All sign-ins go through this engine: `serve`, tests and the simulator differ only in clock, randomness
/// and store. `FlowMachine` decides the transitions, and `FlowTransaction` carries a request through the parts of the
/// engine (`FlowParts`): `StepAdmission`, `CodeStep`, `ProviderStep`, `FlowCompletion`.
///
/// This type has the operations that HTTP, the CLI and tests call. Each one loads a flow, and its parts do the rest.
package struct FlowEngine: FlowPart {
  let services: FlowServices
  let parts: FlowParts
  let policyFaults: FoldedLog<LoggedPolicyFault>
  let shadow: PolicyShadow?
  /// Limits the account exports that run at the same time.
  let exports = ConcurrencyLimit(2)

  /// The maximum number of unverified claims on an identifier (`AccountLookup`).
  static var maxClaims: Int { AccountLookup.maxClaims }
  /// The counts and durations of provider calls, for `/metrics`.
  package var providerMetrics: ProviderMetrics { parts.metrics }
  package var sendMetrics: SendMetrics { parts.sendMetrics }

  var pending: PendingFlows { parts.pending }
  var storage: FlowStorage { parts.storage }
  var lookup: AccountLookup { parts.lookup }
  var checks: AccountChecks { parts.checks }
  var calls: ProviderCalls { parts.calls }
  var views: FlowViews { parts.views }

  /// More than five parameters: one for each service.
  /// - Parameters:
  ///   - web: the HTTP client for providers. By default, requests fail.
  ///   - hashing: the hashing permits. Only needed with providers that hash secrets.
  ///   - policyFaults: where policy errors are reported; nil for a separate log.
  ///   - shadow: evaluates a candidate configuration on live requests, if an operator has enabled it.
  ///   - languages: the languages that messages are available in.
  ///   - sharesFlows: whether another gateway may begin a flow that this one creates. Flows are then stored on creation
  ///     and not kept in memory.
  package init(
    store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, delivery: any DeliveryService,
    web: any WebClient = UnreachableWeb(), hashing: any HashingPermits = UnavailableHashing(), clock: any GatewayClock,
    random: any RandomSource,
    keys: KeyRing, audit: AuditTrail, logger: Logger, policyFaults: FoldedLog<LoggedPolicyFault>? = nil,
    shadow: PolicyShadow? = nil, languages: any MessageLanguages = EnglishMessages(), sharesFlows: Bool = false
  ) {
    services = FlowServices(
      store: store, generations: generations, providers: providers, clock: clock, random: random, keys: keys,
      audit: audit, logger: logger)
    let outside = ProviderServices(delivery: delivery, web: web, hashing: hashing, languages: languages)
    parts = FlowParts(services, outside, sharesFlows: sharesFlows)
    self.policyFaults = policyFaults ?? FoldedLog<LoggedPolicyFault>(logger: logger, clock: clock)
    self.shadow = shadow
  }

  /// Waits until all deliveries behind responses have finished. For readers of the messages, such as a virtual gateway.
  package func deliveriesEnd() async { await parts.deliveries.end() }

  /// The current state of a flow.
  package func view(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      try await views.view(of: try await storage.load(id, request, completeToo: true, as: .look))
    }
  }

  /// Skips the current step, if it is optional.
  package func skip(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      var flow = try await storage.load(id, request)
      guard flow.machine.skipped() else { throw request.refusal(.stepNotOpen) }
      flow.changes.append(.audit(event(.stepSkipped, flow)))
      return try await parts.completion.storeOrComplete(flow)
    }
  }

  /// Cancels the flow.
  package func delete(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      _ = try await storage.load(id, request, as: .look)
      pending.remove(id.hash)
      _ = try await asking { () async throws(StoreFault) in
        try await store.apply([.deleteFlow(id.hash)], at: request.now)
      }
    }
  }
}

// MARK: - Shared by the operations

extension FlowEngine {
  /// Runs an operation. If it fails, returns a refusal and writes the decision to the audit trail.
  func answer<Answer: Sendable>(
    _ client: ClientContext, flow: FlowID?, call: String = #function,
    _ body: (RequestContext) async throws(FlowError) -> Answer
  ) async -> Result<Answer, Refusal> {
    let now = clock.now()
    var request = RequestContext(
      client: client, now: now, generation: generations.current, device: keys.device(client.device, at: now))
    if let shadow, shadow.isOn { request.watch = RequestWatch() }
    defer {
      if let shadow, let watch = request.watch {
        shadow.take(watch, RequestDecision(decision: client.decision, at: now))
      }
    }
    do {
      return .success(
        try await traced("flow \(call.prefix { $0 != "(" })") { () async throws(FlowError) in
          try await working(with: flow) { () async throws(FlowError) in try await body(request) }
        })
    } catch {
      return .failure(refusal(for: error, request, flow: flow))
    }
  }

  /// Writes the decision to the audit trail.
  /// - Returns: what the client learns of it.
  private func refusal(for error: FlowError, _ request: RequestContext, flow: FlowID?) -> Refusal {
    let client = request.client
    var detail = request.trace.lines
    detail["generation"] = request.generation.id
    var refusal: Refusal
    switch error {
    case .refused(let given):
      refusal = given
      if let field = given.field { detail["field"] = field }
      if given.code.concernsState { detail["state"] = request.trace.subject.state }
      if let left = given.attemptsLeft { detail["attempts_left"] = String(left) }
      if let wait = given.retryAfter { detail["retry_after"] = String(wait.retryAfterSeconds) }
    case .store(let fault):
      refusal = Refusal(.storeUnavailable, decision: client.decision)
      detail["fault"] = fault.description
      logger.error("the store did not answer", metadata: ["decision": "\(client.decision)", "fault": "\(fault)"])
    case .policy(let fault):
      refusal = Refusal(.policyError, decision: client.decision)
      detail["fault"] = fault.description
      detail["kind"] = fault.kind.rawValue
      if detail["at"] == nil { detail["at"] = fault.location?.description }
      policyFaults.report(fault, rule: detail["rule"], decision: client.decision)
    }
    refusal.decision = audit.record(
      AuditEvent(
        id: client.decision, at: request.now, kind: .refused, flow: request.trace.subject.flow,
        flowPrefix: flow?.prefix,
        provider: request.trace.subject.provider,
        account: request.trace.subject.account ?? client.session?.account.id,
        identifier: request.trace.subject.identifier, address: client.address.description, code: refusal.code.name,
        detail: detail))
    return refusal
  }
}

extension RefusalCode {
  /// Whether the state of the flow explains the refusal.
  fileprivate var concernsState: Bool { [.stepNotOpen, .denied, .flowExpired, .flowNotFound].contains(self) }
}
