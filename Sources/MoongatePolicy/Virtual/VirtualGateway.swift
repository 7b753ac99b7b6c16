import Logging
import MoongateCore
import MoongateSDK
import Synchronization

/// The real flow engine with a manual clock, its own store, and a mailbox instead of deliveries.
///
/// Policies are tested, simulated and compared on it. Only the clock, the randomness, the store and the delivery differ
/// from production.
package struct VirtualGateway: Sendable {
  package let clock: ManualClock
  package let store: any Store
  package let generations: ActiveGeneration
  package let mailbox: Mailbox
  package let audit: AuditTrail
  private let engine: FlowEngine
  private let providers: ProviderRegistry
  private let random: any RandomSource
  let keys: KeyRing
  private let hashing: SecretHashing
  private let places: CountedHashing

  /// - Parameters:
  ///   - store: an empty store for exclusive use.
  ///   - seed: the same seed gives the same run.
  package init(
    _ generation: any PolicyGeneration, providers: ProviderRegistry, store: any Store,
    start: Timestamp = ManualClock.start, seed: UInt64 = 1
  ) throws {
    clock = ManualClock(start)
    self.store = store
    random = SeededRandom(seed: seed)
    mailbox = Mailbox()
    let played = (generation.registry ?? providers).dryRun(sending: mailbox)
    self.providers = played
    generations = ActiveGeneration(
      generation.registry == nil ? generation : DryRunGeneration(base: generation, registry: played), at: start)
    let logger = Logger(label: "virtual", factory: { _ in SwiftLogNoOpLogHandler() })
    audit = AuditTrail(store: store, logger: logger, foldsFloods: false)
    keys = try KeyRing(master: random.bytes(32))
    hashing = SecretHashing(keys: keys, random: random, cost: .cheap)
    places = CountedHashing(InlineHashing(hashing))
    engine = FlowEngine(
      store: store, generations: generations, providers: played, delivery: mailbox, hashing: places, clock: clock,
      random: random, keys: keys, audit: audit, logger: logger)
  }

  /// The number of secrets that have been hashed or verified.
  package var hashes: Int { places.count }

  /// A client of this gateway.
  /// - Parameter device: the token of a device that has signed in before.
  package func client(_ address: ClientAddress = .unspecified, device: SecretText? = nil) -> ClientContext {
    ClientContext(
      decision: DecisionID(from: random), address: address, userAgent: nil, browser: nil, session: nil, device: device)
  }

  /// The code of a new invitation.
  func invitationCode() -> InvitationCode { InvitationCode(from: random) }

  /// Creates a flow.
  package func create(_ flow: String, by client: ClientContext) async -> Result<FlowView, Refusal> {
    await engine.create(flow, returnTo: nil, browser: nil, client: client)
  }

  /// Begins a step. Returns after its message, if any, has reached the mailbox.
  package func begin(_ id: FlowID, provider: ProviderName?, fields: [String: InputValue], by client: ClientContext)
    async -> Result<FlowView, Refusal>
  {
    let answer = await engine.begin(id, provider: provider?.rawValue, fields: fields, client: client)
    await engine.deliveriesEnd()
    return answer
  }

  /// Begins a step with one provider after the other, as in a `fallback`. Stops at the first refusal.
  package func begin(
    _ id: FlowID, providers: [ProviderName], fields: [String: InputValue], by client: ClientContext
  ) async -> Result<FlowView, Refusal> {
    var answer = Result<FlowView, Refusal>.failure(Refusal(.stepNotOpen, decision: client.decision))
    for provider in providers {
      answer = await begin(id, provider: provider, fields: fields, by: client)
      guard case .success = answer else { break }
    }
    return answer
  }

  package func resend(_ id: FlowID, by client: ClientContext) async -> Result<FlowView, Refusal> {
    let answer = await engine.resend(id, client: client)
    await engine.deliveriesEnd()
    return answer
  }

  package func submit(_ id: FlowID, fields: [String: InputValue], by client: ClientContext) async -> Result<
    FlowView, Refusal
  > {
    await engine.submit(id, fields: fields, client: client)
  }

  package func skip(_ id: FlowID, by client: ClientContext) async -> Result<FlowView, Refusal> {
    await engine.skip(id, client: client)
  }

  package func view(_ id: FlowID, by client: ClientContext) async -> Result<FlowView, Refusal> {
    await engine.view(id, client: client)
  }

  /// The decision of the proxy about a request.
  /// - Parameters:
  /// - token: the session of the user; nil without one.
  /// - service: the service token of a program, instead of a session.
  /// - Returns: the matching route, or the refusal.
  package func request(
    _ request: RequestFacts, session token: TokenHash?, token service: (name: String, groups: [GroupName])? = nil,
    by client: ClientContext
  ) async throws(StoreFault) -> Result<Route, Refusal> {
    func refusal(_ code: RefusalCode) -> Result<Route, Refusal> { .failure(Refusal(code, decision: client.decision)) }
    let generation = generations.current
    let route: Route
    switch RouteMatcher(generation.routes).find(request.path, host: request.host, method: request.method) {
    case .route(let index): route = generation.routes.routes[index]
    case .refused: return refusal(.badRequest)
    case .none: return refusal(.noRoute)
    }
    var session: SessionSnapshot?
    let now = clock.now()
    if let service, let hash = keys.accessTokenHashes(AccessTokenSecret(from: random).text).first {
      let token = AccessToken(
        id: "tk_case", name: service.name, owner: nil, groups: service.groups, createdAt: now, expiresAt: nil,
        hash: hash)
      session = SessionSnapshot(FoundAccessToken(token: token, account: nil))
    } else if let token {
      session = try await SessionDirectory(store: store, clock: clock).find(token)
    }
    // A token that the route does not take is refused, from such a network, too.
    let takes = session?.token.map { route.tokens?.admits($0) ?? true } ?? true
    if takes, route.isOpen(to: client.address, at: request.host, in: generation.gateway) { return .success(route) }
    let verdict = route.verdict(session, entitlements(of: session, in: generation), at: now) {
      function, session, entitlements in
      let facts = session.facts(
        of: request, by: client.facts(in: generation), entitlements, at: now, clockIsSuspect: clock.isSuspect)
      do throws(PolicyFault) {
        return try generations.withEvaluator(of: generation) { evaluator throws(PolicyFault) in
          evaluator.verdict(of: function, given: facts)
        }
      } catch {
        return .fault(error)
      }
    }
    return refused(by: verdict, stepUp: route.stepUpFlow, client).map { .failure($0) } ?? .success(route)
  }

  /// What an app gets when a user signs in to it.
  /// - Parameter token: the session of the user; nil without one.
  /// - Returns: the claims, or the refusal.
  package func signIn(to app: App, scopes: [String], session token: TokenHash?, by client: ClientContext)
    async throws(StoreFault) -> Result<[AppClaim], Refusal>
  {
    guard let token, let session = try await SessionDirectory(store: store, clock: clock).find(token) else {
      return .failure(Refusal(.unauthenticated, decision: client.decision))
    }
    let generation = generations.current
    let call = AppCall(generation: generation, client: client.facts(in: generation), decision: client.decision)
    switch apps.verdict(app, session, call) {
    case .needsFactors:
      return .failure(
        Refusal(.stepUpRequired, decision: client.decision, flow: FlowPurpose.stepUp.usualName))
    case .judged(let verdict):
      if let refusal = refused(by: verdict, stepUp: FlowPurpose.stepUp.usualName, client) { return .failure(refusal) }
    }
    do throws(PolicyFault) { return .success(try apps.claims(of: session, scopes: scopes, app, call)) } catch {
      return .failure(Refusal(.policyError, decision: client.decision, detail: error.description))
    }
  }

  private var apps: Apps {
    Apps(
      store: store, generations: generations, providers: providers, keys: keys, clock: clock, random: random,
      signing: SigningKeys(keys, store: store, at: clock.now()), audit: audit)
  }

  /// - Parameter stepUp: the flow in which a missing step is taken.
  private func refused(by verdict: RouteVerdict, stepUp: String, _ client: ClientContext) -> Refusal? {
    let generation = generations.current
    func refusal(
      _ code: RefusalCode, detail: String? = nil, provider: ProviderName? = nil, flow: String? = nil,
      groups: GroupRequirement? = nil
    ) -> Refusal {
      Refusal(code, decision: client.decision, detail: detail, provider: provider, flow: flow, groups: groups)
    }
    return switch verdict {
    case .pass: nil
    case .noSession: refusal(.unauthenticated)
    case .emailNotVerified: refusal(.emailNotVerified)
    case .notInGroup(let groups): refusal(.forbidden, groups: groups)
    case .needs(let provider): refusal(.stepUpRequired, provider: provider, flow: stepUp)
    case .tooNew(let provider, _): refusal(.identifierTooNew, provider: provider, flow: nil)
    case .denied(let reason): refusal(.policyReason(reason), detail: generation.text(ofReason: reason))
    case .failed(let fault): refusal(.policyError, detail: fault.description)
    }
  }

  /// The groups and claims of a session.
  package func entitlements(of session: SessionSnapshot?, in generation: any PolicyGeneration) -> Result<
    Entitlements, PolicyFault
  > {
    guard let session, generation.accounts.definesEntitlements else { return .success(.none) }
    return Result { () throws(PolicyFault) in
      try generations.withEvaluator(of: generation) { evaluator throws(PolicyFault) in
        try generation.accounts.entitlements(of: session, in: generation) { () throws(PolicyFault) in evaluator }
      }
    }
  }

  /// Creates an account with verified identifiers.
  package func makeAccount(holding identifiers: [Identifier]) async throws(StoreFault) -> Account {
    let now = clock.now()
    let account = Account(
      id: "ac_" + Base64URL.encode(random.bytes(16)), createdAt: now, lastSeenAt: now,
      identifiers: identifiers.map { HeldIdentifier(identifier: $0, verifiedAt: now) })
    _ = try await store.apply([.createAccount(account)], at: now)
    return account
  }

  /// The stored record of a secret for a provider that hashes secrets.
  package func record(of secret: String, for provider: ProviderName, account: String) throws -> [UInt8] {
    let hash = try hashing.hash(Array(secret.utf8))
    let record = (providers[provider] as? any SecretImporting)?.record(importing: hash) ?? Array(hash.utf8)
    return try keys.seal(record, for: "\(provider) \(account)")
  }

  /// Trusts a new device that has just passed the providers for the account.
  /// - Returns: its token; nil if the account does not exist.
  package func trustDevice(for id: String, passed: [ProviderName]) async throws(StoreFault) -> SecretText? {
    let now = clock.now()
    guard let account = try await store.account(id),
      let trust = keys.trusting(nil, for: account, passed: passed, userAgent: nil, now, random)
    else { return nil }
    _ = try await store.apply([trust.change], at: now)
    return trust.token
  }

  /// Creates a session as if the account had just signed in.
  package func makeSession(of account: String) async throws(StoreFault) -> TokenHash {
    let now = clock.now()
    let token = SessionToken(from: random).hash
    let proved = try await store.account(account)?.identifiers.first { $0.verifiedAt != nil }?.identifier
    let senders = providers.all.filter { $0 is any CodeProvider }
    let isUsed = { [generations] (provider: any Provider) in
      generations.current.policies[provider.descriptor.name] != nil
    }
    let able = senders.filter(isUsed) + senders.filter { !isUsed($0) }
    let prover =
      able.first { code in proved.map { code.descriptor.identifierKinds.contains($0.kind) } ?? false } ?? able.first
    let session = Session(
      id: "se_" + Base64URL.encode(random.bytes(12)), token: token, account: account, createdAt: now,
      expiresAt: now + .seconds(43_200),
      idle: .seconds(43_200), lastSeenAt: now,
      passed: prover.map {
        [PassedStep(provider: $0.descriptor.name, at: now, identifier: proved.map { keys.proofHash(of: $0) })]
      } ?? [],
      userAgent: nil)
    _ = try await store.apply([.putSession(session)], at: now)
    return token
  }
}

