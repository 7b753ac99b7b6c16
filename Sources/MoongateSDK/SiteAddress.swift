import Foundation

/// Validates the addresses of other sites, above all those that a provider redirects users to.
public enum SiteAddress {
  /// The origin of a web address as browsers send it (RFC 6454 section 6.2): scheme and host in lower case, the host in
  /// ASCII, and the port only if it is not the scheme's default.
  /// - Returns: nil unless it is an address of `http` or `https` with a host.
  public static func origin(of address: String) -> String? {
    guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
      let host = parts.encodedHost?.lowercased(), !host.isEmpty, scheme == "https" || scheme == "http"
    else { return nil }
    let usual = scheme == "https" ? 443 : 80
    return "\(scheme)://\(host)\(parts.port.flatMap { $0 == usual ? nil : ":\($0)" } ?? "")"
  }

  /// Whether the address leads a browser to the host that it appears to name, by TLS, or to this machine, where demos
  /// and tests run.
  ///
  /// Attack: over `http://`, an attacker on the network reads the state of the step and answers as the site.
  /// `http://localhost.example.com/` is not this machine. Browsers read `\` as a slash, and the part before `@` as a
  /// user name.
  /// - Parameters:
  ///   - address: a URL, such as `https://accounts.example.com/authorize`.
  ///   - longest: the maximum length in bytes.
  public static func isSite(_ address: String, atMost longest: Int = 8_192) -> Bool {
    guard address.utf8.count <= longest,
      address.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") }),
      let parts = URLComponents(string: address), let host = parts.host, !host.isEmpty, parts.user == nil,
      parts.password == nil
    else { return false }
    switch parts.scheme?.lowercased() {
    case "https": return true
    case "http": return Loopback.isAddress(host.lowercased())
    default: return false
    }
  }
}
