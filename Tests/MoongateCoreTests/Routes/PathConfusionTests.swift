import Foundation
import MoongateCore
import Testing

/// No service may see a path that the rules of its route did not judge, whichever way it reads the path.
///
/// `MOONGATE_PATHS=1000000` sets the number of random paths, and `MOONGATE_PATHS_SEED` their seed.
@Suite struct PathConfusionTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["MOONGATE_PATHS"].flatMap { Int($0) } ?? 10_000
  private static let seed = environment["MOONGATE_PATHS_SEED"].flatMap { UInt64($0) } ?? 1

  private static let names = [
    "a", "a", "a", "b", "b", "ab", "ab", "admin", "admin", "auth", "api", ".well-known", "", "", ".", "..", "...", ".a",
    "a;x", ";x", "a;b;c",
    "..;x", "%61", "%2e", "%2E.", "%3bx", "a%3B", "%252F", "%25", "*", "~", "%C3%A9",
  ]
  private static let separators = [
    "/", "/", "/", "/", "//", "%2F", "%2F", "%5C", "%2f", "%5C", "%5c", "%2F%2f", "/%2F", "%5C/",
  ]
  private static let faults = ["%", "%2", "%00", "%7f", "\\", "#", "%0a"]
  private static let patterns = ["a", "b", "*", "*", "a*", "*b", "**", "**", "admin", "api", "auth"]
  private static let hosts = ["a.example.com", "b.example.com"]
  private static let methods = ["GET", "HEAD", "POST"]

  private struct Draw {
    let random: SeededRandom

    func below(_ bound: Int) -> Int { Int(random.uniform(below: UInt32(bound))) }

    func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }

    func path() -> String {
      var path = "/"
      for place in 0...below(5) {
        if place > 0 { path += one(of: PathConfusionTests.separators) }
        path += one(of: PathConfusionTests.names)
      }
      return below(50) == 0 ? path + one(of: PathConfusionTests.faults) : path
    }

    func routes() -> [Route] {
      (0...below(4)).map { line in
        let segments = (0...below(3)).map { _ in one(of: PathConfusionTests.patterns) }
        var route = Route.matching(
          "/" + segments.joined(separator: "/"), host: below(4) == 0 ? one(of: PathConfusionTests.hosts) : nil,
          methods: below(4) == 0 ? [one(of: PathConfusionTests.methods)] : nil, line: line + 1)
        route.encoded = one(of: [.all, .all, [.slash], [.slash, .backslash], [.empty], [.slash, .empty], []])
        return route
      }
    }
  }

  /// Each answer is compared with that of an oracle, so that neither too many nor too few paths are refused.
  @Test func noRouteIsWalkedAround() {
    let draw = Draw(random: SeededRandom(seed: Self.seed))
    var (passed, confused, refused) = (0, 0, 0)
    var routes: [Route] = []
    for round in 0..<Self.count {
      if round % 20 == 0 { routes = draw.routes() }
      let (path, host, method) = (draw.path(), draw.one(of: Self.hosts), draw.one(of: Self.methods))
      guard PathOracle.choices(in: path) <= 9 else { continue }
      let oracle = PathOracle(routes: routes)
      let right = oracle.answer(path, host: host, method: method)
      let found = RouteMatcher(RouteTable(routes: routes)).find(path, host: host, method: method)
      let isRight =
        switch found {
        case .route(let index): right == .route(index)
        case .none: right == .none
        case .refused: right == .refused
        }
      #expect(
        isRight, "\(method) \(host)\(path): \(found), not \(right): \(routes.map(\.path.text)) \(routes.map(\.encoded))"
      )
      guard case .route(let index) = found else {
        refused += 1
        continue
      }
      passed += 1
      let readings = PathOracle.readings(of: path)
      if readings.count > 1 { confused += 1 }
      #expect(!readings.contains { oracle.first($0, host, method).map { $0 < index } ?? false }, "\(path)")
      #expect(!readings.joined().contains { $0 == [0x2e] || $0 == [0x2e, 0x2e] }, "\(path)")
    }
    // The random paths are neither all refused nor all plain.
    #expect(
      passed > Self.count / 20 && refused > Self.count / 20 && confused > Self.count / 100, "\(passed) \(confused)")
  }

  /// Attack: 2¹⁰⁰⁰⁰ readings of one path.
  @Test func manyEncodedSlashesTakeLinearTime() {
    var route = Route.matching("/**", line: 3)
    route.encoded = .all
    let matcher = RouteMatcher(
      RouteTable(routes: [.matching("/**/a*b*c/x", line: 1), .matching("/*/*/**/y*", line: 2), route]))
    let path = "/a" + String(repeating: "%2Fab", count: 5_000) + String(repeating: "//", count: 2_500) + "z"
    let clock = ContinuousClock()
    let taken = clock.measure {
      #expect(matcher.find(path, host: "a.example.com", method: "GET") == .route(2))
    }
    // A fraction of a millisecond for each of the 15,000 bytes would be far too much.
    #expect(taken < .seconds(5), "\(taken)")
  }
}

extension Route {
  /// A route that only matches.
  static func matching(_ path: String, host: String? = nil, methods: Set<String>? = nil, line: Int = 1) -> Route {
    let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    return Route(
      host: host,
      path: PathPattern(text: path, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) }),
      methods: methods, upstreams: [], isOpen: false, flow: "login", requirement: nil, decide: nil,
      timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: line))
  }
}
