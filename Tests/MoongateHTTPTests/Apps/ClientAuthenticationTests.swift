import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

/// How apps authenticate themselves at the token endpoint.
@Suite struct ClientAuthenticationTests {
  private static let grant = ["grant_type": "authorization_code", "code": "x"]
  private static let basic = [("Authorization", TestApp.basic())]

  private func gateway() throws -> HTTPGateway {
    try TestApp.gateway([
      TestApp.confidential(), TestApp.confidential("other"), TestApp.confidential("public", authentication: .none),
    ])
  }

  /// Whether the app was authenticated, and only its code is wrong.
  private func isAuthenticated(_ answer: Answer) -> Bool {
    answer.status == 400 && answer["error"] as? String == "invalid_grant"
  }

  @Test func secretInEitherPlace() async throws {
    try await gateway().run { client async throws in
      let posted = Self.grant.merging(["client_id": "grafana", "client_secret": TestApp.secret]) { $1 }
      #expect(isAuthenticated(try await client.form("/auth/openid/token", Self.grant, headers: Self.basic)))
      #expect(isAuthenticated(try await client.form("/auth/openid/token", posted)))
      let named = Self.grant.merging(["client_id": "grafana"]) { $1 }
      #expect(isAuthenticated(try await client.form("/auth/openid/token", named, headers: Self.basic)))
      let open = Self.grant.merging(["client_id": "public"]) { $1 }
      #expect(isAuthenticated(try await client.form("/auth/openid/token", open)))
    }
  }

  /// Attack: two programs on the way read different apps, or different secrets.
  @Test(arguments: [
    ["client_secret": TestApp.secret], ["client_secret": "x"], ["client_id": "other"],
    ["client_assertion": "e30.e30.x"],
  ])
  func twoWaysAreRefused(_ more: [String: String]) async throws {
    try await gateway().run { client async throws in
      let fields = Self.grant.merging(more) { $1 }
      let answer = try await client.form("/auth/openid/token", fields, headers: Self.basic)
      #expect(answer.status == 400 && answer["error"] as? String == "invalid_request", "\(answer.text)")
      let twice = try await client.form("/auth/openid/token", Self.grant, headers: Self.basic + Self.basic)
      #expect(twice.status == 400)
    }
  }

  @Test(arguments: [
    TestApp.basic("grafana", "wrong"), TestApp.basic("unknown"), TestApp.basic("other", ""),
    TestApp.basic("public", "x"),
    "Basic ===", "Basic Zm9v", "Bearer x", "Basic Og==", "",
  ])
  func wrongSecretGetsOneAnswer(_ authorization: String) async throws {
    try await gateway().run { client async throws in
      let answer = try await client.form(
        "/auth/openid/token", Self.grant, headers: [("Authorization", authorization)])
      #expect(answer.status == 401 && answer["error"] as? String == "invalid_client", "\(answer.text)")
      #expect(answer.header("WWW-Authenticate")?.hasPrefix("Basic realm=") ?? false)
      #expect(answer.header("Cache-Control") == "no-store")
    }
  }

  /// Many apps do not encode the secret in `Basic`: Authlib, mod_auth_openidc, and what uses HTTPBasicAuth.
  @Test func basicMayHaveTheSecretAsItIs() async throws {
    for secret in [TestApp.secret, "100%", "a+b", "%41", "ü"] {
      let app = try TestApp.confidential(authentication: .secret(SecretText(secret)))
      try await TestApp.gateway([app]).run { client async throws in
        let raw = "Basic " + Data("grafana:\(secret)".utf8).base64EncodedString()
        for authorization in [raw, TestApp.basic("grafana", secret)] {
          let answer = try await client.form(
            "/auth/openid/token", Self.grant, headers: [("Authorization", authorization)])
          #expect(isAuthenticated(answer), "\(secret) \(answer.text)")
        }
      }
    }
  }

