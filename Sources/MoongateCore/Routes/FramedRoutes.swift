/// The sites that may show services, and the sign-in that leads to them, in a frame (`Route.frames`).
extension RouteTable {
  private static let own = Array("/auth".utf8)

  /// Whether a route may be shown in a frame.
  package var hasFrames: Bool { routes.contains { !$0.frames.isEmpty } }

  /// The origins of all these sites, sorted.
  package var allFrames: [String] { Set(routes.flatMap(\.frames)).sorted() }

  /// The origins of the sites that may show the page at an address in a frame.
  /// - Parameters:
  ///   - address: a path from the root, or an address of http or https, with or without a query.
  ///   - host: the host of a path from the root, as in `HostName.name`.
  /// - Returns: none if no route, or one without `frames`, serves the address, or if it is one of the gateway's own.
  package func frames(at address: String, host: String) -> [String] {
    guard hasFrames else { return [] }
    var (host, path) = (host, address[...])
    if !address.hasPrefix("/") {
      guard let target = WebAddress(address) else { return [] }
      (host, path) = (target.origin.host, target.tail)
    }
    var raw = Array(path.prefix { $0 != "?" && $0 != "#" }.utf8)
    if raw.isEmpty { raw = [UInt8(ascii: "/")] }
    guard let judged = RequestPath(raw.span) else { return [] }
    let decoded = judged.decoded ?? raw
    if decoded.starts(with: Self.own), decoded.count == Self.own.count || decoded[Self.own.count] == raw[0] {
      return []
    }
    let method = Array("GET".utf8)
    return RouteMatcher(self).match(host: host, path: decoded.span, method: method.span).map { routes[$0].frames } ?? []
  }
}
