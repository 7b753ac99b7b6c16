import MoongateCore
import NIOCore
import NIOSSL
import Testing

@testable import MoongateProxy

#if canImport(Glibc)
  import Glibc
#endif

/// The TLS contexts of `upstream_tls`, and what the log says if a connection fails.
@Suite struct UpstreamTLSTests {
  private func upstream(_ trust: UpstreamTrust? = nil) -> Upstream {
    var upstream = Upstream(isSecure: true, host: "wiki.internal", port: 443)
    upstream.trust = trust
    return upstream
  }

  private static func pem(_ text: String) -> UpstreamTrust {
    var trust = UpstreamTrust()
    trust.authorities = Array(text.utf8)
    return trust
  }

  @Test func upstreamsShareContexts() throws {
    let tls = UpstreamTLS()
    var named = UpstreamTrust()
    named.name = "other.internal"
    let context = try tls.context(for: upstream())
    #expect(try tls.context(for: upstream(named)) === context, "the name is compared for each connection")
    var http2 = upstream()
    http2.usesHTTP2 = true
    #expect(try tls.context(for: http2, byHTTP2: true) !== context)
    tls.keep(only: [upstream()])
    #expect(try tls.context(for: upstream(named)) === context)
    tls.keep(only: [])
    #expect(try tls.context(for: upstream()) !== context, "contexts, and their keys, do not outlive their routes")
  }

  /// Attack: without the operator's authorities, those of the system would count.
  @Test(arguments: ["no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
  func unreadableAuthoritiesAreNotReplaced(_ text: String) {
    let error = #expect(throws: (any Error).self) { try UpstreamTLS().context(for: upstream(Self.pem(text))) }
    #expect(error.flatMap { UpstreamTLS.words(for: $0) }?.contains("upstream_tls") ?? false)
  }

  /// Attack: a handshake is forced down to a version with known weaknesses.
  @Test func oldVersionsAreNotSpoken() throws {
    #expect(try UpstreamTrust().configuration().minimumTLSVersion == .tlsv12)
  }

  @Test func theLogSaysWhyAConnectionFailed() {
    let refused = ConnectFailure(IOError(errnoCode: ECONNREFUSED, reason: "connect"))
    #expect(refused.cause == .unreachable && refused.reason == "it cannot be reached: Connection refused")
    let slow = ConnectFailure(ChannelError.connectTimeout(.seconds(1)))
    #expect(slow.cause == .timeout && slow.reason == "it does not respond in time")
    let cut = ConnectFailure(NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake])))
    #expect(cut.reason == "it cannot be reached: it closed the connection within the TLS handshake")
    let other = ConnectFailure(NIOSSLExtraError.failedToValidateHostname)
    #expect(other.reason == "it cannot be reached: its certificate is for another name")
    #expect(ConnectFailure(ChannelError.eof).reason == "it cannot be reached: it closed the connection at once")
  }
}
