import NIOCore

/// The proxies that support forward-auth, each with its own request headers.
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

  /// Finds the dialect of a request path, matched exactly, and the part of the path after it.
  /// - Returns: nil if the path belongs to no dialect. With Envoy, the rest is the original path; with the others, it
  ///   must be empty.
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

  /// The status that makes the proxy redirect a browser to sign-in. nginx's `auth_request` does not support redirects,
  /// but forwards the Location of a 401.
  /// - Parameter isSafe: whether the original method was GET or HEAD. For other methods, the body must not be sent to
  ///   the page.
  func redirectStatus(isSafe: Bool) -> Int {
    switch self {
    case .nginx: 401
    case .traefik, .caddy, .envoy, .haproxy: isSafe ? 302 : 303
    }
  }

  /// The header lines of an "allow" response that tell the proxy what to forward as Authorization.
  ///
  /// The proxies are told to remove the gateway's own credentials. Traefik instead copies the header from the response,
  /// so the response repeats a value that may be forwarded.
  ///
  /// Attack: a proxy that does not copy Authorization from the response passes the client's on, to a service that
  /// expects the gateway's. It is told to remove the client's too, and copies afterwards. Envoy removes after it has
  /// copied, so it is not told.
  /// - Parameter own: the header line that the gateway states; empty for none.
  func authorization(_ head: RequestHead, isDropped: Bool, own: [UInt8]) -> [UInt8] {
    if isDropped {
      switch self {
      case .nginx, .caddy, .haproxy: return Self.remove + own
      case .envoy: return own.isEmpty ? Self.removeByEnvoy : own
      case .traefik: return own
      }
    }
    guard self == .traefik, let field = head.first(.authorization) else { return [] }
    let bytes = head.bytes.readableBytesUInt8Span
    var line = Array("Authorization: ".utf8)
    for index in field.value { line.append(bytes[index]) }
    return line + [0x0d, 0x0a]
  }

  private static let remove = Array("X-Moongate-Authorization: remove\r\n".utf8)
  private static let removeByEnvoy = Array("X-Envoy-Auth-Headers-To-Remove: authorization\r\n".utf8)
}
