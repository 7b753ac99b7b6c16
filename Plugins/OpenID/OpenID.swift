import Foundation
import MoongateSDK

/// Verifies an identity at another site by the authorization code flow (OpenID Connect Core 1.0 section 3.1, RFC 6749
/// section 4.1), with PKCE.
///
/// It implements the client side: the redirect, the code exchange, and the validation of what the site says. The core
/// decides which account the identity signs in to, and which account an address joins.
public struct OpenID: FullProvider {
  /// The entries of gateway.lua that this provider has.
  public enum Entry: String, Sendable, CaseIterable {
    /// `google_oauth = { … }`: Google, or one other issuer.
    case google = "google_oauth"
    /// `NAME = openid { … }`: an issuer of OpenID Connect.
    case openID = "openid"
    /// `NAME = oauth { … }`: a site without ID tokens.
    case oauth
  }

  /// `begin` takes no fields. The client registration is in gateway.lua.
  public let descriptor: ProviderDescriptor

  let entry: Entry
  let directory = IssuerDirectory()

  /// Creates a provider with an empty cache of discovery documents and keys, which its instances share.
  public init(_ entry: Entry = .google) {
    self.entry = entry
    descriptor = Self.descriptor(of: entry)
  }

  /// Redirects the user to the site, with a nonce and a PKCE challenge for this step only.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard step.purpose == .prove, let callback = step.callback else { throw OAuthFault.noWayBack }
    let client = try Client(step.tools.settings, entry)
    let metadata = try await metadata(of: client, SiteCall(step))
    // Without a way to redeem the code, the user would come back in vain.
    _ = try TokenExchange.method(of: client, at: metadata)
    let attempt = Attempt(
      issuer: client.issuer.address, nonce: Base64URL.encode(step.tools.randomBytes(32)),
      verifier: Base64URL.encode(step.tools.randomBytes(32)),
      state: callback.state, redirect: callback.address, begunAt: step.now)
    var parameters = [
      ("response_type", "code"), ("client_id", client.id), ("redirect_uri", callback.address),
      ("scope", client.scopes.joined(separator: " ")), ("state", callback.state),
    ]
    if client.isOpenID { parameters.append(("nonce", attempt.nonce)) }
    if client.preset.takesPKCE {
      parameters += [("code_challenge", attempt.challenge), ("code_challenge_method", "S256")]
    }
    if client.responseMode == .formPost { parameters.append(("response_mode", ResponseMode.formPost.rawValue)) }
    parameters += client.parameters
    // Attack: the browser is signed in to an attacker's identity at the site, which a single click would connect to the
    // account. Therefore the user must choose the account, or sign in again.
    let own = parameters.first { $0.0 == "prompt" }?.1.split(separator: " ")
    var prompts = own ?? (client.asksConsent ? ["consent"] : [])
    if step.flowPurpose == .join, !prompts.contains("login"), !prompts.contains("select_account") {
      prompts = ["select_account"] + prompts.filter { $0 == "consent" }
    }
    parameters.removeAll { $0.0 == "prompt" }
    if !prompts.isEmpty { parameters.append(("prompt", prompts.joined(separator: " "))) }
    let address =
      metadata.authorization + (metadata.authorization.contains("?") ? "&" : "?") + PercentEncoding.form(parameters)
    return .redirect(to: address, state: try attempt.sealed())
  }

  /// Requires a code, an error or an ID token.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    for field in descriptor.submitFields {
      let text = try input.optionalText(field.name)
      guard text?.utf8.count ?? 0 <= IDToken.longest else {
        throw InputProblem(field: field.name, reason: .invalidInput, detail: "\(field.name) is too long.")
      }
    }
    guard ["code", "error", "id_token"].contains(where: { input.fields[$0] != nil }) else {
      throw InputProblem(field: "code", reason: .invalidInput, detail: "code is missing.")
    }
  }

  /// Validates the callback: a code, an error, or an ID token that an app has obtained itself.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let attempt = Attempt(sealed: step.state) else { return .refused(.oauthFailed) }
    do {
      return .proved(try await proof(of: input, attempt, step))
    } catch let error as AnswerRefusal {
      step.tools.log.refusal(error.text)
      let cancellations = Preset.chosen(by: step.tools.settings, entry)?.cancellations ?? []
      let isCancelled = error.reason == .error && cancellations.contains(error.value ?? "")
      return .refused(isCancelled ? .oauthCancelled : .oauthFailed)
    }
  }

  /// - Throws: `AnswerRefusal` if the answer is not accepted, any other error if the site is at fault or the policy
  ///   denies.
  private func proof(of input: ProviderInput, _ attempt: Attempt, _ step: StepContext) async throws -> Proof {
    let client = try Client(step.tools.settings, entry)
    // Attack (mix-up): after a change of the settings, the response of one site is sent to another. The attempt belongs
    // to the first.
    guard attempt.issuer == client.issuer.address else { throw AnswerRefusal(.issuer, client.issuer.address) }
    if client.isOpenID, let token = try input.optionalText("id_token") {
      // Attack: an app's token has no access token beside it, so groups that only the userinfo endpoint names would be
      // removed by signing in with an app.
      guard client.userInfo != .always else {
        throw AnswerRefusal(.userinfo, "always, but an app has brought the token")
      }
      // Attack: without a nonce in the token, anyone who has seen one could bring it.
      guard client.preset.sendsNonce else { throw AnswerRefusal(.nonce, "missing, and an app has brought the token") }
      let said = try await claims(of: token, isOfApp: true, attempt, client, SiteCall(step))
      return try await identity(of: said, client, step.tools).proof(of: said, at: client)
    }

    // Attack: a link puts another user's code or error into this browser. Only the state of this step is accepted.
    guard let state = try input.optionalText("state"), constantTimeEquals(state, attempt.state) else {
      throw AnswerRefusal(.state)
    }
    let call = SiteCall(step)
    let metadata = try await metadata(of: client, call)
    let issuer = try input.optionalText("iss")
    // Attack (mix-up): RFC 9207 section 2.4.
    guard issuer.map({ metadata.mayAnswer(as: $0) }) ?? !metadata.namesIssuerInAnswers else {
      throw AnswerRefusal(.iss, issuer ?? "missing")
    }
    if let error = try input.optionalText("error") { throw AnswerRefusal(.error, error) }
    guard let code = try input.optionalText("code"), !code.isEmpty else { throw AnswerRefusal(.code, "missing") }
    let issued = try await TokenExchange(client: client, metadata: metadata, call: call).redeem(code, attempt)
    var said: SiteClaims
    if client.isOpenID {
      said = try await claims(of: issued.idToken ?? "", isOfApp: false, attempt, client, call)
      try await complete(&said, with: issued.accessToken, metadata, client, call)
      if let user = try input.optionalText("user") { said.addNames(ofForm: user) }
    } else {
      said = try await siteClaims(issued, client, call)
    }
    let recheck = client.rechecks ? issued.refreshState : nil
    if client.rechecks, recheck == nil {
      step.tools.log.warning(
        "the site has issued no refresh token: without one of an earlier sign-in, sessions end after `recheck_grace`")
    }
    return try await identity(of: said, client, step.tools).proof(of: said, at: client, recheck: recheck)
  }

  /// What the claims say about the user, by the function `identity` of the policy or the rules of the preset.
  func identity(of said: SiteClaims, _ client: Client, _ tools: StepTools) async throws -> MappedIdentity {
    let claims = try client.preset.claims.readable(said.members)
    if let mapped = try await tools.identity(claims) { return mapped }
    var identity = client.preset.claims.identity(from: claims)
    // Attack: the administrator of a foreign tenant names its groups like those of the operator's.
    if said.isOfAnyTenant { identity.groups = [] }
    return identity
  }

  func metadata(of client: Client, _ call: SiteCall) async throws -> IssuerMetadata {
    if let known = client.endpoints { return known }
    return try await directory.metadata(of: client.issuer, by: call.tools.web, at: call.now)
  }

  /// The claims of a valid ID token.
  /// - Parameter attempt: nil for a token that a refresh has issued.
  func claims(
    of text: String, isOfApp: Bool, _ attempt: Attempt?, _ client: Client, _ call: SiteCall
  ) async throws -> SiteClaims {
    let token = try IDToken(
      text, algorithms: client.algorithms, atMost: isOfApp ? IDToken.longest : IDToken.longestIssued)
    guard let key = try await directory.key(token, of: client.issuer, by: call.tools.web, at: call.now) else {
      throw AnswerRefusal(.kid, token.keyID ?? "missing")
    }
    let claims = try IDTokenClaims(try await token.members(signedBy: key))
    let metadata = try await metadata(of: client, call)
    try IDTokenExpectation(client: client, metadata: metadata, attempt: attempt, takesApps: isOfApp, now: call.now)
      .check(claims)
    return SiteClaims(
      members: claims.members, subject: claims.subject, issuer: metadata.name(in: claims.members),
      isOfAnyTenant: metadata.issuer.contains(Issuer.anyTenant), hostedDomain: claims.members["hd"]?.text)
  }

  /// Asks the userinfo endpoint for what the ID token lacks, or for everything.
  func complete(
    _ said: inout SiteClaims, with token: String?, _ metadata: IssuerMetadata, _ client: Client, _ call: SiteCall
  ) async throws {
    guard client.userInfo == .always || client.userInfo == .missing && said.lacksAny else { return }
    guard let address = metadata.userInfo, let token else {
      if client.userInfo == .missing, metadata.userInfo == nil || !call.isRecheck { return }
      throw OAuthFault.site("\(client.issuer.address) has no userinfo endpoint, or issues no access token for it")
    }
    do {
      let told = try await UserInfo(web: call.tools.web, token: token).claims(at: address, of: said.subject)
      said.complete(with: told, takesAll: client.userInfo == .always)
    } catch let fault as OAuthFault where client.userInfo == .missing && !call.isRecheck {
      // The ID token has proved the identity. A name is not worth a failed sign-in. In a recheck, a function `identity`
      // that misses the address would deny, and end the sessions.
      call.tools.log.warning("userinfo failed, the claims of the ID token are used", ["because": "\(fault)"])
    }
  }

  /// What a site without ID tokens says about the user of an access token.
  func siteClaims(_ issued: TokenExchange.Issued, _ client: Client, _ call: SiteCall) async throws
    -> SiteClaims
  {
    guard let token = issued.accessToken else {
      throw OAuthFault.site("\(client.issuer.address) answers without an access token")
    }
    let said = try await UserInfo(web: call.tools.web, token: token).claims(
      at: client.userInfoAddresses, onlyInFirst: client.preset.claims.ofUser.union(client.subjectPaths))
    let subject = client.subjectPaths.lazy.compactMap { said.first[$0] }.first
    // Attack: of two long ids, a floating-point number makes one.
    guard let subject = subject?.text ?? subject?.wholeNumber, IDTokenExpectation.isSubject(subject) else {
      throw AnswerRefusal(.sub)
    }
    return SiteClaims(members: said.all, subject: subject, issuer: client.issuer.address, hostedDomain: nil)
  }
}

