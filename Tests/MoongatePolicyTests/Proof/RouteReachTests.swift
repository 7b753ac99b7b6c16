import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The routes that handle requests of a pattern, with an example of each.
@Suite struct RouteReachTests {
  private static func pattern(_ text: String) throws -> PathPattern {
    let problems = Problems()
    let node = LuaNode(value: .text(text), location: SourceLocation(file: "routes.lua", line: 1))
    return try #require(RoutePatternReader(problems: problems).readPattern(node, "path"))
  }

  private static func route(
    _ path: String, host: String? = nil, methods: Set<String>? = nil, encoded: EncodedPathBytes = []
  ) throws -> Route {
    var route = Route(
      host: host, path: try pattern(path), methods: methods, upstreams: [], isOpen: false, flow: "login",
      requirement: nil, decide: nil,
      timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: 1))
    route.encoded = encoded
    return route
  }

  private static func reach(_ routes: [Route], _ text: String, host: String? = nil) throws -> [String] {
    try RouteReach(routes: routes, budget: ProofBudget()).routes(for: try pattern(text), host: host).map {
      "\($0.route) \($0.request.text)"
    }
  }

  @Test func routeIsReachedByItsShortestPath() throws {
    #expect(try Self.reach([Self.route("/**")], "/admin/**") == ["0 GET /admin"])
    #expect(try Self.reach([Self.route("/*/help")], "/admin/**") == ["0 GET /admin/help"])
    #expect(try Self.reach([Self.route("/**/x*.js")], "/a/*/**") == ["0 GET /a/x.js"])
    #expect(try Self.reach([Self.route("/b/**")], "/a/**") == [])
  }

  @Test func earlierRouteHidesLaterOne() throws {
    #expect(try Self.reach([Self.route("/admin/**"), Self.route("/**")], "/admin/**") == ["0 GET /admin"])
    #expect(
      try Self.reach([Self.route("/admin"), Self.route("/**")], "/admin/**") == ["0 GET /admin", "1 GET /admin/"])
    // Neither route covers it alone, but both together do.
    #expect(
      try Self.reach([Self.route("/a"), Self.route("/a/**/"), Self.route("/a/*"), Self.route("/a/**")], "/a/*").map {
        $0.prefix(1)
      } == ["1", "2"])
  }

  @Test func methodsAndHostsAreDistinguished() throws {
    let get = try Self.route("/x", methods: ["GET"])
    let all = try Self.route("/**")
    #expect(try Self.reach([get, all], "/x") == ["0 GET /x", "1 POST /x"])
    let hosted = try Self.route("/**", host: "a.example.com")
    #expect(try Self.reach([hosted, all], "/x") == ["0 GET a.example.com/x", "1 GET /x"])
    #expect(try Self.reach([hosted, all], "/x", host: "a.example.com") == ["0 GET a.example.com/x"])
    #expect(try Self.reach([hosted, all], "/x", host: "b.example.com") == ["1 GET b.example.com/x"])
  }

  @Test func refusedPathsAreNotExamples() throws {
    #expect(try Self.reach([Self.route("/.*")], "/*") == ["0 GET /.x"])
    #expect(try Self.reach([Self.route("/*/")], "/**") == ["0 GET /x/"])
  }

  /// Attack: a service reads `%2F` in a path that a weaker route takes as a separator, and answers a path that a later
  /// route protects.
  @Test(arguments: [(EncodedPathBytes.slash, "%2F"), (.backslash, "%5C")])
  func routeThatTakesAnEncodedSeparatorReachesTheDecodedPath(_ encoded: EncodedPathBytes, _ text: String) throws {
    let weak = try Self.route("/a/*", encoded: encoded)
    let strong = try Self.route("/a/**")
    #expect(try Self.reach([weak, strong], "/a/*/b") == ["0 GET /a/\(text)b", "1 GET /a/x/b"])
    // A route without the field refuses the path.
    #expect(try Self.reach([Self.route("/a/*"), strong], "/a/*/b") == ["1 GET /a/x/b"])
    // An earlier route that matches the decoded path keeps it from the weaker one: it gets 400.
    #expect(try Self.reach([strong, weak], "/a/*/b") == ["0 GET /a/x/b"])
    // The first route that matches the path with the byte as data decides, and it has no field.
    #expect(try Self.reach([Self.route("/a/*"), weak, strong], "/a/*/b") == ["2 GET /a/x/b"])
    // A segment of dots is refused in each way of reading.
    #expect(try Self.reach([weak], "/a/*/..*/b") == ["0 GET /a/\(text)..x\(text)b"])
  }

  /// Attack: `//` is `/` for a service, so that the path is another one for it.
  @Test func routeThatTakesEmptySegmentsReachesTheMergedPath() throws {
    let weak = try Self.route("/a/*/b", encoded: .empty)
    let strong = try Self.route("/**")
    // The shortest path has an empty segment, and is `/a/b` for such a service.
    #expect(try Self.reach([weak, strong], "/a/b") == ["0 GET /a//b", "1 GET /a/b"])
    #expect(try Self.reach([Self.route("/a/*/b"), strong], "/a/b") == ["1 GET /a/b"])
    #expect(try Self.reach([strong, weak], "/a/b") == ["0 GET /a/b"])
  }

  /// Examples of usual paths are preferred, and routes without the field are proved as before.
  @Test func usualPathIsPreferred() throws {
    let all: EncodedPathBytes = [.slash, .backslash, .empty]
    #expect(try Self.reach([Self.route("/**", encoded: all)], "/a/*") == ["0 GET /a/"])
    #expect(try Self.reach([Self.route("/a/*", encoded: all)], "/a/**") == ["0 GET /a/"])
  }

  /// Compared with the production matcher: its first match of random paths is always among the routes, and each example
  /// is matched in the same way.
  @Test func agreesWithTheMatcher() throws {
    let random = SeededRandom(seed: 5)
    let parts = ["a", "b", "*", "a*", "*b", "**", "a*b"]
    func text() throws -> String {
      "/"
        + (try (0..<Int(random.uniform(below: 3)) + 1).map { _ in try #require(random.pick(parts)) }).joined(
          separator: "/")
    }
    var found = 0
    for _ in 0..<330 {
      let routes = try (0..<Int(random.uniform(below: 4)) + 1).map { _ in
        try Self.route(try text(), methods: random.pick([nil, nil, ["GET"], ["POST"]]) ?? nil)
      }
      let wanted = try Self.pattern(try text())
      let reached = try RouteReach(routes: routes, budget: ProofBudget()).routes(for: wanted, host: nil)
      let matcher = RouteMatcher(RouteTable(routes: routes))
      func match(_ path: String, _ method: String) -> Int? {
        matcher.match(host: "any.example.com", path: Array(path.utf8).span, method: Array(method.utf8).span)
      }
      for (route, request) in reached {
        #expect(match(request.path, request.method) == route)
        let isWanted = CompiledPattern(wanted).matches(Array(request.path.utf8).span)
        #expect(isWanted, "\(request.path) of \(wanted.text)")
      }
      let names = ["a", "b", "ab", "axb", "xb", "ax", "c", ""]
      for _ in 0..<40 {
        let segments = try (0..<Int(random.uniform(below: 3)) + 1).map { _ in try #require(random.pick(names)) }
        let path = "/" + segments.joined(separator: "/")
        guard !path.contains("//"), CompiledPattern(wanted).matches(Array(path.utf8).span) else { continue }
        guard let route = match(path, random.pick(["GET", "POST", "PUT"]) ?? "GET") else { continue }
        found += 1
        #expect(reached.contains { $0.route == route }, "\(path) of \(wanted.text): \(routes.map(\.path.text))")
      }
    }
    #expect(found > 500, "\(found) of 13,200 random requests")
  }
}