  /// A secret may be left out if it is empty (RFC 6749 section 2.3.1). Go's oauth2 tries `Basic` first for every app.
  @Test func emptySecretIsNone() async throws {
    try await gateway().run { client async throws in
      let empty = [("Authorization", TestApp.basic("public", ""))]
      #expect(isAuthenticated(try await client.form("/auth/openid/token", Self.grant, headers: empty)))
      let posted = ["client_id": "public", "client_secret": ""].merging(Self.grant) { $1 }
      #expect(isAuthenticated(try await client.form("/auth/openid/token", posted)))
      let both = Self.grant.merging(["client_secret": ""]) { $1 }
      #expect(isAuthenticated(try await client.form("/auth/openid/token", both, headers: Self.basic)))
      // Attack: an app with a secret is used with an empty one.
      let none = ["client_id": "grafana", "client_secret": ""].merging(Self.grant) { $1 }
      #expect(try await client.form("/auth/openid/token", none).status == 401)
    }
  }

  /// Attack: an app with a secret is used without it.
  @Test func secretCannotBeLeftOut() async throws {
    try await gateway().run { client async throws in
      let named = Self.grant.merging(["client_id": "grafana"]) { $1 }
      #expect(try await client.form("/auth/openid/token", named).status == 401)
      #expect(try await client.form("/auth/openid/token", Self.grant).status == 401)
    }
  }

