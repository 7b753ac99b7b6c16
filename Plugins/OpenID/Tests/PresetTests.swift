import Foundation
import OpenID
import MoongateSDK
import Testing

/// The presets of issuers, with answers of the shapes that their documentation shows.
@Suite("Presets of OpenID Connect") struct PresetTests {
  /// A sign-in at a site: what it says, and what follows.
  struct Documented: Sendable, CustomTestStringConvertible {
    let preset: String
    var settings: [String: SettingValue] = [:]
    /// The address under which discovery is.
    let issuer: String
    /// The ID token's claims about the user, as JSON.
    let idToken: String
    /// The answer of the userinfo endpoint; nil without one.
    var userInfo: String?
    var audiences: [String] = ["client"]

    var proved: [IdentifierKind] = [.federated]
    var attested: [String] = []
    var claimed: [String] = []
    var names: [String] = []
    var groups: [String] = []
    var data: [String: String] = [:]

    var testDescription: String { preset }
  }

  private static let tenant = "9122040d-6c67-4c5b-b112-36a304b66dad"

  static let documented: [Documented] = [
    // learn.microsoft.com/entra/identity-platform/id-token-claims-reference: no email_verified.
    Documented(
      preset: "microsoft", settings: ["tenant": "contoso.onmicrosoft.com"],
      issuer: "https://login.microsoftonline.com/contoso.onmicrosoft.com/v2.0",
      idToken: """
        {"ver":"2.0","sub":"AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ","name":"Abe Lincoln","tid":"\(tenant)",
        "preferred_username":"abeli@contoso.com","oid":"00000000-0000-0000-66f3-3332eca7ea81","email":"abeli@contoso.com",
        "groups":["5c2e3a7f-0d4b-4b6a-9d0a-4d0f6f4c7a11"],"roles":["Reader"]}
        """,
      claimed: ["abeli@contoso.com"], names: ["Abe Lincoln"],
      groups: ["5c2e3a7f-0d4b-4b6a-9d0a-4d0f6f4c7a11", "Reader"],
      data: ["tenant": tenant, "object": "00000000-0000-0000-66f3-3332eca7ea81"]),
    // developer.apple.com/documentation/signinwithapple/authenticating-users-with-sign-in-with-apple: "true" as a text.
    Documented(
      preset: "apple", settings: ["team": "TEAM123456", "key_id": "ABC123DEFG"], issuer: "https://appleid.apple.com",
      idToken: """
        {"sub":"001999.0c2b2e5f7a3d4c1e.1234","at_hash":"x","email":"dpdcnf87nu@privaterelay.appleid.com",
        "email_verified":"true","is_private_email":"true","auth_time":1799999990,"nonce_supported":true}
        """,
      attested: ["dpdcnf87nu@privaterelay.appleid.com"]),
    // docs.gitlab.com/integration/openid_connect_provider: groups_direct in the ID token.
    Documented(
      preset: "gitlab", issuer: "https://gitlab.com",
      idToken: """
        {"sub":"1234","auth_time":1799999990,"sub_legacy":"x","name":"Asha Rao","nickname":"asha","preferred_username":"asha",
        "email":"asha@example.com","email_verified":true,"groups_direct":["acme","acme/ops"]}
        """,
      attested: ["asha@example.com"], names: ["Asha Rao"], groups: ["acme", "acme/ops"]),
    // developer.okta.com/docs/api/openapi/okta-oauth: thin ID tokens beside an access token.
    Documented(
      preset: "okta", settings: ["issuer": "https://dev.okta.com/oauth2/default"],
      issuer: "https://dev.okta.com/oauth2/default",
      idToken:
        #"{"sub":"00uid4BxXw6I6TV4m0g3","ver":1,"amr":["pwd"],"idp":"00ok1u7AsAkrwdZL3z0g3","groups":["Everyone"]}"#,
      userInfo: """
        {"sub":"00uid4BxXw6I6TV4m0g3","name":"John Doe","given_name":"John","family_name":"Doe",
        "email":"john@example.com","email_verified":true,"zoneinfo":"America/Los_Angeles"}
        """,
      attested: ["john@example.com"], names: ["John", "Doe"], groups: ["Everyone"]),
    // auth0.com/docs/secure/tokens/id-tokens: a slash at the end of the issuer.
    Documented(
      preset: "auth0", settings: ["issuer": "https://acme.eu.auth0.com/"], issuer: "https://acme.eu.auth0.com/",
      idToken: """
        {"sub":"auth0|5f7c8ec7c33c6c004bbafe82","nickname":"asha","name":"asha@example.com","email":"asha@example.com",
        "email_verified":false,"https://example.com/roles":["ops"]}
        """,
      claimed: ["asha@example.com"], names: ["asha@example.com"]),
    // www.keycloak.org/docs: roles inside realm_access, groups by a mapper.
    Documented(
      preset: "keycloak", settings: ["issuer": "https://id.example.com/realms/acme"],
      issuer: "https://id.example.com/realms/acme",
      idToken: """
        {"typ":"ID","azp":"client","sub":"a6e1cbbd-ec5e-4ef1-a85d-3a1ab1d3c2c9","email":"asha@example.com",
        "email_verified":true,"given_name":"Asha","family_name":"Rao","realm_access":{"roles":["offline_access","ops"]},
        "groups":["/acme/ops"]}
        """,
      attested: ["asha@example.com"], names: ["Asha", "Rao"], groups: ["/acme/ops", "offline_access", "ops"]),
    // zitadel.com/docs/apis/openidoauth/claims: the project among the audiences, roles as names of an object.
    Documented(
      preset: "zitadel",
      settings: ["issuer": "https://acme.zitadel.cloud", "audiences": ["69234237810729019", "other@acme"]],
      issuer: "https://acme.zitadel.cloud",
      idToken: """
        {"sub":"77776025198584418","azp":"client","email":"asha@example.com","email_verified":true,"given_name":"Asha",
        "urn:zitadel:iam:org:project:roles":{"user":{"id1":"acme.zitadel.cloud"},"ops":{"id1":"acme.zitadel.cloud"}}}
        """,
      audiences: ["client", "other@acme", "69234237810729019"],
      attested: ["asha@example.com"], names: ["Asha"], groups: ["ops", "user"]),
    // docs.goauthentik.io: a slug in the issuer, groups in the scope profile.
    Documented(
      preset: "authentik", settings: ["issuer": "https://id.example.com/application/o/gateway/"],
      issuer: "https://id.example.com/application/o/gateway/",
      idToken: """
        {"sub":"f0e4c2f76c58916ec258f246851bea09","email":"asha@example.com","email_verified":true,"name":"Asha Rao",
        "given_name":"Asha Rao","preferred_username":"asha","nickname":"asha","groups":["authentik Admins"]}
        """,
      attested: ["asha@example.com"], names: ["Asha Rao"], groups: ["authentik Admins"]),
    // www.authelia.com/integration/openid-connect/openid-connect-1.0-claims: claims at userinfo only, since 4.39.
    Documented(
      preset: "authelia", settings: ["issuer": "https://auth.example.com"], issuer: "https://auth.example.com",
      idToken: #"{"sub":"8dbb4a1e-8a0e-4c2c-9bb4-5b1f7b6a2a55","amr":["pwd","otp","mfa"],"azp":"client"}"#,
      userInfo: """
        {"sub":"8dbb4a1e-8a0e-4c2c-9bb4-5b1f7b6a2a55","name":"Asha Rao","preferred_username":"asha",
        "email":"asha@example.com","email_verified":true,"alt_emails":["a@example.com"],"groups":["admins","dev"]}
        """,
      attested: ["asha@example.com"], names: ["Asha Rao"], groups: ["admins", "dev"]),
    // docs.aws.amazon.com/cognito: email_verified is a text at userinfo.
    Documented(
      preset: "cognito", settings: ["issuer": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc"],
      issuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc",
      idToken: #"{"sub":"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee","token_use":"id","cognito:groups":["ops"]}"#,
      userInfo: """
        {"sub":"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee","email":"asha@example.com","email_verified":"true",
        "given_name":"Asha","family_name":"Rao","username":"asha"}
        """,
      attested: ["asha@example.com"], names: ["Asha", "Rao"], groups: ["ops"]),
    // learn.microsoft.com/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2: no nonce.
    Documented(
      preset: "linkedin", issuer: "https://www.linkedin.com/oauth",
      idToken: """
        {"nonce":null,"sub":"782bbtaQ","name":"Asha Rao","given_name":"Asha","family_name":"Rao","locale":"en_US",
        "email":"asha@example.com","email_verified":"true"}
        """,
      attested: ["asha@example.com"], names: ["Asha", "Rao"]),
    // docs.slack.dev/authentication/sign-in-with-slack
    Documented(
      preset: "slack", issuer: "https://slack.com",
      idToken: """
        {"sub":"U123ABC456","auth_time":1799999990,"at_hash":"x","https://slack.com/team_id":"T123ABC456",
        "https://slack.com/user_id":"U123ABC456","email":"asha@example.com","email_verified":true,"name":"asha rao",
        "given_name":"Asha","family_name":"Rao"}
        """,
      attested: ["asha@example.com"], names: ["Asha", "Rao"], data: ["team": "T123ABC456"]),
    // dev.twitch.tv/docs/authentication/getting-tokens-oidc
    Documented(
      preset: "twitch", issuer: "https://id.twitch.tv/oauth2",
      idToken: """
        {"sub":"713936733","azp":"client","email":"scotwht@example.com","email_verified":true,
        "preferred_username":"scotwht"}
        """,
      attested: ["scotwht@example.com"], names: ["scotwht"]),
    // developers.google.com/identity/openid-connect/openid-connect
    Documented(
      preset: "google", issuer: "https://accounts.google.com",
      idToken: """
        {"azp":"client","sub":"10769150350006150715113082367","at_hash":"x","hd":"example.com","email":"jsmith@example.com",
        "email_verified":true,"given_name":"J","family_name":"Smith"}
        """,
      proved: [.federated, .email], names: ["J", "Smith"]),
  ]

  /// A sign-in in which the site answers as documented.
  static func signedIn(_ site: Documented, _ changes: [String: any Sendable] = [:]) async throws -> (
    Attempted, StepAnswer
  ) {
    let web = TestProvider()
    let members = try JSONSerialization.jsonObject(with: Data(site.idToken.utf8)) as? [String: Any] ?? [:]
    let iss = members["tid"].map { "https://login.microsoftonline.com/\($0)/v2.0" } ?? site.issuer
    let address = site.issuer.hasSuffix("/") ? String(site.issuer.dropLast()) : site.issuer
    web.change {
      $0.issuer = address
      $0.published = [TestKey.rsa.published]
      $0.discovery = ["issuer": iss, "token_endpoint_auth_methods_supported": ["client_secret_post"]]
      if site.userInfo != nil { $0.discovery["userinfo_endpoint"] = address + "/me" }
      if let text = site.userInfo { $0.others[address + "/me"] = (200, text) }
      $0.accessToken = "t0ken"
    }
    var settings = site.settings
    settings["preset"] = .text(site.preset)
    settings["client_id"] = "client"
    let key = TestKey.p256.privatePEM
    let step = try await Attempted.begun(
      web, plugin: OpenID(.openID),
      settings: StepSettings(
        secrets: site.preset == "apple" ? ["private_key": { key }] : ["client_secret": { "s3cret" }], values: settings))
    var claims = try step.claims(["iss": iss, "aud": site.audiences])
    for name in ["email", "email_verified", "given_name", "family_name"] { claims[name] = nil }
    claims.merge(members) { $1 }
    for (name, value) in changes { claims[name] = value }
    if claims["nonce"] is NSNull { claims["nonce"] = nil }
    return (step, try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], claims)))
  }

  @Test("the documented answer gives the identity, address, names, groups and data", arguments: documented)
  func answers(site: Documented) async throws {
    let (step, answer) = try await Self.signedIn(site)
    let proof = try #require(answer.proof, "\(step.reasons.take())")
    #expect(proof.proved.map(\.kind) == site.proved)
    #expect(proof.attested.map(\.value) == site.attested)
    #expect(proof.claimed.map(\.value) == site.claimed)
    #expect([proof.firstName, proof.lastName].compactMap(\.self) == site.names)
    #expect(proof.proved.first?.groups == site.groups)
    #expect(proof.proved.first?.attributes == site.data)
  }

  @Test("each preset is a case") func complete() {
    let kinds = OpenID(.openID).descriptor.settings.first { $0.name == "preset" }?.kind
    #expect(kinds == .choice(Self.documented.map(\.preset).sorted(by: Self.order)))
  }

  /// The order of the table.
  private static func order(_ left: String, _ right: String) -> Bool {
    guard case .choice(let names)? = OpenID(.openID).descriptor.settings.first(where: { $0.name == "preset" })?.kind
    else { return false }
    return (names.firstIndex(of: left) ?? 0) < (names.firstIndex(of: right) ?? 0)
  }

  private func site(_ preset: String) throws -> Documented {
    try #require(Self.documented.first { $0.preset == preset })
  }

  // MARK: Microsoft

  @Test("an identity at Microsoft has the tenant's id, however the settings name the tenant") func tenantIssuer()
    async throws
  {
    let (_, answer) = try await Self.signedIn(try site("microsoft"))
    let value = try #require(answer.proof?.proved.first?.value)
    #expect(value.hasPrefix("https://login.microsoftonline.com/\(Self.tenant)/v2.0 "))
  }

  /// Attack: someone joins so many groups that the token names none, the one that a policy refuses included.
  @Test("a token that leaves out groups is refused") func overage() async throws {
    let (step, answer) = try await Self.signedIn(
      try site("microsoft"), ["_claim_names": ["groups": "src1"], "groups": NSNull()])
    #expect(answer.reason == .oauthFailed)
    #expect(step.reasons.take().last == "groups more than the token has room for")
    // Nor does the function `identity` of the policy see such a token.
    var own = step
    own.identity = IdentityMapper { _ in MappedIdentity() }
    let tenant = "https://login.microsoftonline.com/\(Self.tenant)/v2.0"
    let token = try TestKey.rsa.sign(
      try step.claims(["iss": tenant, "tid": Self.tenant, "_claim_names": ["groups": "src1"]]))
    #expect(try await own.returns(token).reason == .oauthFailed)
  }

  /// Attacks: a token of another tenant, of the tenant by its name, and of none.
  @Test(
    "a token of another tenant is refused", arguments: ["11111111-6c67-4c5b-b112-36a304b66dad", "contoso", ""])
  func otherTenant(tenant: String) async throws {
    let issuer = "https://login.microsoftonline.com/\(tenant)/v2.0"
    let (step, answer) = try await Self.signedIn(try site("microsoft"), ["iss": issuer, "tid": tenant])
    #expect(answer.reason == .oauthFailed)
    #expect(step.reasons.take().last == "iss \(issuer)")
  }

  @Test("with any tenant, the token's own tenant is in the identity") func anyTenant() async throws {
    let web = TestProvider()
    web.change {
      $0.issuer = "https://login.microsoftonline.com/organizations/v2.0"
      $0.published = [TestKey.rsa.published]
      $0.discovery = ["issuer": "https://login.microsoftonline.com/{tenantid}/v2.0"]
    }
    let settings = StepSettings(
      secrets: ["client_secret": { "s3cret" }],
      values: ["preset": "microsoft", "tenant": "organizations", "client_id": "client"])
    let step = try await Attempted.begun(web, plugin: OpenID(.openID), settings: settings)
    let own = "https://login.microsoftonline.com/\(Self.tenant)/v2.0"
    let token = { (changes: [String: Any?]) in try TestKey.rsa.sign(try step.claims(changes)) }
    let grouped: [String: Any?] = ["iss": own, "tid": Self.tenant, "groups": ["ops"], "roles": ["admin"]]
    let proof = try await step.returns(try token(grouped)).proof
    #expect(proof?.proved.first?.value == "\(own) 42")
    // Attack: the administrator of a foreign tenant names a group like one of the operator's.
    #expect(proof?.proved.first?.groups == [])
    var mapped = step
    mapped.identity = IdentityMapper { _ in MappedIdentity(groups: ["ops"]) }
    let named = try await mapped.returns(try token(["iss": own, "tid": Self.tenant])).proof
    #expect(named?.proved.first?.groups == ["ops"], "the function knows the tenant")
    // Attack: one tenant issues tokens in the name of another.
    for tenant in ["11111111-6c67-4c5b-b112-36a304b66dad", "{tenantid}", nil] {
      #expect(try await step.returns(try token(["iss": own, "tid": tenant])).reason == .oauthFailed)
    }
    let braces = "https://login.microsoftonline.com/{tenantid}/v2.0"
    #expect(try await step.returns(try token(["iss": braces, "tid": Self.tenant])).reason == .oauthFailed)
  }

  /// Attack: somebody creates a tenant, and in it a user with another person's address.
  @Test(
    "addresses of any tenant are never trusted",
    arguments: [
      "common", "organizations", "consumers", "Common", "common/", " ORGANIZATIONS", "/common",
      "9188040D-6c67-4c5b-b112-36a304b66dad",
    ])
  func openTenants(tenant: String) {
    let base: [String: SettingValue] = ["preset": "microsoft", "client_id": "client", "tenant": .text(tenant)]
    for (more, isRefused) in [
      ([:], false), (["email_verified": "always"], true), (["trusted_domains": ["example.com"]], true),
    ] as [([String: SettingValue], Bool)] {
      let found = OpenID(.openID).findings(
        in: StepSettings(secrets: ["client_secret": { "s" }], values: base.merging(more) { $1 }))
      #expect(found.contains { $0.effect == .refused } == isRefused)
      #expect(found.contains { $0.setting == "tenant" && $0.effect == .warning })
    }
  }

  // MARK: Apple

  @Test("Apple gets its answer posted, and a secret that the client's key has signed") func apple() async throws {
    let (step, _) = try await Self.signedIn(try site("apple"))
    #expect(step["response_mode"] == "form_post")
    #expect(step["scope"] == "openid name email")
    let request = try #require(step.web.requests.first { $0.url.hasSuffix("/token") })
    let body = try #require(URLComponents(string: "?" + String(decoding: request.body, as: UTF8.self))?.queryItems)
    let secret = try #require(body.first { $0.name == "client_secret" }?.value)
    let parts = secret.split(separator: ".").map { Base64URL.decode(String($0)).map { Data($0) } ?? Data() }
    let header = try #require(try JSONSerialization.jsonObject(with: parts[0]) as? [String: Any])
    #expect(header["alg"] as? String == "ES256" && header["kid"] as? String == "ABC123DEFG")
    let claims = try #require(try JSONSerialization.jsonObject(with: parts[1]) as? [String: Any])
    #expect(claims["iss"] as? String == "TEAM123456")
    #expect(claims["aud"] as? String == "https://appleid.apple.com")
    #expect(claims["sub"] as? String == "client")
    let times = [claims["iat"], claims["exp"]].compactMap { $0 as? Int }
    #expect(times == [1_800_000_000, 1_800_000_120])
    #expect(!secret.contains("PRIVATE"))
  }

  /// Attack: the form beside the code is the browser's, so nothing in it proves an address.
  @Test("the name beside Apple's code is taken, its address is not") func appleName() async throws {
    let (step, _) = try await Self.signedIn(try site("apple"))
    let token = try TestKey.rsa.sign(
      try step.claims([
        "iss": "https://appleid.apple.com", "email": nil, "email_verified": nil, "given_name": nil, "family_name": nil,
      ]))
    let user = #"{"name":{"firstName":"Asha","lastName":"Rao"},"email":"owner@example.com","email_verified":true}"#
    let proof = try #require(try await step.returns(token, with: ["user": user]).proof)
    #expect(proof.firstName == "Asha" && proof.lastName == "Rao")
    #expect(proof.proved.map(\.kind) == [.federated] && proof.attested.isEmpty && proof.claimed.isEmpty)
    for odd in ["", "[]", "{", #"{"name":"Asha"}"#, #"{"name":{"firstName":1}}"#] {
      #expect(try await step.returns(token, with: ["user": odd]).proof?.firstName == nil)
    }
  }

  @Test(
    "a site's own words for cancelling are no failure",
    arguments: [
      ("apple", "user_cancelled_authorize", RefusalReason.oauthCancelled), ("apple", "access_denied", .oauthCancelled),
      ("linkedin", "user_cancelled_login", .oauthCancelled), ("linkedin", "user_cancelled_authorize", .oauthCancelled),
      ("okta", "user_cancelled_login", .oauthFailed), ("apple", "server_error", .oauthFailed),
    ])
  func cancelled(preset: String, error: String, reason: RefusalReason) async throws {
    let (step, _) = try await Self.signedIn(try site(preset))
    #expect(try await step.submit(["error": error, "state": Attempted.callback.state]).reason == reason)
  }

  // MARK: texts as flags

  /// Attack: `"false"` is a text that is not empty.
  @Test(
    "a text counts as true where the preset says so, and only \"true\"",
    arguments: [
      ("cognito", "true", true), ("cognito", "false", false), ("cognito", "TRUE", false), ("cognito", "1", false),
      ("okta", "true", false), ("slack", "true", false), ("apple", "false", false),
    ])
  func texts(preset: String, text: String, isVerified: Bool) async throws {
    var site = try site(preset)
    site.userInfo = nil
    let (_, answer) = try await Self.signedIn(site, ["email": "asha@example.com", "email_verified": text])
    let proof = try #require(answer.proof)
    #expect(proof.attested.map(\.value) == (isVerified ? ["asha@example.com"] : []))
    #expect(proof.claimed.map(\.value) == (isVerified ? [] : ["asha@example.com"]))
  }

  @Test("the function `identity` gets a flag in the place of the text", arguments: ["true", "false", "yes"])
  func textsForTheFunction(text: String) async throws {
    var (step, _) = try await Self.signedIn(try site("apple"))
    let seen = Seen()
    step.identity = IdentityMapper { claims in
      seen.set(claims)
      return nil
    }
    let changes: [String: Any?] = ["iss": "https://appleid.apple.com", "email_verified": text, "is_private": "true"]
    _ = try await step.returns(try TestKey.rsa.sign(try step.claims(changes)))
    let expected: JSONClaim = text == "yes" ? .text("yes") : .flag(text == "true")
    #expect(seen.claims["email_verified"] == expected)
    #expect(seen.claims["is_private"] == .text("true"), "no other claim is changed")
  }

  // MARK: LinkedIn

  @Test("LinkedIn gets no PKCE parameters") func linkedIn() async throws {
    let (step, _) = try await Self.signedIn(try site("linkedin"))
    #expect(step["code_challenge"] == nil && step["nonce"] != nil)
    let request = try #require(step.web.requests.first { $0.url.hasSuffix("/token") })
    #expect(!String(decoding: request.body, as: UTF8.self).contains("code_verifier"))
  }

  /// Attacks: a token without a nonce could be anyone's, so an app cannot bring one; and one with another nonce is a
  /// replay even there.
  @Test("tokens without a nonce come from the token endpoint only") func noNonce() async throws {
    let (step, _) = try await Self.signedIn(try site("linkedin"))
    let bare = try TestKey.rsa.sign(try step.claims(["iss": "https://www.linkedin.com/oauth", "nonce": nil]))
    #expect(try await step.returns(bare).proof != nil)
    #expect(try await step.brings(bare).reason == .oauthFailed)
    let replayed = try TestKey.rsa.sign(try step.claims(["iss": "https://www.linkedin.com/oauth", "nonce": "other"]))
    #expect(try await step.returns(replayed).reason == .oauthFailed)
  }
}
