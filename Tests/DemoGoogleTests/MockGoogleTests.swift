import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import DemoGoogle
import NIOCore
import Synchronization
import Testing

/// The mock is as strict as a good provider. That strangers' clients get along with it is EndToEnd's to show.
@Suite("Mock Google") struct MockGoogleTests {
  let world = MockWorld()

  @Test("a code is redeemed once, for who asked") func redeems() async throws {
    let code = try await world.code()
    let answer = try await world.redeem(code)
    #expect(answer.status == 200, "\(answer.text)")
    #expect(answer["token_type"] == "Bearer")
    #expect(answer.header(.cacheControl) == "no-store")
    let claims = try #require(answer["id_token"].flatMap(MockWorld.claims))
    #expect(claims["iss"] as? String == "http://localhost:9400")
    #expect(claims["aud"] as? String == "client")
    #expect(claims["nonce"] as? String == "n0nce")
    #expect(claims["email"] as? String == "asha@gmail.com")
    #expect(claims["email_verified"] as? Bool == true)
    let access = try #require(answer["access_token"])
    #expect(try await world.get("/userinfo", [.authorization: "Bearer \(access)"])["email"] == "asha@gmail.com")

    let again = try await world.redeem(code)
    #expect(again.status == 400)
    #expect(again["error"] == "invalid_grant")
    // Used twice, what it was redeemed for is dead too.
    #expect(try await world.get("/userinfo", [.authorization: "Bearer \(access)"]).status == 401)
  }

  @Test(
    "what is not the same as it was asked for is refused",
    arguments: [
      ("code_verifier", String(repeating: "b", count: 43)), ("code_verifier", ""),
      ("redirect_uri", "http://localhost:8080/auth/callback/other"),
      ("redirect_uri", ""), ("code", "other"), ("grant_type", "password"), ("client_id", "other"),
      ("client_secret", "wrong"),
    ])
  func wrong(field: String, value: String) async throws {
    let code = try await world.code()
    let answer = try await world.redeem(code, [field: value])
    #expect(answer.status == (field.hasPrefix("client") ? 401 : 400), "\(answer.text)")
    #expect(answer["id_token"] == nil)
  }

  @Test("a wrong verifier costs the code") func stolen() async throws {
    let code = try await world.code()
    #expect(try await world.redeem(code, ["code_verifier": String(repeating: "b", count: 43)]).status == 400)
    #expect(try await world.redeem(code)["error"] == "invalid_grant")
  }

  @Test("a code lives for a minute") func expires() async throws {
    let code = try await world.code()
    world.now.withLock { $0 += 60_000 }
    #expect(try await world.redeem(code)["error"] == "invalid_grant")
  }

