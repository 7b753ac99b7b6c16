import MoongateCore
import MoongateHTTP
import MoongateSDK

/// Reads and validates authorization requests (OpenID Connect Core 1.0 section 3.1.2.1, RFC 6749 section 4.1.1).
struct AuthorizationReader: Sendable {
  let apps: Apps
  let random: any RandomSource

  /// The parameters that mean something here. Others are ignored.
  static let parameters = [
    "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
    "code_challenge_method", "prompt", "max_age", "login_hint", "ui_locales", "acr_values", "claims", "id_token_hint",
    "request", "request_uri", "registration",
  ]

  /// Finds the app and its redirect URI. Nothing is sent there before both are verified.
  ///
  /// Attack: an open redirect, or a code for somebody else, by a redirect URI with user information, another case or
  /// encoding, a trailing dot, `..` or added parameters. Registered addresses are compared byte for byte.
  /// - Throws: a refusal for a page, which names nothing that the request does not.
  func target(_ fields: FormFields, _ exchange: Exchange) throws(Refusal) -> AnswerTarget {
    let table = exchange.generation.apps
    guard let id = fields["client_id"], let app = table[id], app.grants.contains(.authorizationCode) else {
      throw exchange.refusal(
        .badRequest, detail: "No app with this client_id is registered here.", reason: "client_id is not registered")
    }
    guard let redirect = fields["redirect_uri"], table.receives(app, at: redirect) else {
      throw exchange.refusal(
        .badRequest, detail: "The app's redirect_uri is not registered here.",
        reason: "redirect_uri of \(app.id) is not registered")
    }
    let state = fields["state"].flatMap { $0.utf8.count <= AuthorizationRequest.longestState ? $0 : nil }
    let mode = fields["response_mode"].flatMap(AuthorizationRequest.ResponseMode.init(rawValue:)) ?? .query
    return AnswerTarget(app: app, redirect: redirect, state: state, mode: mode)
  }

  /// Validates the rest of the request.
  /// - Throws: the error for the app.
  func request(_ fields: FormFields, for target: AnswerTarget, _ exchange: Exchange) async throws(OAuthError)
    -> AuthorizationRequest
  {
    try checkForm(fields)
    let scopes = (fields["scope"] ?? "").split(separator: " ").map(String.init)
    let permitted = target.app.permitted(scopes)
    guard !permitted.isEmpty || scopes.isEmpty else {
      throw OAuthError("invalid_scope", "the app may not ask for these scopes")
    }
    guard
      let grant = Grant(
        app: target.app, redirect: target.redirect, challenge: try challenge(fields, of: target.app), scopes: permitted)
    else { throw OAuthError("invalid_request", "code_challenge is not a SHA-256 in base64url") }
    var request = AuthorizationRequest(
      grant: grant, browser: exchange.credentials.browserHash, beganAt: apps.clock.now(), random: random)
    request.state = target.state
    request.responseMode = target.mode
    request.nonce = fields["nonce"]
    request.prompt = try prompt(fields["prompt"])
    request.maxAge = try maxAge(fields["max_age"])
    request.loginHint = fields["login_hint"]
    request.uiLocales = fields["ui_locales"]
    request.acrValues = (fields["acr_values"] ?? "").split(separator: " ").map(String.init)
    let claims = try claims(fields["claims"])
    request.essentialACR = essentialACR(claims)
    let hinted = try await subject(fields["id_token_hint"], of: target.app, exchange)
    // Only this user may be signed in for the request (OpenID Connect Core 1.0 sections 3.1.2.2 and 5.5.1).
    //
    // Attack: an app asks for one user by `claims`, and gets the tokens of another one who uses the same browser.
    let named = claims["sub"]?.members?["value"]?.text
    guard hinted == nil || named == nil || hinted == named else {
      throw OAuthError("login_required", "id_token_hint and claims name different users")
    }
    request.hintedSubject = hinted ?? named
    return request
  }

