import Foundation
import OpenID
import MoongateSDK
import Testing

/// What the settings of `openid { … }` and `oauth { … }` do, and what is refused.
@Suite("Settings of openid and oauth") struct SettingsTests {
  private static func settings(
    _ values: [String: SettingValue], secrets: [String: String] = ["client_secret": "s3cret"]
  ) -> StepSettings {
    StepSettings(
      secrets: secrets.mapValues { secret in { @Sendable in secret } },
      values: values.merging(["client_id": "client"]) { first, _ in first })
  }

  private static func begun(
    _ values: [String: SettingValue], secrets: [String: String] = ["client_secret": "s3cret"],
    offering methods: [String] = ["client_secret_basic"]
  ) async throws -> Attempted {
    let web = TestProvider()
    web.change {
      $0.published = [TestKey.rsa.published]
      $0.discovery = ["token_endpoint_auth_methods_supported": methods]
    }
    let all = values.merging(["issuer": .text(TestProvider.issuer)]) { first, _ in first }
    return try await Attempted.begun(web, plugin: OpenID(.openID), settings: settings(all, secrets: secrets))
  }

  private static func token(_ step: Attempted, _ changes: [String: Any?] = [:]) throws -> String {
    try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(changes))
  }

  @Test("what the authorization request has") func request() async throws {
    let step = try await Self.begun([
      "scopes": ["email", "offline_access"], "response_mode": "form_post", "prompt": "login", "max_age": 3600,
      "acr_values": "phr", "parameters": .table(["hd": "example.com", "domain_hint": "a b"]),
    ])
    #expect(step["scope"] == "openid email offline_access")
    #expect(step["response_mode"] == "form_post" && step["prompt"] == "login" && step["max_age"] == "3600")
    #expect(step["acr_values"] == "phr" && step["hd"] == "example.com" && step["domain_hint"] == "a b")
    let plain = try await Self.begun([:])
    #expect(plain["response_mode"] == nil && plain["prompt"] == nil && plain["max_age"] == nil)
  }

  /// Attack: the browser is signed in to the attacker's identity, which one click would connect.
  @Test("connecting asks for the account, unless the settings ask for more") func connecting() async throws {
    for (values, prompt) in [
      ([:], "select_account"), (["prompt": "login"], "login"), (["prompt": "none"], "select_account"),
      (["prompt": "consent"], "select_account consent"),
      (["prompt": "consent select_account"], "consent select_account"),
    ] as [([String: SettingValue], String)] {
      let web = TestProvider()
      let settings = Self.settings(values.merging(["issuer": .text(TestProvider.issuer)]) { $1 })
      let context = Attempted.context(web, settings, state: [], now: TestProvider.now, flowPurpose: .join)
      let answer = try await OpenID(.openID).begin(context, ProviderInput(fields: [:], defaultRegion: "IN"))
      guard case .redirect(let address, _) = answer else { throw Unexpected() }
      let asked = URLComponents(string: address)?.queryItems?.filter { $0.name == "prompt" }.map(\.value)
      #expect(asked == [prompt])
    }
  }

  /// Attack: an issuer that ignores `max_age` answers for a browser that somebody else has used since.
  @Test(
    "with max_age, an old sign-in at the issuer is refused",
    arguments: [(-3600, true), (-3659, true), (-3661, false), (nil, false)] as [(Double?, Bool)])
  func maxAge(ago: Double?, isAccepted: Bool) async throws {
    let step = try await Self.begun(["max_age": 3600])
    let at = ago.map { Double(TestProvider.now) / 1000 + $0 }
    let answer = try await step.returns(try Self.token(step, ["auth_time": at]))
    #expect((answer.proof != nil) == isAccepted)
    if !isAccepted { #expect(step.reasons.take().last?.hasPrefix("auth_time ") == true) }
  }

  // MARK: the client

  private static func tokenRequest(_ step: Attempted, _ offered: [String]) async throws -> (
    authorization: String?, body: [String: String]
  ) {
    step.web.change { $0.discovery = ["token_endpoint_auth_methods_supported": offered] }
    // Discovery is cached by the provider of the step, so it is begun again.
    let step = try await Attempted.begun(step.web, plugin: OpenID(.openID), settings: step.settings)
    #expect(try await step.returns(try token(step)).proof != nil)
    let request = try #require(step.web.requests.last { $0.url.hasSuffix("/token") })
    let items = URLComponents(string: "?" + String(decoding: request.body, as: UTF8.self))?.queryItems ?? []
    let body = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    return (request.headers.first { $0.name == "Authorization" }?.value, body)
  }

  @Test(
    "the client proves its identity by the first method that the issuer offers, or as the settings say",
    arguments: [
      (nil, ["client_secret_post", "client_secret_basic"], true), (nil, ["client_secret_post"], false),
      ("post", ["client_secret_basic"], false), ("basic", ["client_secret_post"], true),
    ] as [(String?, [String], Bool)])
  func methods(chosen: String?, offered: [String], isBasic: Bool) async throws {
    let step = try await Self.begun(chosen.map { ["client_auth": .text($0)] } ?? [:])
    let (authorization, body) = try await Self.tokenRequest(step, offered)
    #expect((authorization?.hasPrefix("Basic ") ?? false) == isBasic)
    #expect((body["client_secret"] != nil) == !isBasic)
  }

  @Test("with a key, the client signs an assertion", arguments: [TestKey.p256, TestKey.p384, TestKey.rsa])
  func assertion(key: TestKey) async throws {
    let step = try await Self.begun(
      ["key_id": "k1"], secrets: ["private_key": key.privatePEM], offering: ["private_key_jwt"])
    let (authorization, body) = try await Self.tokenRequest(step, ["client_secret_basic", "private_key_jwt"])
    #expect(authorization == nil && body["client_secret"] == nil && body["client_id"] == "client")
    #expect(body["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    let parts = try #require(body["client_assertion"]).split(separator: ".").map { part in
      Base64URL.decode(String(part)).map { Data($0) } ?? Data()
    }
    let header = try #require(try JSONSerialization.jsonObject(with: parts[0]) as? [String: Any])
    #expect(header["alg"] as? String == key.algorithm && header["kid"] as? String == "k1")
    let claims = try #require(try JSONSerialization.jsonObject(with: parts[1]) as? [String: Any])
    #expect(claims["iss"] as? String == "client" && claims["sub"] as? String == "client")
    #expect(claims["aud"] as? String == TestProvider.issuer + "/token")
    #expect((claims["jti"] as? String)?.count == 22)
    let lifetime = (claims["exp"] as? Int ?? 0) - (claims["iat"] as? Int ?? 0)
    #expect(lifetime == 120)
  }

  @Test("an issuer that offers no usable method is a fault, which names no secret") func noMethod() async throws {
    let step = try await Self.begun([:])
    step.web.change { $0.discovery = ["token_endpoint_auth_methods_supported": ["private_key_jwt"]] }
    do {
      _ = try await Attempted.begun(step.web, plugin: OpenID(.openID), settings: step.settings)
      Issue.record("a client without a key was accepted")
    } catch {
      #expect("\(error)".contains("private_key_jwt") && !"\(error)".contains("s3cret"))
    }
  }

  // MARK: the doctor

  @Test("the doctor reads discovery and keys") func probe() async throws {
    let web = TestProvider()
    let tools = { (values: [String: SettingValue]) in
      StepTools(
        randomBytes: { [UInt8](repeating: 7, count: $0) },
        settings: Self.settings(values.merging(["issuer": .text(TestProvider.issuer)]) { $1 }), web: web,
        clock: StepClock { TestProvider.now })
    }
    // Without a usable key, nobody could sign in.
    await #expect(throws: (any Error).self) { try await OpenID(.openID).probe(with: tools([:])) }
    web.change { $0.published = [TestKey.rsa.published] }
    #expect(
      try await OpenID(.openID).probe(with: tools([:]))
        == "https://accounts.example.com answers with one key, and takes client_secret_basic")
    web.change { $0.discovery = ["issuer": "https://evil.example.com"] }
    await #expect(throws: (any Error).self) { try await OpenID(.openID).probe(with: tools([:])) }
    #expect(try await OpenID(.oauth).probe(with: tools(["preset": "github"])) == nil)
  }

  // MARK: mistakes

  @Test(
    "wrong settings of openid are reported",
    arguments: [
      ([:], ["client_secret": "s"], ["issuer"]), (["preset": "okta"], ["client_secret": "s"], ["issuer"]),
      (["preset": "microsoft"], ["client_secret": "s"], ["tenant"]), (["preset": "slack"], [:], ["client_secret"]),
      (["preset": "apple"], ["client_secret": "s"], ["team", "key_id", "private_key"]),
      (["preset": "slack"], ["private_key": "no key"], ["private_key"]),
      (["preset": "slack", "key_id": "k1"], ["client_secret": "s"], ["key_id"]),
      (["preset": "slack", "parameters": .table(["redirect_uri": "x"])], ["client_secret": "s"], ["parameters"]),
      (["preset": "slack", "parameters": .table(["state": "x"])], ["client_secret": "s"], ["parameters"]),
      (["preset": "slack", "parameters": .table(["request_uri": "x"])], ["client_secret": "s"], ["parameters"]),
      (["preset": "slack", "parameters": .table(["1": "x"])], ["client_secret": "s"], ["parameters"]),
      (["issuer": "http://login.example.com"], ["client_secret": "s"], ["issuer"]),
      (["issuer": "https://login.example.com#x"], ["client_secret": "s"], ["issuer"]),
      (
        ["preset": "okta", "issuer": "https://a.example.com", "trusted_domains": ["gmail.com"]],
        ["client_secret": "s"], ["trusted_domains"]
      ),
      (
        ["preset": "okta", "issuer": "https://a.example.com", "sign_out": "there"], ["client_secret": "s"],
        ["sign_out"]
      ),
      (["preset": "slack", "client_auth": "private_key_jwt"], ["client_secret": "s"], ["client_auth"]),
      (["preset": "slack", "client_auth": "basic"], ["private_key": TestKey.p256.privatePEM], ["client_auth"]),
      (["preset": "slack"], ["client_secret": "s", "private_key": TestKey.rsa.privatePEM], ["private_key"]),
      (
        ["preset": "apple", "team": "T", "key_id": "K"], ["private_key": TestKey.p384.privatePEM], ["private_key"]
      ),
      (["preset": "slack", "tenant": "acme"], ["client_secret": "s"], ["tenant"]),
    ] as [([String: SettingValue], [String: String], [String])])
  func findings(values: [String: SettingValue], secrets: [String: String], expected: [String]) {
    let found = OpenID(.openID).findings(in: Self.settings(values, secrets: secrets))
    #expect(found.map(\.setting) == expected && found.allSatisfy { $0.effect == .refused })
  }

  @Test(
    "wrong settings of oauth are reported",
    arguments: [
      ([:], ["authorize", "token", "userinfo"]), (["preset": "gitea"], ["server"]),
      (["preset": "github", "server": "https://git.example.com"], ["server"]),
      (["preset": "github", "token": "http://github.com/x"], ["token"]),
      (["preset": "github", "userinfo": .table(["1": "http://api.example.com"])], ["userinfo"]),
      (["preset": "github", "trusted_domains": ["gmail.com"]], ["trusted_domains"]),
    ] as [([String: SettingValue], [String])])
  func siteFindings(values: [String: SettingValue], expected: [String]) {
    let found = OpenID(.oauth).findings(in: Self.settings(values))
    #expect(found.map(\.setting) == expected && found.allSatisfy { $0.effect == .refused })
  }

  @Test("right settings are not, and an address on this machine is for demos") func right() {
    for values in [
      ["preset": "slack"], ["issuer": "https://login.example.com"],
      ["preset": "microsoft", "tenant": "contoso.onmicrosoft.com"],
    ] as [[String: SettingValue]] {
      #expect(OpenID(.openID).findings(in: Self.settings(values)) == [])
    }
    #expect(OpenID(.oauth).findings(in: Self.settings(["preset": "github"])) == [])
    let key = ["private_key": TestKey.p256.privatePEM]
    let apple: [String: SettingValue] = ["preset": "apple", "team": "T", "key_id": "K"]
    #expect(OpenID(.openID).findings(in: Self.settings(apple, secrets: key)) == [])
    let local = OpenID(.oauth).findings(in: Self.settings(["preset": "gitea", "server": "http://127.0.0.1:3001"]))
    #expect(local.map(\.setting) == ["server"] && local.allSatisfy { $0.effect == .localOnly })
  }

  @Test("a preset of a site that users know names the button") func naming() {
    #expect(
      OpenID(.oauth).naming(for: Self.settings(["preset": "github"]))
        == SiteNaming(name: "GitHub", button: "Continue with GitHub"))
    #expect(OpenID(.openID).naming(for: Self.settings(["preset": "okta"])) == nil)
    #expect(OpenID().naming(for: Self.settings([:])) == nil)
  }

  @Test("each entry has flows, a policy and cases of its own name") func names() {
    for (entry, name) in [(OpenID.Entry.google, "google_oauth"), (.openID, "openid"), (.oauth, "oauth")] {
      let descriptor = OpenID(entry).descriptor
      #expect(descriptor.mistakes == [])
      #expect(descriptor.name.rawValue == name && descriptor.flows.map(\.name) == ["\(name)_join"])
      #expect(descriptor.policy.text.contains("return policy \"\(name)\""))
      #expect(descriptor.isKind == (entry != .google) && descriptor.mapsClaims)
    }
  }
}

