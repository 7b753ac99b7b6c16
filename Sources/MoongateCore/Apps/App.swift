import MoongateSDK

/// An app of apps.lua: a client in the sense of RFC 6749 section 2, which receives the results of sign-ins.
package struct App: Sendable {
  /// When a page asks the user before the app receives the result of a sign-in.
  package enum Consent: String, Sendable, CaseIterable {
    /// Never. The pages of the sign-in still name the app.
    case never
    /// Once: by the API, in each browser until it is closed; for tokens, until the app is disconnected or asks for a
    /// further scope.
    case once
    /// Before each sign-in.
    case always
  }

  /// The `client_id`.
  package let id: String
  /// The name that users read.
  package let name: String
  package let redirectURIs: [RedirectURI]
  package let consent: Consent
  package let authentication: AppAuthentication
  /// The addresses to which a browser may return after a sign-out (`post_logout_redirect_uris`).
  package let signOutURIs: [RedirectURI]
  /// The URL that receives logout tokens (OpenID Connect Back-Channel Logout 1.0); nil: none.
  package let signOutNotice: String?
  package let requirement: AppRequirement
  package let decide: FunctionName?
  /// The function that returns claims of the operator's own.
  package let claims: FunctionName?
  /// The scopes that it may ask for.
  package let scopes: Set<String>
  package let grants: Set<GrantType>
  /// The algorithm of its ID tokens, logout tokens and signed access tokens.
  package let signing: SigningAlgorithm
  package let accessToken: AccessTokenForm
  package let lifetimes: AppLifetimes
  /// Whether it may leave PKCE out. Only an app with a secret or keys can.
  package let pkceIsOptional: Bool
  /// Whether other apps get another `sub` for the same account (OpenID Connect Core 1.0 section 8.1).
  package let isPairwise: Bool
  /// The source location of each setting, by its name; the app's own under the empty name.
  package let locations: [String: SourceLocation]

  /// More than five parameters: one for each field.
  package init(
    id: String, name: String, redirectURIs: [RedirectURI], consent: Consent, authentication: AppAuthentication = .none,
    signOutURIs: [RedirectURI] = [], signOutNotice: String? = nil, requirement: AppRequirement = AppRequirement(),
    decide: FunctionName? = nil, claims: FunctionName? = nil, scopes: Set<String> = AppScope.standard,
    grants: Set<GrantType> = [.authorizationCode, .refreshToken], signing: SigningAlgorithm = .rs256,
    accessToken: AccessTokenForm = .opaque, lifetimes: AppLifetimes = AppLifetimes(), pkceIsOptional: Bool = false,
    isPairwise: Bool = false, locations: [String: SourceLocation] = [:]
  ) {
    self.id = id
    self.name = name
    self.redirectURIs = redirectURIs
    self.consent = consent
    self.authentication = authentication
    self.signOutURIs = signOutURIs
    self.signOutNotice = signOutNotice
    self.requirement = requirement
    self.decide = decide
    self.claims = claims
    self.scopes = scopes
    self.grants = grants
    self.signing = signing
    self.accessToken = accessToken
    self.lifetimes = lifetimes
    self.pkceIsOptional = pkceIsOptional
    self.isPairwise = isPairwise
    self.locations = locations
  }

  /// Whether flows that are begun by the API may send it their codes: a public app without a rule about its users.
  package var takesFlows: Bool { authentication == .none && requirement.isEmpty && decide == nil }

  /// Whether users sign in to it. Another app gets tokens for itself alone.
  package var signsUsersIn: Bool { !grants.isDisjoint(with: [.authorizationCode, .deviceCode]) }

  /// Whether its refresh tokens may outlive the session of the user.
  package var outlivesSessions: Bool { scopes.contains(AppScope.offline) && grants.contains(.refreshToken) }

  /// The path of the authorization endpoint, which is also `f.request.path` for the functions of an app.
  package static let requestPath = "/auth/openid/authorize"

  /// Whether the text can be a client id: 1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
  package static func isID(_ text: String) -> Bool {
    text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._-]{0,63}/) != nil
  }

  /// Whether its authorizations need no PKCE challenge. A public app always needs one, because nothing else proves who
  /// redeems a code.
  package var mayOmitChallenge: Bool { pkceIsOptional && authentication != .none }

  /// Whether the grant has the challenge that the app needs.
  ///
  /// Attack: an app becomes public, and requests that began before still have no challenge. Whoever reads a code of
  /// theirs redeems it.
  func isSatisfied(by grant: Grant) -> Bool { grant.challenge != nil || mayOmitChallenge }

  /// The scopes of a request that the app may have, in the order of the request. Others are ignored (OpenID Connect
  /// Core 1.0 section 3.1.2.1).
  package func permitted(_ requested: [String]) -> [String] {
    var seen: Set<String> = []
    return requested.filter { scope in
      // Without refresh tokens, nothing would outlive the session.
      scopes.contains(scope) && (scope != AppScope.offline || grants.contains(.refreshToken))
        && seen.insert(scope).inserted
    }
  }
}

