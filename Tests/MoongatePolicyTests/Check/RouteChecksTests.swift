import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Routes that contradict each other.
@Suite struct RouteChecksTests {
  private static func warnings(_ routes: [String]) throws -> [String] {
    let lines = routes.map { "{ to = \"http://127.0.0.1:3000\", \($0) }," }.joined(separator: "\n")
    let generation = try TestFolder(["routes.lua": "return routes {\n\(lines)\n}"]).generation()
    return generation.warnings.filter { $0.path == "encoded" || $0.path.hasPrefix("identity") }.map(\.description)
  }

  /// The path that a warning shows: of a path that is refused because of an earlier route.
  @Test(arguments: [
    ("/api/queues/admin/**", "/api/**", "slash", "/api/queues%2Fadmin", "/api/queues/admin"),
    ("/api/*/admin", "/api/**", "backslash", "/api/x%5Cadmin", "/api/x/admin"),
    ("/npm/private/**", "/npm/**", "empty", "/npm//private", "/npm/private"),
    ("/npm/-/*", "/npm/*", "slash", "/npm/-%2F", "/npm/-/"),
  ]) func earlierRouteRefusesEncodedPaths(
    _ earlier: String, _ path: String, _ word: String, _ sent: String, _ decoded: String
  ) throws {
    let told = try Self.warnings([
      "path = \"\(earlier)\"", "path = \"\(path)\", encoded = { \"\(word)\" }",
    ])
    #expect(
      told == [
        "routes.lua:3: encoded: a path such as \"\(sent)\" is refused with 400, because routes.lua:2 matches it if it is read as \"\(decoded)\". If the service needs such paths, make one of the two patterns narrower"
      ], "\(told)")
  }

  /// Attack: a service that decodes a path before it looks for a page. `/files/admin%2Fkeys` passes by the first route,
  /// and the rules for `/files/admin/keys` are never asked.
  @Test func laterRouteWithStricterRulesIsWarnedOf() throws {
    let open = "path = \"/files/*\", encoded = { \"slash\" }"
    let strict = "path = \"/files/admin/**\", require = { passed = \"phone_otp\" }"
    #expect(
      try Self.warnings([open, strict]) == [
        "routes.lua:2: encoded: the route passes \"/files/admin%2F\" on, and routes.lua:3 has the rules for \"/files/admin/\", which a service may take it for: put that route first, so that such a request is refused with 400"
      ])
    // The operator who follows the advice has nothing left to do.
    #expect(try Self.warnings([strict, open]) == [])
  }

  /// Without stricter rules there is nothing to walk around.
  @Test(arguments: [
    ["path = \"/npm/**\", encoded = { \"slash\" }", "path = \"/**\""],
    ["path = \"/npm/*\", encoded = { \"slash\" }", "path = \"/**\""],
    ["path = \"/npm/*\", encoded = { \"slash\" }", "path = \"/npm/public/**\", allow = true"],
    ["path = \"/assets/**\", allow = true", "path = \"/npm/**\", encoded = { \"slash\", \"backslash\", \"empty\" }"],
    [
      "path = \"/npm/private/**\", methods = { \"POST\" }",
      "path = \"/npm/**\", methods = { \"GET\" }, encoded = { \"slash\" }",
    ],
    ["path = \"/npm/private\"", "path = \"/npm\""],
    ["path = \"/npm/x*\", encoded = { \"slash\" }", "path = \"/npm/*\", encoded = { \"slash\" }"],
  ]) func otherRoutesAreFine(_ routes: [String]) throws {
    let told = try Self.warnings(routes)
    #expect(told == [], "\(told)")
  }

  /// Attack on ourselves: patterns for which a search of all paths would never end.
  @Test func hugePatternsTakeNoTime() throws {
    let stars = String(repeating: "*a", count: 50)
    let routes = (0..<20).map { "path = \"/\($0)\(stars)/**\", encoded = { \"slash\" }" }
    let time = ContinuousClock().measure { _ = try? Self.warnings(routes) }
    #expect(time < .seconds(20))
  }

  // MARK: identity

  /// Attack: one service behind two routes takes the fixed value of one route for a user.
  @Test func nameThatAnotherRouteSetsIsWarnedOf() throws {
    let told = try Self.warnings([
      "path = \"/a/**\", headers = { [\"X_User\"] = \"admin\" }", "path = \"/b/**\", identity = { user = \"X-User\" }",
    ])
    #expect(
      told == [
        "routes.lua:3: identity.user: `headers` at routes.lua:2 sets `X-User` to the same value for all users: if both routes lead to one service, name another header"
      ])
    #expect(
      try Self.warnings([
        "path = \"/a/**\", headers = { [\"X-Tenant\"] = \"a\" }", "path = \"/b/**\", identity = { user = \"X-User\" }",
      ]) == [])
  }
}
