import Crypto
import Foundation
import OpenID
import MoongateSDK
import Testing

/// Tokens that must not sign anyone in.
@Suite("Forged tokens and tokens for others") struct ForgeryTests {
  let web: TestProvider

  init() {
    web = TestProvider()
    web.change { $0.published = [TestKey.rsa.published, TestKey.p256.published] }
  }

  static let wrongClaims: [(String, [String: any Sendable])] = {
    let now = Double(TestProvider.now) / 1000
    return [
      ("another issuer", ["iss": "https://evil.example.com"]),
      ("Google's short name elsewhere", ["iss": "accounts.example.com"]),
      ("a slash more", ["iss": TestProvider.issuer + "/"]), ("another audience", ["aud": "other"]),
      ("no audience", ["aud": [String]()]),
      ("a second audience", ["aud": ["client", "other"], "azp": "client"]), ("another party", ["azp": "other"]),
      ("expired", ["exp": now - 61]),
      ("never issued before it expires", ["iat": now + 30, "exp": now + 10]),
      ("issued in the future", ["iat": now + 120]),
      ("issued before the step", ["iat": now - 120]), ("not yet good", ["nbf": now + 120]),
      ("another nonce", ["nonce": "other"]),
      ("an empty nonce", ["nonce": ""]), ("no subject", ["sub": ""]),
      ("a subject that is too long", ["sub": String(repeating: "4", count: 256)]),
      ("a subject with a letter outside of ASCII", ["sub": "4é"]),
      ("a subject with a line end", ["sub": "42\n"]), ("a huge time", ["exp": -1e300]),
      ("a time of text", ["exp": "soon"]),
    ]
  }()

