import MoongateCore
import MoongateTesting
import Testing

/// Which URLs `return_to` accepts.
@Suite struct RedirectTargetsTests {
  static func route(host: String?) -> Route {
    Route(
      host: host, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil,
      upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 3000)],
      isOpen: false, flow: "login", requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false,
      headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: 1))
  }

  static let targets = RedirectTargets(
    publicURL: PublicURL(isSecure: true, host: "auth.good.com", port: 443),
    redirectHosts: ["app.good.com", "dev.good.com:8443"],
    routes: RouteTable(routes: [route(host: "wallet.good.com"), route(host: nil)]))

  @Test(arguments: [
    "/", "/home", "/home/", "/home?x=//evil&y=%2f%0a", "/a/b#frag", "/a;v=1/b", "/caf%C3%A9", "/x?next=https://evil/",
    "https://auth.good.com", "https://auth.good.com/", "https://auth.good.com:443/x?y", "HTTPS://AUTH.good.com/x",
    "https://auth.good.com?x", "https://auth.good.com:/", "http://app.good.com:/x",
    "https://app.good.com/x", "http://app.good.com/x", "http://app.good.com:80/", "https://dev.good.com:8443/x",
    "http://dev.good.com:8443/x",
    "https://wallet.good.com/pay",
  ])
  func accepted(_ text: String) { #expect(Self.targets.accept(text) == text) }

  @Test(arguments: [
    "", "home", "//e", "///e", "/\\e", "\\\\e", "/%09/e", "/\t/e", "\t/e", " /e", "/a b", "/%5ce", "/%2fe", "/%2F%2Fe",
    "/a//b", "/.", "/..", "/../x",
    "/%2e%2e/x",
    "/.;x/y", "/a/./b", "/a\u{0}", "/a\nb", "/a%0d%0aSet-Cookie:x", "/%", "/%4", "/%zz", "/%+1", "/é",
    "https:e", "https:/e", "https:///e", "https://", "http:auth.good.com", "javascript:alert(1)",
    "javascript://auth.good.com/%0aalert(1)",
    "data:text/html,x",
    "https://auth.good.com.evil", "https://auth.good.com.evil/", "https://evil/auth.good.com",
    "https://user@auth.good.com/",
    "https://auth.good.com@evil/",
    "https://auth.good.com:8080/", "https://auth.good.com::/", "https://auth.good.com:443:/", "http://auth.good.com/",
    "https://auth.good.com.",
    "https://auth.good.com\\@evil/",
    "https://auth.good.com/\\evil", "https://auth.good.com//evil", "https://auth.good.com/..//evil",
    "https://app.good.com:8443/",
    "https://dev.good.com/",
    "http://wallet.good.com/pay", "https://wallet.good.com:444/", "https://xapp.good.com/", "https://good.com/",
    "ftp://app.good.com/",
    "https://evil#.good.com",
    "https://evil?auth.good.com", "https://ａuth.good.com/", "//auth.good.com/x",
  ])
  func refused(_ text: String) { #expect(Self.targets.accept(text) == nil) }

  @Test func nothingAndTooMuch() {
    #expect(Self.targets.accept(nil) == nil)
    // RFC 9110 section 4.1: URIs of at least 8,000 octets.
    #expect(Self.targets.accept("/" + String(repeating: "a", count: 7999)) != nil)
    #expect(Self.targets.accept("/" + String(repeating: "a", count: RedirectTargets.longest - 1)) != nil)
    #expect(Self.targets.accept("/" + String(repeating: "a", count: RedirectTargets.longest)) == nil)
  }

  // MARK: routes with `encoded`

  /// `/names/*` takes `%2F` at our own host, and everything at another host; `/names/x/**` is closed.
  private static let encoded: RedirectTargets = {
    var own = Route.matching("/names/*", host: "auth.good.com")
    own.encoded = .slash
    var other = Route.matching("/**", host: "wallet.good.com")
    other.encoded = .all
    var dev = Route.matching("/**", host: "dev.good.com")
    dev.encoded = .all
    return RedirectTargets(
      publicURL: PublicURL(isSecure: true, host: "auth.good.com", port: 443), redirectHosts: ["dev.good.com:8443"],
      routes: RouteTable(routes: [Route.matching("/names/x/**"), own, other, dev]))
  }()

  /// A path that a route takes comes back byte for byte.
  @Test(arguments: [
    "/names/@scope%2fname", "/names/%2F?x=//evil#y", "https://auth.good.com/names/a%2Fb",
    "https://wallet.good.com/a%2Fb//c%5Cd?q", "HTTPS://Wallet.good.com:443/a//b", "https://dev.good.com:8443/a%5cb",
    "http://dev.good.com:8443/web/http://example.com//x", "/home", "https://wallet.good.com/pay",
  ])
  func pathOfARouteIsAccepted(_ text: String) { #expect(Self.encoded.accept(text) == text) }

  /// Attack: an open redirect through the bytes that some route takes.
  @Test(arguments: [
    "/names/a%5Cb", "/names//b", "/other/a%2Fb", "/names/a%2Fb/c", "/names/x%2Fb", "/names/a%2F..%2Fb",
    "//evil.example", "//evil.example/names/a%2Fb", "/%2Fevil.example", "/%5Cevil.example", "///names/a%2Fb",
    "https://wallet.good.com//evil.example", "https://wallet.good.com/a%2F../b", "https://wallet.good.com/\\evil",
    "https://wallet.good.com:444/a%2Fb", "https://evil.example/a%2Fb", "https://wallet.good.com@evil.example/a%2Fb",
    "https://dev.good.com:444/a%2Fb", "https://wallet.good.com/auth%2Flogin", "/names/a%2Fb\u{0}", "/names/a%2F%",
  ])
  func pathThatNoRouteTakesIsRefused(_ text: String) { #expect(Self.encoded.accept(text) == nil) }

  /// A sign-in leads to a page by GET.
  @Test func pathOfAnotherMethodIsRefused() {
    var route = Route.matching("/**", methods: ["POST"])
    route.encoded = .all
    let targets = RedirectTargets(
      publicURL: PublicURL(isSecure: true, host: "auth.good.com", port: 443), redirectHosts: [],
      routes: RouteTable(routes: [route]))
    #expect(targets.accept("/a%2Fb") == nil)
    #expect(targets.accept("/a/b") != nil)
  }
}
