import Foundation
import MoongateCore
import MoongateProxy
import MoongateSDK
import NIOCore
import NIOPosix
import NIOSSL

/// The certificates that clients see.
extension Examination {
  /// The certificate of `tls`, as it is in its file.
  func certificate() -> [Finding] {
    guard let files = gateway.tls else { return [] }
    do throws(ServerTLS.Problem) { _ = try ServerTLS(files) } catch {
      return [.failed("certificate", error.description, fix: "Install a certificate with its matching key.")]
    }
    guard let first = Self.leaf(of: files) else { return [] }
    let own = gateway.publicURL.host
    let hosts = [own] + Set(generation.routes.routes.compactMap(\.host)).subtracting([own]).sorted()
    return [
      Judgement.certificate(.gateway(file: files.certificate), Self.validity(of: first), now: Date()),
      Judgement.names(
        files.certificate, CertificateNames(first), hosts: hosts, hasProxy: !gateway.trustedProxies.isEmpty),
    ].compactMap(\.self)
  }

  /// The certificate that clients see at an https `public_url`: that of a proxy, or that of `tls`.
  /// - Parameter isRefused: whether a request to `public_url` failed because its certificate could not be verified.
  func presentedCertificate(isRefused: Bool) async -> [Finding] {
    let url = gateway.publicURL
    guard url.isSecure, let leaf = await PresentedCertificate.read(url) else { return [] }
    if let files = gateway.tls, leaf == Self.leaf(of: files) {
      return isRefused ? [Judgement.untrusted(.gateway(file: files.certificate))] : []
    }
    let presenter = CertificatePresenter.proxy(url: "\(url)")
    let judged = [
      Judgement.certificate(presenter, Self.validity(of: leaf), now: Date()),
      Judgement.names(presenter.subject, CertificateNames(leaf), hosts: [url.host], hasProxy: false),
    ].compactMap(\.self)
    // Outside of its validity, and under another name, no certificate can be verified.
    let isExplained = judged.contains { $0.state == .failed }
    return judged + (isRefused && !isExplained ? [Judgement.untrusted(presenter)] : [])
  }

  private static func leaf(of files: TLSFiles) -> NIOSSLCertificate? {
    try? NIOSSLCertificate.fromPEMFile(files.certificate).first
  }

  static func validity(of certificate: NIOSSLCertificate) -> DateInterval {
    let begins = Date(timeIntervalSince1970: TimeInterval(certificate.notValidBefore))
    // A certificate whose validity ends before it begins is expired.
    return DateInterval(
      start: begins, end: max(begins, Date(timeIntervalSince1970: TimeInterval(certificate.notValidAfter))))
  }
}

/// Reads the certificate that a server presents, whether or not it can be verified.
enum PresentedCertificate {
  private static let timeLimit: TimeAmount = .seconds(5)

  /// - Returns: the server's own certificate; nil if nothing at the URL's address speaks TLS.
  static func read(_ url: PublicURL) async -> NIOSSLCertificate? {
    let host = IPAddressBytes.withoutBrackets(url.host)
    // TLS names a server only by a host name (RFC 6066 section 3).
    let name = IPAddressText.parse(host.utf8) == nil ? host : nil
    guard let context = try? NIOSSLContext(configuration: .makeClientConfiguration()) else { return nil }
    let leaf = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: NIOSSLCertificate.self)
    let bootstrap = ClientBootstrap(group: leaf.futureResult.eventLoop).connectTimeout(timeLimit)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let read: NIOSSLCustomVerificationCallback = { chain, verified in
            if let first = chain.first { leaf.succeed(first) }
            // The handshake ends here. Nothing is sent to a server that may be the wrong one.
            verified.succeed(.failed)
          }
          try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: context, serverHostname: name, customVerificationCallback: read))
        }
      }
    do {
      let channel = try await bootstrap.connect(host: host, port: url.port).get()
      let limit = channel.eventLoop.scheduleTask(in: timeLimit) { channel.close(promise: nil) }
      channel.closeFuture.whenComplete { _ in leaf.fail(ChannelError.eof) }
      let found = try? await leaf.futureResult.get()
      limit.cancel()
      try? await channel.close().get()
      return found
    } catch {
      leaf.fail(error)
      return nil
    }
  }
}

extension CertificateNames {
  fileprivate init(_ certificate: NIOSSLCertificate) {
    let all = certificate._subjectAlternativeNames()
    self.init(
      names: all.filter { $0.nameType == .dnsName }.map {
        String(decoding: $0.contents, as: UTF8.self).lowercased()
      },
      addresses: all.filter { $0.nameType == .ipAddress }.map { Array($0.contents) })
  }
}
