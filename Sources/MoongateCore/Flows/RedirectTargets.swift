/// Where `return_to` and its like may lead (http.md, "Sessions and cookies"): to paths of our own, to `public_url`, to
/// `redirect_hosts` and to hosts of routes. Whatever else is asked for is ignored.
///
/// Attack: a link to our sign-in page that ends at a look-alike (`//evil`, `/\evil`, `https:evil`, `https://us@evil`).
/// What two programs could read in two ways is refused, so that a browser never goes elsewhere than was judged here.
package struct RedirectTargets: Sendable {
  /// The longest text that is looked at, in bytes.
  package static let longest = 2048

  /// Origins (`scheme://authority`) that may be led to, as they are compared: lower case, a port only where it is not
  /// the scheme's own.
  private let origins: Set<String>
  /// Those of them that `redirect_hosts` names.
  private let appOrigins: Set<String>

  package init(publicURL: PublicURL, redirectHosts: [String], routes: RouteTable) {
    var origins: Set<String> = []
    for host in redirectHosts {
      for scheme in ["http", "https"] { origins.insert(Self.origin(scheme: scheme, authority: host)) }
    }
    appOrigins = origins
    origins.insert(publicURL.description)
    // A route's host is served by the same listener as public_url: same scheme, same port.
    for host in routes.routes.compactMap(\.host) {
      origins.insert(PublicURL(isSecure: publicURL.isSecure, host: host, port: publicURL.port).description)
    }
    self.origins = origins
  }

  /// The origins besides our own path space, in sorted order: what a page's `form-action` must let a redirect reach.
  package var allowedOrigins: [String] { origins.sorted() }

  /// Where an app may have its one-time code sent to: an address in `redirect_hosts`, and no other.
  /// - Returns: the text as it was given where it may be followed, else nil.
  package func accept(app text: String?) -> String? {
    guard let text = accept(text), !text.hasPrefix("/"), let separator = text.firstRange(of: "://") else { return nil }
    let rest = text[separator.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }.lowercased()
    return appOrigins.contains(Self.origin(scheme: text[..<separator.lowerBound].lowercased(), authority: authority))
      ? text : nil
  }

  /// - Returns: the text as it was given where it may be followed, else nil.
  package func accept(_ text: String?) -> String? {
    guard let text, text.utf8.count <= Self.longest,
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") })
    else { return nil }
    if text.hasPrefix("/") { return Self.isPlainPath(text[...]) ? text : nil }
    guard let separator = text.firstRange(of: "://") else { return nil }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "http" || scheme == "https" else { return nil }
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
    // The set holds exact spellings, so userinfo, an empty host, a trailing dot and another port are no member of it.
    guard origins.contains(Self.origin(scheme: scheme, authority: rest[..<end].lowercased())) else { return nil }
    return rest[end...].hasPrefix("/") && !Self.isPlainPath(rest[end...]) ? nil : text
  }

  /// Without the port where it is the scheme's own.
  private static func origin(scheme: String, authority: String) -> String {
    let own = scheme == "https" ? ":443" : ":80"
    return "\(scheme)://\(authority.hasSuffix(own) ? String(authority.dropLast(own.count)) : authority)"
  }

  /// Whether the path, up to its query or fragment, begins with one `/`, and holds neither empty or dot segments nor an
  /// encoded separator or control byte.
  private static func isPlainPath(_ text: Substring) -> Bool {
    let path = text.prefix { $0 != "?" && $0 != "#" }
    guard !path.utf8.contains(UInt8(ascii: "%")) || decodes(path) else { return false }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return segments.enumerated().allSatisfy { index, segment in
      // Only the last may be empty: `/` and `/a/`.
      if segment.isEmpty { return index == segments.count - 1 }
      let name = segment.prefix { $0 != ";" }.lowercased().replacing("%2e", with: ".")
      return name != "." && name != ".."
    }
  }

  /// Whether each `%` has two hexadecimal digits, and none of them makes a separator or a control byte.
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
