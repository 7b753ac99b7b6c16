import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// Reading `tokens` of routes and policies/token.lua, and their problems.
@Suite struct RouteTokensTests {
  private static func routes(_ body: String) -> String {
    "return routes {\n{ path = \"/**\", to = \"http://127.0.0.1:3000\",\n\(body) },\n}"
  }

  private func tokens(_ body: String) throws -> RouteTokens? {
    try TestFolder(["routes.lua": Self.routes(body)]).generation().routes.routes[0].tokens
  }

  @Test func tokensOptionOfARoute() throws {
    #expect(try tokens("") == nil && tokens("tokens = false") == nil)
    #expect(try tokens("tokens = true") == .services)
    #expect(try tokens("tokens = { \"ci\", \"monitor\" }") == RouteTokens(names: ["ci", "monitor"]))
    #expect(try tokens("tokens = { personal = true }") == RouteTokens(takesPersonal: true))
    #expect(try tokens("tokens = { \"ci\", personal = true }") == RouteTokens(names: ["ci"], takesPersonal: true))
  }

  @Test(arguments: [
    (
      "tokens = \"ci\"",
      "routes.lua:3: routes[1].tokens: must be true, { \"ci\", \"monitor\" } or { personal = true }, not \"ci\"; did you mean `{ \"ci\" }`?"
    ),
    (
      "tokens = {}",
      "routes.lua:3: routes[1].tokens: takes no token: write true, { \"ci\", \"monitor\" } or { personal = true }, or leave `tokens` out"
    ),
    (
      "tokens = { personl = true }",
      "routes.lua:3: routes[1].tokens.personl: unknown field; did you mean `personal`? (true accepts personal tokens, which users create on their account page)"
    ),
    ("tokens = { \"CI\" }", "routes.lua:3: routes[1].tokens[1]: \"CI\" is not a valid token name; did you mean `ci`?"),
    (
      "allow = true,\ntokens = true",
      "routes.lua:4: routes[1].tokens: a route with allow = true is open to all requests: remove one of the two"
    ),
  ]) func mistakes(_ body: String, _ problem: String) throws {
    let told = try TestFolder(["routes.lua": Self.routes(body)]).problems()
    #expect(told == [problem], "\(told)")
  }

  @Test func aRouteThatNoTokenCanPassIsWarnedOf() throws {
    let generation = try TestFolder(["routes.lua": Self.routes("tokens = true, require = { passed = \"phone_otp\" }")])
      .generation()
    #expect(
      generation.warnings.contains {
        $0.message.hasPrefix("no token can be accepted: tokens have not passed `phone_otp`")
      })
  }

  @Test func aTokensHostNeedsNoCookie() throws {
    _ = try TestFolder(["routes.lua": Self.routes("host = \"metrics.example.org\", tokens = true")]).generation()
  }

  /// Attack: administration requires two factors, but its route accepts a token, which has none.
  @Test func aGuaranteeOfARouteThatTakesTokensDoesNotHold() throws {
    let guarantee =
      "return guarantees {\n  guarantee \"administration takes a code\" { route = \"/admin/**\", passed = \"phone_otp\" },\n}"
    let folder = try GuaranteeFolder([
      "guarantees.lua": guarantee,
      "routes.lua": "return routes { { path = \"/admin/**\", to = \"http://127.0.0.1:3000\", tokens = true } }",
    ])
    let told = try folder.refutations()
    #expect(told.count == 1 && told[0].contains("takes tokens of programs (`tokens`)"), "\(told)")
    let strict = try GuaranteeFolder([
      "guarantees.lua": guarantee,
      "routes.lua":
        "return routes { { path = \"/admin/**\", to = \"http://127.0.0.1:3000\", tokens = true, require = { passed = \"phone_otp\" } } }",
    ])
    #expect(try strict.refutations() == [])
  }

  private func policy(_ body: String) throws -> TestFolder {
    try TestFolder(["policies/token.lua": "return policy \"token\" {\n\(body)\n}"])
  }

  @Test func thePolicyOfTokensIsReadOverItsDefaults() throws {
    let standard = try TestFolder().generation().tokenPolicy
    #expect(
      standard.limits.map { [$0.name, "\($0.key)", "\($0.max)", "\($0.lock)"] }
        == ProviderPolicy.tokens.limits.map { [$0.name, "\($0.key)", "\($0.max)", "\($0.lock)"] })
    let own = try policy(
      "limits = { wrong = { on = \"verify\", per = \"network\", max = 5, window = \"10m\", lock = { \"1m\", \"1h\" } } }"
    )
    .generation().tokenPolicy
    #expect(own.limits.map(\.key) == [.network] && own.limits[0].max == .fixed(5))
  }

  @Test(arguments: [
    ("message = \"hello\"", "policies/token.lua:2: message: policies/token.lua has only limits: remove this field"),
    (
      "limits = { wrong = { on = \"verify\", per = \"global\", max = 5, window = \"1h\", lock = \"1m\" } }",
      "policies/token.lua:2: limits.wrong.per: wrong tokens are counted per \"ip\" or \"network\": with a wider key, one attacker could lock out every program"
    ),
    (
      "limits = { wrong = { on = \"begin\", per = \"ip\", max = 5, window = \"1h\" } }",
      "policies/token.lua:2: limits.wrong.on: wrong tokens are counted on \"verify\": a token sends, begins and registers nothing"
    ),
    (
      "limits = { wrong = { on = \"verify\", per = \"ip\", max = vary(1, 5, function(f) return 2 end), window = \"1h\" } }",
      "policies/token.lua:2: limits.wrong: must have fixed numbers: vary(…) would run for every request"
    ),
  ]) func mistakesOfThePolicy(_ body: String, _ problem: String) throws {
    let told = try policy(body).problems()
    #expect(told.contains(problem), "\(told)")
  }
}
