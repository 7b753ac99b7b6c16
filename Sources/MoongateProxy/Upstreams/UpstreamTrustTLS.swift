import MoongateCore
import NIOSSL

extension UpstreamTrust {
  /// The TLS settings of a connection to the upstream, without `name`, which the connection verifies.
  /// - Throws: if a certificate or the key is no PEM.
  package func configuration() throws -> TLSConfiguration {
    var configuration = TLSConfiguration.makeClientConfiguration()
    // Without this, the library speaks TLS 1.0 and 1.1 too (RFC 8996).
    configuration.minimumTLSVersion = .tlsv12
    // Attack: a certificate that one of the system's authorities has issued to somebody else. Exactly the operator's
    // authorities count.
    if let authorities {
      let roots = try NIOSSLCertificate.fromPEMBytes(authorities)
      guard !roots.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
      configuration.trustRoots = .certificates(roots)
    }
    if let certificate, let key {
      configuration.certificateChain = try NIOSSLCertificate.fromPEMBytes(certificate).map { .certificate($0) }
      configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: key, format: .pem))
    }
    return configuration
  }
}
