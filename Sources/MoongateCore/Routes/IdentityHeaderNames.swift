extension RouteTable {
  /// The names of all headers that state something about a user on any route: the usual ones first, then those that
  /// `identity` of a route names, in alphabetical order. Names that differ only in case are listed once.
  ///
  /// A forward-auth answer has all of them, empty if the route does not state it, so that a proxy which copies them
  /// replaces those of the client.
  package var identityHeaderNames: [String] {
    let usual = ServiceIdentity.Statement.allCases.map(\.usualHeader)
    var seen = Set(usual.map { $0.lowercased() })
    let named = routes.flatMap { $0.identity.headers.values.map(\.name) }
      .sorted { ($0.lowercased(), $0) < ($1.lowercased(), $1) }
    return usual + named.filter { seen.insert($0.lowercased()).inserted }
  }
}
