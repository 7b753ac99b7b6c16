import MoongateCore

/// The client address, scheme and host of a request. A trusted proxy's `X-Forwarded-…` headers replace those of its
/// connection.
struct RequestOrigin {
  var address: ClientAddress
  var isSecure: Bool
  var host: HostName

  /// The origin (RFC 6454 section 6.2).
  var origin: String { host.origin(isSecure: isSecure) }
}
