import NIOSSL

/// The TLS context of one event loop for connections to upstreams, which verifies them against the system's root
/// certificates. It is made when it is first needed.
final class UpstreamTLS {
  private var made: NIOSSLContext?

  func context() throws -> NIOSSLContext {
    if let made { return made }
    let context = try NIOSSLContext(configuration: .makeClientConfiguration())
    made = context
    return context
  }

  /// Whether the upstream closed the connection without a closing alert.
  static func isUncleanShutdown(_ error: any Error) -> Bool {
    if case .uncleanShutdown? = error as? NIOSSLError { true } else { false }
  }
}
