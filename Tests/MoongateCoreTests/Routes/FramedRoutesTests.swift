import MoongateCore
import Testing

/// Which sites may show the page at an address in a frame.
@Suite struct FramedRoutesTests {
  private static let portal = ["https://portal.example.com"]

  private static func route(_ path: String, host: String? = nil, methods: Set<String>? = nil, frames: [String] = [])
    -> Route
  {
    let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var route = Route(
      host: host,
      path: PathPattern(text: path, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) }),
      methods: methods, upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: false,
      flow: "login", requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [],
      bodyLimit: nil, location: SourceLocation(file: "routes.lua", line: 1))
    route.frames = frames
    return route
  }

  private let table = RouteTable(routes: [
    route("/wiki/admin/**"), route("/wiki/**", frames: portal),
    route("/**", host: "board.example.com", frames: ["https://a.example", "https://b.example"]),
    route("/form", methods: ["POST"], frames: portal), route("/**"),
  ])

  @Test(arguments: [
    ("/wiki", portal), ("/wiki/x?y#z", portal), ("/%77iki/x", portal), ("/wiki;x/y", portal),
    ("https://app.example.com/wiki/x", portal),
    ("https://board.example.com", ["https://a.example", "https://b.example"]),
    ("https://board.example.com/x?y", ["https://a.example", "https://b.example"]),
  ])
  func firstMatchingRouteDecides(_ address: String, _ sites: [String]) {
    #expect(table.frames(at: address, host: "app.example.com") == sites)
  }

  @Test(arguments: [
    // Another route comes first.
    "/wiki/admin", "/wiki/%61dmin/x", "https://board.example.com:8443/wiki/admin", "/", "/wikix", "/form",
    // Not an address of a service.
    "", "wiki/x", "//board.example.com/", "/wiki//x", "/wiki/../x", "/wiki/%2e%2e/x", "/wiki/%2fx",
    "javascript:alert(1)", "https://user@board.example.com/", "HTTPS://board.example.com/", "https:///x",
  ])
  func otherAddressesAreShownNowhere(_ address: String) {
    #expect(table.frames(at: address, host: "app.example.com") == [])
  }

  /// Attack: `https://board.example.com/auth/account` is a page of the gateway, and not of the route that matches it.
  @Test(arguments: ["/auth/account", "/auth", "/%61uth/account", "/auth;x/account", "/auth/"])
  func pathsOfTheGatewayAreNoServices(_ path: String) {
    #expect(table.frames(at: "https://board.example.com" + path, host: "app.example.com") == [])
    #expect(table.frames(at: path, host: "board.example.com") == [])
    #expect(table.frames(at: "/authors", host: "board.example.com") == ["https://a.example", "https://b.example"])
  }

  @Test func relativeAddressesAreOnTheHost() {
    #expect(table.frames(at: "/x", host: "board.example.com") == ["https://a.example", "https://b.example"])
    #expect(table.frames(at: "?x", host: "board.example.com") == [])
  }

  @Test func allSites() {
    #expect(table.hasFrames)
    #expect(table.allFrames == ["https://a.example", "https://b.example", "https://portal.example.com"])
    #expect(!RouteTable(routes: [Self.route("/**")]).hasFrames)
  }
}
