import Foundation
import MoongateSDK

/// The client registration and the site from gateway.lua, with what its preset fills in.
struct Client: Sendable {
  static let google = "https://accounts.google.com"
  /// The signature algorithms that can be verified, and the default. HS256 and `none` are well-known forgeries.
  static let knownAlgorithms = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]

  let preset: Preset
  /// For a site without ID tokens, the origin of its token endpoint.
  let issuer: Issuer
  /// The endpoints of a site without discovery; nil for an issuer of OpenID Connect.
  let endpoints: IssuerMetadata?
  let id: String
  let secret: String?
  let key: ClientKey?
  /// nil for the first that the issuer offers and the settings allow.
  let clientAuth: ClientAuth?
  let scopes: [String]
  /// Further parameters of the authorization request.
  let parameters: [(String, String)]
  let responseMode: ResponseMode
  /// In seconds; nil if the age of the sign-in at the issuer does not count.
  let maxAge: Double?
  /// The client ids of the operator's own apps.
  let apps: [String]
  /// Other audiences that are trusted beside the client.
  let audiences: [String]
  let algorithms: [String]
  let userInfo: UserInfoUse
  /// The addresses of a site without ID tokens that say who the user is, by the name of their answer.
  let userInfoAddresses: [String: String]
  /// The members that can be the subject at a site without ID tokens.
  let subjectPaths: [String]
  let emailRule: EmailRule
  /// The domains for whose addresses the site is authoritative; nil for the default of the issuer.
  let trustedDomains: Set<String>?
  /// Whether the operator wants identities to be rechecked. Otherwise no refresh token is asked for or kept.
  let rechecks: Bool
  /// Whether users must consent again, because the site issues a refresh token only then.
  let asksConsent: Bool

  /// Whether the site issues ID tokens.
  var isOpenID: Bool { endpoints == nil }

  /// - Throws: an error with the missing setting.
  init(_ settings: StepSettings, _ entry: OpenID.Entry) throws {
    guard let preset = Preset.chosen(by: settings, entry) else { throw OAuthFault.setting("preset") }
    guard let id = settings.text("client_id"), !id.isEmpty else { throw OAuthFault.setting("client_id") }
    self.preset = preset
    self.id = id
    secret = settings.secret("client_secret").flatMap { $0.isEmpty ? nil : $0 }
    key = settings.secret("private_key").map {
      ClientKey(pem: $0, id: settings.text("key_id"), team: settings.text("team"))
    }
    guard secret != nil || key != nil else { throw OAuthFault.setting("client_secret") }
    clientAuth = settings.text("client_auth").flatMap(ClientAuth.init) ?? preset.clientAuth
    var scopes = settings.isSet("scopes") ? settings.list("scopes") : preset.scopes
    rechecks = settings.isSet("recheck")
    if entry == .oauth {
      let endpoints = try IssuerMetadata(settings, preset)
      issuer = Issuer(endpoints.issuer)
      self.endpoints = endpoints
      userInfoAddresses =
        settings.isSet("userinfo") ? settings.table("userinfo") : preset.profiles.mapValues { $0.filled(by: settings) }
      userInfo = .never
      subjectPaths = settings.text("subject").map { [$0] } ?? preset.subject
    } else {
      if !scopes.contains("openid") { scopes.insert("openid", at: 0) }
      issuer = Issuer(settings, preset)
      endpoints = nil
      userInfoAddresses = [:]
      userInfo = settings.text("userinfo").flatMap(UserInfoUse.init) ?? preset.userInfo
      subjectPaths = []
    }
    let offline = rechecks ? (issuer.address == Self.google ? OfflineAccess.google : preset.offline) : .granted
    self.scopes = scopes + offline.scopes.filter { !scopes.contains($0) }
    asksConsent = offline.asksConsent
    parameters = Self.parameters(settings, offline.parameters.merging(preset.parameters) { $1 })
    responseMode = settings.text("response_mode").flatMap(ResponseMode.init) ?? preset.responseMode
    maxAge = settings.number("max_age")
    apps = (settings.text("apps") ?? "").split(separator: " ").map(String.init)
    audiences = settings.list("audiences")
    let chosen = settings.list("algorithms").filter(Self.knownAlgorithms.contains)
    algorithms = chosen.isEmpty ? Self.knownAlgorithms : chosen
    emailRule = settings.text("email_verified").flatMap(EmailRule.init) ?? .claim
    trustedDomains =
      settings.isSet("trusted_domains") ? Set(settings.list("trusted_domains").map { $0.lowercased() }) : nil
  }

  /// The parameters of the authorization request that the operator adds, sorted by name.
  /// - Parameter preset: those of the preset.
  private static func parameters(_ settings: StepSettings, _ preset: [String: String]) -> [(String, String)] {
    var all = preset.merging(settings.table("parameters")) { $1 }
    all["prompt"] = settings.text("prompt") ?? all["prompt"]
    all["acr_values"] = settings.text("acr_values") ?? all["acr_values"]
    all["max_age"] = settings.number("max_age").map { String(Int($0)) }
    return all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Whether the site is authoritative for addresses of a domain: only then does an address that it has verified join
  /// the account that holds the address.
  ///
  /// Attack: somebody runs an issuer of their own, or finds one that does not verify addresses, and lets it say that
  /// owner@gmail.com is theirs. `hd` is no registered claim (OpenID Connect Core 1.0 section 5.1), so any issuer can
  /// send it with any value; only Google's is a statement about a domain
  /// (developers.google.com/identity/gsi/web/guides/verify-google-id-token).
  /// - Parameters:
  ///   - domain: in lower case.
  ///   - hostedDomain: the claim `hd` of the ID token.
  func isAuthoritative(for domain: String, hostedDomain: String?) -> Bool {
    if let trustedDomains { return trustedDomains.contains(domain) }
    return issuer.address == Self.google && (domain == "gmail.com" || domain == hostedDomain?.lowercased())
  }
}

extension String {
  /// The text with settings in the place of `{tenant}` and `{server}`.
  func filled(by settings: StepSettings) -> String {
    ["tenant", "server"].reduce(self) { text, name in
      let value = settings.text(name) ?? ""
      return text.replacing("{\(name)}", with: value.hasSuffix("/") ? String(value.dropLast()) : value)
    }
  }
}
