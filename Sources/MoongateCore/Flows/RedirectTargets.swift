/// Decides which targets `return_to` and similar parameters may name: our own paths, `public_url`, `redirect_hosts` and
/// the hosts of routes. Any other target is ignored. The codes of apps never go to these targets, but to the redirect
/// URIs of apps.lua (`AppTable`).
///
/// Attack: a link to our sign-in page that ends at a look-alike (`//evil`, `/\evil`, `https:evil`, `https://us@evil`).
/// A text that two programs could parse differently is refused, so that a browser never goes anywhere other than what
/// was validated here.
package struct RedirectTargets: Sendable {
  /// The maximum length of a target, in bytes. RFC 9110 section 4.1 asks for 8,000; the rest is for a target within
  /// another one (`HandoffPage`). Requests may have 32 KiB, in which a target can be percent-encoded.
  package static let longest = HandoffService.longestTarget

  /// The allowed origins (`scheme://authority`), normalised for comparison: lower case, without the scheme's default
  /// port.
  private let origins: Set<String>
  /// The host of our own paths.
  private let home: String
  /// nil if no route has `encoded`, so that all targets are plain.
  private let routes: RouteTable?

  package init(publicURL: PublicURL, redirectHosts: [String], routes: RouteTable) {
    var origins: Set<String> = []
    for host in redirectHosts {
      for scheme in ["http", "https"] { origins.insert(Self.origin(scheme: scheme, authority: host)) }
    }
    origins.insert(publicURL.description)
    // A route's host is served by the same listener as public_url, with the same scheme and port.
    for host in routes.routes.compactMap(\.host) {
      origins.insert(PublicURL(isSecure: publicURL.isSecure, host: host, port: publicURL.port).description)
    }
    self.origins = origins
    home = publicURL.host
    self.routes = routes.routes.contains { !$0.encoded.isEmpty } ? routes : nil
  }

  /// The allowed origins other than our own paths, sorted. A page's `form-action` must include them.
  package var allowedOrigins: [String] { origins.sorted() }

  /// Validates a target.
  /// - Returns: the unchanged text if it is allowed, otherwise nil.
  package func accept(_ text: String?) -> String? {
    guard let text, text.utf8.count <= Self.longest,
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") })
    else { return nil }
    if text.hasPrefix("/") { return isPath(text[...], at: home) ? text : nil }
    guard let separator = text.firstRange(of: "://") else { return nil }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "http" || scheme == "https" else { return nil }
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
    // The comparison is exact, so userinfo, an empty host, a trailing dot or another port never matches.
    guard origins.contains(Self.origin(scheme: scheme, authority: rest[..<end].lowercased())) else { return nil }
    guard rest[end...].hasPrefix("/") else { return text }
    return isPath(rest[end...], at: HostName(String(rest[..<end]))?.name) ? text : nil
  }

  /// Whether the path is plain, or one that a route of the host takes (`Route.encoded`).
  private func isPath(_ text: Substring, at host: String?) -> Bool {
    if Self.isPlainPath(text) { return true }
    guard let routes, let host else { return false }
    let path = String(text.prefix { $0 != "?" && $0 != "#" })
    if case .route = RouteMatcher(routes).find(path, host: host, method: "GET") { return true }
    return false
  }

  /// The origin without the scheme's default port or an empty one.
  private static func origin(scheme: String, authority: String) -> String {
    let ports = [scheme == "https" ? ":443" : ":80", ":"]
    let port = ports.first { authority.hasSuffix($0) } ?? ""
    return "\(scheme)://\(authority.dropLast(port.count))"
  }

  /// Whether the path, up to its query or fragment, begins with exactly one `/` and has no empty segments, dot
  /// segments, encoded separators or encoded control characters.
  private static func isPlainPath(_ text: Substring) -> Bool {
    let path = text.prefix { $0 != "?" && $0 != "#" }
    guard !path.utf8.contains(UInt8(ascii: "%")) || decodes(path) else { return false }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return segments.enumerated().allSatisfy { index, segment in
      // Only the last segment may be empty: `/` and `/a/`.
      if segment.isEmpty { return index == segments.count - 1 }
      let name = segment.prefix { $0 != ";" }.lowercased().replacing("%2e", with: ".")
      return name != "." && name != ".."
    }
  }

  /// Whether each `%` is followed by two hexadecimal digits that do not encode a separator or a control character.
  private static func decodes(_ path: Substring) -> Bool {
    let bytes = Array(path.utf8)
    return bytes.indices.allSatisfy { index in
      guard bytes[index] == UInt8(ascii: "%") else { return true }
      guard index + 2 < bytes.count, bytes[index + 1] != UInt8(ascii: "+"), bytes[index + 1] != UInt8(ascii: "-"),
        let value = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
      else { return false }
      return value >= 0x20 && value != 0x7f && value != UInt8(ascii: "/") && value != UInt8(ascii: "\\")
    }
  }
}