/// Receives the messages of a virtual gateway.
package final class Mailbox: DeliveryService, Messenger {
  private struct State {
    var latest: [String: Message] = [:]
    var count = 0
    var codes: [ProviderName: String] = [:]
    var unreachable: Set<ProviderName> = []
  }

  private let state = Mutex(State())

  package init() {}

  package func messenger(for settings: DeliverySettings) -> any Messenger { self }

  package func send(_ message: Message) async throws(DeliveryFault) {
    // Notices are not limited by policies.
    guard message.code != nil else { return }
    state.withLock { state in
      state.latest[message.to] = message
      state.count += 1
    }
  }

  /// Suppresses messages of the provider from now on.
  package func disconnect(_ provider: ProviderName) { state.withLock { _ = $0.unreachable.insert(provider) } }

  /// Whether messages of the provider are delivered.
  func isReachable(by provider: ProviderName) -> Bool { state.withLock { !$0.unreachable.contains(provider) } }

  /// Records that a code of the provider was delivered.
  func note(_ code: String, by provider: ProviderName) { state.withLock { $0.codes[provider] = code } }

  /// The code that the provider sent last.
  func latest(by provider: ProviderName) -> String? { state.withLock { $0.codes[provider] } }

  /// The number of codes that have been sent.
  package var count: Int { state.withLock { $0.count } }

  /// The last message to this phone number or email address.
  package func latest(to: String) -> Message? { state.withLock { $0.latest[to] } }
}

extension ClientContext {
  /// The client of a request to a service or an app.
  fileprivate func facts(in generation: any PolicyGeneration) -> ClientFacts {
    ClientFacts(
      address: address, userAgent: userAgent, isNewDevice: false, place: place ?? generation.gateway.place(of: address))
  }
}
