import Foundation
import OpenID
import MoongateSDK
import Testing

@Suite("The provider's documents") struct DirectoryTests {
  let web = TestProvider()

  @Test("are fetched once an hour") func cached() async throws {
    let plugin = OpenID()
    for minute in [0, 1, 59] {
      _ = try await Attempted.begun(web, plugin: plugin, now: TestProvider.now + Int64(minute) * 60_000)
    }
    #expect(web.requests.count == 1)
    _ = try await Attempted.begun(web, plugin: plugin, now: TestProvider.now + 3_600_000)
    #expect(web.requests.count == 2)
  }

  @Test("concurrent requests fetch once") func together() async throws {
    let plugin = OpenID()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 { group.addTask { _ = try await Attempted.begun(web, plugin: plugin) } }
      try await group.waitForAll()
    }
    #expect(web.requests.count == 1)
  }

  @Test("an old document is used for a day while the provider is down") func down() async throws {
    let plugin = OpenID()
    _ = try await Attempted.begun(web, plugin: plugin)
    web.change { $0.isDown = true }
    _ = try await Attempted.begun(web, plugin: plugin, now: TestProvider.now + 7_200_000)
    await #expect(throws: (any Error).self) {
      try await Attempted.begun(web, plugin: plugin, now: TestProvider.now + 90_000_000)
    }
    web.change { $0.isDown = false }
    _ = try await Attempted.begun(web, plugin: plugin, now: TestProvider.now + 90_000_000)
  }

  @Test("new keys are found by another fetch; forged key IDs cause few") func rotation() async throws {
    let plugin = OpenID()
    web.change { $0.published = [TestKey.rsa.published] }
    let step = try await Attempted.begun(web, plugin: plugin)
    #expect(try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())).proof != nil)
    web.change { $0.published = [TestKey.p256.published] }
    #expect(try await step.returns(try TestKey.p256.sign(["alg": "ES256", "kid": "p256"], step.claims())).proof != nil)
    #expect(
      try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())).reason
        == .oauthFailed, "taken back")
    for number in 0..<50 {
      #expect(
        try await step.brings(try TestKey.rsa.sign(["alg": "RS256", "kid": "k\(number)"], step.claims())).reason
          == .oauthFailed)
    }
    #expect(web.requests.count { $0.url.hasSuffix("/certs") } == 4)
    var later = step
    later.now += 61_000
    web.change { $0.published = [TestKey.rsa.published] }
    #expect(try await later.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], later.claims())).proof != nil)
  }

  @Test("keys of other types in the set are ignored") func otherKeys() async throws {
    web.change {
      $0.published = [
        ["kty": "oct", "kid": "rsa", "k": "c2VjcmV0"], ["kty": "OKP", "crv": "Ed25519", "x": "AA"], ["kty": "AKP"],
        ["kty": 1], [:],
        ["kty": "RSA", "use": "enc", "kid": "rsa", "n": "AA", "e": "AQAB"], TestKey.rsa.published,
      ]
    }
    let step = try await Attempted.begun(web)
    #expect(try await step.returns(try TestKey.rsa.sign(["alg": "RS256", "kid": "rsa"], step.claims())).proof != nil)
    #expect(
      try await step.returns(try TestKey.rsa.sign(["alg": "RS256"], step.claims())).proof != nil,
      "the only one of its algorithm")
  }

  @Test(
    "an invalid document is an error",
    arguments: [
      ["issuer": "https://evil.example.com"], ["token_endpoint": "http://accounts.example.com/token"],
      ["authorization_endpoint": "javascript:alert(1)"],
      ["jwks_uri": "ftp://accounts.example.com/certs"], ["token_endpoint": "https://user@evil.example.com/"],
      ["token_endpoint": ""], ["authorization_endpoint": #"https://evil.example.com\.accounts.example.com/"#],
      ["authorization_endpoint": #"https://accounts.example.com/\evil"#],
      ["authorization_endpoint": "https://accounts.example.com:x@evil.example.com/"],
      ["authorization_endpoint": "https://accounts.example.com/\r\nX: 1"],
      ["token_endpoint": "http://localhost.example.com/"], ["token_endpoint": "http://127.0.0.1.example.com/"],
      ["token_endpoint": "http://127.1/"], ["authorization_endpoint": "https://accounts.example.com/authorize#x"],
      ["jwks_uri": String(repeating: "https://accounts.example.com/", count: 200)],
      ["token_endpoint_auth_methods_supported": ["private_key_jwt"]], ["jwks_uri": 1],
    ] as [[String: any Sendable]])
  func document(changes: [String: any Sendable]) async throws {
    web.change { $0.discovery = changes }
    await #expect(throws: (any Error).self) { try await Attempted.begun(web) }
  }

  /// Attack: an issuer elsewhere sends the gateway, with a code and the client's secret, to a service on its machine.
  @Test(
    "addresses may be on this machine, and http there, for an issuer that is",
    arguments: [
      "http://localhost:9000/token", "http://127.0.0.2/token", "http://[::1]:9000/token", "https://localhost/token",
      "https://127.0.0.1:9000/token",
    ],
    ["token_endpoint", "jwks_uri", "userinfo_endpoint", "end_session_endpoint", "authorization_endpoint"])
  func loopback(address: String, name: String) async throws {
    web.change { $0.discovery = [name: address] }
    await #expect(throws: (any Error).self) { try await Attempted.begun(web) }
    let local = "http://127.0.0.1:3000/mock"
    web.change { $0.issuer = local }
    _ = try await Attempted.begun(web, settings: Attempted.settings(issuer: local))
  }

  /// Attack: an issuer's document writes to the operator's terminal, which shows the doctor's answer.
  @Test(
    "what an issuer says of itself is cut and printable",
    arguments: ["issuer", "token_endpoint", "token_endpoint_auth_methods_supported"])
  func shown(name: String) async throws {
    let odd = "https://\u{1b}[2J" + String(repeating: "x", count: 3_000)
    let isList = name.hasSuffix("supported")
    web.change { $0.discovery = [name: isList ? [odd, "private_key_jwt"] as Any : odd as Any] }
    do {
      _ = try await Attempted.begun(web)
      Issue.record("the document was accepted")
    } catch {
      #expect(!"\(error)".contains("\u{1b}") && "\(error)".utf8.count < 400)
    }
  }

  @Test("a rejected code is refused; a rejected client is an error for the operator")
  func tokenEndpoint()
    async throws
  {
    let step = try await Attempted.begun(web)
    web.change { $0.tokenStatus = 400 }
    #expect(try await step.submit(["code": "c0de", "state": "st_abc"]).reason == .oauthFailed)
    // Attack: an invented code, for which the site has an error of its own.
    web.change { $0.tokenError = "invalid_code" }
    #expect(try await step.submit(["code": "c0de", "state": "st_abc"]).reason == .oauthFailed)
    for (status, error) in [(401, "invalid_client"), (400, "invalid_client"), (500, ""), (302, "")] {
      web.change {
        $0.tokenStatus = status
        $0.tokenError = error
      }
      await #expect(throws: (any Error).self) { try await step.submit(["code": "c0de", "state": "st_abc"]) }
    }
    web.change { $0.isDown = true }
    do {
      _ = try await step.submit(["code": "c0de", "state": "st_abc"])
      Issue.record("an unreachable provider was taken for an answer")
    } catch {
      #expect(!"\(error)".contains("s3cret") && !"\(error)".contains("c0de"))
    }
  }
}
