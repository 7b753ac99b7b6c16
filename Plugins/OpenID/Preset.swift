import MoongateSDK

/// What is special about a site: data that fills in settings, each of which the operator can override.
struct Preset: Sendable {
  let name: String
  /// The name that users know the site by; nil if the operator has to choose a label, as for a company's own issuer.
  var title: String?
  /// The issuer. `{tenant}` stands for the setting of that name.
  var issuer: String?
  /// Whether the issuer's own name has the id of the tenant in the place of `{tenant}`.
  var namesTenant = false
  /// The settings that it cannot do without.
  var needs: [String] = []
  var scopes = ["openid", "email", "profile"]
  /// Further parameters of the authorization request.
  var parameters: [String: String] = [:]
  var responseMode = ResponseMode.query
  var clientAuth: ClientAuth?
  var userInfo = UserInfoUse.missing
  /// Whether the site accepts a PKCE challenge and verifier.
  var takesPKCE = true
  /// The errors of the authorization address by which the user cancels (RFC 6749 section 4.1.2.1).
  var cancellations: Set<String> = ["access_denied"]
  /// Errors of the token endpoint that mean a wrong code, though elsewhere they blame the client.
  var codeErrors: Set<String> = []
  /// Whether signing out there works without the ID token, which the gateway does not keep.
  var signsOutByClient = true
  /// Whether its ID tokens have the nonce of the request.
  var sendsNonce = true
  var claims = ClaimRules()
  /// How to ask for a refresh token.
  var offline = OfflineAccess.scope
  /// The endpoints of a site without discovery. `{server}` stands for the setting of that name.
  var authorize: String?
  var token: String?
  var profiles: [String: String] = [:]
  /// The members that can be the subject, the first that exists.
  var subject: [String] = ["sub", "id"]

  /// The preset that the settings choose, or one without any difference; nil for an unknown name.
  static func chosen(by settings: StepSettings, _ entry: OpenID.Entry) -> Preset? {
    let standard = entry == .oauth ? Preset(name: "", scopes: [], offline: .granted) : Preset(name: "")
    guard entry != .google, let name = settings.text("preset") else { return standard }
    return all(of: entry).first { $0.name == name }
  }

  static func all(of entry: OpenID.Entry) -> [Preset] { entry == .oauth ? oauth : openID }
}

/// How a site is asked for a refresh token. It is only asked if gateway.lua says `recheck`.
struct OfflineAccess: Sendable {
  var scopes: [String] = []
  var parameters: [String: String] = [:]
  var asksConsent = false
  /// Whether the site issues refresh tokens at all.
  var exists = true

  /// By the scope of OpenID Connect Core 1.0 section 11.
  static let scope = Self(scopes: ["offline_access"])
  /// The site issues one with every access token.
  static let granted = Self()
  static let none = Self(exists: false)
  /// developers.google.com/identity/protocols/oauth2/web-server#offline: only for the first consent, or a new one.
  static let google = Self(parameters: ["access_type": "offline"], asksConsent: true)
}

/// Where a site says what, and how.
struct ClaimRules: Sendable {
  var email = ["email"]
  var emailVerified = ["email_verified"]
  var firstName = ["given_name"]
  var lastName = ["family_name"]
  /// The whole name, used without a first one.
  var name = ["name"]
  /// Where lists of groups are. The groups of all of them count.
  var groups = [["groups"]]
  /// Where an object is whose names are groups.
  var groupNames: [String]?
  /// Other texts for policies, by name.
  var data: [String: [String]] = [:]
  /// Whether `"true"` as a text counts as true, of whether the address is verified.
  var takesTextTrue = false
  /// A list of addresses with their states, in place of `email`.
  var addresses: AddressList?
  /// The member that says that there are more groups than the site sends.
  var overage: [String]?

  /// The members that say which address is the user's.
  var ofUser: Set<String> {
    Set([email, emailVerified, addresses?.path ?? []].compactMap { $0.first }).union(["email", "email_verified"])
  }

  /// The addresses of a user, each an object.
  struct AddressList: Sendable {
    let path: [String]
    let primary: String
    let verified: String
  }

  /// The claims, with a flag in the place of `"true"` and `"false"` where the site verifies addresses by a text.
  /// - Throws: if groups are missing: a policy may refuse by one of them.
  func readable(_ members: [String: JSONClaim]) throws(AnswerRefusal) -> [String: JSONClaim] {
    // Attack: someone joins so many groups that the site leaves all of them out, also the one that a policy refuses.
    if let overage, JSONClaim.object(members)[overage] != nil {
      throw AnswerRefusal(.groups, "more than the token has room for")
    }
    guard takesTextTrue, let name = emailVerified.first, let text = members[name]?.text,
      ["true", "false"].contains(text)
    else { return members }
    return members.merging([name: .flag(text == "true")]) { $1 }
  }

  /// What the claims say about the user. Malformed claims count as missing, so that a site cannot lock users out.
  /// - Parameter members: by `readable`.
  func identity(from members: [String: JSONClaim]) -> MappedIdentity {
    let claims = JSONClaim.object(members)
    var identity = MappedIdentity(
      email: claims[email]?.text, isEmailVerified: claims[emailVerified]?.isTrue ?? false,
      firstName: claims[firstName]?.text ?? claims[name]?.text, lastName: claims[lastName]?.text)
    if let addresses {
      let primary = claims[addresses.path]?.list?.first { $0[[addresses.primary]]?.isTrue ?? false }
      identity.email = primary?[["email"]]?.text
      identity.isEmailVerified = primary?[[addresses.verified]]?.isTrue ?? false
    }
    var found = groups.flatMap { claims[$0]?.texts ?? [] }
    if let groupNames { found += (claims[groupNames]?.members ?? [:]).keys.sorted() }
    var seen: Set<String> = []
    identity.groups = found.filter { seen.insert($0).inserted }
    identity.data = data.compactMapValues { claims[$0]?.text }
    return identity
  }
}

/// How the site returns its answer.
enum ResponseMode: String, Sendable, CaseIterable {
  case query
  /// By a form that the browser posts (OAuth 2.0 Form Post Response Mode).
  case formPost = "form_post"
}

/// When claims are requested from the userinfo endpoint.
enum UserInfoUse: String, Sendable, CaseIterable {
  /// If the ID token lacks the address or the name.
  case missing
  case always, never
}

/// When an address counts as verified by the site.
enum EmailRule: String, Sendable, CaseIterable {
  /// If the site says so.
  case claim
  case always
}

/// Where users sign out.
enum SignOutRule: String, Sendable, CaseIterable {
  case here
  /// At the issuer as well.
  case there
}

/// How the client authenticates at the token endpoint (OpenID Connect Core 1.0 section 9).
enum ClientAuth: String, Sendable, CaseIterable {
  case basic, post
  case privateKeyJWT = "private_key_jwt"
  /// A secret that is a token signed by the client's key, sent in the body.
  case signedSecret

  /// The ones that settings name, in the order of preference.
  static let chosen: [ClientAuth] = [.basic, .post, .privateKeyJWT]

  /// The name in discovery documents.
  var method: String {
    switch self {
    case .basic: "client_secret_basic"
    case .post, .signedSecret: "client_secret_post"
    case .privateKeyJWT: "private_key_jwt"
    }
  }
}