  @Test func otherBodiesAreRefused() async throws {
    try await gateway().run { client async throws in
      let json = try await client.send(
        .post, "/auth/openid/token", headers: [("Content-Type", "application/json")] + Self.basic,
        body: #"{"grant_type":"authorization_code"}"#)
      #expect(json.status == 400 && json["error"] as? String == "invalid_request")
      let form = [("Content-Type", "application/x-www-form-urlencoded")] + Self.basic
      let twice = try await client.send(
        .post, "/auth/openid/token", headers: form, body: "grant_type=authorization_code&code=a&code=b")
      #expect(twice.status == 400 && twice["error"] as? String == "invalid_request")
      let type = try await client.form("/auth/openid/token", ["grant_type": "password"], headers: Self.basic)
      #expect(type["error"] as? String == "unsupported_grant_type")
      let grant = try await client.form(
        "/auth/openid/token", ["grant_type": "client_credentials"], headers: Self.basic)
      #expect(grant["error"] as? String == "unauthorized_client")
      #expect(try await client.send(.get, "/auth/openid/token", headers: Self.basic).status == 405)
    }
  }

  /// Attack: strangers lock an app out. Attempts count for an address and an app together.
  @Test func wrongSecretsOfOneAppLeaveTheOthers() async throws {
    try await gateway().run { client async throws in
      let wrong = [("Authorization", TestApp.basic("grafana", "wrong"))]
      var last = 0
      for _ in 0..<62 { last = try await client.form("/auth/openid/token", Self.grant, headers: wrong).status }
      #expect(last == 429)
      // Until the end of the lock.
      client.gateway.clock.advance(by: .seconds(300))
      let locked = try await client.form("/auth/openid/token", Self.grant, headers: wrong)
      #expect(locked.header("Retry-After") == "600", "\(locked.header("Retry-After") ?? "")")
      let others = [("Authorization", TestApp.basic("other"))]
      #expect(isAuthenticated(try await client.form("/auth/openid/token", Self.grant, headers: others)))
    }
  }

  /// Attack: made-up codes of a public app, without end.
  @Test func madeUpCodesOfAPublicAppAreRefused() async throws {
    try await gateway().run { client async throws in
      let fields = Self.grant.merging(["client_id": "public"]) { $1 }
      for _ in 0..<60 { #expect(isAuthenticated(try await client.form("/auth/openid/token", fields))) }
      let answer = try await client.form("/auth/openid/token", fields)
      #expect(answer.status == 429 && answer.header("Retry-After") != nil, "\(answer.text)")
    }
  }

  /// Attack: somebody behind the address of an office makes up apps, until the access tokens of the office's users are
  /// refused on all routes.
  @Test func unknownAppsDoNotCountAsAccessTokens() async throws {
    try await gateway().run { client async throws in
      let wrong = [("Authorization", TestApp.basic("unknown", "x"))]
      var last = 0
      for _ in 0..<62 { last = try await client.form("/auth/openid/token", Self.grant, headers: wrong).status }
      #expect(last == 429)
      let lock = try await client.gateway.store.events(limit: 50).first { $0.kind == .locked }
      #expect(lock?.detail["app"] == "(unknown app)")
    }
  }

  /// A code is bound to its app, its redirect URI and its verifier, and is used once.
  @Test(
    arguments: [
      ["redirect_uri": "https://grafana.example.com/"], ["redirect_uri": nil],
      ["code_verifier": String(repeating: "w", count: 43)], ["code_verifier": nil],
    ] as [[String: String?]])
  func codeIsBound(_ changes: [String: String?]) async throws {
    try await gateway().run { client async throws in
      let browser = try await Browser.owner(client)
      let code = try #require(try await browser.visit(TestApp.authorize()).answer()?["code"])
      let answer = try await client.redeem(code, changes)
      #expect(answer.status == 400 && answer["error"] as? String == "invalid_grant", "\(answer.text)")
    }
  }

  /// Attack: an app redeems the code of another one.
  @Test func codeOfAnotherAppIsRefused() async throws {
    try await gateway().run { client async throws in
      let code = try #require(try await Browser.owner(client).visit(TestApp.authorize()).answer()?["code"])
      let fields = [
        "grant_type": "authorization_code", "code": code, "redirect_uri": TestApp.redirect,
        "code_verifier": TestApp.verifier,
      ]
      let answer = try await client.form(
        "/auth/openid/token", fields, headers: [("Authorization", TestApp.basic("other"))])
      #expect(answer["error"] as? String == "invalid_grant")
    }
  }
}

/// `private_key_jwt`.
@Suite struct ClientAssertionTests {
  private static let url = "https://grafana.example.com/jwks.json"
  private static let key = P256.Signing.PrivateKey()

  /// Publishes the key of the app, unless it is down.
  private final class KeySite: WebClient {
    let isDown = Mutex(false)

    func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
      if isDown.withLock({ $0 }) { throw WebFault(reason: "no answer") }
      let point = Array(key.publicKey.rawRepresentation)
      let (x, y) = (Base64URL.encode(point[..<32]), Base64URL.encode(point[32...]))
      let jwk = #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","kid":"k"}"#
      return WebAnswer(status: request.url == url ? 200 : 404, body: Array(#"{"keys":[\#(jwk)]}"#.utf8))
    }
  }

  private func gateway(_ site: KeySite = KeySite()) throws -> HTTPGateway {
    try TestApp.gateway(
      [TestApp.confidential(authentication: .keys(Self.url)), TestApp.confidential("other")], web: site)
  }

  private static func claims(_ client: Client, _ changes: [String: String] = [:]) -> [String: String] {
    let now = client.gateway.clock.now().seconds
    return [
      "iss": #""grafana""#, "sub": #""grafana""#, "aud": #""\#(TestApp.issuer)""#, "exp": "\(now + 300)",
      "jti": #""\#(UUID())""#,
    ].merging(changes) { $1 }
  }

  private static func signed(_ claims: [String: String], header: String = #"{"alg":"ES256","kid":"k"}"#) throws
    -> String
  {
    let body = "{\(claims.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ","))}"
    let text = Base64URL.encode(header.utf8) + "." + Base64URL.encode(body.utf8)
    return text + "." + Base64URL.encode(try key.signature(for: Data(text.utf8)).rawRepresentation)
  }

  private func send(_ assertion: String, _ client: Client) async throws -> Answer {
    try await client.form(
      "/auth/openid/token",
      [
        "grant_type": "authorization_code", "code": "x", "client_assertion": assertion,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      ])
  }

  @Test func assertionIsUsedOnce() async throws {
    try await gateway().run { client async throws in
      for audience in [TestApp.issuer, TestApp.issuer + "/", TestApp.issuer + "/auth/openid/token"] {
        let assertion = try Self.signed(Self.claims(client, ["aud": "\"\(audience)\""]))
        #expect(try await send(assertion, client)["error"] as? String == "invalid_grant")
        // Attack: an assertion is sent again.
        #expect(try await send(assertion, client)["error"] as? String == "invalid_client")
      }
    }
  }

  /// Attack: a site that does not answer for a while keeps its app out. Or a thief of a key keeps the site from
  /// answering after the app has withdrawn the key.
  @Test func keysCountForADayWhileTheSiteIsDown() async throws {
    let site = KeySite()
    try await gateway(site).run { client async throws in
      func answer() async throws -> String? {
        try await send(try Self.signed(Self.claims(client)), client)["error"] as? String
      }
      #expect(try await answer() == "invalid_grant")
      site.isDown.withLock { $0 = true }
      for _ in 0..<3 {
        client.gateway.clock.advance(by: .seconds(601))
        #expect(try await answer() == "invalid_grant")
        #expect(try await answer() == "invalid_grant", "after an attempt that failed")
      }
      client.gateway.clock.advance(by: .seconds(86_400))
      #expect(try await answer() == "invalid_client")
      client.gateway.clock.advance(by: .seconds(601))
      site.isDown.withLock { $0 = false }
      #expect(try await answer() == "invalid_grant")
    }
  }

  /// Attack: an assertion for another issuer, of another app, that never expires, or without an identifier.
  @Test(arguments: [
    ["aud": #""https://other.example""#], ["aud": #"["http://localhost:8080","https://other.example"]"#],
    ["aud": "[]"], ["exp": "1"], ["exp": "1e300"], ["exp": #""9999999999""#], ["jti": "\"\""], ["jti": "1"],
    ["iss": #""other""#], ["sub": #""other""#, "iss": #""other""#], ["nbf": "99999999999"], ["iat": "99999999999"],
  ])
  func wrongClaimsAreRefused(_ changes: [String: String]) async throws {
    try await gateway().run { client async throws in
      let assertion = try Self.signed(Self.claims(client, changes))
      let answer = try await send(assertion, client)
      #expect(answer.status == 401 && answer["error"] as? String == "invalid_client", "\(answer.text)")
    }
  }

  /// Attack: an assertion lives longer than an hour, so that a stolen one does.
  @Test func longLifeIsRefused() async throws {
    try await gateway().run { client async throws in
      let now = client.gateway.clock.now().seconds
      let late = try Self.signed(Self.claims(client, ["exp": "\(now + 3700)"]))
      #expect(try await send(late, client).status == 401)
      let usual = try Self.signed(Self.claims(client, ["exp": "\(now + 3600)"]))
      #expect(try await send(usual, client)["error"] as? String == "invalid_grant")
      // Attack: the assertion is sent again at the end of its hour.
      client.gateway.clock.advance(by: .seconds(3599))
      #expect(try await send(usual, client)["error"] as? String == "invalid_client")
    }
  }

  /// Libraries name the endpoint that they call. Attack: an assertion for one endpoint is used at another one.
  @Test func audienceMayBeTheEndpoint() async throws {
    try await gateway().run { client async throws in
      func revoke(_ path: String) async throws -> Int {
        let assertion = try Self.signed(Self.claims(client, ["aud": "\"\(TestApp.issuer)\(path)\""]))
        return try await client.form(
          "/auth/openid/revoke",
          [
            "token": "x", "client_assertion": assertion,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
          ]
        ).status
      }
      #expect(try await revoke("/auth/openid/revoke") == 200)
      #expect(try await revoke("/auth/openid/introspect") == 401)
    }
  }

  /// Attack: algorithm confusion. No signature, the public key as a shared secret, a key in the header.
  @Test func algorithmIsTheKeys() async throws {
    try await gateway().run { client async throws in
      let body = "{\(Self.claims(client).map { "\"\($0.key)\":\($0.value)" }.joined(separator: ","))}"
      for header in [
        #"{"alg":"none"}"#, #"{"alg":"HS256","kid":"k"}"#, #"{"alg":"RS256","kid":"k"}"#, #"{"kid":"k"}"#,
        #"{"alg":"ES256","kid":"other"}"#, #"{"alg":"ES256","kid":"k","crit":["b64"]}"#, #"{"alg":"ES256","kid":1}"#,
      ] {
        let text = Base64URL.encode(header.utf8) + "." + Base64URL.encode(body.utf8)
        let secret = SymmetricKey(data: Self.key.publicKey.rawRepresentation)
        let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: secret)
        for signature in ["", Base64URL.encode(code), Base64URL.encode(Array(repeating: UInt8(0), count: 64))] {
          #expect(try await send("\(text).\(signature)", client).status == 401, "\(header)")
        }
        #expect(try await send(try Self.signed(Self.claims(client), header: header), client).status == 401)
      }
    }
  }

  /// Attack: an app with keys is used with a secret.
  @Test func secretIsNoKey() async throws {
    try await gateway().run { client async throws in
      let fields = ["grant_type": "authorization_code", "code": "x"]
      for secret in ["", Self.url] {
        let headers = [("Authorization", TestApp.basic("grafana", secret))]
        #expect(try await client.form("/auth/openid/token", fields, headers: headers).status == 401)
      }
    }
  }
}
