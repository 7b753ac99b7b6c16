import Crypto
import Foundation
import MoongateSDK

/// Verifies an identity at Google or another OpenID provider by the authorization code flow (OpenID Connect Core 1.0
/// section 3.1, with PKCE).
///
/// It implements the client side: the redirect, the code exchange, and the validation of the ID token. The core decides
/// which account the identity signs in to, and which account an address joins.
public struct GoogleOAuth: FullProvider {
  /// `begin` takes no fields. The client registration is in gateway.lua.
  public let descriptor: ProviderDescriptor

  private let directory = IssuerDirectory()

  /// Creates a provider with an empty cache. Instances share no state.
  public init() {
    descriptor = ProviderDescriptor(
      name: "google_oauth", beginFields: [],
      submitFields: [
        InputField(name: "code", kind: .text), InputField(name: "state", kind: .text, isRequired: false),
        InputField(name: "iss", kind: .text, isRequired: false),
        InputField(name: "error", kind: .text, isRequired: false),
        InputField(name: "id_token", kind: .text, isRequired: false),
      ],
      settings: Client.settings,
      policy: PolicySource(file: "Plugins/GoogleOAuth/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(
          file: "Plugins/GoogleOAuth/flows/google_oauth_join.lua", bytes: PackageResources.google_oauth_join_lua)
      ],
      cases: PolicySource(file: "Plugins/GoogleOAuth/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [.federated, .email],
      outcomes: [
        Outcome(.oauthFailed, "Google sign-in failed. Try again."),
        Outcome(.oauthCancelled, "Sign-in cancelled", isFailure: false),
      ], facts: [.emailDomain],
      words: StepWords(title: "Continue with Google", name: "Google", translations: PackageResources.translations),
      presentation: .externalSite(button: "Continue with Google"),
      entrance: .button(
        label: "Continue with Google", icon: String(decoding: PackageResources.icon_svg, as: UTF8.self), priority: 100),
      role: .provesIdentifier)
  }

