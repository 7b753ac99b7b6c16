/// An absolute `http` or `https` URL (RFC 9110 section 4.2), split into its origin and what follows it.
///
/// Attack: a text that two programs read differently, such as `https://us@evil/`, leads elsewhere than was checked. The
/// scheme must be in lower case, and the authority be a host with at most a port.
package struct WebAddress: Sendable {
  package let origin: PublicURL
  /// The path, query and fragment as they are written: empty, or from the first `/`, `?` or `#` on.
  package let tail: Substring

  /// - Returns: nil for another scheme, user information or an invalid host. `tail` is not checked.
  package init?(_ text: String) {
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { return nil }
    let rest = text.dropFirst(isSecure ? 8 : 7)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let host = HostName(String(authority)) else { return nil }
    origin = PublicURL(isSecure: isSecure, host: host.name, port: host.port ?? (isSecure ? 443 : 80))
    tail = rest[authority.endIndex...]
  }
}

extension PublicURL {
  /// Reads an origin such as `https://auth.example.com:8443`, with or without a final `/`.
  /// - Returns: nil for another scheme, user information, an invalid host, a path, a query or a fragment.
  package init?(parsing text: String) {
    guard let address = WebAddress(text), address.tail.isEmpty || address.tail == "/" else { return nil }
    self = address.origin
  }
}
