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
}