/// A call to the site, within a step or a recheck.
struct SiteCall: Sendable {
  let tools: StepTools
  /// Milliseconds since the Unix epoch.
  let now: Int64
  var isRecheck = false
}

extension SiteCall {
  init(_ step: StepContext) { self.init(tools: step.tools, now: step.now) }
}

extension OpenID: SettingsChecking {
  public func findings(in settings: StepSettings) -> [SettingFinding] { Client.findings(in: settings, of: entry) }
}

extension OpenID: SettingsNaming {
  public func naming(for settings: StepSettings) -> SiteNaming? {
    guard entry != .google, let title = Preset.chosen(by: settings, entry)?.title else { return nil }
    return SiteNaming(name: title, button: "Continue with \(title)")
  }
}

extension OpenID: ClaimsMapping {
  public func identity(from claims: [String: JSONClaim], settings: StepSettings) throws -> MappedIdentity {
    try rules(settings).identity(from: readable(claims, settings: settings))
  }

  public func readable(_ claims: [String: JSONClaim], settings: StepSettings) throws -> [String: JSONClaim] {
    try rules(settings).readable(claims)
  }

  private func rules(_ settings: StepSettings) throws -> ClaimRules {
    guard let preset = Preset.chosen(by: settings, entry) else { throw OAuthFault.setting("preset") }
    return preset.claims
  }
}

