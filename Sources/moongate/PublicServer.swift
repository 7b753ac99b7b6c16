import HummingbirdCore
import HummingbirdTLS
import MoongateCore
import MoongateHTTP
import MoongateProxy
import NIOSSL

/// How connections of the public listener are served: by the proxy's pipeline, behind TLS where gateway.lua names a certificate.
enum PublicServer {
  /// - Throws: a sentence where certificate and key cannot be used.
  static func builder(proxy: Proxy, tls: TLSFiles?) throws(StartProblem) -> HTTPServerBuilder {
    guard let tls else { return HTTPServerBuilder { GatewayChannel(proxy: proxy, responder: $0) } }
    let configuration: TLSConfiguration
    do {
      let chain = try NIOSSLCertificate.fromPEMFile(tls.certificate).map { NIOSSLCertificateSource.certificate($0) }
      let key = try NIOSSLPrivateKey(file: tls.key, format: .pem)
      configuration = .serverOnly(chain: chain, key: key)
      // Made once here, so that a key of another certificate is told at the start and not at the first connection.
      _ = try NIOSSLContext(configuration: configuration)
    } catch {
      throw StartProblem("The certificate \(tls.certificate) and the key \(tls.key), `tls` in gateway.lua, cannot be used together: \(error)")
    }
    return HTTPServerBuilder { responder in
      try TLSChannel(GatewayChannel(proxy: proxy, isSecure: true, responder: responder), tlsConfiguration: configuration)
    }
  }
}

extension TLSConfiguration {
  /// TLS 1.2 and 1.3, HTTP/1.1 by ALPN.
  fileprivate static func serverOnly(chain: [NIOSSLCertificateSource], key: NIOSSLPrivateKey) -> Self {
    var configuration = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = ["http/1.1"]
    return configuration
  }
}
