import MoongateCore
import MoongateHTTP
import MoongateProxy

/// How connections of the public listener are served: by the proxy's pipeline, behind TLS where gateway.lua names a
/// certificate.
enum PublicServer {
  static func builder(proxy: Proxy, tls: ServerTLS?) -> PublicApplication.ChannelBuilder {
    { GatewayChannel(proxy: proxy, tls: tls, responder: $0) }
  }

  /// - Throws: a sentence where certificate and key cannot be used.
  static func tls(_ files: TLSFiles?) throws(StartProblem) -> ServerTLS? {
    guard let files else { return nil }
    do throws(ServerTLS.Problem) { return try ServerTLS(files) } catch { throw StartProblem(error.description) }
  }
}
