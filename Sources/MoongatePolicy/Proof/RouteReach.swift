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
        let search = PathSearch(pattern, at: route, after: rivals.map(\.path))
        if let path = try search.shortest(spending: budget) {
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
}

extension Route {
  /// RFC 9110, section 9.3.2: HEAD is handled like GET.
  fileprivate func takes(_ method: String) -> Bool {
    guard let methods else { return true }
    return methods.contains(method) || (method == "HEAD" && methods.contains("GET"))
  }
}
