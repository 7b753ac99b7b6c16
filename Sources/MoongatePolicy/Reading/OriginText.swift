import MoongateCore

/// Parses `scheme://host:port`.
package enum OriginText {
  /// - Returns: nil for another scheme, user information, a path or an invalid host.
  package static func parse(_ text: String) -> PublicURL? {
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { return nil }
    var authority = text.dropFirst(isSecure ? 8 : 7)
    if authority.hasSuffix("/") { authority = authority.dropLast() }
    guard let host = HostName(String(authority)) else { return nil }
    return PublicURL(isSecure: isSecure, host: host.name, port: host.port ?? (isSecure ? 443 : 80))
  }
}
