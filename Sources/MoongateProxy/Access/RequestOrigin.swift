import MoongateCore

/// The client address, scheme and host of a request. A trusted proxy's `X-Forwarded-…` headers replace those of its
/// connection.
struct RequestOrigin {
  var address: ClientAddress
  var isSecure: Bool
  var host: HostName

  /// The origin (RFC 6454 section 6.2): scheme, host, and the port unless it is the scheme's default.
  var origin: String {
    let port = host.port.flatMap { $0 == (isSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
    return "\(isSecure ? "https" : "http")://\(host.name)\(port)"
  }
}
