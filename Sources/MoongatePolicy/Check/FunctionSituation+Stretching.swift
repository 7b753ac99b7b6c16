import MoongateCore

/// Facts with long texts.
extension FunctionSituation {
  /// Facts in which one text is as long as clients may send it.
  struct Stretched {
    /// The fact as in scripts.
    let fact: String
    let length: Int
    let facts: Facts
  }

  /// The length of the texts: a request with one of them passes through all proxies.
  private static let length = 4_000
  /// What a text is made of: many segments, one long segment, many words.
  private static let parts = ["a/", "a", "a=1&", "a "]

  /// - Parameter slots: the facts that the function reads.
  func stretched(_ facts: Facts, _ slots: Set<FactSlot>) -> [Stretched] {
    var all: [Stretched] = []
    func add(_ fact: String, _ text: String, _ set: (inout Facts, String) -> Void) {
      var other = facts
      set(&other, text)
      all.append(Stretched(fact: fact, length: text.utf8.count, facts: other))
    }
    if slots.contains(.requestPath), facts.request != nil {
      for path in longPaths { add("f.request.path", path) { $0.request?.path = $1 } }
    }
    if slots.contains(.requestQuery), facts.request != nil {
      for text in longTexts { add("f.request.query", text) { $0.request?.query = $1 } }
    }
    if slots.contains(.clientUserAgent) {
      for text in longTexts { add("f.client.user_agent", text) { $0.client.userAgent = $1 } }
    }
    return all
  }

  private var longTexts: [String] {
    ([""] + literals.texts.map(Self.literalBeginning).filter { !$0.isEmpty }).flatMap { beginning in
      Self.parts.map { beginning + Self.filled(with: $0) }
    }
  }

  /// Long paths of the route, some of which begin as the patterns of the file do.
  private var longPaths: [String] {
    guard let route else { return [] }
    let matcher = RouteMatcher(RouteTable(routes: [route]))
    let beginnings = literals.texts.map(Self.literalBeginning).filter { $0.hasPrefix("/") }
    let all = ["a/", "a"].flatMap { part in
      [route.path.text.replacing("**", with: Self.filled(with: part)).replacing("*", with: "a")]
        + beginnings.map { $0 + Self.filled(with: part) }
    }
    let method = Array((route.methods?.sorted().first ?? "GET").utf8)
    return all.filter { path in
      let bytes = Array(path.utf8)
      return path.utf8.count >= Self.length
        && matcher.match(host: route.host ?? "", path: bytes.span, method: method.span) != nil
    }
  }

  /// The text before the first magic character of a Lua pattern.
  private static func literalBeginning(_ pattern: String) -> String {
    String((pattern.hasPrefix("^") ? pattern.dropFirst() : pattern[...]).prefix { !"^$()%.[]*+-?".contains($0) })
  }

  private static func filled(with part: String) -> String {
    // Without a slash at its end.
    String(String(repeating: part, count: length / part.utf8.count).prefix(length - 1)) + "a"
  }
}
