import MoongateCore

/// Finds routes that contradict each other.
struct RouteChecks {
  let routes: [Route]
  let problems: Problems

  func check() {
    warnOfTrustedNames()
    // The warnings stop where the budget ends.
    try? warnOfAmbiguousPaths(ProofBudget(5_000))
  }

  // MARK: identity

  /// Warns of a header that one route sets to a fixed value, and by which another one states who the user is.
  ///
  /// Attack: one service behind both routes. Through the first one, every user is the same one.
  private func warnOfTrustedNames() {
    for (index, route) in routes.enumerated() {
      for (statement, header) in route.identity.headers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        let folded = ReservedHeaders.folded(header.name)
        let other = routes.indices.first { other in
          other != index && routes[other].headers.contains { ReservedHeaders.folded($0.name) == folded }
        }
        guard let other else { continue }
        problems.warn(
          route.location, "identity.\(statement.rawValue)",
          "`headers` at \(routes[other].location) sets `\(header.name)` to the same value for all users: if both routes lead to one service, name another header"
        )
      }
    }
  }

  // MARK: encoded

  /// In bytes. The work for one state of a pattern grows with its length.
  private static let longestPattern = 128

  /// Warns of routes with `encoded` some of whose paths another route matches if a service reads the encoded characters
  /// as separators.
  private func warnOfAmbiguousPaths(_ budget: ProofBudget) throws(ProofBudget.Exhausted) {
    let candidates = routes.filter { $0.path.text.utf8.count <= Self.longestPattern }
    for (index, route) in candidates.enumerated() where !route.encoded.isEmpty {
      try warnOfRefusedPaths(route, candidates[..<index], budget)
      try warnOfUnjudgedPaths(route, candidates[(index + 1)...], budget)
    }
  }

  /// Requests with a path that an earlier route matches in another reading get 400. If that route demands more, this
  /// is what its order is for (`warnOfUnjudgedPaths`).
  private func warnOfRefusedPaths(
    _ route: Route, _ earlier: ArraySlice<Route>, _ budget: ProofBudget
  ) throws(ProofBudget.Exhausted) {
    for other in earlier where other.sharesRequests(with: route) && other.demandsNoMore(than: route) {
      let isPassed = other.encoded.isSuperset(of: route.encoded)
      let path = try AmbiguousPath(route, other).shortest(spending: budget) { match in
        match.isOther && !(isPassed && match.isOtherAsSent)
      }
      guard let path else { continue }
      problems.warn(
        route.location, "encoded",
        "a path such as \"\(path.sent)\" is refused with 400, because \(other.location) matches it if it is read as \"\(path.decoded)\". If the service needs such paths, make one of the two patterns narrower"
      )
      return
    }
  }

  /// Attack: a service that decodes a path before it looks for a page. The route passes `/files/admin%2Fkeys`, and the
  /// service answers with `/files/admin/keys`, whose own route was never asked.
  private func warnOfUnjudgedPaths(
    _ route: Route, _ later: ArraySlice<Route>, _ budget: ProofBudget
  ) throws(ProofBudget.Exhausted) {
    for other in later where other.sharesRequests(with: route) && !other.demandsNoMore(than: route) {
      let path = try AmbiguousPath(route, other).shortest(spending: budget) { $0.isOther && !$0.isOwn }
      guard let path else { continue }
      problems.warn(
        route.location, "encoded",
        "the route passes \"\(path.sent)\" on, and \(other.location) has the rules for \"\(path.decoded)\", which a service may take it for: put that route first, so that such a request is refused with 400"
      )
      return
    }
  }
}

extension Route {
  /// Whether the hosts and methods of both routes overlap.
  fileprivate func sharesRequests(with other: Route) -> Bool {
    guard host == nil || other.host == nil || host == other.host else { return false }
    guard let methods, let others = other.methods else { return true }
    return !methods.isDisjoint(with: others)
  }

  /// Whether each request that the other route accepts would be accepted here.
  fileprivate func demandsNoMore(than other: Route) -> Bool {
    if isOpen { return true }
    guard !other.isOpen, decide == nil, tokens == other.tokens, openNetworks == other.openNetworks else { return false }
    return (requirement == nil || requirement == other.requirement) && (groups == nil || groups == other.groups)
  }
}

/// A path that one route passes on with encoded characters, and that another route matches in another reading.
private struct AmbiguousPath {
  /// What a path matches.
  struct Match {
    /// Whether the route with `encoded` matches the path in the other reading as well.
    let isOwn: Bool
    /// Whether the other route matches it in the other reading, and as it is sent.
    let isOther: Bool
    let isOtherAsSent: Bool
  }

