import Foundation
import MoongateCore
import NIOCore
import Testing

@testable import MoongateProxy

/// Fields of responses on routes with `strip`, a path in `to`, `host_header` and `response_headers`. The upstreams are
/// `http://127.0.0.1:3000` and `http://127.0.0.1:3001`, and the client asked for `https://app.example.com`.
@Suite struct AnswerChangesTests {
  private static let named = ServiceHost.named("wiki.internal")

  private final class Reports {
    var all: [String] = []
  }

  /// The fields as the client receives them, without the gateway's own Date, and the reported paths.
  private func answer(
    _ fields: [String], by route: Route, client: String = "app.example.com", isSecure: Bool = true
  ) throws -> (fields: [String], outside: [String], hasOurDate: Bool) {
    let reports = Reports()
    var input = ByteBuffer(string: "HTTP/1.1 302 Found\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n")
    var decoder = ResponseDecoder()
    var spare: [HeadField] = []
    let head = try #require(try decoder.next(&input, spare: &spare, toHead: true))
    let changes = AnswerChanges(
      rewriting: try #require(ServiceRewriting(route)), client: try #require(HostName(client)), isSecure: isSecure
    ) { reports.all.append("\($0.rawValue) \($1)") }
    let rewriter = AnswerRewriter(
      date: Array("Date: now\r\n".utf8), framing: .none, keepsAlive: true, minorVersion: 1, changes: changes)
    let text = String(buffer: rewriter.write(head, room: 0))
    #expect(text.hasPrefix("HTTP/1.1 302 Found\r\n") && text.hasSuffix("\r\n\r\n"))
    let lines = text.components(separatedBy: "\r\n").dropFirst().dropLast(2)
    return (lines.filter { $0 != "Date: now" }, reports.all, lines.contains("Date: now"))
  }

  private func route(
    strip: String = "", base: String = "", host: ServiceHost = .kept, responses: [(name: String, value: String?)] = []
  ) -> Route {
    Route.test(ports: [3000, 3001]).rewritten(strip: strip, base: base, host: host, responses: responses)
  }

  private func location(_ value: String, by route: Route, isSecure: Bool = true) throws -> String {
    let seen = try answer(["Location: \(value)"], by: route, isSecure: isSecure).fields
    return String(try #require(seen.first).dropFirst("Location: ".count))
  }

  // MARK: addresses

  @Test(arguments: [
    ("/x?a=/b#c", "/wiki/x?a=/b#c"), ("/", "/wiki/"), ("/?q=1", "/wiki/?q=1"), ("/wiki/x", "/wiki/x"),
    ("/wikix", "/wiki/wikix"),
    // The Host of the request keeps its scheme.
    ("https://app.example.com/x", "https://app.example.com/wiki/x"),
    ("http://APP.example.com/x", "http://APP.example.com/wiki/x"),
    ("https://app.example.com:443", "https://app.example.com:443/wiki/"),
    ("//app.example.com/x", "//app.example.com/wiki/x"),
    ("https://app.example.com/wiki/x", "https://app.example.com/wiki/x"),
    // An upstream becomes the host of the request.
    ("http://127.0.0.1:3000/x", "https://app.example.com/wiki/x"),
    ("HTTPS://127.0.0.1:3001/x?y", "https://app.example.com/wiki/x?y"),
    ("//127.0.0.1:3000/x", "https://app.example.com/wiki/x"),
    ("http://127.0.0.1:3000", "https://app.example.com/wiki/"),
    ("http://127.0.0.1:3000?a=b", "https://app.example.com/wiki/?a=b"),
    ("http://127.0.0.1:3000/wiki/x", "https://app.example.com/wiki/x"),
    ("http://127.0.0.1:3000//evil.example/", "https://app.example.com/wiki//evil.example/"),
  ])
  func addressesOfTheServiceGetThePrefix(_ value: String, _ expected: String) throws {
    #expect(try location(value, by: route(strip: "/wiki")) == expected)
    #expect(
      try answer(["content-location: \(value)"], by: route(strip: "/wiki")).fields == ["content-location: \(expected)"])
  }

