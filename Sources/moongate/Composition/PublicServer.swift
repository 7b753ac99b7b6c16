import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateProxy

/// Builds the channels of the public listener: the proxy pipeline, with TLS if gateway.lua names a certificate.
enum PublicServer {
  static func builder(proxy: Proxy, tls: ServerTLS?) -> PublicApplication.ChannelBuilder {
    { GatewayChannel(proxy: proxy, tls: tls, responder: $0) }
  }

  /// - Throws: an error if the certificate and key cannot be used.
  static func tls(_ files: TLSFiles?) throws(StartProblem) -> ServerTLS? {
    guard let files else { return nil }
    do throws(ServerTLS.Problem) { return try ServerTLS(files) } catch { throw StartProblem(error.description) }
  }
}