extension App: Equatable {
  /// Compares everything but the source locations.
  package static func == (left: App, right: App) -> Bool {
    left.id == right.id && left.name == right.name && left.redirectURIs == right.redirectURIs
      && left.consent == right.consent && left.authentication == right.authentication
      && left.signOutURIs == right.signOutURIs && left.signOutNotice == right.signOutNotice
      && left.requirement == right.requirement && left.decide == right.decide && left.claims == right.claims
      && left.scopes == right.scopes && left.grants == right.grants && left.signing == right.signing
      && left.accessToken == right.accessToken && left.lifetimes == right.lifetimes
      && left.pkceIsOptional == right.pkceIsOptional && left.isPairwise == right.isPairwise
  }
}

/// The apps of apps.lua, by client id.
package struct AppTable: Sendable {
  /// No apps: the folder has no apps.lua.
  package static let none = AppTable([], own: nil)

  /// Sorted by client id.
  package let apps: [App]
  private let byID: [String: App]
  /// `public_url`. No code goes there, whatever is registered.
  private let own: PublicURL?

  package init(_ apps: [App], own: PublicURL?) {
    self.apps = apps.sorted { $0.id < $1.id }
    byID = Dictionary(apps.map { ($0.id, $0) }) { first, _ in first }
    self.own = own
  }

  package subscript(id: String) -> App? { byID[id] }

  /// The app that may receive codes at the address; nil if none has registered it.
  ///
  /// Attack: a flow that sends its code to any page of a known host. An attacker who can read a request line there has
  /// the code, and PKCE does not help, because the attacker created the flow (RFC 9700 sections 2.1 and 4.1).
  ///
  /// Attack: a flow of the API for an app with a secret or a rule. Its code is worth a session, which would go to an
  /// address that expects a code of OpenID Connect, and which no rule of the app would have judged.
  package func app(receivingAt address: String) -> App? { apps.first { $0.takesFlows && receives($0, at: address) } }

  /// Whether the app of a flow's grant still exists, still registers the redirect URI, and may still receive flows.
  package func takesFlow(with grant: Grant) -> Bool { (byID[grant.client]?.takesFlows ?? false) && registers(grant) }

  /// Whether the app of the grant still exists and still registers the redirect URI.
  package func registers(_ grant: Grant) -> Bool {
    byID[grant.client].map { receives($0, at: grant.redirect) } ?? false
  }

  /// Whether the app may receive codes at the address.
  package func receives(_ app: App, at address: String) -> Bool {
    guard let uri = app.redirectURIs.first(where: { $0.matches(address) }) else { return false }
    // Attack: a loopback address matches with any port, also with the gateway's own.
    return own == nil || uri.origin(of: address) != own
  }

  /// Whether a browser may return to the address of the app after a sign-out.
  ///
  /// Attack: an open redirect by `post_logout_redirect_uri`. Only a registered address is used.
  package func returns(to address: String, of app: App) -> Bool {
    guard let uri = app.signOutURIs.first(where: { $0.matches(address) }) else { return false }
    return own == nil || uri.origin(of: address) != own
  }
}