  /// Attack: an address that only looks like one of the service. Without a change, it leads where the service says, and
  /// never to a path of this host.
  @Test(arguments: [
    "https://evil.example/x", "//evil.example/x", "///evil.example/x", "http://127.0.0.1:3000@evil.example/",
    "http://127.0.0.1:3000.evil.example/", "http://127.0.0.1:3000:80/", "http://127.0.0.1:3002/x",
    "http://127.0.0.1/x", "http://evil.example\\@127.0.0.1:3000/", "http://127.0.0.1:3000\\@evil.example/",
    "https://app.example.com.evil.example/", "https://app.example.com@evil.example/", "https://app.example.com:8443/x",
    "https://user:x@app.example.com/", "http://127.0.0.1%3A3000/x", "http:/x", "http:x", "https:", "x", "../x", "?x",
    "#x", "", "javascript:alert(1)", "mailto:a@b", "ftp://127.0.0.1:3000/", "http://", "http:///x", "//", "\\\\evil\\x",
    "http://[::1]:3000/x", "http://127.0.0.1:3000 /x",
  ])
  func otherAddressesStay(_ value: String) throws {
    for route in [route(strip: "/wiki"), route(base: "/base"), route(strip: "/wiki", base: "/b", host: Self.named)] {
      #expect(try location(value, by: route) == value)
    }
  }

  @Test(arguments: [
    ("/base/x?y", "/wiki/x?y", "/x?y"), ("/base", "/wiki", "/"), ("/base?q", "/wiki?q", "/?q"),
    ("/base/", "/wiki/", "/"), ("/base#f", "/wiki#f", "/#f"),
    ("http://127.0.0.1:3000/base/x", "https://app.example.com/wiki/x", "https://app.example.com/x"),
    ("http://app.example.com/base", "http://app.example.com/wiki", "http://app.example.com/"),
  ])
  func basePathIsTakenOff(_ value: String, _ withStrip: String, _ without: String) throws {
    #expect(try location(value, by: route(strip: "/wiki", base: "/base")) == withStrip)
    #expect(try location(value, by: route(base: "/base")) == without)
  }

