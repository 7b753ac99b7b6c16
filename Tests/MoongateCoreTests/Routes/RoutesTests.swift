import MoongateCore
import Testing

@Suite struct RequestPathTests {
  private func path(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    return RequestPath(bytes.span).map { String(decoding: $0.decoded ?? bytes, as: UTF8.self) }
  }

  /// Paths that are refused.
  @Test(
    arguments: [
      "", "a", "*", "//", "/a//b", "//a", "/.", "/..", "/a/.", "/a/..", "/./a", "/a/../b", "/%2e", "/%2E%2e/a",
      "/a/.%2e/b", "/..;/a", "/..;x=y/a",
      "/.;/a",
      "/%2e%2e;/a", "/..%3b/a", "/a/%c0%ae%c0%ae/b", "/a%C0%AFb", "/%c1%9cb", "/%e0%80%af", "/%f0%80%80%ae/", "/a%2fb",
      "/a%2Fb", "/a%5cb", "/a%5Cb",
      "/a\\b", "/a%00b", "/a%0ab", "/a%1fb", "/a%7fb", "/a\u{1}b", "/a\u{7f}b",
      "/a b", "/a%",
      "/a%2", "/a%2g", "/a%gg", "/é", "/a#b", "/;x/a", "/a/;x/b", "/a/;", "/%", "/a/%2e;x",
    ].filter { $0 != "/a/;" }) func isNotInNormalForm(_ text: String)
  { #expect(path(text) == nil) }

  @Test(
    arguments: [
      ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("/a/b.c", "/a/b.c"), ("/...", "/..."), ("/.a/..b", "/.a/..b"),
      ("/%61dmin", "/admin"),
      ("/a;x=y/b", "/a/b"), ("/a/b;x", "/a/b"), ("/a;x%2e;y", "/a"), ("/a%3bx/b", "/a/b"), ("/a/;x", "/a/"),
      ("/;x", "/"),
      ("/%252e%252e/a", "/%2e%2e/a"),
      ("/%252fa", "/%2fa"), ("/%C3%A9", "/é"), ("/%E2%82%AC", "/€"), ("/%F0%9F%90%A5", "/🐥"), ("/%E0%A4%A8", "/न"),
      ("/a%20b", "/a b"),
      ("/a%25", "/a%"), ("/a[b]|c", "/a[b]|c"),
    ]) func isReadAs(_ text: String, _ decoded: String)
  { #expect(path(text) == decoded) }
}

@Suite struct HostNameTests {
  /// A host has one canonical form, or none.
  @Test(
    arguments: [
      ("example.com", "example.com", nil), ("EXAMPLE.com", "example.com", nil), ("example.com.", "example.com", nil),
      ("Example.COM.:8080", "example.com", 8080),
      ("a_b-c.d", "a_b-c.d", nil), ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]", "[::1]", nil),
      ("[0:0:0:0:0:0:0:1]:9", "[::1]", 9),
      ("[FE80::A]", "[fe80::a]", nil),
      ("localhost", "localhost", nil), ("localhost:", "localhost", nil), ("a.example.:", "a.example", nil),
      ("[::1]:", "[::1]", nil),
    ] as [(String, String, Int?)]) func hasOneSpelling(_ text: String, _ name: String, _ port: Int?)
  {
    #expect(HostName(text)?.name == name)
    #expect(HostName(text)?.port == port)
  }

  @Test(
    arguments: [
      "", ".", "..", ".a", "a..b", "a..", ":", "a::", "a:b", "a:0", "a:65536", "a:123456", "a:80:80", "a b", "a,b",
      "u@a",
      "a/b", "a%2eb", "[::1", "::1",
      "[::1]x", "[::1]::",
      "[]", "[1.2.3.4]", "[::1%eth0]", "a\u{0}b", "é.com", "[::g]", "a\tb", String(repeating: "a", count: 64) + ".com",
    ]) func isMalformed(_ text: String)
  { #expect(HostName(text) == nil) }
}

@Suite struct RouteMatcherTests {
  private static func pattern(_ text: String) -> PathPattern {
    let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    return PathPattern(text: text, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) })
  }

  @Test(
    arguments: [
      ("/x/**", ["/x", "/x/", "/x/y", "/x/y/z"], ["/", "/xy", "/X", "/y/x"]), ("/**", ["/", "/a", "/a/b/"], []),
      ("/x", ["/x"], ["/x/", "/xy", "/"]),
      ("/", ["/"], ["/a"]), ("/x/", ["/x/"], ["/x", "/x/y"]), ("/*/a", ["/b/a", "//a"], ["/a", "/b/c/a"]),
      ("/a*c/d", ["/ac/d", "/abc/d"], ["/ab/d", "/a/c/d"]),
      ("/**/z", ["/z", "/a/z", "/a/b/z", "/z/z"], ["/", "/za", "/z/a"]),
      ("/a/**/b/**/c", ["/a/b/c", "/a/x/b/y/b/c"], ["/a/c", "/a/b"]),
      ("/**/a*b*c", ["/abc", "/x/axxbyyc"], ["/x/axxc"]),
    ]) func patterns(_ text: String, _ yes: [String], _ no: [String])
  {
    let compiled = CompiledPattern(Self.pattern(text))
    let matches = { (path: String) in compiled.matches(Array(path.utf8).span) }
    for path in yes { #expect(matches(path), "\(text) \(path)") }
    for path in no { #expect(!matches(path), "\(text) \(path)") }
  }

  private static func route(_ path: String, host: String? = nil, methods: Set<String>? = nil) -> Route {
    Route(
      host: host, path: pattern(path), methods: methods, upstreams: [], isOpen: false, flow: "login", requirement: nil,
      decide: nil,
      timeout: .seconds(30),
      allowsUpgrade: false, headers: [], bodyLimit: nil, location: SourceLocation(file: "routes.lua", line: 1))
  }

  @Test func firstMatchingRouteWins() {
    let matcher = RouteMatcher(
      RouteTable(routes: [
        Self.route("/pay/**", host: "wallet.example.com", methods: ["POST"]), Self.route("/pay/**", methods: ["GET"]),
        Self.route("/**", host: "a.example.com"),
      ]))
    let match = { (host: String, path: String, method: String) in
      matcher.match(host: host, path: Array(path.utf8).span, method: Array(method.utf8).span)
    }
    #expect(match("wallet.example.com", "/pay/x", "POST") == 0)
    #expect(match("wallet.example.com", "/pay/x", "GET") == 1)
    #expect(match("wallet.example.com", "/pay/x", "HEAD") == 1)
    #expect(match("wallet.example.com", "/pay/x", "OPTIONS") == nil)
    #expect(match("wallet.example.com", "/pay/x", "post") == nil)
    #expect(match("a.example.com", "/pay", "DELETE") == 2)
    #expect(match("b.example.com", "/other", "GET") == nil)
  }
}
