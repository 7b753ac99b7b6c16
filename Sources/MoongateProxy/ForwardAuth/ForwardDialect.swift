/// The proxies that may ask, each with the headers that it asks by (http.md, "Forward-auth").
enum ForwardDialect: CaseIterable {
  case nginx, traefik, caddy, envoy, haproxy

  static let prefix: StaticString = "/auth/forward/"

  private var name: StaticString {
    switch self {
    case .nginx: "nginx"
    case .traefik: "traefik"
    case .caddy: "caddy"
    case .envoy: "envoy"
    case .haproxy: "haproxy"
    }
  }

  /// The dialect whose address lies in the range, spelled exactly so, and where the path of the original request begins
  /// in it.
  /// - Returns: nil for an address of no dialect. Envoy's own is followed by the original path, the others' by nothing.
  static func asked(_ bytes: Span<UInt8>, _ path: Range<Int>) -> (dialect: ForwardDialect, rest: Range<Int>)? {
    let start = path.lowerBound + prefix.utf8CodeUnitCount
    guard path.count > prefix.utf8CodeUnitCount, ByteClass.equalCase(bytes, path.lowerBound..<start, prefix) else {
      return nil
    }
    var end = start
    while end < path.upperBound, bytes[end] != UInt8(ascii: "/") { end += 1 }
    guard let dialect = allCases.first(where: { ByteClass.equalCase(bytes, start..<end, $0.name) }) else { return nil }
    guard (dialect == .envoy) == (end < path.upperBound) else { return nil }
    return (dialect, end..<path.upperBound)
  }

  /// What tells a browser to sign in: nginx's `auth_request` knows no redirects, and hands a 401's Location on.
  /// - Parameter isSafe: whether the original method was GET or HEAD; another's body is not to be sent to the page.
  func redirectStatus(isSafe: Bool) -> Int {
    switch self {
    case .nginx: 401
    case .traefik, .caddy, .envoy, .haproxy: isSafe ? 302 : 303
    }
  }

  /// What a yes says of the request's Authorization, as lines: whether the proxy passes it on.
  ///
  /// Envoy and the others are told to take it off where it is the gateway's own. Traefik takes off whatever the answer
  /// could have, and passes on what it has: so it is handed back there where it may pass.
  func authorization(_ head: RequestHead, _ bytes: Span<UInt8>, isDropped: Bool) -> [UInt8] {
    if isDropped {
      switch self {
      case .nginx, .caddy, .haproxy: return Self.remove
      case .envoy: return Self.removeByEnvoy
      case .traefik: return []
      }
    }
    guard self == .traefik, let field = head.first(.authorization) else { return [] }
    var line = Array("Authorization: ".utf8)
    for index in field.value { line.append(bytes[index]) }
    return line + [0x0d, 0x0a]
  }

  private static let remove = Array("X-Moongate-Authorization: remove\r\n".utf8)
  private static let removeByEnvoy = Array("X-Envoy-Auth-Headers-To-Remove: authorization\r\n".utf8)
}
