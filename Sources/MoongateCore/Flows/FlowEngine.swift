// The verbs of a flow, and what they share. Begin, Submit, Completion and View are in files of their own.
import Logging
import MoongateSDK

/// Runs flows: the one door to signing in. `serve`, tests and the simulator all go through it; only clock, randomness and
/// store differ. What follows from what is `FlowMachine`'s to say; the engine looks up, charges, compares and stores.
package struct FlowEngine: Sendable {
  let store: any Store
  let generations: ActiveGeneration
  let providers: ProviderRegistry
  let delivery: any DeliveryService
  let web: any WebClient
  let hashing: any HashingPlaces
  let clock: any GatewayClock
  let random: any RandomSource
  let keys: KeyRing
  let audit: AuditTrail
  let logger: Logger
  let policyFaults: PolicyFaultLog
  let pending = PendingFlows()
  let deliveries = BackgroundDeliveries()
  /// What calls of providers have come to, for `/metrics`.
  package let providerMetrics = ProviderMetrics()
  private let sharesFlows: Bool
  /// Those that messages can be in.
  let languages: any MessageLanguages
  /// Those who wait for tries before theirs to be settled.
  let waiting = Places(1_000)
  /// Those whose account is being exported.
  let exports = Places(2)

  /// - Parameters:
  ///   - web: how providers reach other sites; nobody by default.
  ///   - hashing: where providers hash secrets; a gateway without such providers needs no places.
  ///   - policyFaults: where errors of policies go; nil: into the log by themselves.
  ///   - languages: those that messages can be in.
  ///   - sharesFlows: whether what one gateway creates another may begin: flows are then stored from their creation on, and not kept in memory.
  package init(
    store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, delivery: any DeliveryService,
    web: any WebClient = UnreachableWeb(), hashing: any HashingPlaces = NoHashingPlaces(), clock: any GatewayClock, random: any RandomSource,
    keys: KeyRing, audit: AuditTrail, logger: Logger, policyFaults: PolicyFaultLog? = nil,
    languages: any MessageLanguages = EnglishMessages(), sharesFlows: Bool = false
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
    self.sharesFlows = sharesFlows
    self.languages = languages
  }

  /// Begins a flow.
  /// - Parameters:
  ///   - returnTo: judged already (`RedirectTargets`); nil where it was refused or not given.
  ///   - browser: the hash of the browser's cookie, where the request carried an `Origin`: the flow is that browser's alone.
  ///   - app: the app that takes over what a sign-in ends in; the browser that completes it gets no session of its own then.
  package func create(
    _ name: String, returnTo: String?, browser: TokenHash?, app: AppReturn? = nil, client: ClientContext
  ) async -> Result<FlowView, Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      let id = FlowID(from: random)
      let machine = try await draft(name, id: id, returnTo: returnTo, browser: browser, app: app, visit)
      // Any gateway of the store may begin it.
      if sharesFlows { return try await store(machine, [], id: id, visit) }
      pending.put(
        machine.record, from: client.address.countingKey, at: visit.now, within: visit.generation.gateway.connectionLimits.flows)
      return try await view(of: machine.record, id: id, visit)
    }
  }

  /// What a flow would offer first to who asks. Nothing is begun: for pages that lead on to the step that it is about.
  /// - Parameter forChange: only what authorises a change of the account (`demandHeldProof`).
  package func offers(_ name: String, forChange: Bool = false, client: ClientContext) async -> Result<[ProviderName], Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      let id = FlowID(from: random)
      let machine = try await draft(name, id: id, returnTo: nil, browser: nil, app: nil, visit)
      let choices = try await view(of: machine.record, id: id, visit).choices
      guard forChange, let account = client.session?.account else { return choices }
      let authority = self.authority(over: account, visit)
      let able = choices.filter(authority.canAuthorise)
      guard !able.isEmpty else { throw unauthorised(authority, visit) }
      return able
    }
  }

  /// The end of the lock that keeps the account of the client's session from proving a factor in a flow; nil without a lock. Nothing is stored.
  package func lock(of provider: ProviderName, in name: String, client: ClientContext) async -> Result<Timestamp?, Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      let id = FlowID(from: random)
      var record = try await draft(name, id: id, returnTo: nil, browser: nil, app: nil, visit).record
      record.step = StepRecord(provider: provider, identifier: nil, isSkippable: false, account: nil, challenge: nil)
      return try await view(of: record, id: id, visit).step?.lockedUntil
    }
  }

  /// A flow as it begins, kept nowhere yet.
  private func draft(
    _ name: String, id: FlowID, returnTo: String?, browser: TokenHash?, app: AppReturn?, _ visit: Visit
  ) async throws(Halt) -> FlowMachine {
    guard let definition = visit.generation.flows[name] else {
      throw visit.refusal(.invalidInput, detail: "There is no flow of this name.", field: "flow")
    }
    let client = visit.client
    var session: SessionSnapshot?
    if definition.needsSession(by: registry(visit)) {
      guard let own = client.session, own.isLive(at: visit.now) else { throw visit.refusal(.unauthenticated) }
      guard app == nil else {
        throw visit.refusal(
          .invalidInput, detail: "An app can take over a sign-in, not a flow of someone who is signed in.", field: "code_challenge")
      }
      session = own
    }
    let choices = Set(definition.steps.flatMap(\.choices))
    var record = FlowRecord(
      id: id.hash, definition: definition, codes: visit.generation.policies.filter { choices.contains($0.key) }.mapValues(CodeTexts.init),
      createdAt: visit.now, returnTo: returnTo, browser: browser, network: client.address.networkKey,
      account: session.map { AccountVersion($0.account) }, startedIn: session?.session.id, app: app)
    record.origin = Base64URL.encode(keys.counterKey([Array("flow".utf8), client.address.countingKey]).prefix(12))
    var machine = FlowMachine(record)
    try demandChangeProof(record, visit)
    // A flow in which nothing applies proves nothing.
    guard case .offer(let offered) = try await advance(&machine, visit) else { throw visit.refusal(.denied) }
    if offered.allSatisfy({ record.stepPurpose(of: $0) == .set }) { try await demandProof(before: .set, machine.record, visit) }
    if record.purpose.isReset, let session { try demandResettable(offered, record.purpose, session.account, visit) }
    return machine
  }

  /// The flow as it stands.
  package func view(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      let machine = try await load(id, visit, completeToo: true, as: .look)
      return try await view(of: machine.record, id: id, visit)
    }
  }

  /// Leaves out the step, where it may be.
  package func skip(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      var machine = try await load(id, visit)
      guard machine.skipped() else { throw visit.refusal(.stepNotOpen) }
      let skipped = event(.stepSkipped, visit, record: machine.record, id: id)
      return try await carryOn(&machine, id: id, visit, changes: [.audit(skipped)])
    }
  }

  /// Ends the flow.
  package func delete(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      _ = try await load(id, visit, as: .look)
      pending.remove(id.hash)
      _ = try await asking { () async throws(StoreFault) in try await store.apply([.deleteFlow(id.hash)], at: visit.now) }
    }
  }
}

