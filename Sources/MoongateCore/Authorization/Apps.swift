import MoongateSDK

/// What an app, a browser or a command asks for, as `Apps` judges it.
package struct AppCall: Sendable {
  package let generation: any PolicyGeneration
  package let client: ClientFacts
  package let decision: DecisionID

  package init(generation: any PolicyGeneration, client: ClientFacts, decision: DecisionID) {
    self.generation = generation
    self.client = client
    self.decision = decision
  }

  /// The call as rules judge it: by the client that has authorized the app. The app's server makes the call itself.
  ///
  /// Attack: `decide` lets only one network in, and a user of another one redeems the code by a server in the first; or
  /// it lets the office in, and refuses all users because the app's server is elsewhere.
  func judged(by signIn: AppSignIn) -> AppCall {
    guard let address = signIn.address.flatMap({ ClientAddress(bytes: $0) }) else { return self }
    let user = ClientFacts(
      address: address, userAgent: signIn.userAgent, isNewDevice: false, place: generation.gateway.place(of: address))
    return AppCall(generation: generation, client: user, decision: decision)
  }
}

/// Why an operation of `Apps` failed.
package enum AppFault: Error, Sendable {
  /// Refused, with the error that the app gets.
  case oauth(OAuthError)
  case store(StoreFault)
  case policy(PolicyFault)
}

/// Whether a session may sign in to an app.
package enum AppVerdict: Sendable, Hashable {
  /// What `require` and `decide` say, as for a route.
  case judged(RouteVerdict)
  /// So many different factors must have been proved.
  case needsFactors(Int)

  package var isAllowed: Bool { self == .judged(.pass) }
}

/// The tokens that an app gets (RFC 6749 section 5.1).
package struct AppTokens: Sendable {
  package let access: SecretText
  package let expiresIn: Duration
  package let refresh: SecretText?
  package let idToken: SecretText?
  package let scopes: [String]
}

/// A valid access token.
package struct AccessGranted: Sendable {
  package let live: LiveAppGrant
  package let app: App
  package let scopes: [String]
  package let issuedAt: Timestamp
  package let expiresAt: Timestamp
}

/// One claim about a user, with the rule that it comes from: a scope such as `scope email`, or `grafana.claims`.
package struct AppClaim: Sendable, Equatable {
  package let rule: String
  package let name: String
  package let value: JSONClaim
}

/// What a device gets (RFC 8628 section 3.2).
package struct DeviceCodes: Sendable {
  package let device: SecretText
  /// For display: `XXXX-XXXX`.
  package let user: SecretText
  package let expiresIn: Duration
  package let interval: Duration
}

/// Everything that decides about apps. Endpoints, pages and commands use it; none of them decides by itself.
package struct Apps: Sendable {
  let store: any Store
  let generations: ActiveGeneration
  let providers: ProviderRegistry
  let keys: KeyRing
  package let clock: any GatewayClock
  let random: any RandomSource
  package let signing: SigningKeys
  let audit: AuditTrail
  package let metrics: AppMetrics
  /// Limits wrong secrets, codes and tokens, by client address and app.
  package let limiter: FailedTokenLimiter

  /// More than five parameters: one for each service.
  package init(
    store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, keys: KeyRing,
    clock: any GatewayClock, random: any RandomSource, signing: SigningKeys, audit: AuditTrail,
    metrics: AppMetrics = AppMetrics()
  ) {
    self.store = store
    self.generations = generations
    self.providers = providers
    self.keys = keys
    self.clock = clock
    self.random = random
    self.signing = signing
    self.audit = audit
    self.metrics = metrics
    limiter = FailedTokenLimiter(store: store, generations: generations, keys: keys, clock: clock, random: random)
  }
}
