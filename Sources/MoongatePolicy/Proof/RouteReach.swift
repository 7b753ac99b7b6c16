import MoongateCore

/// An example of a request that a route handles.
package struct ExampleRequest: Sendable, Hashable {
  package let method: String
  /// Nil: any host that no route names.
  package let host: String?
  package let path: String

  /// The request in sentences, such as `GET /admin`.
  var text: String { "\(method) \(host ?? "")\(path)" }
}

/// Finds the routes that handle requests of a pattern. The first matching route applies, so earlier routes can shadow a
/// route.
struct RouteReach {
  let routes: [Route]
  let budget: ProofBudget

  /// For each route that handles a request with a path of the pattern, the shortest such request.
  func routes(for pattern: PathPattern, host: String?) throws(ProofBudget.Exhausted) -> [(
    route: Int, request: ExampleRequest
  )] {
    var found: [(route: Int, request: ExampleRequest)] = []
    for index in routes.indices {
      if let request = try example(of: index, pattern, host: host) { found.append((index, request)) }
    }
    return found
  }

  private func example(of index: Int, _ pattern: PathPattern, host wanted: String?) throws(ProofBudget.Exhausted)
    -> ExampleRequest?
  {
    let route = routes[index]
    if let host = route.host, let wanted, host != wanted { return nil }
    for host in hosts(of: route, wanted) {
      for method in methods(of: route) {
        let rivals = routes[..<index].filter { ($0.host == nil || $0.host == host) && $0.takes(method) }
        if let path = try path(in: [pattern, route.path], outside: rivals.map(\.path)) {
          return ExampleRequest(method: method, host: host, path: path)
        }
      }
    }
    return nil
  }

  /// The distinguishable hosts of the route and the guarantee.
  private func hosts(of route: Route, _ wanted: String?) -> [String?] {
    if let host = route.host ?? wanted { return [host] }
    return [nil] + Set(routes.compactMap(\.host)).sorted().map(Optional.some)
  }

  /// The distinguishable methods of the route.
  private func methods(of route: Route) -> [String] {
    let named = Set(routes.flatMap { $0.methods ?? [] }).union(["GET", "POST"])
    // A method that no route names stands for all other methods.
    let other = ["PURGE", "REPORT", "MERGE"].first { !named.contains($0) } ?? "OTHER"
    return (["GET", "POST"] + named.subtracting(["GET", "POST"]).sorted() + [other]).filter { route.takes($0) }
  }

  /// The state of reading a path.
  private struct Place: Hashable {
    var within: [PatternAutomaton.States]
    var outside: [PatternAutomaton.States]
    /// The number of bytes of the current segment, up to 3, if all of them are dots; nil otherwise.
    var dots: Int?
  }

  /// The shortest path that matches all of the first patterns and none of the others.
  private func path(in wanted: [PathPattern], outside: [PathPattern]) throws(ProofBudget.Exhausted) -> String? {
    let within = wanted.map(PatternAutomaton.init)
    let others = outside.map(PatternAutomaton.init)
    let slash = UInt8(ascii: "/")
    let named = within.reduce(into: Set<UInt8>()) { $0.formUnion($1.bytes) }.union(others.flatMap(\.bytes)).union([
      slash
    ])
    let other = (Array("xyzabcdefghijklmnopqrstuvw0123456789-_~".utf8)).first { !named.contains($0) }
    let alphabet = [other].compactMap(\.self) + named.sorted()
    var seen: Set<Place> = []
    var level: [(Place, [UInt8])] = [(Place(within: within.map(\.start), outside: others.map(\.start), dots: nil), [])]
    while !level.isEmpty {
      var next: [(Place, [UInt8])] = []
      for (place, bytes) in level {
        let isWhole = !bytes.isEmpty && ![1, 2].contains(place.dots)
        if isWhole, zip(within, place.within).allSatisfy({ $0.accepts($1) }),
          !zip(others, place.outside).contains(where: { $0.accepts($1) })
        {
          return String(decoding: bytes, as: UTF8.self)
        }
        for byte in bytes.isEmpty ? [slash] : alphabet {
          // Requests with `//`, `.` and `..` are refused before routing.
          if byte == slash, !bytes.isEmpty, place.dots.map({ $0 < 3 }) ?? false { continue }
          let reached = Place(
            within: zip(within, place.within).map { $0.step($1, byte) },
            outside: zip(others, place.outside).map { $0.step($1, byte) },
            dots: byte == slash ? 0 : byte == UInt8(ascii: ".") ? place.dots.map { min(3, $0 + 1) } : nil)
          guard !reached.within.contains(where: \.isEmpty), seen.insert(reached).inserted else { continue }
          try budget.spend()
          next.append((reached, bytes + [byte]))
        }
      }
      level = next
    }
    return nil
  }
}

extension Route {
  /// RFC 9110, section 9.3.2: HEAD is handled like GET.
  fileprivate func takes(_ method: String) -> Bool {
    guard let methods else { return true }
    return methods.contains(method) || (method == "HEAD" && methods.contains("GET"))
  }
}
