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
    let raw = String(path.prefix { $0 != "?" && $0 != "#" })
    guard !Self.isOwn(raw), case .route(let index) = RouteMatcher(self).find(raw, host: host, method: "GET") else {
      return []
    }
    return routes[index].frames
  }

  /// Whether the gateway itself serves the path, which a route may match all the same.
  private static func isOwn(_ raw: String) -> Bool {
    let bytes = Array(raw.utf8)
    let decoded = RequestPath(bytes.span, taking: .all)?.decoded ?? bytes
    return decoded.starts(with: own) && (decoded.count == own.count || decoded[own.count] == UInt8(ascii: "/"))
  }
}
