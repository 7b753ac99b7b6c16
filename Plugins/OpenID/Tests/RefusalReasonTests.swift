import Foundation
import OpenID
import MoongateSDK
import Testing

/// What operators read about an answer that was refused. The client always gets `oauth_failed`.
@Suite("Reasons of refused answers") struct RefusalReasonTests {
  let web = TestProvider()

  init() { web.change { $0.published = [TestKey.rsa.published] } }

  private static let seconds = Double(TestProvider.now) / 1000

  @Test(
    "a claim is named, with its value",
    arguments: [
      ("iss", "https://evil.example.com", "iss https://evil.example.com"), ("iss", 1, "iss 1"),
      ("iss", nil, "iss missing"),
      ("aud", "other", "aud other"), ("aud", ["client", "other"], "aud client, other"), ("aud", 7, "aud 7"),
      ("azp", "other", "azp other"), ("azp", false, "azp false"), ("exp", "soon", "exp \"soon\""),
      ("exp", seconds - 61, "exp 1799999939"), ("exp", nil, "exp missing"), ("iat", seconds + 120, "iat 1800000120"),
      ("iat", ["a"], "iat [\"a\"]"), ("nbf", seconds + 120, "nbf 1800000120"), ("nbf", "x\u{7}\n", "nbf \"x??\""),
      // Secrets and what is personal are not shown.
      ("nonce", "another-nonce", "nonce"), ("nonce", nil, "nonce"), ("sub", "", "sub"), ("sub", 42, "sub"),
    ] as [(String, (any Sendable)?, String)])
  func claims(name: String, value: (any Sendable)?, reason: String) async throws {
    let step = try await Attempted.begun(web)
    var claims = try step.claims()
    claims[name] = value
    #expect(try await step.returns(try TestKey.rsa.sign(claims)).reason == .oauthFailed)
    #expect(step.reasons.take() == ["refused: \(reason)", reason])
  }

  @Test(
    "a header is named, with its value",
    arguments: [
      (["alg": "RS512", "kid": "rsa"], "alg RS512"), (["alg": "HS256", "kid": "rsa"], "alg HS256"),
      (["alg": "none"], "alg none"), (["alg": 1], "alg 1"), ([:], "alg missing"),
      (["alg": "RS256", "kid": "k7"], "kid k7"), (["alg": "RS256", "kid": 1], "kid 1"),
      (["alg": "RS256", "kid": "rsa", "crit": ["b64"]], "crit [\"b64\"]"),
    ] as [([String: any Sendable], String)])
  func headers(header: [String: any Sendable], reason: String) async throws {
    let step = try await Attempted.begun(web)
    #expect(try await step.returns(try TestKey.rsa.sign(header, step.claims())).reason == .oauthFailed)
    #expect(step.reasons.take().last == reason)
  }

  @Test("signature, form and length") func others() async throws {
    let step = try await Attempted.begun(web)
    let forged = try TestKey.otherRSA.sign(["alg": "RS256", "kid": "rsa"], step.claims())
    for (text, reason) in [
      (forged, "signature"), ("a.b.c", "token"), ("..", "token"),
      (String(repeating: "x", count: 20_000), "token"),
      (String(repeating: "x", count: 140_000), "token longer than 131072 bytes"),
    ] {
      #expect(try await step.returns(text).reason == .oauthFailed)
      #expect(step.reasons.take().last == reason)
    }
  }

