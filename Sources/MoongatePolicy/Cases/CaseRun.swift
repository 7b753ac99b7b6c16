import MoongateCore
import MoongateSDK

/// A running case. Its acts are in `CaseRun+Acts.swift`, its expectations in `CaseRun+Expecting.swift`.
struct CaseRun {
  /// The last answer of the gateway.
  enum Answer {
    case view(FlowView)
    case refusal(Refusal)
    /// A request that is forwarded to its upstream.
    case passed(Route)
    /// The claims that an app gets.
    case signedIn(App, [AppClaim])
  }

  /// Why a case ends early.
  enum Stop: Error {
    case failure(CaseOutcome.Failure)
    case outOfTime
  }

  let one: PolicyCase
  let gateway: VirtualGateway
  let providers: ProviderRegistry
  let end: ContinuousClock.Instant?
  /// The time at which the case began.
  var start: Timestamp
  var address = ClientAddress(bytes: [203, 0, 113, 1]) ?? .unspecified
  /// Where the address is.
  var place = ClientPlace()
  var userAgent: String?
  /// The user's choice to stay signed in; nil: none yet.
  var remember: Bool?
  /// The code of the invitation with which the next flow begins; nil: none.
  var invitation: SecretText?
  /// The number of invitations so far.
  var invitations = 0
  /// The name of the current device; nil: each request comes from a new one.
  var device: String?
  /// The device tokens by device, from their sign-ins.
  private var deviceTokens: [String: SecretText] = [:]
  /// Whether requests come from a device that has signed in to the account before, and its token.
  var knowsDevice = false
  var knownDevice: SecretText?
  /// The service token of the requests; nil for requests of a user.
  var token: PolicyCase.TokenSetup?
  /// As typed.
  var identifiers: [IdentifierKind: String] = [:]
  /// The kind of the last named identifier.
  var current: IdentifierKind?
  var chosen: ProviderName?
  /// The id of the case's account; nil until it is created.
  var account: String?
  /// The account's secrets, by provider.
  var secrets: [ProviderName: String] = [:]
  /// The user's authenticator app, once a step has shown its key.
  var app: CaseApp?
  /// The user's device, for steps that call the Web Authentication API.
  var credentialDevice = CaseDevice()
  /// An account that is created before the next request, when all its identifiers are known.
  var pending: (setup: PolicyCase.AccountSetup, location: SourceLocation)?
  var flow: (id: FlowID, name: String)?
  var answer: Answer?
  /// The session of the last completed flow, or one that was created for a flow that needs a session.
  var session: TokenHash?
  private(set) var signedIn: SessionSnapshot?
  private var trace: [CaseOutcome.Line] = []
  /// The last failure of a function that no expectation has covered.
  private var unexpectedFault: String?
  /// Whether an expectation covered the failure in the last answer.
  private var isFaultExpected = false

  init(_ one: PolicyCase, gateway: VirtualGateway, providers: ProviderRegistry, end: ContinuousClock.Instant?) {
    self.one = one
    self.gateway = gateway
    self.providers = providers
    self.end = end
    start = gateway.clock.now()
  }

  var generation: any PolicyGeneration { gateway.generations.current }

  /// - Returns: nil if time ran out.
  mutating func play() async throws -> CaseOutcome? {
    for act in one.acts {
      let at = gateway.clock.now() - start
      do {
        try checkTime()
        try await readSession()
        let outcome = try await perform(act) + (try await faultWords(in: act))
        if case .expect = act.kind, try await fault() != nil { (unexpectedFault, isFaultExpected) = (nil, true) }
        trace.append(CaseOutcome.Line(at: at, act: act.kind.description, outcome: outcome, location: act.location))
      } catch Stop.failure(let failure) {
        trace.append(CaseOutcome.Line(at: at, act: act.kind.description, outcome: "", location: act.location))
        return outcome(failure.because(isFaultExpected ? nil : try await fault() ?? unexpectedFault))
      } catch Stop.outOfTime {
        return nil
      }
    }
    return outcome(nil)
  }

  private func outcome(_ failure: CaseOutcome.Failure?) -> CaseOutcome {
    CaseOutcome(name: one.name, location: one.location, trace: trace, failure: failure)
  }

  /// The message of a failing policy, after the words of the refusal.
  private mutating func faultWords(in act: PolicyCase.Act) async throws -> String {
    switch act.kind {
    case .flow, .send, .resend, .wrong, .right, .enter, .skip, .request, .app:
      isFaultExpected = false
      guard let fault = try await fault() else { return "" }
      unexpectedFault = fault
      return ", \(fault)"
    default: return ""
    }
  }

  /// The message of a failing policy, if it caused the last answer.
  private func fault() async throws -> String? {
    guard case .refusal(let refusal)? = answer, refusal.code == .policyError else { return nil }
    return try await gateway.audit.event(refusal.decision)?.detail["fault"] ?? refusal.detail
  }

  /// Checks the time between two requests. A request is never interrupted.
  func checkTime() throws { if let end, ContinuousClock.now >= end { throw Stop.outOfTime } }

  func fail(_ act: PolicyCase.Act, _ sentence: String) -> Stop {
    .failure(CaseOutcome.Failure(location: act.location, sentence: sentence, differences: []))
  }

  var client: ClientContext {
    var client = ClientContext(
      decision: gateway.client(address).decision, address: address, userAgent: userAgent, browser: nil,
      session: signedIn, device: knowsDevice ? knownDevice : device.flatMap { deviceTokens[$0] })
    (client.place, client.remember) = (place, remember)
    return client
  }

  mutating func take(_ result: Result<FlowView, Refusal>) {
    switch result {
    case .success(let view):
      answer = .view(view)
      if let shown = view.step?.shown, let taken = CaseApp(shown) { app = taken }
      if let device, let token = view.deviceToken { deviceTokens[device] = token }
      if let token = view.session?.token { session = TokenHash(of: token.reveal().utf8) }
    case .failure(let refusal): answer = .refusal(refusal)
    }
  }

  /// Reads the current session from the store. It may have ended or changed.
  mutating func readSession() async throws {
    signedIn = nil
    guard let session, let found = try await gateway.store.session(session), found.isLive(at: gateway.clock.now())
    else { return }
    signedIn = found
  }

  /// Signs the case's account in, unless a user is signed in. Used for flows that need a session.
  mutating func signIn() async throws {
    try await readSession()
    guard signedIn == nil, let account else { return }
    session = try await gateway.makeSession(of: account)
    try await readSession()
  }

  /// The current state of the flow; nil if it no longer exists.
  func view() async -> FlowView? {
    guard let flow else { return nil }
    // The case itself does not request this.
    return await CoverageRecord.unwatched { try? await gateway.view(flow.id, by: client).get() }
  }
}