/// The function `identity` of the policy.
@Suite("Identity function") struct IdentityFunctionTests {
  private let web = TestProvider()

  init() { web.change { $0.published = [TestKey.rsa.published] } }

  private func step(_ values: [String: SettingValue] = [:], _ identity: IdentityMapper) async throws -> Attempted {
    var step = try await Attempted.begun(web, settings: Attempted.settings(values))
    step.identity = identity
    return step
  }

  private func token(_ step: Attempted, _ changes: [String: Any?] = [:]) throws -> String {
    try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(changes))
  }

  @Test("receives the verified claims, and its result replaces the rules of the preset") func mapped() async throws {
    let seen = Seen()
    let mapper = IdentityMapper { claims in
      seen.set(claims)
      return MappedIdentity(
        email: "Other@Example.com", isEmailVerified: true, firstName: "A", groups: ["ops"], data: ["floor": "3"])
    }
    let step = try await step([:], mapper)
    let proof = try #require(
      try await step.returns(try token(step, ["groups": ["x"], "realm": ["roles": ["y"]]])).proof)
    #expect(seen.claims["sub"] == .text("42") && seen.claims["realm"] == .object(["roles": .list([.text("y")])]))
    #expect(proof.proved.first?.groups == ["ops"] && proof.proved.first?.attributes == ["floor": "3"])
    #expect(proof.proved.first?.value == "https://accounts.example.com 42", "the identity is the site's")
    #expect(proof.attested.map(\.value) == ["other@example.com"])
    #expect(proof.firstName == "A" && proof.lastName == nil)
  }

  /// Attack: a function that takes an address from a claim that users write themselves. It still joins no account whose
  /// domain the site is not authoritative for.
  @Test("an address of the function is trusted in trusted_domains only") func trusted() async throws {
    for (domains, proved) in [(["example.org"], [.federated]), (["example.com"], [.federated, .email])]
      as [([String], [IdentifierKind])]
    {
      let step = try await step(
        ["trusted_domains": .list(domains)],
        IdentityMapper { _ in MappedIdentity(email: "owner@example.com", isEmailVerified: true) })
      #expect(try await step.returns(try token(step)).proof?.proved.map(\.kind) == proved)
    }
  }

  @Test("what it throws is not caught: the gateway answers") func denied() async throws {
    let step = try await step([:], IdentityMapper { _ in throw Unexpected() })
    await #expect(throws: Unexpected.self) { try await step.returns(try token(step)) }
  }

  /// Attack: a forged token reaches the function, which trusts what it reads.
  @Test("no unverified claim reaches it") func verified() async throws {
    let step = try await step([:], IdentityMapper { _ in throw Unexpected() })
    let forged = try TestKey.otherRSA.sign(["alg": "RS256", "kid": "rsa"], step.claims())
    #expect(try await step.returns(forged).reason == .oauthFailed)
    #expect(try await step.returns(try token(step, ["aud": "other"])).reason == .oauthFailed)
  }
}