  @Test("clients prove themselves by Basic too, and not in two ways") func basic() async throws {
    let header = "Basic " + Data("client:s3cret".utf8).base64EncodedString()
    let first = try await world.redeem(
      try await world.code(), ["client_id": nil, "client_secret": nil], [.authorization: header])
    #expect(first.status == 200, "\(first.text)")
    #expect(try await world.redeem(try await world.code(), [:], [.authorization: header]).status == 400)
    let wrong = "Basic " + Data("client:other".utf8).base64EncodedString()
    #expect(
      try await world.redeem(try await world.code(), ["client_id": nil, "client_secret": nil], [.authorization: wrong])
        .status == 401)
  }

  @Test(
    "unregistered redirect addresses are refused",
    arguments: [
      ["redirect_uri": "http://evil.example.com/"],
      ["redirect_uri": "http://localhost:8080/auth/callback/google_oauth/"],
      ["redirect_uri": "http://localhost:8080/auth/callback/google_oauth?x=1"], ["redirect_uri": ""],
      ["client_id": "other"], ["client_id": ""],
    ])
  func redirects(changes: [String: String]) async throws {
    let answer = try await world.authorize(changes)
    #expect(answer.status == 400)
    #expect(answer.header(.location) == nil)
  }

  @Test(
    "what is asked in a wrong way is told to the client",
    arguments: [
      (["code_challenge": ""], "invalid_request"), (["code_challenge_method": "plain"], "invalid_request"),
      (["code_challenge_method": ""], "invalid_request"), (["code_challenge": "short"], "invalid_request"),
      (["response_type": "token"], "unsupported_response_type"), (["scope": "email"], "invalid_scope"),
      (["prompt": "none"], "interaction_required"),
    ])
  func told(changes: [String: String], error: String) async throws {
    let answer = try await world.authorize(changes)
    #expect(answer.status == 303)
    let location = try #require(answer.header(.location))
    #expect(location.hasPrefix("http://localhost:8080/auth/callback/google_oauth?error=\(error)&"))
    #expect(location.contains("&state=st%26te&iss=http%3A%2F%2Flocalhost%3A9400"))
  }

  @Test(
    "cancel and fail go back with their errors", arguments: [("cancel", "access_denied"), ("error", "server_error")])
  func buttons(action: String, error: String) async throws {
    let choice = try await world.choice()
    let answer = try await world.post("/authorize", ["request": choice, "action": action])
    #expect(answer.header(.location)?.contains("?error=\(error)&") == true)
    #expect(
      try await world.post("/authorize", ["request": choice, "account": "100000000000000000001"]).status == 400,
      "a page is used once")
  }

  @Test("another user can be entered, and has the same subject the next time") func typed() async throws {
    var subjects: [String] = []
    for _ in 0..<2 {
      let choice = try await world.choice()
      let back = try await world.post(
        "/authorize",
        ["request": choice, "account": "other", "name": "Dora <b>", "email": "Dora@Example.com", "verified": "1"])
      let code = try #require(MockWorld.code(back))
      let token = try #require(try await world.redeem(code)["id_token"])
      let claims = try #require(MockWorld.claims(token))
      #expect(claims["email"] as? String == "dora@example.com")
      #expect(claims["given_name"] as? String == "Dora")
      subjects.append(try #require(claims["sub"] as? String))
    }
    #expect(Set(subjects).count == 1)
    #expect(
      try await world.post("/authorize", ["request": try await world.choice(), "account": "other", "email": "nobody"])
        .status == 400)
    #expect(try await world.post("/authorize", ["request": try await world.choice(), "account": "999"]).status == 400)
    #expect(
      try await world.post("/authorize", ["request": "made up", "account": "100000000000000000001"]).status == 400)
  }

  @Test("keys rotate: new ones sign, those before stay published, those before them do not") func rotation()
    async throws
  {
    func published() async throws -> [String] {
      let keys = try await world.get("/certs").json["keys"] as? [[String: Any]] ?? []
      return keys.compactMap { $0["kid"] as? String }
    }
    func signer() async throws -> String {
      let token = try #require(try await world.redeem(try await world.code())["id_token"])
      return try #require(MockWorld.header(token)["kid"] as? String)
    }
    let first = try await signer()
    #expect(try await published() == [first])
    #expect(try await world.post("/keys", [:]).status == 303)
    let second = try await signer()
    #expect(second != first)
    #expect(try await published() == [second, first])
    _ = try await world.post("/keys", [:])
    #expect(try await published().last == second)
  }

  @Test("the token is delayed on request") func slow() async throws {
    let choice = try await world.choice()
    let code = try #require(
      MockWorld.code(
        try await world.post("/authorize", ["request": choice, "account": "100000000000000000001", "slow": "1"])))
    #expect(try await world.redeem(code).status == 200)
    #expect(world.slept.withLock { $0 } == .seconds(8))
  }

  @Test("the page escapes what it was given, has no script, and lies in no frame") func page() async throws {
    let answer = try await world.authorize([:])
    #expect(answer.status == 200)
    #expect(answer.text.contains("to continue to <strong>client</strong>"))
    #expect(!answer.text.contains("<script"))
    #expect(answer.header(.contentSecurityPolicy)?.contains("frame-ancestors 'none'") == true)
    #expect(try await world.authorize(["client_id": "<b>"]).text.contains("<b>") == false)
  }

  @Test("what is asked twice is not read at all") func twice() async throws {
    #expect(try await world.get("/authorize?client_id=client&client_id=client").status == 400)
    let answer = try await world.send(
      .post, "/token", [.contentType: "application/x-www-form-urlencoded"], "code=a&code=b")
    #expect(answer["error"] == "invalid_request")
  }
}