extension OpenID: SiteProbing {
  public func probe(with tools: StepTools) async throws -> String? {
    let client = try Client(tools.settings, entry)
    // A site without discovery has no address that answers without a user.
    guard client.isOpenID else { return nil }
    let now = tools.clock.now
    let metadata = try await directory.metadata(of: client.issuer, by: tools.web, at: now)
    let keys = try await directory.keys(of: client.issuer, by: tools.web, at: now)
    guard !keys.keys.isEmpty else {
      throw OAuthFault.site("\(client.issuer.address) publishes no key that can verify an ID token")
    }
    let method = try TokenExchange.method(of: client, at: metadata).0
    let count = keys.keys.count == 1 ? "one key" : "\(keys.keys.count) keys"
    return "\(metadata.issuer) answers with \(count), and takes \(method.method)"
  }
}

/// A problem for the operator, never a mistake of the user.
enum OAuthFault: Error, CustomStringConvertible {
  /// The step has no callback URL.
  case noWayBack
  case setting(String)
  /// The site does not answer, or its answer is invalid.
  case site(String)

  var description: String {
    switch self {
    case .noWayBack: "the step needs a flow that was started over HTTP, and supports only the purpose prove"
    case .setting(let name): "\(name) is missing in gateway.lua"
    case .site(let what): what
    }
  }
}
