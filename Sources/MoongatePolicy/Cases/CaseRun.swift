import MoongateCore
import MoongateSDK

/// One case as it is played. Its words are in `CaseRun+Acts.swift`, what it judges by in `CaseRun+Expecting.swift`.
struct CaseRun {
  /// What the gateway answered last.
  enum Answer {
    case view(FlowView)
    case refusal(Refusal)
    /// A request that goes on to its service.
    case passed(Route)
  }

  /// Why a case ends before its last word.
  enum Stop: Error {
    case failure(CaseOutcome.Failure)
    case outOfTime
  }

  let one: PolicyCase
  let gateway: VirtualGateway
  let providers: ProviderRegistry
  let end: ContinuousClock.Instant?
  /// When the case began.
  var start: Timestamp
  var address = ClientAddress(bytes: [203, 0, 113, 1]) ?? .unspecified
  var userAgent: String?
  /// The name of the device that requests come from; nil: one that is new each time.
  var device: String?
  /// What each device carries since it has signed in (`DeviceToken`).
  private var deviceTokens: [String: SecretText] = [:]
  /// Whether requests come from a device that has signed in to the account before, and what it carries.
  var knowsDevice = false
  var knownDevice: SecretText?
  /// The service token of the program that requests come from; nil: a person asks.
  var token: PolicyCase.TokenSetup?
  /// As typed.
  var identifiers: [IdentifierKind: String] = [:]
  /// The kind that was named last.
  var current: IdentifierKind?
  var chosen: ProviderName?
  /// The account of the case, once it is made.
  var account: String?
  /// What the account's secrets are, by the provider that asks for them.
  var secrets: [ProviderName: String] = [:]
  /// Their authenticator app, once a step has shown its key.
  var app: CaseApp?
  /// Their device, for steps that call the credential API.
  var credentialDevice = CaseDevice()
  /// An account that is made before the next request: by then it is known whom it belongs to.
  var pending: (setup: PolicyCase.AccountSetup, location: SourceLocation)?
  var flow: (id: FlowID, name: String)?
  var answer: Answer?
  /// Of the flow that was completed last, or made for one that is an account's own.
  var session: TokenHash?
  private(set) var signedIn: SessionSnapshot?
  private var trace: [CaseOutcome.Line] = []
  /// The failure of a function that was met last, and that no expectation was about.
  private var unexpectedFault: String?
  /// Whether an expectation was about the failure that is the last answer.
  private var isFaultExpected = false

  init(_ one: PolicyCase, gateway: VirtualGateway, providers: ProviderRegistry, end: ContinuousClock.Instant?) {
    self.one = one
    self.gateway = gateway
    self.providers = providers
    self.end = end
    start = gateway.clock.now()
  }

  var generation: any PolicyGeneration { gateway.generations.current }

  /// - Returns: nil where there was no time to come to its end.
  mutating func play() async throws -> CaseOutcome? {
    for act in one.acts {
      let at = gateway.clock.now() - start
      do {
        try checkTime()
        try await lookAtSession()
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

  /// What a policy that failed has to say for itself, behind the words of its refusal.
  private mutating func faultWords(in act: PolicyCase.Act) async throws -> String {
    switch act.kind {
    case .flow, .send, .resend, .wrong, .right, .enter, .skip, .request:
      isFaultExpected = false
      guard let fault = try await fault() else { return "" }
      unexpectedFault = fault
      return ", \(fault)"
    default: return ""
    }
  }

  /// Where and why a policy failed, where that is the last answer.
  private func fault() async throws -> String? {
    guard case .refusal(let refusal)? = answer, refusal.code == .policyError else { return nil }
    return try await gateway.audit.event(refusal.decision)?.detail["fault"] ?? refusal.detail
  }

  /// Between two requests: none of them is cut short.
  func checkTime() throws { if let end, ContinuousClock.now >= end { throw Stop.outOfTime } }

  func fail(_ act: PolicyCase.Act, _ sentence: String) -> Stop {
    .failure(CaseOutcome.Failure(location: act.location, sentence: sentence, differences: []))
  }

  var client: ClientContext {
    let client = gateway.client(address)
    return ClientContext(
      decision: client.decision, address: address, userAgent: userAgent, browser: nil, session: signedIn,
      device: knowsDevice ? knownDevice : device.flatMap { deviceTokens[$0] })
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

  /// The session as the store has it now: it may have ended or changed.
  mutating func lookAtSession() async throws {
    signedIn = nil
    guard let session, let found = try await gateway.store.session(session), found.isLive(at: gateway.clock.now())
    else { return }
    signedIn = found
  }

  /// Signs the case's account in, where nobody is: for flows that begin with a session.
  mutating func signIn() async throws {
    try await lookAtSession()
    guard signedIn == nil, let account else { return }
    session = try await gateway.makeSession(of: account)
    try await lookAtSession()
  }

  /// The flow as it stands now; nil where there is none any more.
  func view() async -> FlowView? {
    guard let flow else { return nil }
    // Nobody in the case asks for it.
    return await CoverageRecord.unwatched { try? await gateway.view(flow.id, by: client).get() }
  }
}