  /// Redirects the user to the provider, with a nonce and a PKCE challenge for this step only.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard step.purpose == .prove, let callback = step.callback else { throw OAuthFault.noWayBack }
    let client = try Client(step.tools.settings)
    let metadata = try await directory.metadata(of: client.issuer, by: step.tools.web, at: step.now)
    let attempt = Attempt(
      issuer: client.issuer, nonce: Base64URL.encode(step.tools.randomBytes(32)),
      verifier: Base64URL.encode(step.tools.randomBytes(32)),
      state: callback.state, redirect: callback.address, begunAt: step.now)
    var parameters = [
      ("response_type", "code"), ("client_id", client.id), ("redirect_uri", callback.address),
      ("scope", "openid email profile"),
      ("state", callback.state), ("nonce", attempt.nonce), ("code_challenge", attempt.challenge),
      ("code_challenge_method", "S256"),
    ]
    // Attack: the browser is signed in to an attacker's identity at the provider, which a single click would connect to
    // the account. Therefore the user must choose the account.
    if step.flowPurpose == .join { parameters.append(("prompt", "select_account")) }
    let address =
      metadata.authorization + (metadata.authorization.contains("?") ? "&" : "?") + PercentEncoding.form(parameters)
    return .redirect(to: address, state: try attempt.sealed())
  }

  /// Requires a code, an error or an ID token.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    for name in ["code", "state", "iss", "error", "id_token"] {
      let text = try input.optionalText(name)
      guard text?.utf8.count ?? 0 <= IDToken.longest else {
        throw InputProblem(field: name, reason: .invalidInput, detail: "\(name) is too long.")
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
      return .refused(error == Self.cancelled ? .oauthCancelled : .oauthFailed)
    }
  }

  private static let cancelled = AnswerRefusal(.error, "access_denied")

  /// - Throws: `AnswerRefusal` if the answer is not accepted, any other error if the provider is at fault.
  private func proof(of input: ProviderInput, _ attempt: Attempt, _ step: StepContext) async throws -> Proof {
    let client = try Client(step.tools.settings)
    // Attack (mix-up): after a change of the settings, the response of one provider is sent to another. The attempt
    // belongs to the first.
    guard attempt.issuer == client.issuer else { throw AnswerRefusal(.issuer, client.issuer) }
    if let token = try input.optionalText("id_token") {
      // Attack: an app's token has no access token beside it, so groups that only the userinfo endpoint names would be
      // removed by signing in with an app.
      guard client.userInfo != .always else {
        throw AnswerRefusal(.userinfo, "always, but an app has brought the token")
      }
      let claims = try await claims(of: token, isOfApp: true, attempt, client, step)
      return claims.profile.proof(of: claims.subject, at: client)
    }

    // Attack: a link puts another user's code or error into this browser. Only the state of this step is accepted.
    guard let state = try input.optionalText("state"), constantTimeEquals(state, attempt.state) else {
      throw AnswerRefusal(.state)
    }
    let metadata = try await directory.metadata(of: client.issuer, by: step.tools.web, at: step.now)
    let issuer = try input.optionalText("iss")
    // Attack (mix-up): RFC 9207 section 2.4.
    guard issuer.map({ client.speaksFor($0) }) ?? !metadata.namesIssuerInAnswers else {
      throw AnswerRefusal(.iss, issuer ?? "missing")
    }
    if let error = try input.optionalText("error") { throw AnswerRefusal(.error, error) }
    guard let code = try input.optionalText("code"), !code.isEmpty else { throw AnswerRefusal(.code, "missing") }
    let issued = try await TokenExchange(client: client, metadata: metadata, web: step.tools.web).redeem(code, attempt)
    let claims = try await claims(of: issued.idToken, isOfApp: false, attempt, client, step)
    var profile = claims.profile
    if client.userInfo == .always || client.userInfo == .missing && profile.lacksAny {
      if let address = metadata.userInfo, let token = issued.accessToken {
        do {
          let told = try await UserInfo(address: address, web: step.tools.web).claims(of: claims.subject, with: token)
          profile.complete(with: told, takesGroups: client.userInfo == .always)
        } catch let fault as OAuthFault where client.userInfo == .missing {
          // The ID token has proved the identity. A name is not worth a failed sign-in.
          step.tools.log.warning("userinfo failed, the claims of the ID token are used", ["because": "\(fault)"])
        }
      } else if client.userInfo == .always {
        throw OAuthFault.provider("\(client.issuer) has no userinfo endpoint, or issues no access token for it")
      }
    }
    return profile.proof(of: claims.subject, at: client)
  }

  /// The claims of a valid ID token.
  private func claims(
    of text: String, isOfApp: Bool, _ attempt: Attempt, _ client: Client, _ step: StepContext
  ) async throws -> IDTokenClaims {
    let token = try IDToken(text, algorithms: client.algorithms)
    guard let key = try await directory.key(token, of: client.issuer, by: step.tools.web, at: step.now) else {
      throw AnswerRefusal(.kid, token.keyID ?? "missing")
    }
    let claims = try await token.claims(signedBy: key)
    try IDTokenExpectation(client: client, attempt: attempt, takesApps: isOfApp, now: step.now).check(claims)
    return claims
  }
}

extension GoogleOAuth: SettingsChecking {
  public func findings(in settings: StepSettings) -> [SettingFinding] { Client.findings(in: settings) }
}

/// A problem for the operator, never a mistake of the user.
enum OAuthFault: Error, CustomStringConvertible {
  /// The step has no callback URL.
  case noWayBack
  case setting(String)
  /// The provider does not answer, or its answer is invalid.
  case provider(String)

  var description: String {
    switch self {
    case .noWayBack: "google_oauth needs a flow that was started over HTTP, and supports only the purpose prove"
    case .setting(let name): "providers.google_oauth.\(name) is missing in gateway.lua"
    case .provider(let what): "google_oauth: \(what)"
    }
  }
}