  /// Attack: the service redirects a visitor of `/base//evil.example` to `/base//evil.example/`, which is harmless
  /// there. Without `/base`, browsers would take it for another site: they read `\` like `/`, and ignore tabs.
  @Test(arguments: [
    "//evil.example/", "/\\evil.example/", "/\t/evil.example/", "/\t\t\\evil.example/", "///evil.example",
    "//127.0.0.1:3000/",
  ])
  func noRedirectBecomesOneToAnotherSite(_ rest: String) throws {
    #expect(try location("/base" + rest, by: route(base: "/base")) == "/." + rest)
    #expect(try location("/base" + rest, by: route(strip: "/wiki", base: "/base")) == "/wiki" + rest)
    #expect(
      try location("https://app.example.com/base" + rest, by: route(base: "/base")) == "https://app.example.com" + rest)
    #expect(
      try location("http://127.0.0.1:3000/base" + rest, by: route(base: "/base")) == "https://app.example.com" + rest)
    let refreshed = try answer(["Refresh: 0; url=/base\(rest)"], by: route(base: "/base")).fields
    #expect(refreshed == ["Refresh: 0; url=/.\(rest)"])
    // With `strip`, the same path leads nowhere else than below the prefix.
    let prefixed = try location("/\\evil.example", by: route(strip: "/wiki"))
    #expect(prefixed == "/wiki/\\evil.example")
  }

  /// Whatever a service sends: a changed address leads to the host of the request, as browsers read it (WHATWG URL).
  @Test func changedAddressesLeadToTheHostOfTheRequest() throws {
    let pieces = [
      "/", "/", "\\", "\t", "base", "wiki", ".", "..", "@", ":", "?", "#", "http:", "https:", "//127.0.0.1:3000",
      "//app.example.com", "//evil.example", "evil.example", "wiki.internal", ":443", "%2F", "x", "",
    ]
    let routes = [
      route(strip: "/wiki"), route(base: "/base"), route(strip: "/wiki", base: "/base", host: Self.named),
      route(host: Self.named),
    ]
    var generator = SeededGenerator(seed: 7)
    var changed = 0
    for number in 0..<8_000 {
      let value = (0..<Int.random(in: 1...7, using: &generator)).map { _ in
        pieces.randomElement(using: &generator) ?? ""
      }.joined().trimmingCharacters(in: .whitespaces)
      let seen = try location(value, by: routes[number % routes.count])
      if seen == value { continue }
      changed += 1
      let read = seen.replacing("\t", with: "").replacing("\\", with: "/")
      if read.hasPrefix("/"), !read.hasPrefix("//") { continue }
      let rest = try #require(
        ["//", "http://", "https://"].first { read.lowercased().hasPrefix($0) }.map { read.dropFirst($0.count) },
        "\(value) became \(seen)")
      let host = HostName(String(rest.prefix { !"/?#".contains($0) }))
      #expect(host?.name == "app.example.com" && [nil, 443].contains(host?.port), "\(value) became \(seen)")
    }
    #expect(changed > 200)
  }

  /// A service that leaves its path: the client gets the address as it is, and the operator a log line.
  @Test func pathsOutsideOfTheBaseAreReported() throws {
    let route = route(strip: "/wiki", base: "/base")
    let long = "/" + String(repeating: "x", count: 300)
    let fields = [
      "Location: /other?secret=1", "Content-Location: http://127.0.0.1:3000/basement", "Refresh: 1;url=/z",
      "Set-Cookie: a=b; Path=/admin", "Location: \(long)", "Location: /wiki/known", "Location: https://evil.example/q",
      "Set-Cookie: a=b; Path=/", "Set-Cookie: a=b; Path=/wiki/c",
    ]
    let seen = try answer(fields, by: route)
    #expect(seen.fields == fields)
    #expect(
      seen.outside == [
        "Location /other", "Content-Location /basement", "Refresh /z", "Set-Cookie /admin",
        "Location \(long.prefix(100))",
      ])
    #expect(try answer(["Location: /other"], by: self.route(strip: "/wiki")).outside == [])
  }

  @Test(arguments: [
    ("5; url=/x", "5; url=/wiki/x"), ("0;URL='/x' y", "0;URL='/wiki/x' y"),
    ("1.5 , url = \"/x\"", "1.5 , url = \"/wiki/x\""),
    ("3;/x", "3;/wiki/x"), ("3 /x", "3 /wiki/x"),
    ("0; url=http://127.0.0.1:3000/x", "0; url=https://app.example.com/wiki/x"),
    ("5", "5"), ("5; url=", "5; url="), ("5; url=x", "5; url=x"), ("5; url", "5; url"), ("url=/x", "url=/x"), ("", ""),
    ("0; url=//evil.example/", "0; url=//evil.example/"), ("0; url='/x", "0; url='/wiki/x"), ("5;", "5;"),
    ("0; urls=/x", "0; urls=/x"), ("0; url='", "0; url='"),
  ])
  func refreshGetsThePrefix(_ value: String, _ expected: String) throws {
    #expect(try answer(["Refresh: \(value)"], by: route(strip: "/wiki")).fields == ["Refresh: \(expected)"])
  }

  @Test func hostHeaderAloneChangesOnlyTheHost() throws {
    for (host, own) in [(Self.named, "wiki.internal"), (.upstream, "127.0.0.1:3000"), (Self.named, "127.0.0.1:3001")] {
      let route = route(host: host)
      #expect(try location("http://\(own)/x?y", by: route) == "https://app.example.com/x?y")
      #expect(try location("https://\(own)/x", by: route, isSecure: false) == "http://app.example.com/x")
      #expect(try location("http://\(own)", by: route) == "https://app.example.com")
      for value in [
        "/x", "x", "https://app.example.com/x", "//evil.example", "/\\evil", "https://\(own).evil.example/",
      ] {
        #expect(try location(value, by: route) == value)
      }
    }
    // Without the field, the name means nothing.
    let value = "http://wiki.internal/x"
    #expect(try location(value, by: route(strip: "/wiki")) == value)
  }

  @Test func portOfTheClientStays() throws {
    let route = route(strip: "/wiki", host: Self.named)
    let seen = try answer(
      ["Location: http://wiki.internal/x", "Location: http://localhost:8080/x", "Location: http://localhost/x"],
      by: route, client: "localhost:8080", isSecure: false)
    #expect(
      seen.fields == [
        "Location: http://localhost:8080/wiki/x", "Location: http://localhost:8080/wiki/x",
        "Location: http://localhost/x",
      ])
  }

  @Test func otherFieldsStay() throws {
    let fields = [
      "Link: </x>; rel=next", "X-Location: /x", "Locations: /x", "Server: one", "Refresher: 1; url=/x",
      "Content-Locations: /x", "Set-Cookie2: a=b; Path=/x", "Access-Control-Allow-Origin: http://127.0.0.1:3000",
    ]
    #expect(try answer(fields, by: route(strip: "/wiki", base: "/base", host: Self.named)).fields == fields)
  }

  // MARK: cookies

  @Test(arguments: [
    ("a=b; Path=/", "a=b; Path=/wiki"), ("a=b;path=/x/;HttpOnly", "a=b;path=/wiki/x/;HttpOnly"),
    ("a=b; Secure; PATH = /x ; Max-Age=1", "a=b; Secure; PATH = /wiki/x ; Max-Age=1"),
    ("a=\"b\"; Path=/wiki", "a=\"b\"; Path=/wiki"), ("a=b; Path=/wikix", "a=b; Path=/wiki/wikix"),
    ("a=b; Path=/x; Path=/y", "a=b; Path=/wiki/x; Path=/wiki/y"),
    // Browsers use the path of the request for these.
    ("a=b", "a=b"), ("a=b; Path", "a=b; Path"), ("a=b; Path=", "a=b; Path="), ("a=b; Path=x", "a=b; Path=x"),
    ("a=b; Path=\"/x\"", "a=b; Path=\"/x\""), ("Path=/x; Secure", "Path=/x; Secure"), ("a=/x; b; ;", "a=/x; b; ;"),
    // Browsers refuse this name with any other path.
    ("__Host-id=1; Secure; Path=/", "__Host-id=1; Secure; Path=/"),
    ("__HOST-Http-id=1; Path=/", "__HOST-Http-id=1; Path=/"),
    ("__Secure-id=1; Secure; Path=/", "__Secure-id=1; Secure; Path=/wiki"),
  ])
  func cookiesGetThePrefix(_ value: String, _ expected: String) throws {
    #expect(try answer(["Set-Cookie: \(value)"], by: route(strip: "/wiki")).fields == ["Set-Cookie: \(expected)"])
  }

  @Test(arguments: [
    ("/base", "/wiki", "/"), ("/base/", "/wiki/", "/"), ("/base/x", "/wiki/x", "/x"), ("/", "/", "/"),
    ("/basement", "/basement", "/basement"),
  ])
  func baseIsTakenOffThePathOfCookies(_ path: String, _ withStrip: String, _ without: String) throws {
    #expect(
      try answer(["Set-Cookie: a=b; Path=\(path); Secure"], by: route(strip: "/wiki", base: "/base")).fields
        == ["Set-Cookie: a=b; Path=\(withStrip); Secure"])
    #expect(
      try answer(["Set-Cookie: a=b; Path=\(path)"], by: route(base: "/base")).fields
        == ["Set-Cookie: a=b; Path=\(without)"])
  }

  /// Browsers refuse a cookie whose Domain is not the host of the request or above it.
  @Test(arguments: [
    ("a=b; Domain=wiki.internal; Path=/", "a=b; Path=/wiki"),
    ("a=b; Path=/x;DOMAIN= .Wiki.Internal", "a=b; Path=/wiki/x"),
    ("a=b; domain=127.0.0.1; Secure", "a=b; Secure"), ("a=b; Domain=internal", "a=b; Domain=internal"),
    ("a=b; Domain=example.com", "a=b; Domain=example.com"),
    ("a=b; Domain=app.example.com", "a=b; Domain=app.example.com"),
    ("a=b; Domain=", "a=b; Domain="), ("a=b; Domain", "a=b; Domain"),
    ("a=b; Domain=x.wiki.internal", "a=b; Domain=x.wiki.internal"),
    ("Domain=wiki.internal", "Domain=wiki.internal"),
  ])
  func domainOfTheServiceIsRemoved(_ value: String, _ expected: String) throws {
    let route = route(strip: "/wiki", host: Self.named)
    #expect(try answer(["Set-Cookie: \(value)"], by: route).fields == ["Set-Cookie: \(expected)"])
  }

  /// Attack: a service on a route that changes cookies sets the session cookie of the gateway.
  @Test func gatewayCookiesAreRemovedFirst() throws {
    let fields = [
      "Set-Cookie: moongate=evil; Path=/", "Set-Cookie: =moongate=evil; Domain=wiki.internal; Path=/x",
      "Set-Cookie: __Host-moongate=evil; Path=/; Secure", "Set-Cookie: moongates=fine; Path=/",
    ]
    #expect(
      try answer(fields, by: route(strip: "/wiki", host: Self.named)).fields == [
        "Set-Cookie: moongates=fine; Path=/wiki"
      ])
  }

  // MARK: response_headers

  @Test func responseHeadersAreSetAndRemoved() throws {
    let route = route(responses: [("X-Frame-Options", "DENY"), ("Server", nil), ("Location", "/fixed")])
    let seen = try answer(
      ["SERVER: secret/1.0", "x-frame-options: ALLOWALL", "X-Frame-Options: SAMEORIGIN", "Location: /x", "X-A: 1"],
      by: route)
    #expect(seen.fields == ["X-A: 1", "X-Frame-Options: DENY", "Location: /fixed"])
    #expect(try answer([], by: route).fields == ["X-Frame-Options: DENY", "Location: /fixed"])
  }

  /// Addresses stay as they are on a route that only sets headers.
  @Test func responseHeadersChangeNothingElse() throws {
    let fields = [
      "Location: http://127.0.0.1:3000/x", "Set-Cookie: a=b; Path=/; Domain=127.0.0.1", "Refresh: 0;url=/x",
    ]
    #expect(try answer(fields, by: route(responses: [("Server", nil)])).fields == fields)
    #expect(
      try answer(["Set-Cookie: a=b", "Location: /x"], by: route(strip: "/wiki", responses: [("set-cookie", nil)]))
        .fields
        == ["Location: /wiki/x"])
  }

  /// Attack: `Connection` names a header that the route sets, so that a lenient proxy removes it.
  @Test func headersOfTheRouteAreNotRemovedByConnection() throws {
    let route = route(responses: [("X-Frame-Options", "DENY")])
    let seen = try answer(["Connection: X-Frame-Options", "X-Frame-Options: ALLOWALL"], by: route)
    #expect(seen.fields == ["X-Frame-Options: DENY"])
  }

  @Test func dateIsTheServicesOrTheRoutes() throws {
    let removing = route(responses: [("dAtE", nil)])
    for fields in [["Date: then"], []] {
      let seen = try answer(fields, by: route(responses: [("Server", nil)]))
      #expect(seen.fields == fields && seen.hasOurDate == fields.isEmpty)
      let without = try answer(fields, by: removing)
      #expect(without.fields == [] && !without.hasOurDate)
    }
  }

  @Test func routesWithoutAFieldHaveNoRewriting() {
    #expect(ServiceRewriting(.test(ports: [1])) == nil)
    #expect(ServiceRewriting(route(host: .upstream)) != nil && ServiceRewriting(route(responses: [("A", nil)])) != nil)
  }

  @Test func defaultPortIsNotPartOfTheHost() {
    for (isSecure, port, expected) in [
      (false, 80, "h"), (true, 443, "h"), (false, 443, "h:443"), (true, 80, "h:80"), (false, 3000, "h:3000"),
    ] {
      #expect(ServiceRewriting.authority(of: Upstream(isSecure: isSecure, host: "h", port: port)) == expected)
    }
  }
}
