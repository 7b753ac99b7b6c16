import Crypto
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// `Apps` with an in-memory store, a clock that the test controls, an account, and its session.
struct AppsTestBench {
  static let redirect = "https://grafana.example.com/in"
  static let verifier = String(repeating: "v", count: 43)
  static let challenge = Base64URL.encode(SHA256.hash(data: Array(verifier.utf8)))
  static let secret = AppAuthentication.secret(SecretText("a secret of the app"))
  static let account = "ac_asha"
  static let phone: ProviderName = "phone_otp"
  static let pin: ProviderName = "pin"
  static let staff = GroupName(rawValue: "staff")!

  let clock = ManualClock()
  let store: any Store
  let keys: KeyRing
  let generations: ActiveGeneration
  let apps: Apps
  let address = ClientAddress(bytes: [192, 0, 2, 7]) ?? .unspecified

  init(_ registered: App...) async throws {
    store = try MemoryStore.make()
    keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    generations = ActiveGeneration(Self.generation(registered), at: clock.now())
    let audit = AuditTrail(store: store, logger: CapturedLog().logger)
    apps = Apps(
      store: store, generations: generations,
      providers: try ProviderRegistry([ToyCode(name: Self.phone), ToyPIN()]), keys: keys, clock: clock,
      random: SystemRandom(), signing: SigningKeys(keys, store: store, at: clock.now()), audit: audit)
    let now = clock.now()
    let account = Account(
      id: Self.account, firstName: "Asha", lastName: "Rao", createdAt: now, lastSeenAt: now,
      identifiers: [
        HeldIdentifier(
          identifier: Identifier(kind: .email, value: "asha@example.com", display: "asha@example.com"),
          verifiedAt: now),
        HeldIdentifier(
          identifier: Identifier(kind: .phone, value: "+911111", display: "+91 1111"), verifiedAt: nil),
      ])
    try await apply(.createAccount(account))
  }

  /// A generation with the group `staff` and these apps.
  static func generation(_ registered: [App]) -> TestGeneration {
    var generation = TestGeneration(gateway: .test(), flows: [], policies: [.test(phone), .test(pin)])
    generation.apps = AppTable(registered, own: nil)
    generation.accounts.groups = [staff: .members]
    return generation
  }

  /// More than five parameters: the settings that tests vary.
  static func app(
    _ id: String = "grafana", redirects: [String] = [redirect], consent: App.Consent = .never,
    authentication: AppAuthentication = secret, signOutNotice: String? = nil,
    requirement: AppRequirement = AppRequirement(), decide: FunctionName? = nil, claims: FunctionName? = nil,
    scopes: Set<String> = AppScope.standard.union([AppScope.phone, AppScope.offline]),
    grants: Set<GrantType> = [.authorizationCode, .refreshToken], signing: SigningAlgorithm = .es256,
    accessToken: AccessTokenForm = .opaque, pkceIsOptional: Bool = false, isPairwise: Bool = false
  ) throws -> App {
    App(
      id: id, name: id, redirectURIs: try redirects.map { try RedirectURI($0) }, consent: consent,
      authentication: authentication, signOutNotice: signOutNotice, requirement: requirement, decide: decide,
      claims: claims, scopes: scopes, grants: grants, signing: signing, accessToken: accessToken,
      pkceIsOptional: pkceIsOptional, isPairwise: isPairwise)
  }

  var call: AppCall {
    AppCall(
      generation: generations.current, client: ClientFacts(address: address, isNewDevice: false),
      decision: DecisionID(from: SystemRandom()))
  }

  func apply(_ changes: Change...) async throws {
    guard case .applied = try await store.apply(changes, at: clock.now()) else {
      Issue.record("a change conflicts")
      return
    }
  }

  /// Replaces the configuration.
  func reload(_ registered: App..., change: (inout TestGeneration) -> Void = { _ in }) {
    var generation = Self.generation(registered)
    generation.id = "next"
    change(&generation)
    generations.activate(generation, at: clock.now())
  }

  /// A new session of the account that has passed these providers now.
  func session(_ passed: [ProviderName] = [phone]) async throws -> SessionSnapshot {
    let now = clock.now()
    let token = SessionToken(from: SystemRandom())
    let session = Session(
      id: "se_" + Base64URL.encode(SystemRandom().bytes(9)), token: token.hash, account: Self.account, createdAt: now,
      expiresAt: now + .seconds(86_400), idle: .seconds(86_400), lastSeenAt: now,
      passed: passed.map { PassedStep(provider: $0, at: now) }, userAgent: nil)
    try await apply(.putSession(session))
    return try #require(try await store.session(token.hash))
  }

  func request(
    _ app: App, scopes: [String] = [AppScope.openID, AppScope.email], challenge: String? = challenge,
    nonce: String? = "n1"
  ) throws -> AuthorizationRequest {
    let grant = try #require(
      Grant(app: app, redirect: app.redirectURIs[0].text, challenge: challenge, scopes: scopes))
    var request = AuthorizationRequest(grant: grant, browser: nil, beganAt: clock.now(), random: SystemRandom())
    request.nonce = nonce
    return request
  }

  /// A code for the session. The user agrees.
  func code(_ app: App, scopes: [String] = [AppScope.openID, AppScope.email], in session: SessionSnapshot) async throws
    -> String
  {
    try await apps.authorize(try request(app, scopes: scopes), app, in: session, agreed: true, call).reveal()
  }

  func redeem(_ code: String, _ app: App, verifier: String? = verifier, redirect: String? = redirect) async throws
    -> AppTokens
  {
    try await apps.redeem(code, verifier: verifier, redirect: redirect, by: app, call)
  }

  /// The tokens of a new authorization.
  func tokens(_ app: App, scopes: [String] = [AppScope.openID, AppScope.email], in session: SessionSnapshot)
    async throws -> AppTokens
  {
    try await redeem(try await code(app, scopes: scopes, in: session), app)
  }

  func refresh(_ token: SecretText?, _ app: App, scopes: [String]? = nil) async throws -> AppTokens {
    try await apps.refresh(try #require(token).reveal(), scopes: scopes, by: app, call)
  }

  /// Whether userinfo would answer.
  func isLive(_ access: SecretText) async throws -> Bool {
    try await Self.error { _ = try await apps.live(access: access.reveal(), call) } == nil
  }

  /// The error of OAuth that the body ends with; nil: none.
  static func error(_ body: () async throws -> Void) async throws -> String? {
    do {
      try await body()
      return nil
    } catch AppFault.oauth(let error) {
      return error.code
    }
  }

  /// The claims of a token, which must be signed by the app's key.
  func claims(_ token: SecretText?, type: String = JWTType.idToken) async throws -> [String: JSONClaim] {
    let text = try #require(token).reveal()
    return try #require(await apps.signing.verify(text, type: type, at: clock.now()))
  }

  /// The kinds of the latest events, newest first.
  func events() async throws -> [AuditEvent] { try await apps.audit.events(limit: 50) }
}