  @Test("a token from the token endpoint has room for all groups, one of an app has not") func length() async throws {
    let step = try await Attempted.begun(web)
    let groups = (0..<500).map { "\($0) " + String(repeating: "g", count: 100) }
    let token = try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims(["groups": groups]))
    #expect(token.utf8.count > 60_000)
    #expect(try await step.returns(token).proof?.proved.first?.groups == groups)
    await #expect(throws: InputProblem.self) { try await step.brings(token) }
  }

  /// Attack: two programs read two different subjects or audiences out of one signed token, because one takes the first
  /// of two members and the other the last (RFC 7519 section 4).
  @Test(
    "a member that occurs twice is refused",
    arguments: ["aud", "sub", "email", "x"]) func duplicates(name: String) async throws
  {
    let step = try await Attempted.begun(web)
    let usual = String(decoding: try JSONSerialization.data(withJSONObject: step.claims(["x": 1])), as: UTF8.self)
    for (text, reason) in [
      (usual, nil), ("{\"\(name)\":\"other\",\(usual.dropFirst())", "duplicate \(name)"),
      ("\(usual.dropLast()),\"\(name)\":\"other\"}", "duplicate \(name)"),
      // The name is the same, escaped.
      (
        "\(usual.dropLast()),\"\\u00\(String(name.utf8.first ?? 0, radix: 16))\(name.dropFirst())\":1}",
        "duplicate \(name)"
      ),
      ("\(usual.dropLast()),\"y\":{\"a\":1,\"a\":2}}", "duplicate a"),
    ] as [(String, String?)] {
      let header = try part(["alg": "RS256", "kid": "rsa"])
      let token = try TestKey.rsa.sign(header + "." + encoded(Data(text.utf8)))
      #expect((try await step.returns(token).proof != nil) == (reason == nil), "\(text)")
      #expect(step.reasons.take().last == reason)
    }
    let header = encoded(Data(#"{"alg":"RS256","kid":"rsa","alg":"RS256"}"#.utf8))
    #expect(
      try await step.returns(try TestKey.rsa.sign(header + "." + part(step.claims()))).reason == .oauthFailed)
    #expect(step.reasons.take().last == "duplicate alg")
  }

  @Test(
    "malformed JSON is refused",
    arguments: ["", "[]", "{", "{\"a\"}", "{\"a\":1,}", "{\"a\":01}", "{\"a\":NaN}", "{}x"])
  func malformed(text: String) async throws {
    let step = try await Attempted.begun(web)
    let header = try part(["alg": "RS256", "kid": "rsa"])
    let token = try TestKey.rsa.sign(header + "." + encoded(Data(text.utf8)))
    #expect(try await step.returns(token).reason == .oauthFailed)
    #expect(["token", "signature"].contains(step.reasons.take().last ?? ""))
  }

  @Test("deep nesting does not exhaust the stack") func deep() async throws {
    let step = try await Attempted.begun(web)
    let text = "{\"a\":" + String(repeating: "[", count: 5_000) + String(repeating: "]", count: 5_000) + "}"
    let header = try part(["alg": "RS256", "kid": "rsa"])
    #expect(
      try await step.returns(try TestKey.rsa.sign(header + "." + encoded(Data(text.utf8)))).reason == .oauthFailed)
  }

  @Test("the provider's own error, an unredeemed code, and a foreign state or issuer") func callback() async throws {
    let step = try await Attempted.begun(web)
    let state = Attempted.callback.state
    web.change { $0.tokenStatus = 400 }
    for (fields, reason) in [
      (["error": "server_error", "state": state], "error server_error"),
      (["error": "access_denied", "state": state], "error access_denied"),
      (["error": "a\u{202E}b", "state": state], "error a?b"),
      (["code": "c0de", "state": state], "code invalid_grant"),
      (["code": "c0de", "state": "another"], "state"),
      (["code": "c0de", "state": state, "iss": "https://evil.example.com"], "iss https://evil.example.com"),
    ] {
      _ = try await step.submit(fields)
      let told = step.reasons.take()
      #expect(told.last == reason)
      #expect(!told.joined().contains("c0de") && !told.joined().contains("another"))
    }
  }

  @Test("a long value is cut") func long() async throws {
    let step = try await Attempted.begun(web)
    let issuer = "https://" + String(repeating: "e", count: 500)
    #expect(try await step.returns(try TestKey.rsa.sign(step.claims(["iss": issuer]))).reason == .oauthFailed)
    #expect(step.reasons.take().last?.utf8.count == "iss ".utf8.count + 103)
  }
}
