// The operations of flows and what they share. Begin, Submit, Completion and View have files of their own.
import Logging
import MoongateSDK

/// Runs flows. All sign-ins go through this engine: `serve`, tests and the simulator differ only in clock, randomness
/// and store. `FlowMachine` decides the transitions; the engine loads, charges, compares and stores.
package struct FlowEngine: Sendable {
  let store: any Store
  let generations: ActiveGeneration
  let providers: ProviderRegistry
  let delivery: any DeliveryService
  let web: any WebClient
  let hashing: any HashingPermits
  let clock: any GatewayClock
  let random: any RandomSource
  let keys: KeyRing
  let audit: AuditTrail
  let logger: Logger
  let policyFaults: PolicyFaultLog
  let shadow: PolicyShadow?
  let pending: PendingFlows
  let deliveries = BackgroundDeliveries()
  /// The counts and durations of provider calls, for `/metrics`.
  package let providerMetrics = ProviderMetrics()
  package let sendMetrics = SendMetrics()
  /// The languages that messages are available in.
  let languages: any MessageLanguages
  /// Limits the attempts that wait for earlier attempts to be settled.
  let waiting = ConcurrencyLimit(1_000)
  /// Limits the account exports that run at the same time.
  let exports = ConcurrencyLimit(2)

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
    keys: KeyRing, audit: AuditTrail, logger: Logger, policyFaults: PolicyFaultLog? = nil,
    shadow: PolicyShadow? = nil, languages: any MessageLanguages = EnglishMessages(), sharesFlows: Bool = false
  ) {
    self.store = store
    self.generations = generations
    self.providers = providers
    self.delivery = delivery
    self.web = web
    self.hashing = hashing
    self.clock = clock
    self.random = random
    self.keys = keys
    self.audit = audit
    self.logger = logger
    self.policyFaults = policyFaults ?? PolicyFaultLog(logger: logger, clock: clock)
    pending = PendingFlows(isShared: sharesFlows)
    self.shadow = shadow
    self.languages = languages
  }

  /// Creates a flow.
  /// - Parameters:
  ///   - returnTo: the target, already validated (`RedirectTargets`); nil if it was refused or not given.
  ///   - browser: the hash of the browser's cookie if the request had an `Origin`. The flow then belongs to that
  ///     browser only.
  ///   - app: the app that receives the result of a sign-in. The browser that completes the flow then gets no session.
  package func create(
    _ name: String, returnTo: String?, browser: TokenHash?, app: AppReturn? = nil, client: ClientContext
  ) async -> Result<FlowView, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = FlowID(from: random)
      let machine = try await draft(name, id: id, returnTo: returnTo, browser: browser, app: app, request)
      let isKept = pending.put(
        machine.record, from: client.address.countingKey, at: request.now,
        within: request.generation.gateway.connectionLimits.flows)
      // Any gateway that uses the store may begin this flow.
      guard isKept else { return try await store(machine, [], id: id, request) }
      return try await view(of: machine.record, id: id, request)
    }
  }

  /// The providers that a flow would offer first. Nothing is created. Used by pages that link directly to a step.
  /// - Parameter forChange: only return providers that can authorise a change to the account (`requireHeldProof`).
  package func offers(_ name: String, forChange: Bool = false, client: ClientContext) async -> Result<
    [ProviderName], Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = FlowID(from: random)
      let machine = try await draft(name, id: id, returnTo: nil, browser: nil, app: nil, request)
      let choices = try await view(of: machine.record, id: id, request).choices
      guard forChange, let account = client.session?.account else { return choices }
      let authority = self.authority(over: account, request)
      let able = choices.filter(authority.canAuthorise)
      guard !able.isEmpty else { throw unauthorised(authority, request) }
      return able
    }
  }

  /// When the lock ends that prevents the session's account from proving a factor in a flow; nil without a lock.
  /// Nothing is stored.
  package func lock(of provider: ProviderName, in name: String, client: ClientContext) async -> Result<
    Timestamp?, Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = FlowID(from: random)
      var record = try await draft(name, id: id, returnTo: nil, browser: nil, app: nil, request).record
      record.step = StepRecord(provider: provider, identifier: nil, isSkippable: false, account: nil, challenge: nil)
      return try await view(of: record, id: id, request).step?.lockedUntil
    }
  }

  /// A new flow that is not stored yet.
  private func draft(
    _ name: String, id: FlowID, returnTo: String?, browser: TokenHash?, app: AppReturn?, _ request: RequestContext
  ) async throws(FlowError) -> FlowMachine {
    guard let definition = request.generation.flows[name] else {
      request.watch?.asked(.flow(name))
      throw request.refusal(.invalidInput, detail: "There is no flow of this name.", field: "flow")
    }
    request.watch?.asked(.flow(name))
    let client = request.client
    var session: SessionSnapshot?
    if definition.needsSession(by: registry(request)) {
      guard let own = client.session, own.isLive(at: request.now) else { throw request.refusal(.unauthenticated) }
      guard app == nil else {
        throw request.refusal(
          .invalidInput, detail: "An app can take over a sign-in, not a flow of someone who is signed in.",
          field: "code_challenge")
      }
      session = own
    }
    let choices = Set(definition.steps.flatMap(\.choices))
    var record = FlowRecord(
      id: id.hash, definition: definition,
      codes: request.generation.policies.filter { choices.contains($0.key) }.mapValues(CodeTexts.init),
      createdAt: request.now, returnTo: returnTo, browser: browser, network: client.address.networkKey,
      account: session.map { AccountVersion($0.account) }, startedIn: session?.session.id, app: app)
    record.origin = Base64URL.encode(keys.counterKey([Array("flow".utf8), client.address.countingKey]).prefix(12))
    var machine = FlowMachine(record)
    try demandChangeProof(record, request)
    // A flow without any applicable step would prove nothing.
    guard case .offer(let offered) = try await advance(&machine, request) else { throw request.refusal(.denied) }
    if offered.allSatisfy({ record.stepPurpose(of: $0) == .set }) {
      try await demandProof(before: .set, machine.record, request)
    }
    if record.purpose.isReset, let session { try demandResettable(offered, record.purpose, session.account, request) }
    return machine
  }

  /// The current state of a flow.
  package func view(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      let machine = try await load(id, request, completeToo: true, as: .look)
      return try await view(of: machine.record, id: id, request)
    }
  }

  /// Skips the current step, if it is optional.
  package func skip(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      var machine = try await load(id, request)
      guard machine.skipped() else { throw request.refusal(.stepNotOpen) }
      let skipped = event(.stepSkipped, request, record: machine.record, id: id)
      return try await carryOn(&machine, id: id, request, changes: [.audit(skipped)])
    }
  }

  /// Cancels the flow.
  package func delete(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      _ = try await load(id, request, as: .look)
      pending.remove(id.hash)
      _ = try await asking { () async throws(StoreFault) in
        try await store.apply([.deleteFlow(id.hash)], at: request.now)
      }
    }
  }
}