  /// A part of a path: how it is sent, and how each reading takes it; nil: as nothing.
  private struct Symbol {
    let text: String
    let sent: UInt8
    let decoded: UInt8?
    var isAmbiguous = false
  }

  private struct Place: Hashable {
    var own: PatternAutomaton.States
    var ownDecoded: PatternAutomaton.States
    var other: PatternAutomaton.States
    var otherDecoded: PatternAutomaton.States
    /// Whether an encoded character or `//` is in the path.
    var isAmbiguous = false
    var isAfterSlash = false
    /// The same in the other reading.
    var isAfterSeparator = false
  }

  private static let slash = UInt8(ascii: "/")
  /// An encoded character as a part of a name: a byte that no pattern contains.
  private static let unnamed: UInt8 = 1

  private let own: PatternAutomaton
  private let other: PatternAutomaton
  private let symbols: [Symbol]

  init(_ route: Route, _ other: Route) {
    own = PatternAutomaton(route.path)
    self.other = PatternAutomaton(other.path)
    let named = own.bytes.union(self.other.bytes)
    let filler = Array("xyzabcdefghijklmnopqrstuvw".utf8).first { !named.contains($0) }
    var symbols = ([filler].compactMap(\.self) + named.union([Self.slash]).sorted()).map {
      Symbol(text: String(decoding: [$0], as: UTF8.self), sent: $0, decoded: $0)
    }
    let encoded: [(EncodedPathBytes, String)] = [(.slash, "%2F"), (.backslash, "%5C")]
    for (byte, text) in encoded where route.encoded.contains(byte) {
      symbols.append(Symbol(text: text, sent: Self.unnamed, decoded: Self.slash, isAmbiguous: true))
    }
    if route.encoded.contains(.empty) {
      symbols.append(Symbol(text: "/", sent: Self.slash, decoded: nil, isAmbiguous: true))
    }
    self.symbols = symbols
  }

  /// - Parameter isWanted: whether to take a path that the route with `encoded` matches as it is sent.
  /// - Returns: the path of the fewest parts in both readings; nil if there is none.
  func shortest(
    spending budget: ProofBudget, _ isWanted: (Match) -> Bool
  ) throws(ProofBudget.Exhausted) -> (sent: String, decoded: String)? {
    var seen: Set<Place> = []
    let start = Place(own: own.start, ownDecoded: own.start, other: other.start, otherDecoded: other.start)
    var level: [(place: Place, path: [Symbol])] = [(start, [])]
    while !level.isEmpty {
      var next: [(place: Place, path: [Symbol])] = []
      for (place, path) in level {
        let match = Match(
          isOwn: own.accepts(place.ownDecoded), isOther: other.accepts(place.otherDecoded),
          isOtherAsSent: other.accepts(place.other))
        if place.isAmbiguous, own.accepts(place.own), isWanted(match) {
          let decoded = path.compactMap { $0.decoded == Self.slash ? "/" : $0.decoded == nil ? nil : $0.text }
          return (path.map(\.text).joined(), decoded.joined())
        }
        for symbol in symbols where canFollow(symbol, path.count, place) {
          let reached = step(place, symbol)
          guard !reached.own.isEmpty, !reached.otherDecoded.isEmpty, seen.insert(reached).inserted else { continue }
          try budget.spend()
          next.append((reached, path + [symbol]))
        }
      }
      level = next
    }
    return nil
  }

  /// A path begins with one `/`. No separator follows another one, except for the second one of `//`.
  private func canFollow(_ symbol: Symbol, _ count: Int, _ place: Place) -> Bool {
    if count == 0 { return symbol.sent == Self.slash && !symbol.isAmbiguous }
    guard let decoded = symbol.decoded else { return place.isAfterSlash && count > 1 }
    return decoded != Self.slash || !place.isAfterSeparator
  }

  private func step(_ place: Place, _ symbol: Symbol) -> Place {
    Place(
      own: own.step(place.own, symbol.sent),
      ownDecoded: symbol.decoded.map { own.step(place.ownDecoded, $0) } ?? place.ownDecoded,
      other: other.step(place.other, symbol.sent),
      otherDecoded: symbol.decoded.map { other.step(place.otherDecoded, $0) } ?? place.otherDecoded,
      isAmbiguous: place.isAmbiguous || symbol.isAmbiguous, isAfterSlash: symbol.sent == Self.slash,
      isAfterSeparator: symbol.decoded ?? Self.slash == Self.slash)
  }
}
