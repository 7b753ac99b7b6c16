import Crypto
import Foundation
import OpenID
import MoongateSDK
import Testing

@Suite("Sign-in with the provider") struct SignInTests {
  @Test("redirects with the step's own state, nonce and S256 challenge") func leads() async throws {
    let web = TestProvider()
    let first = try await Attempted.begun(web)
    let second = try await Attempted.begun(web)
    #expect(first.redirect.hasPrefix("https://accounts.example.com/authorize?"))
    #expect(first["response_type"] == "code")
    #expect(first["client_id"] == "client")
    #expect(first["redirect_uri"] == Attempted.callback.address)
    #expect(first["scope"] == "openid email profile")
    #expect(first["state"] == "st_abc")
    #expect(first["code_challenge_method"] == "S256")
    #expect(first["code_challenge"]?.count == 43)
    #expect(first["nonce"]?.count == 43)
    #expect(first["nonce"] != second["nonce"])
    #expect(first["code_challenge"] != second["code_challenge"])
  }

  @Test(
    "a code gives the identity, the verified address and the names",
    arguments: [TestKey.rsa, TestKey.pss, TestKey.p256, TestKey.p384, TestKey.ed25519])
  func proves(key: TestKey) async throws {
    let web = TestProvider()
    web.change { $0.published = [key.published] }
    let step = try await Attempted.begun(web, settings: Attempted.settings(["trusted_domains": ["Example.com"]]))
    let token = try key.sign(step.claims())
    let proof = try #require(try await step.returns(token).proof)
    #expect(proof.proved.map(\.kind) == [.federated, .email])
    #expect(proof.proved.map(\.value) == ["https://accounts.example.com 42", "asha@example.com"])
    #expect(proof.claimed.isEmpty && proof.attested.isEmpty)
    #expect(proof.firstName == "Asha")
    #expect(proof.lastName == "Rao")
  }

  @Test("the token request sends the client secret and the code verifier") func exchange() async throws {
    let web = TestProvider()
    web.change { $0.published = [TestKey.rsa.published] }
    let step = try await Attempted.begun(web)
    _ = try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims()))
    let request = try #require(web.requests.first { $0.url.hasSuffix("/token") })
    #expect(request.method == "POST")
    let pair = Data("client:s3cret%2F%2B%20%C3%A4".utf8).base64EncodedString()
    #expect(request.headers.contains { $0.name == "Authorization" && $0.value == "Basic \(pair)" })
    let body = try #require(URLComponents(string: "?" + String(decoding: request.body, as: UTF8.self))?.queryItems)
    let field = { (name: String) in body.first { $0.name == name }?.value }
    #expect(field("grant_type") == "authorization_code")
    #expect(field("code") == "c0de")
    #expect(field("redirect_uri") == Attempted.callback.address)
    #expect(field("client_secret") == nil)
    let verifier = try #require(field("code_verifier"))
    #expect(encoded(Data(SHA256.hash(data: Data(verifier.utf8)))) == step["code_challenge"])
  }

  @Test("the secret is sent in the body if the provider does not support Basic") func post() async throws {
    let web = TestProvider()
    web.change {
      $0.published = [TestKey.rsa.published]
      $0.discovery = ["token_endpoint_auth_methods_supported": ["client_secret_post"]]
    }
    let step = try await Attempted.begun(web)
    #expect(try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())).proof != nil)
    let request = try #require(web.requests.first { $0.url.hasSuffix("/token") })
    #expect(!request.headers.contains { $0.name == "Authorization" })
    #expect(
      String(decoding: request.body, as: UTF8.self).contains("client_id=client&client_secret=s3cret%2F%2B%20%C3%A4"))
  }

  @Test(
    "an unverified address is claimed and proves nothing",
    arguments: [false, "true", 1, NSNull()] as [any Sendable])
  func unverified(word: any Sendable) async throws {
    let web = TestProvider()
    web.change { $0.published = [TestKey.rsa.published] }
    let step = try await Attempted.begun(web)
    let proof = try await step.returns(
      try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["email_verified": word]))
    ).proof
    #expect(proof?.proved.map(\.kind) == [.federated])
    #expect(proof?.claimed.map(\.value) == ["asha@example.com"])
  }

  @Test(
    "without a valid address, the proof contains only the identity",
    arguments: ["", "a", "a@b", "a@b@c.de", "a b@c.de", "ä@c.de", "\u{202E}x"])
  func noAddress(address: String) async throws {
    let web = TestProvider()
    web.change { $0.published = [TestKey.rsa.published] }
    let step = try await Attempted.begun(web)
    let proof = try await step.returns(
      try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["email": address]))
    ).proof
    #expect(proof?.proved.map(\.kind) == [.federated])
    #expect(proof?.claimed.isEmpty == true)
    // Attack: a text of any length and characters is shown as the identity's name.
    #expect(proof?.proved.first?.display == "https://accounts.example.com 42")
  }

  @Test(
    "cancellation and failure have different reasons",
    arguments: [("access_denied", RefusalReason.oauthCancelled), ("server_error", .oauthFailed)])
  func error(code: String, reason: RefusalReason) async throws {
    let step = try await Attempted.begun(TestProvider())
    #expect(try await step.submit(["error": code, "state": "st_abc"]).reason == reason)
  }

  @Test(
    "names contain no line breaks or bidirectional controls",
    arguments: [
      ("A\u{202E}sha", "Asha"), ("A\u{2066}sha\u{2069}", "Asha"), ("A\r\nSet-Cookie: x", "ASet-Cookie: x"),
      ("A\u{2028}sha", "Asha"),
      ("\u{202E} ", nil),
      (String(repeating: "a", count: 300), String(repeating: "a", count: 100)), ("नेहा", "नेहा"), ("👩‍🚀", "👩‍🚀"),
    ] as [(String, String?)])
  func names(given: String, kept: String?) async throws {
    let web = TestProvider()
    web.change { $0.published = [TestKey.rsa.published] }
    let step = try await Attempted.begun(web)
    let token = try TestKey.rsa.sign(
      ["alg": "RS256", "kid": "rsa"], step.claims(["given_name": given, "name": given, "family_name": given]))
    let proof = try #require(try await step.returns(token).proof)
    #expect(proof.firstName == kept && proof.lastName == kept)
  }

  @Test("both of Google's issuer names are accepted, for Google only") func googlesNames() async throws {
    for (issuer, isGood) in [(nil, true), (TestProvider.issuer, false)] as [(String?, Bool)] {
      let web = TestProvider()
      web.change {
        $0.published = [TestKey.rsa.published]
        $0.issuer = issuer ?? "https://accounts.google.com"
      }
      let step = try await Attempted.begun(web, settings: Attempted.settings(issuer: issuer))
      let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["iss": "accounts.google.com"]))
      let proof = try await step.returns(token).proof
      #expect((proof != nil) == isGood)
      if isGood { #expect(proof?.proved.first?.value == "https://accounts.google.com 42") }
    }
  }

  @Test("input without a code is malformed and not an attempt") func malformed() async throws {
    let step = try await Attempted.begun(TestProvider())
    await #expect(throws: InputProblem.self) { try await step.submit(["state": "st_abc"]) }
    await #expect(throws: InputProblem.self) { try await step.submit(["code": String(repeating: "a", count: 20_000)]) }
  }

  @Test("a step without a callback URL fails") func elsewhere() async throws {
    let context = Attempted.context(
      TestProvider(), Attempted.settings(), state: [], now: TestProvider.now, callback: nil)
    await #expect(throws: (any Error).self) {
      try await OpenID().begin(context, ProviderInput(fields: [:], defaultRegion: "IN"))
    }
  }
}
