import MoongateCore
import Testing

/// Paths with `%2F`, `%5C` and `//`, which only some routes take.
@Suite struct RouteFindingTests {
  private static func route(_ path: String, _ encoded: EncodedPathBytes = [], line: Int = 1) -> Route {
    var route = Route.matching(path, line: line)
    route.encoded = encoded
    return route
  }

  private static func find(_ path: String, _ routes: [Route], method: String = "GET") -> RouteFinding {
    RouteMatcher(RouteTable(routes: routes)).find(path, host: "app.example.com", method: method)
  }

  @Test(
    arguments: [
      ("/@scope%2fname", "/*"), ("/@scope%2Fname", "/@scope*name"), ("/api/queues/%2F/name", "/api/queues/*/*"),
      ("/api/v4/projects/group%2Fproject/issues", "/api/v4/projects/*/issues"),
      ("/_matrix/client/v3/rooms/!a%2Fb:example.org/state", "/_matrix/client/*/rooms/*/state"),
      ("/files/a%5Cb", "/files/*"), ("/files//a", "/files/*/a"), ("/files//", "/files/**"), ("/a/b;x%2F", "/a/b"),
      ("/a;x%2Fy/b", "/a/b"), ("/a/.%2E.%2F%2f..x", "/a/*"),
    ]) func nameWithASlashIsOneName(_ path: String, _ pattern: String)
  { #expect(Self.find(path, [Self.route(pattern, .all)]) == .route(0)) }

  /// `%2F` is never a slash of a pattern.
  @Test(arguments: [("/a%2Fb", "/a/b"), ("/a%2Fb", "/a/**"), ("/a%5Cb", "/a/b"), ("/a//b", "/a/b"), ("/a%2F", "/a/")])
  func nameWithASlashIsNotTwoNames(_ path: String, _ pattern: String) {
    #expect(Self.find(path, [Self.route(pattern, .all)]) == .none)
  }

  /// However it is read, no name is `.` or `..`, and no path begins with `//`.
  @Test(
    arguments: [
      "/a%2F..%2Fb", "/a%2f..", "/..%2Fa", "/a%2F.", "/a%2F%2E%2e/b", "/a%5C..%5Cb", "/a/..%5c", "/a%2F..;x/b",
      "/a;x%2F../b", "/a;x%2F..%2Fb", "/a%2F..%3Bx", "/a//../b", "/a//..", "/a/.//b", "/a%2F;x/b", "/a//;x/b",
      "//", "//a", "//a/b", "///a", "/a%2F\\b", "/a\\b", "/a%00%2F", "/a%c0%af%2Fb", "/a%2F%", "/a%2Fb#c", "a%2Fb",
    ]) func isRefusedOnEveryRoute(_ path: String)
  { #expect(Self.find(path, [Self.route("/**", .all)]) == .refused(RequestPath.fault)) }

  @Test func eachKindOfBytesNeedsItsName() {
    let kinds: [(path: String, bytes: EncodedPathBytes, told: String)] = [
      ("/x/a%2Fb", .slash, "%2F: the route at routes.lua:7 would need `encoded = { \"slash\" }`"),
      ("/x/a%5cb", .backslash, "%5C: the route at routes.lua:7 would need `encoded = { \"backslash\" }`"),
      ("/x/a//b", .empty, "//: the route at routes.lua:7 would need `encoded = { \"empty\" }`"),
    ]
    // Another route takes them, so that the path is not refused at once.
    let other = Self.route("/other/**", .all, line: 8)
    for (path, bytes, told) in kinds {
      #expect(Self.find(path, [Self.route("/x/**", bytes, line: 7), other]) == .route(0))
      let others = EncodedPathBytes.all.subtracting(bytes)
      let refused = Self.find(path, [Self.route("/x/**", others, line: 7), other])
      #expect(refused == .refused("the path contains \(told)"), "\(path)")
      #expect(Self.find(path, [Self.route("/x/**", line: 7)]) == .refused(RequestPath.fault), "no route takes any")
    }
    let both = Self.find("/x/a%2F//b", [Self.route("/x/**", .backslash, line: 7), other])
    #expect(
      both
        == .refused(
          "the path contains %2F and //: the route at routes.lua:7 would need `encoded = { \"slash\", \"empty\" }`"))
  }

  /// The first route that matches decides, even if a later one would take the bytes.
  @Test func firstRouteDecides() {
    let routes = [Self.route("/a*", line: 2), Self.route("/**", .all, line: 3)]
    #expect(Self.find("/a%2Fb", routes) != .route(1))
    #expect(Self.find("/b%2Fa", routes) == .route(1))
    #expect(Self.find("/b%2Fa", [Self.route("/x", .all)]) == .none)
  }

  /// Attack: a service that decodes `/admin%2Fusers` serves what only an earlier route may show.
  @Test(
    arguments: [
      "/admin%2Fusers", "/admin%2fusers", "/%61dmin%2Fusers", "/admin%5Cusers",
      "/admin%2F", "/admin%2F%2Fusers", "/%2Fadmin", "/%5Cadmin/users", "/%2F%2F/admin", "/%2f//admin%5c",
      "/x%2Fsecret", "/x//secret", "/x///secret", "/x%2F%5C//secret", "/x%2Fy%5Csecret/z",
      "/x/y%2F%2Fsecret/z",
    ]) func earlierRouteIsNotWalkedAround(_ path: String)
  {
    let closed = [
      Self.route("/admin/**", line: 2), Self.route("/*/secret", .all, line: 3), Self.route("/x/y/secret/*", line: 4),
    ]
    let found = Self.find(path, closed + [Self.route("/**", .all, line: 5)])
    guard case .refused(let reason) = found else {
      Issue.record("\(path): \(found)")
      return
    }
    #expect(reason.contains(" only separates names, the path matches the earlier route at routes.lua:"), "\(reason)")
    #expect(Self.find(path, [Self.route("/**", .all)]) == .route(0))
  }

  /// Attack: what follows `;` is a parameter of `admin` to one program, and a name to another one.
  @Test(arguments: ["/admin;x%2Fusers", "/admin%3Bx%2Fusers", "/x;a%2Fadmin", "/x%2Fa;b%5Cadmin", "/x;/%2Fadmin"])
  func parametersHideNoName(_ path: String) {
    let routes = [
      Self.route("/admin/**"), Self.route("/*/admin/**"), Self.route("/x/a/admin"), Self.route("/**", .all),
    ]
    #expect(Self.find(path, routes) != .route(3))
    #expect(Self.find(path, [Self.route("/**", .all)]) == .route(0))
  }

  /// Only a route for the same method and host could judge the path.
  @Test func earlierRouteOfOtherRequestsDoesNotMatter() {
    var posts = Route.matching("/admin/**", methods: ["POST"])
    let other = Route.matching("/admin/**", host: "other.example.com")
    let all = Self.route("/**", .all)
    #expect(Self.find("/admin%2Fx", [posts, other, all]) == .route(2))
    #expect(Self.find("/admin%2Fx", [posts, other, all], method: "POST") != .route(2))
    posts.encoded = .all
    #expect(Self.find("/admin%2Fx", [posts, all], method: "POST") != .route(1))
    // RFC 9110 section 9.3.2: HEAD is GET without the content.
    let gets = Route.matching("/admin/**", methods: ["GET"])
    #expect(Self.find("/admin%2Fx", [gets, all], method: "HEAD") != .route(1))
  }

  /// A later route does not matter: the operator's order says which one decides.
  @Test func laterRouteDoesNotMatter() {
    let routes = [Self.route("/packages/*", .slash), Self.route("/packages/**", line: 2)]
    #expect(Self.find("/packages/@scope%2Fname", routes) == .route(0))
    #expect(Self.find("/packages/@scope/name", routes) == .route(1))
  }

  /// Attack: a service serves `/auth/login` in place of the gateway, or a proxy in front sends it to the gateway.
  @Test(
    arguments: [
      "/auth%2Flogin", "/auth%5Clogin", "/auth%2F", "/auth//login", "/%2Fauth/login", "/api%2Fauth%2Fflows",
      "/api//auth/session", "/api/auth%2fx", "/.well-known%2Fmoongate%2Fkeys", "/.well-known//jwks.json",
      "/%61uth;x%2Flogin",
    ]) func pathOfTheGatewayIsRefused(_ path: String)
  {
    guard case .refused(let reason) = Self.find(path, [Self.route("/**", .all)]) else {
      Issue.record("\(path) is passed on")
      return
    }
    #expect(reason.hasSuffix("the path is one of the gateway's own"))
  }

  @Test func similarPathsAreNotTheGateways() {
    for path in ["/author%2Flogin", "/api%2Fauthors", "/x%2Fauth", "/apiauth%2Fx", "/x/.well-known%2Fy"] {
      #expect(Self.find(path, [Self.route("/**", .all)]) == .route(0), "\(path)")
    }
  }

  @Test func plainPathsAreFoundAsBefore() {
    let routes = [Self.route("/a/**"), Self.route("/**", .all, line: 2)]
    #expect(Self.find("/a/x", routes) == .route(0))
    #expect(Self.find("/%61/x;y", routes) == .route(0))
    #expect(Self.find("", routes) == .route(1))
    #expect(Self.find("/b/%252F", routes) == .route(1), "decoded once, this is text")
    #expect(Self.find("/b", [Self.route("/a")]) == .none)
    #expect(Self.find("/a/../b", routes) == .refused(RequestPath.fault))
  }
}
