/// What a path as clients send it leads to.
package enum RouteFinding: Sendable, Equatable {
  /// The index of the route in the table.
  case route(Int)
  /// No route matches.
  case none
  /// The request is answered with 400. The reason is for the operator.
  case refused(String)
}

/// The one entrance for paths as clients send them.
extension RouteMatcher {
  /// Finds the route of a path.
  /// - Parameters:
  ///   - raw: as received, without the query. Empty means `/`.
  ///   - host: canonical, as in `HostName.name`.
  ///   - method: as sent.
  package func find(_ raw: String, host: String, method: String) -> RouteFinding {
    let raw = raw.isEmpty ? Self.root : Array(raw.utf8)
    guard let path = RequestPath(raw.span, taking: .all) else { return .refused(RequestPath.fault) }
    return find(path, raw: raw.span, host: host, method: Array(method.utf8).span)
  }

  /// Finds the route of a path that was read before.
  /// - Parameters:
  ///   - path: made from `raw`.
  ///   - raw: as received, not empty.
  package func find(
    _ path: RequestPath, raw: Span<UInt8>, host: String, method: Span<UInt8>
  ) -> RouteFinding {
    guard path.encoded.isEmpty else { return judge(path, raw, host, method) }
    let index =
      if let decoded = path.decoded {
        match(host: host, path: decoded.span, method: method)
      } else {
        match(host: host, path: raw, method: method)
      }
    return index.map { .route($0) } ?? .none
  }

  /// Judges a path with bytes that need `encoded`.
  ///
  /// Attack: `/admin%2Fusers` on a route that takes `%2F`. The service decodes the path before it looks for its own
  /// routes, and serves `/admin/users`, which an earlier route refuses. Therefore no reading of the path may match an
  /// earlier route or a path of the gateway, whichever of its bytes are read as separators.
  private func judge(
    _ path: RequestPath, _ raw: Span<UInt8>, _ host: String, _ method: Span<UInt8>
  ) -> RouteFinding {
    // Most gateways have no route with `encoded`.
    guard encoded.isSuperset(of: path.encoded) else { return .refused(RequestPath.fault) }
    guard let decoded = path.decoded, let index = match(host: host, path: decoded.span, method: method) else {
      return .none
    }
    let missing = path.encoded.subtracting(routes[index].encoded)
    guard missing.isEmpty else {
      return .refused(
        "the path contains \(missing.spelling): the route at \(routes[index].location) would need "
          + "`encoded = { \(missing.names) }`")
    }
    let readings = PathReadings(raw)
    let separators = "where \(path.encoded.spelling) only separates names"
    guard !Self.ownPaths.contains(where: readings.contain(pathOf:)) else {
      return .refused("\(separators), the path is one of the gateway's own")
    }
    let earlier = routes.indices.prefix(index).first { earlier in
      accepts(earlier, host: host, method: method) && readings.contain(pathOf: automata[earlier])
    }
    guard let earlier else { return .route(index) }
    return .refused("\(separators), the path matches the earlier route at \(routes[earlier].location)")
  }

  private static let root = [UInt8(ascii: "/")]

  /// The paths that the gateway serves itself, or may serve.
  private static let ownPaths = [["auth"], ["api", "auth"], [".well-known"]].map { names in
    let segments = names.map { PathPattern.Segment.glob(Array($0.utf8)) } + [.anySegments]
    return PatternAutomaton(PathPattern(text: "/\(names.joined(separator: "/"))/**", segments: segments))
  }
}

extension EncodedPathBytes {
  package static let all: EncodedPathBytes = [.slash, .backslash, .empty]

  /// What `%2F` and `%5C` are in a decoded path: bytes that occur in no other path, and that only `*` and `**` match.
  static let slashMark: UInt8 = 0
  static let backslashMark: UInt8 = 1

  /// - Returns: nil for a byte that is no separator to any program.
  static func mark(of byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "/"): slashMark
    case UInt8(ascii: "\\"): backslashMark
    default: nil
    }
  }

  /// Whether some programs read the decoded byte as the end of a name.
  package static func isSeparator(_ byte: UInt8) -> Bool { mark(of: byte) != nil }

  private static let table: [(bytes: EncodedPathBytes, name: String, spelling: String)] = [
    (.slash, "slash", "%2F"), (.backslash, "backslash", "%5C"), (.empty, "empty", "//"),
  ]

  /// As in a path, for people: `%2F and //`.
  fileprivate var spelling: String {
    Self.table.filter { contains($0.bytes) }.map(\.spelling).joined(separator: " and ")
  }

  /// As in routes.lua: `"slash", "empty"`.
  fileprivate var names: String {
    Self.table.filter { contains($0.bytes) }.map { "\"\($0.name)\"" }.joined(separator: ", ")
  }
}