extension FlowEngine {
  /// Waits until all deliveries behind responses have finished. For readers of the messages, such as a virtual gateway.
  package func deliveriesEnd() async { await deliveries.end() }
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
      var detail = request.notes.lines
      detail["generation"] = request.generation.id
      var refusal: Refusal
      switch error {
      case .refused(let given):
        refusal = given
        if let field = given.field { detail["field"] = field }
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
          id: client.decision, at: request.now, kind: .refused, flow: request.notes.subject.flow,
          flowPrefix: flow?.prefix,
          provider: request.notes.subject.provider,
          account: request.notes.subject.account ?? client.session?.account.id,
          identifier: request.notes.subject.identifier, address: client.address.description, code: refusal.code.name,
          detail: detail))
      return .failure(refusal)
    }
  }

  /// Runs a store operation and converts its error.
  func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(FlowError) -> Answer {
    do { return try await body() } catch { throw .store(error) }
  }

  /// Loads a flow if this client may use it and it is open.
  func load(_ id: FlowID, _ request: RequestContext, completeToo: Bool = false, as use: FlowUse = .drive)
    async throws(FlowError) -> FlowMachine
  {
    var found = pending.find(id.hash)
    if found == nil { found = try await asking { () async throws(StoreFault) in try await store.flow(id.hash) } }
    guard let stored = found, let record = try await bound(stored, to: request.client, for: use, request) else {
      throw request.refusal(.flowNotFound)
    }
    try demandOwnSession(record, request)
    let machine = FlowMachine(record)
    switch machine.closed(at: request.now) {
    case nil: return machine
    case .gone: throw request.refusal(.flowNotFound)
    case .expired: throw request.refusal(.flowExpired)
    case .over:
      guard completeToo, record.status == .complete else { throw request.refusal(.stepNotOpen) }
      return machine
    }
  }

  /// Advances to the next step that applies.
  func advance(_ machine: inout FlowMachine, _ request: RequestContext) async throws(FlowError) -> FlowMachine.Action {
    while true {
      switch machine.next {
      case .offer, .chooseAccount: return machine.next
      case .complete: guard try await requireNext(&machine, request) else { return .complete }
      case .askWhether(let function):
        // If the active generation no longer has the function, the step applies.
        let isKnown = request.generation.flows[machine.record.name]?.steps.contains { $0.when == function } ?? false
        machine.stepApplies(isKnown ? try await condition(function, machine.record, request) : true)
      }
    }
  }

  /// An audit event about this flow.
  func event(
    _ kind: AuditEvent.Kind, _ request: RequestContext, record: FlowRecord, id: FlowID, step: StepRecord? = nil
  ) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: kind, flow: record.name, flowPrefix: id.prefix,
      provider: step?.provider,
      account: record.account ?? step?.account, identifier: step?.identifier.map { keys.logHash($0.value) },
      address: request.client.address.description, detail: ["request": request.client.decision.text])
  }
}
