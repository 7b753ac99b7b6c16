import Foundation
import MoongateCore
import NIOCore
import NIOSSL
import Synchronization

/// The certificate and key of new connections. They can be replaced while the gateway runs.
package final class ServerTLS: Sendable {
  /// Why a pair cannot be used, as a sentence that contains no key material.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  /// Identifies a version of the files.
  private struct Version: Equatable {
    var files: TLSFiles
    var stamps: [Stamp?]
  }

  private struct Stamp: Equatable {
    var seconds: Int
    var nanoseconds: Int
    var size: Int
    var inode: UInt64
  }

  private struct State {
    var context: NIOSSLContext
    /// The expiry of the first certificate of the chain, in Unix time.
    var expiry: Int64?
    var version: Version
    var problem: Problem?
  }

  private let state: Mutex<State>

  /// - Throws: an error if certificate and key cannot be used together.
  package init(_ files: TLSFiles) throws(Problem) {
    let version = Self.version(of: files)
    let (context, expiry) = try Self.context(files)
    state = Mutex(State(context: context, expiry: expiry, version: version))
  }

  /// The TLS context of the next connection.
  var context: NIOSSLContext { state.withLock { $0.context } }

  /// The metrics.
  package var families: [MetricFamily] {
    guard let expiry = state.withLock({ $0.expiry }) else { return [] }
    return [
      MetricFamily(.certificateExpiryTimestampSeconds, expiry)
    ]
  }

  /// Whether the files have changed since they were last read.
  package func hasChanged(_ files: TLSFiles) -> Bool {
    let version = Self.version(of: files)
    return state.withLock { $0.version != version }
  }

  /// Reads changed files again. An unusable pair changes nothing, and the old pair stays in use.
  /// - Returns: the problem of the current files; nil if they are in use.
  package func reload(_ files: TLSFiles) -> Problem? {
    let version = Self.version(of: files)
    if let known = state.withLock({ $0.version == version ? $0 : nil }) { return known.problem }
    let made: Result<(NIOSSLContext, Int64?), Problem>
    do throws(Problem) { made = .success(try Self.context(files)) } catch { made = .failure(error) }
    return state.withLock { state in
      state.version = version
      switch made {
      case .success(let (context, expiry)):
        (state.context, state.expiry) = (context, expiry)
        state.problem = nil
      case .failure(let problem): state.problem = problem
      }
      return state.problem
    }
  }

  /// The TLS 1.2 cipher suites: only ephemeral key exchange and authenticated encryption (Mozilla's "intermediate"
  /// profile without finite-field Diffie-Hellman, which BoringSSL does not support). The TLS 1.3 suites are not
  /// configurable and have these properties anyway.
  ///
  /// Attack: recorded traffic is decrypted later with a stolen key (RSA key exchange); padding oracles (CBC).
  private static let tls12Suites: [NIOTLSCipher] = [
    .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
  ]

  private static func context(_ files: TLSFiles) throws(Problem) -> (NIOSSLContext, expiry: Int64?) {
    // What a failure of the library means at this point.
    var meaning = "\(files.certificate) does not exist, cannot be read, or holds no certificate in PEM format"
    do {
      let certificates = try NIOSSLCertificate.fromPEMFile(files.certificate)
      let chain = certificates.map { NIOSSLCertificateSource.certificate($0) }
      meaning = "\(files.key) holds no private key in PEM format without a password"
      let key = try NIOSSLPrivateKey(file: files.key, format: .pem)
      meaning = "the key does not belong to the certificate"
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.cipherSuiteValues = tls12Suites
      configuration.applicationProtocols = ApplicationProtocolNegotiation.supported
      // How long the library waits for a client's close_notify. Attack: it keeps 57 KB of each closed connection until
      // this time has passed, if the client sent none, so a flood of handshakes fills the memory.
      configuration.shutdownTimeout = .seconds(1)
      return (try NIOSSLContext(configuration: configuration), certificates.map { Int64($0.notValidAfter) }.min())
    } catch {
      let reason =
        switch error {
        case NIOSSLError.failedToLoadCertificate, NIOSSLError.failedToLoadPrivateKey: meaning
        case let error as IOError: "\(files.key) cannot be read: \(String(cString: strerror(error.errnoCode)))"
        default: "\(error)"
        }
      throw Problem(
        description: "The certificate \(files.certificate) and the key \(files.key) (`tls` in gateway.lua) "
          + "cannot be used together: \(reason)")
    }
  }

  private static func version(of files: TLSFiles) -> Version {
    Version(files: files, stamps: [files.certificate, files.key].map { stamp($0) })
  }

  private static func stamp(_ path: String) -> Stamp? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Stamp(
      seconds: Int(status.st_mtim.tv_sec), nanoseconds: Int(status.st_mtim.tv_nsec), size: Int(status.st_size),
      inode: UInt64(status.st_ino))
  }
}