extension FlowEngine {
  /// Waits until no delivery is under way behind an answer: for those who read the messages, as a virtual gateway does.
  package func deliveriesEnd() async { await deliveries.end() }
}

// MARK: - What the verbs share

extension FlowEngine {
  /// Runs a verb and turns whatever stops it into a refusal with its decision in the audit trail.
  func answer<Answer: Sendable>(
    _ client: ClientContext, flow: FlowID?, _ body: (Visit) async throws(Halt) -> Answer
  ) async -> Result<Answer, Refusal> {
    let now = clock.now()
    let visit = Visit(client: client, now: now, generation: generations.current, device: keys.device(client.device, at: now))
    do {
      return .success(try await body(visit))
    } catch {
      var detail = visit.notes.lines
      detail["generation"] = visit.generation.id
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
          id: client.decision, at: visit.now, kind: .refused, flow: visit.notes.subject.flow, flowPrefix: flow?.prefix,
          provider: visit.notes.subject.provider, account: visit.notes.subject.account ?? client.session?.account.id,
          identifier: visit.notes.subject.identifier, address: client.address.description, code: refusal.code.name, detail: detail))
      return .failure(refusal)
    }
  }

  /// Asks the store.
  func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(Halt) -> Answer {
    do { return try await body() } catch { throw .store(error) }
  }

  /// The flow, if it takes verbs and is this client's.
  func load(_ id: FlowID, _ visit: Visit, completeToo: Bool = false, as use: FlowUse = .drive) async throws(Halt) -> FlowMachine {
    var found = pending.find(id.hash)
    if found == nil { found = try await asking { () async throws(StoreFault) in try await store.flow(id.hash) } }
    guard let stored = found, let record = try await bound(stored, to: visit.client, for: use, visit) else { throw visit.refusal(.flowNotFound) }
    try demandOwnSession(record, visit)
    let machine = FlowMachine(record)
    switch machine.closed(at: visit.now) {
    case nil: return machine
    case .gone: throw visit.refusal(.flowNotFound)
    case .expired: throw visit.refusal(.flowExpired)
    case .over:
      guard completeToo, record.status == .complete else { throw visit.refusal(.stepNotOpen) }
      return machine
    }
  }

  /// Moves on to the next step that applies.
  func advance(_ machine: inout FlowMachine, _ visit: Visit) async throws(Halt) -> FlowMachine.Action {
    while true {
      switch machine.next {
      case .offer, .chooseAccount: return machine.next
      case .complete: guard try await requireNext(&machine, visit) else { return .complete }
      case .askWhether(let function):
        // A function that the active generation does not have any more cannot excuse anyone: the step applies.
        let isKnown = visit.generation.flows[machine.record.name]?.steps.contains { $0.when == function } ?? false
        machine.stepApplies(isKnown ? try await condition(function, machine.record, visit) : true)
      }
    }
  }

  /// A line of the audit trail about this flow.
  func event(_ kind: AuditEvent.Kind, _ visit: Visit, record: FlowRecord, id: FlowID, step: StepRecord? = nil) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: visit.now, kind: kind, flow: record.name, flowPrefix: id.prefix, provider: step?.provider,
      account: record.account ?? step?.account, identifier: step?.identifier.map { keys.logHash($0.value) },
      address: visit.client.address.description, detail: ["request": visit.client.decision.text])
  }
}