  @Test("one wrong claim is refused", arguments: wrongClaims) func claims(what: String, changes: [String: any Sendable])
    async throws
  {
    let step = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(changes))
    #expect(try await step.returns(token).reason == .oauthFailed, "\(what)")
    #expect(try await step.brings(token).reason == .oauthFailed, "\(what), brought by an app")
  }

  @Test("each required claim must be present", arguments: ["iss", "aud", "sub", "exp", "iat", "nonce"]) func missing(
    name: String
  ) async throws {
    let step = try await Attempted.begun(web)
    var claims = try step.claims()
    claims[name] = nil
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], claims)
    #expect(try await step.returns(token).reason == .oauthFailed)
  }

  @Test("alg none", arguments: ["none", "None", "NONE", ""]) func none(algorithm: String) async throws {
    let step = try await Attempted.begun(web)
    let text = try part(["alg": algorithm, "kid": "rsa"]) + "." + part(step.claims())
    for token in [text + ".", text, text + ".AA"] { #expect(try await step.returns(token).reason == .oauthFailed) }
  }

  @Test("HS256 with the public key as secret") func symmetric() async throws {
    let step = try await Attempted.begun(web)
    for secret in [
      TestKey.rsa.publicPEM, TestKey.rsa.publicPEM + "\n", TestKey.rsa.published["n"] as? String ?? "", "s3cret/+ ä",
      "",
    ] {
      let text = try part(["alg": "HS256", "kid": "rsa"]) + "." + part(step.claims())
      let mac = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: Data(secret.utf8)))
      #expect(try await step.returns(text + "." + encoded(Data(mac))).reason == .oauthFailed)
    }
  }

  @Test(
    "algorithms not on the list, and keys for another algorithm",
    arguments: ["RS384", "RS512", "PS256", "ES384", "EdDSA", "ES256", "rs256"])
  func algorithms(algorithm: String) async throws {
    let step = try await Attempted.begun(web)
    #expect(
      try await step.returns(try TestKey.rsa.sign(["alg": algorithm, "kid": "rsa"], step.claims())).reason
        == .oauthFailed)
  }

  @Test("another key with the same key ID") func otherKey() async throws {
    let step = try await Attempted.begun(web)
    #expect(
      try await step.returns(try TestKey.otherRSA.sign(["alg": "RS256", "kid": "rsa"], step.claims())).reason
        == .oauthFailed)
  }

  @Test("keys inside the token, and unknown critical headers")
  func headers() async throws {
    let step = try await Attempted.begun(web)
    let own: [[String: Any]] = [
      ["alg": "RS256", "kid": "mine", "jwk": TestKey.otherRSA.published],
      ["alg": "RS256", "kid": "mine", "jku": "https://evil.example.com/certs"],
      ["alg": "RS256", "kid": "../../rsa"], ["alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false],
      ["alg": "RS256", "kid": 1],
      ["alg": "RS256", "kid": "rsa", "crit": "b64"],
    ]
    for header in own {
      let key = header["jwk"] == nil ? TestKey.rsa : TestKey.otherRSA
      #expect(try await step.returns(try key.sign(header, step.claims())).reason == .oauthFailed)
    }
    // An unknown parameter with a huge number in a valid header is ignored and does not crash.
    let odd = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa", "x": 1e300], step.claims())
    #expect(try await step.returns(odd).proof != nil)
  }

  @Test("a token changed after signing, and text that is not a token") func damaged() async throws {
    let step = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())
    let parts = token.split(separator: ".").map(String.init)
    let other = try part(step.claims(["sub": "43"]))
    for bad in [
      "\(parts[0]).\(other).\(parts[2])", "\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).\(parts[2]).\(parts[2])",
      token + "=", token + "\n",
      " " + token, "..", "a.b.c", "\(parts[0]).\(parts[1]).\(parts[2].dropLast(4))",
    ] {
      #expect(try await step.returns(bad).reason == .oauthFailed, "\(bad.prefix(40))")
    }
  }

  @Test(
    "the state of another step, a missing one, and a longer one",
    arguments: [nil, "", "st_ab", "st_abcd", "st_abd"] as [String?])
  func state(given: String?) async throws {
    let step = try await Attempted.begun(web)
    web.change { $0.idToken = "unused" }
    var fields = ["code": "c0de"]
    fields["state"] = given
    #expect(try await step.submit(fields).reason == .oauthFailed)
    // A forged link with an error does not count as a cancellation.
    #expect(try await step.submit(fields.merging(["error": "access_denied"]) { $1 }).reason == .oauthFailed)
    #expect(!web.requests.contains { $0.url.hasSuffix("/token") }, "nothing was redeemed")
  }

  @Test("mix-up: a response with another issuer, or without a required one") func mixUp() async throws {
    web.change { $0.discovery = ["authorization_response_iss_parameter_supported": true] }
    let step = try await Attempted.begun(web)
    web.change { $0.idToken = "unused" }
    for iss in [nil, "https://evil.example.com", ""] as [String?] {
      var fields = ["code": "c0de", "state": "st_abc"]
      fields["iss"] = iss
      #expect(try await step.submit(fields).reason == .oauthFailed)
    }
    #expect(!web.requests.contains { $0.url.hasSuffix("/token") })
    // The settings have changed to another provider in the meantime.
    var moved = step
    moved.settings = Attempted.settings(issuer: "https://other.example.com")
    #expect(
      try await moved.submit(["code": "c0de", "state": "st_abc", "iss": TestProvider.issuer]).reason == .oauthFailed)
  }

  @Test("a code of another session, whose token has another nonce") func injected() async throws {
    let theirs = try await Attempted.begun(web)
    let ours = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], theirs.claims())
    #expect(try await ours.returns(token).reason == .oauthFailed)
  }

  @Test("a step that this provider did not start") func notBegun() async throws {
    var step = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())
    step = Attempted(plugin: step.plugin, web: web, redirect: step.redirect, state: [])
    #expect(try await step.brings(token).reason == .oauthFailed)
  }

  @Test("an app may submit its own token, a browser may not") func apps() async throws {
    let step = try await Attempted.begun(web, settings: Attempted.settings(apps: "ios.app android.app"))
    for changes in [
      ["aud": "client", "azp": "android.app"], ["aud": "ios.app"], ["aud": "ios.app", "azp": "ios.app"],
    ] {
      let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(changes))
      #expect(try await step.brings(token).proof != nil)
      #expect(try await step.returns(token).reason == .oauthFailed)
    }
    let foreign = try TestKey.rsa.sign(
      ["alg": "RS256", "kid": "rsa"], step.claims(["aud": "client", "azp": "other.app"]))
    #expect(try await step.brings(foreign).reason == .oauthFailed)
  }
}
