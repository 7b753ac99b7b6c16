import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

extension Route {
  /// The route with `encoded`.
  func taking(_ bytes: EncodedPathBytes) -> Route {
    var route = self
    route.encoded = bytes
    return route
  }
}

/// Services whose names contain slashes, behind routes with `encoded`.
@Suite(.timeLimit(.minutes(2))) struct EncodedPathTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  /// npm, RabbitMQ, GitLab, Matrix and others.
  static let paths = [
    "/@scope%2fname", "/@scope%2Fname/-/name-1.0.0.tgz?x=%2F", "/api/queues/%2F/name", "/api/exchanges/%2f/amq.direct",
    "/api/v4/projects/group%2Fproject/repository/files/lib%2fa.rb/raw?ref=main",
    "/_matrix/client/v3/rooms/!abc:example.org/state/m.room%2Fname/",
    "/_matrix/client/v3/directory/room/%23a%2Fb:example.org", "/files/a%5Cb%5cc", "/web/2020/http://example.com//x",
    "/a//", "/a/%2F%2f//%5c", "/%2F", "/a%2Fb;v=1%2F2/c", "/%252F%2F",
  ]

  @Test func pathsAreForwardedByteForByte() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port]).taking(.all)])
    for path in Self.paths {
      let answer = try await gateway.talk("PUT \(path) HTTP/1.1\r\nHost: localhost\r\n\(Self.cookie)\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 200"), "\(path): \(answer)")
      #expect(upstream.all.contains("PUT \(path) HTTP/1.1\r\nHost: localhost\r\n"), "\(path)")
    }
    let absolute = try await gateway.talk(
      "GET http://localhost/@scope%2fname HTTP/1.1\r\nHost: localhost\r\n\(Self.cookie)\r\n")
    #expect(absolute.hasPrefix("HTTP/1.1 200") && upstream.all.contains("GET /@scope%2fname HTTP/1.1\r\n"))
    await gateway.stop()
  }

  /// Without the field, nothing changes.
  @Test func pathsAreRefusedOnOtherRoutes() async throws {
    let upstream = try await RecordingUpstream()
    for routes in [
      [Route.test(ports: [upstream.port], open: true)],
      [.test(ports: [upstream.port], open: true), .test(ports: [upstream.port], open: true).taking(.all)],
    ] {
      let gateway = try await TestGateway(routes: routes)
      for path in Self.paths {
        let answer = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains("\"code\":\"bad_request\""), "\(path): \(answer)")
        #expect(!answer.contains("Connection: close"), "the next request is clear")
      }
      await gateway.stop()
    }
    #expect(upstream.all == "")
  }

  /// Attack: a service that decodes the path before it looks for its own routes.
  @Test func earlierRoutesAndOwnPathsAreNotWalkedAround() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      .test("/admin/**", ports: [upstream.port]), .test("/*/secret", ports: [upstream.port]).taking(.slash),
      .test(ports: [upstream.port], open: true).taking(.all),
    ])
    for path in [
      "/admin%2Fusers", "/%61dmin%5cusers", "/%2Fadmin/users", "/x%2F..%2Fadmin", "/x//secret", "/x%2fsecret",
      "//admin/users", "//localhost/admin", "/auth%2Flogin", "/auth//login", "/api%2Fauth/session",
      "/.well-known%2Fmoongate%2Fkeys", "/auth/forward/envoy%2Fx",
    ] {
      let answer = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(Self.cookie)\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 400"), "\(path): \(answer)")
    }
    #expect(upstream.all == "")
    // Plainly, the same names lead to their own routes, and the gateway's own paths to the gateway.
    #expect(try await gateway.talk("GET /admin/users HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix("HTTP/1.1 401"))
    #expect(try await gateway.talk("GET /auth/login HTTP/1.1\r\nHost: localhost\r\n\r\n").contains("own GET"))
    await gateway.stop()
  }

  /// The operator finds out which route to change, and why another one decides.
  @Test func refusalNamesTheRoute() async throws {
    let gateway = try await TestGateway(routes: [
      .test("/admin/**", ports: [1], open: true), .test("/files/*", ports: [1], open: true).taking(.slash),
      .test("/x/**", ports: [1], open: true).taking(.all), .test(ports: [1], open: true).taking(.slash),
    ])
    for (path, reason) in [
      ("/files/a%5Cb", "the path contains %5C: the route at routes.lua:1 would need `encoded = { \"backslash\" }`"),
      ("/admin%2Fb", "where %2F only separates names, the path matches the earlier route at routes.lua:1"),
      ("/auth%2Fb", "where %2F only separates names, the path is one of the gateway's own"),
      ("/x/..%2Fb", RequestPath.fault),
    ] {
      let answer = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      let id = try #require(answer.range(of: "dc_[A-Za-z0-9_-]+", options: .regularExpression))
      let event = try await gateway.audit.event(DecisionID(text: String(answer[id])))
      #expect(event?.detail["reason"] == reason && event?.detail["path"] == path)
      #expect(!answer.contains("routes.lua"), "clients learn nothing about routes")
    }
    await gateway.stop()
  }

  @Test func decideSeesThePathAsSent() async throws {
    let upstream = try await RecordingUpstream()
    let decide = FunctionName("routes[1].decide")
    let gateway = try await TestGateway(
      routes: [.test(ports: [upstream.port], decide: decide).taking(.all)],
      verdicts: [decide: { $0.request?.path == "/@scope%2fname//x" ? .allow : .deny("not_today") }])
    let ask = { (path: String) in
      try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(Self.cookie)\r\n")
    }
    #expect(try await ask("/@scope%2fname//x").hasPrefix("HTTP/1.1 200"))
    #expect(try await ask("/@scope%2Fname//x").hasPrefix("HTTP/1.1 403"))
    await gateway.stop()
  }

  /// Attack: services that decode, merge and cut paths in the usual ways get random paths. None finds one that another
  /// route judges, and each gets the bytes that the client sent.
  @Test func confusedServicesSeeOnlyPathsOfTheirRoute() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      .test("/in/**", ports: [1]), .test("/*/closed/*", ports: [1]),
      .test(ports: [upstream.port], open: true).taking(.all),
    ])
    let random = SeededRandom(seed: 47)
    let names = ["a", "in", "closed", "%69n", "x;y", "b", "auth", "..", "", "%2e%2e", "in;z"]
    let separators = ["/", "/", "%2F", "%2f", "%5C", "//", "/%2F"]
    let client = try await RawClient(port: gateway.port)
    var sent: Set<String> = []
    for _ in 0..<400 {
      var path = "/"
      for place in 0...Int(random.uniform(below: 4)) {
        path += (place > 0 ? random.pick(separators) ?? "" : "") + (random.pick(names) ?? "")
      }
      sent.insert(path)
      try await client.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      _ = try await client.answers()
    }
    let seen = upstream.all.components(separatedBy: "\r\n").filter { $0.hasPrefix("GET ") }.map {
      String($0.dropFirst("GET ".count).dropLast(" HTTP/1.1".count))
    }
    #expect(seen.count > 40 && seen.contains { $0.contains("%2F") } && seen.contains { $0.contains("//") })
    for path in seen {
      #expect(sent.contains(path))
      for names in Self.readings(path) {
        let isJudgedByAnother =
          names.first == "in" || names.count == 3 && names[1] == "closed" || names.first == "auth"
        #expect(!isJudgedByAnother && !names.contains(".."), "\(path) as \(names)")
      }
    }
    await gateway.stop()
  }

  /// How services read a path: names by separators, decoded before or after, with empty names or without.
  private static func readings(_ path: String) -> [[String]] {
    let decoded = path.removingPercentEncoding ?? path
    let cut = { (name: Substring) in String(name.prefix { $0 != ";" }) }
    let late = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
      cut(Substring(String($0).removingPercentEncoding ?? String($0)))
    }
    let early = decoded.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(cut)
    let windows = decoded.dropFirst().split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.map(cut)
    return [late, early, windows].flatMap { [$0, $0.filter { !$0.isEmpty }] }
  }
}
