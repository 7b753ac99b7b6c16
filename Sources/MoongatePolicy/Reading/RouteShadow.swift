import MoongateCore

/// Finds routes that can never match because earlier routes match all their requests.
enum RouteShadow {
  /// The earlier route that shadows this one, or the first of several that shadow it together, one for each method.
  static func earliest(over route: Route, among earlier: ArraySlice<Route>) -> SourceLocation? {
    let candidates = earlier.filter {
      ($0.host == nil || $0.host == route.host) && covers($0.path.segments, route.path.segments)
    }
    guard let methods = route.methods else { return candidates.first { $0.methods == nil }?.location }
    let covering = methods.map { method in candidates.first { accepts($0, method) } }
    return covering.contains { $0 == nil } ? nil : covering.first??.location
  }

  private static func accepts(_ route: Route, _ method: String) -> Bool {
    guard let methods = route.methods else { return true }
    return methods.contains(method) || (method == "HEAD" && methods.contains("GET"))
  }

  /// Whether `wide` matches every path that `narrow` matches. Only a wildcard of `wide` can match a wildcard of
  /// `narrow`, so a positive result is always correct.
  static func covers(_ wide: [PathPattern.Segment], _ narrow: [PathPattern.Segment]) -> Bool {
    // For each suffix of `narrow`, whether the rest of `wide` covers it, computed from the end.
    var reachable = [Bool](repeating: false, count: narrow.count + 1)
    reachable[narrow.count] = true
    for segment in wide.reversed() {
      var next = [Bool](repeating: false, count: narrow.count + 1)
      switch segment {
      case .anySegments:
        var any = false
        for index in stride(from: narrow.count, through: 0, by: -1) {
          any = any || reachable[index]
          next[index] = any
        }
      case .glob(let glob):
        for index in narrow.indices {
          if case .glob(let inner) = narrow[index], reachable[index + 1] { next[index] = covers(glob, inner) }
        }
      }
      reachable = next
    }
    return reachable[0]
  }

  /// The same within a segment, where `*` matches any bytes.
  private static func covers(_ wide: [UInt8], _ narrow: [UInt8]) -> Bool {
    let star = UInt8(ascii: "*")
    var reachable = [Bool](repeating: false, count: narrow.count + 1)
    reachable[narrow.count] = true
    for byte in wide.reversed() {
      var next = [Bool](repeating: false, count: narrow.count + 1)
      if byte == star {
        var any = false
        for index in stride(from: narrow.count, through: 0, by: -1) {
          any = any || reachable[index]
          next[index] = any
        }
      } else {
        for index in narrow.indices where narrow[index] == byte && byte != star { next[index] = reachable[index + 1] }
      }
      reachable = next
    }
    return reachable[0]
  }
}
