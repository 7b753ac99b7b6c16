import MoongateCore
import NIOSSL

/// The TLS contexts of one event loop for connections to upstreams. Each is made when it is first needed.
///
/// Without `upstream_tls`, they verify upstreams against the system's root certificates and show no certificate.
final class UpstreamTLS {
  /// What distinguishes contexts. Upstreams that differ only in their name share one.
  private struct Settings: Hashable {
    let trust: UpstreamTrust?
    let usesHTTP2: Bool

    init(_ upstream: Upstream, byHTTP2: Bool) {
      var trust = upstream.trust
      trust?.name = nil
      self.trust = trust == UpstreamTrust() ? nil : trust
      usesHTTP2 = byHTTP2
    }
  }

  private var made: [Settings: NIOSSLContext] = [:]

  /// The context for connections to the upstream.
  /// - Parameter byHTTP2: whether they agree on HTTP/2 by ALPN (RFC 9113 section 3.2). Others offer nothing.
  func context(for upstream: Upstream, byHTTP2: Bool = false) throws -> NIOSSLContext {
    let settings = Settings(upstream, byHTTP2: byHTTP2)
    if let known = made[settings] { return known }
    var configuration = try (settings.trust ?? UpstreamTrust()).configuration()
    if byHTTP2 { configuration.applicationProtocols = ["h2"] }
    let context = try NIOSSLContext(configuration: configuration)
    made[settings] = context
    return context
  }

  /// Forgets the contexts, and with them the keys, of all other upstreams.
  func keep(only upstreams: some Sequence<Upstream>) {
    let used = Set(upstreams.flatMap { [Settings($0, byHTTP2: false), Settings($0, byHTTP2: $0.usesHTTP2)] })
    made = made.filter { used.contains($0.key) }
  }

  /// Whether the upstream closed the connection without a closing alert.
  static func isUncleanShutdown(_ error: any Error) -> Bool {
    if case .uncleanShutdown? = error as? NIOSSLError { true } else { false }
  }

  /// What an error of TLS means, in words for a log line; nil for other errors.
  static func words(for error: any Error) -> String? {
    if error as? NIOSSLExtraError == .failedToValidateHostname { return "its certificate is for another name" }
    guard error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError else { return nil }
    let text = "\(error)"
    // An alert of the upstream about the certificate that the gateway has shown, or has not (RFC 8446 section 6.2).
    let refusals = [
      "CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED",
      "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN", "UNKNOWN_CA", "ACCESS_DENIED",
    ]
    if let alert = refusals.first(where: { text.contains("ALERT_\($0)") }) {
      return "it does not accept the gateway's certificate, see upstream_tls (\(alert))"
    }
    let meanings = [
      (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate has expired, or is not from an authority that the route trusts (the system's, or upstream_tls.ca)"
      ),
      ("WRONG_VERSION_NUMBER", "it does not speak TLS, use http:// in the route"),
      ("HTTP_REQUEST", "it does not speak TLS, use http:// in the route"),
      ("EOF during handshake", "it closed the connection within the TLS handshake"),
      ("failedToLoadCertificate", "a certificate of upstream_tls cannot be read"),
      ("failedToLoadPrivateKey", "the key of upstream_tls cannot be read"),
    ]
    return meanings.first { text.contains($0.0) }?.1 ?? "TLS failed: \(text.prefix(200))"
  }
}
