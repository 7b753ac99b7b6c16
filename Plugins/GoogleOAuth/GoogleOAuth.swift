import Crypto
import Foundation
import MoongateSDK

/// Proves an identity at Google, or at any other OpenID provider, by the authorization code flow (OpenID Connect Core
/// 1.0 section 3.1, with PKCE).
///
/// It owns the client's side: the address that the person is sent to, the exchange of the code, and every check of the
/// ID token. Whom that identity signs in, and which account an address joins, is the core's.
public struct GoogleOAuth: FullProvider {
  /// What it declares: `begin` takes nothing; gateway.lua says who we are to the provider.
  public let descriptor: ProviderDescriptor

  /// What its words are in other languages; each is a file of `words/`.
  private static let translations: [(tag: String, file: [UInt8])] = [
    ("hi", PackageResources.hi_words), ("ar", PackageResources.ar_words), ("bn", PackageResources.bn_words),
    ("de", PackageResources.de_words),
    ("es", PackageResources.es_words), ("fr", PackageResources.fr_words), ("pt", PackageResources.pt_words),
    ("ta", PackageResources.ta_words),
    ("te", PackageResources.te_words),
  ]
  private let directory = IssuerDirectory()

  /// A provider with nothing fetched yet. Instances share nothing.
  public init() {
    descriptor = ProviderDescriptor(
      name: "google_oauth", beginFields: [],
      submitFields: [
        InputField(name: "code", kind: .text), InputField(name: "state", kind: .text, isRequired: false),
        InputField(name: "iss", kind: .text, isRequired: false),
        InputField(name: "error", kind: .text, isRequired: false),
        InputField(name: "id_token", kind: .text, isRequired: false),
      ],
      settings: [
        SettingField(
          name: "issuer", kind: .text, isRequired: false,
          help: "The OpenID provider, as its discovery document names itself; Google's own unless said otherwise."),
        SettingField(
          name: "client_id", kind: .text, isRequired: true,
          help: "Who we are to the provider: what it gave when we were registered there."),
        SettingField(
          name: "client_secret", kind: .secret, isRequired: true, help: "What proves it: env \"NAME\" or file \"path\"."
        ),
        SettingField(
          name: "apps", kind: .text, isRequired: false,
          help: "The client ids of your own apps, separated by spaces: ID tokens that were made for them are taken too."
        ),
      ],
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
      words: StepWords(title: "Continue with Google", name: "Google", translations: Self.translations),
      presentation: .externalSite(button: "Continue with Google"),
      entrance: .button(
        label: "Continue with Google", icon: String(decoding: PackageResources.icon_svg, as: UTF8.self), priority: 100),
      role: .provesIdentifier)
  }

  /// Sends the person to the provider, with a nonce and a PKCE challenge of this step alone.
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
    // Attack: the thief's own identity, which somebody has signed this browser in to at the provider, is connected at
    // one click. The person chooses.
    if step.flowPurpose == .join { parameters.append(("prompt", "select_account")) }
    let address =
      metadata.authorization + (metadata.authorization.contains("?") ? "&" : "?") + PercentEncoding.form(parameters)
    return .redirect(to: address, state: try attempt.sealed())
  }

  /// Something that can be judged has to be there.
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

  /// Judges what came back: a code, an error, or an ID token that an app got by itself.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let attempt = Attempt(sealed: step.state) else { return .refused(.oauthFailed) }
    let client = try Client(step.tools.settings)
    // Attack (mix-up): what one provider answered is given to another after the operator's change. The attempt was that
    // one's.
    guard attempt.issuer == client.issuer else { return .refused(.oauthFailed) }
    if let token = try input.optionalText("id_token") {
      return try await judge(token, isOfApp: true, attempt, client, step)
    }

    // Attack: another person's code or error, put into this browser by a link. Only what left with this step comes back
    // to it.
    guard let state = try input.optionalText("state"), SafeCompare.equal(state, attempt.state) else {
      return .refused(.oauthFailed)
    }
    let metadata = try await directory.metadata(of: client.issuer, by: step.tools.web, at: step.now)
    let issuer = try input.optionalText("iss")
    // Attack (mix-up): RFC 9207 section 2.4.
    guard issuer.map({ client.speaksFor($0) }) ?? !metadata.namesIssuerInAnswers else { return .refused(.oauthFailed) }
    if let error = try input.optionalText("error") {
      return .refused(error == "access_denied" ? .oauthCancelled : .oauthFailed)
    }
    guard let code = try input.optionalText("code"), !code.isEmpty else { return .refused(.oauthFailed) }
    guard
      let token = try await TokenExchange(client: client, metadata: metadata, web: step.tools.web).redeem(code, attempt)
    else {
      return .refused(.oauthFailed)
    }
    return try await judge(token, isOfApp: false, attempt, client, step)
  }

  private func judge(_ text: String, isOfApp: Bool, _ attempt: Attempt, _ client: Client, _ step: StepContext)
    async throws -> StepAnswer
  {
    guard let token = IDToken(text),
      let key = try await directory.key(token, of: client.issuer, by: step.tools.web, at: step.now),
      let claims = await token.claims(signedBy: key)
    else { return .refused(.oauthFailed) }
    let expected = IDTokenExpectation(client: client, attempt: attempt, takesApps: isOfApp, now: step.now)
    guard expected.accepts(claims) else { return .refused(.oauthFailed) }
    return .proved(claims.proof(issuer: client.issuer))
  }
}

/// What an operator has to look after: never a person's mistake.
enum OAuthFault: Error, CustomStringConvertible {
  /// The step was begun without an address to come back to.
  case noWayBack
  case setting(String)
  /// The provider could not be asked, or its answer makes no sense.
  case provider(String)

  var description: String {
    switch self {
    case .noWayBack: "google_oauth works in flows that are begun over HTTP, and proves only"
    case .setting(let name): "providers.google_oauth.\(name) is missing in gateway.lua"
    case .provider(let what): "google_oauth: \(what)"
    }
  }
}