  private func checkForm(_ fields: FormFields) throws(OAuthError) {
    let longest = [
      "state": AuthorizationRequest.longestState, "nonce": AuthorizationRequest.longestNonce,
      "ui_locales": AuthorizationRequest.longestHint, "login_hint": AuthorizationRequest.longestHint,
      "acr_values": AuthorizationRequest.longestHint, "scope": 1024, "claims": 2048, "id_token_hint": 8192,
    ]
    for (name, most) in longest.sorted(by: { $0.key < $1.key }) where (fields[name]?.utf8.count ?? 0) > most {
      throw OAuthError("invalid_request", "\(name) is too long")
    }
    guard fields["request"] == nil else { throw OAuthError("request_not_supported", "request is not supported") }
    guard fields["request_uri"] == nil else {
      throw OAuthError("request_uri_not_supported", "only a request_uri of a pushed request is accepted")
    }
    guard fields["registration"] == nil else {
      throw OAuthError("registration_not_supported", "registration is not supported")
    }
    guard let type = fields["response_type"] else { throw OAuthError("invalid_request", "response_type is missing") }
    guard type == "code" else { throw OAuthError("unsupported_response_type", "response_type must be code") }
    if let mode = fields["response_mode"], AuthorizationRequest.ResponseMode(rawValue: mode) == nil {
      throw OAuthError("invalid_request", "response_mode must be query or form_post")
    }
  }

  /// The PKCE challenge (RFC 7636); nil if the app may leave it out, and does.
  ///
  /// Attack: a request without `code_challenge_method`, or with `plain`, makes the challenge the verifier, which
  /// everybody who reads the request knows.
  private func challenge(_ fields: FormFields, of app: App) throws(OAuthError) -> String? {
    guard let challenge = fields["code_challenge"] else {
      guard app.mayOmitChallenge, fields["code_challenge_method"] == nil else {
        throw OAuthError("invalid_request", "code_challenge is missing")
      }
      return nil
    }
    guard fields["code_challenge_method"] == "S256" else {
      throw OAuthError("invalid_request", "code_challenge_method must be S256")
    }
    return challenge
  }

  private func prompt(_ text: String?) throws(OAuthError) -> Set<String> {
    let words = Set((text ?? "").split(separator: " ").map(String.init))
    guard words.isSubset(of: AppDiscovery.prompts) else {
      throw OAuthError("invalid_request", "prompt has an unknown value")
    }
    guard !words.contains("none") || words.count == 1 else {
      throw OAuthError("invalid_request", "prompt=none excludes other values")
    }
    return words
  }

  private func maxAge(_ text: String?) throws(OAuthError) -> Int? {
    guard let text else { return nil }
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text), seconds <= 1_000_000_000 else {
      throw OAuthError("invalid_request", "max_age must be a number of seconds")
    }
    return seconds
  }

  /// What `claims` asks of the ID token (OpenID Connect Core 1.0 section 5.5).
  private func claims(_ text: String?) throws(OAuthError) -> [String: JSONClaim] {
    guard let text else { return [:] }
    guard let claims = try? JSONClaim.members(text.utf8) else {
      throw OAuthError("invalid_request", "claims is not a JSON object")
    }
    return claims["id_token"]?.members ?? [:]
  }

  /// The values of an essential `acr`; empty: none is essential. Every ID token has `auth_time`, so asking for it
  /// changes nothing.
  private func essentialACR(_ claims: [String: JSONClaim]) -> [String] {
    guard let wanted = claims["acr"]?.members, wanted["essential"]?.isTrue ?? false else { return [] }
    return wanted["value"]?.text.map { [$0] } ?? wanted["values"]?.texts ?? []
  }

  /// The user of an ID token that the app has got before, possibly a long time ago.
  ///
  /// Attack: a forged hint, or that of another app, tells whether somebody is signed in.
  private func subject(_ token: String?, of app: App, _ exchange: Exchange) async throws(OAuthError) -> String? {
    guard let token else { return nil }
    guard let hint = await apps.hint(token, exchange.appCall), hint.app == app else {
      throw OAuthError("invalid_request", "id_token_hint is not an ID token of this app")
    }
    return hint.subject
  }
}
