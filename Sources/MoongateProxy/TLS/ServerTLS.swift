import Foundation
import MoongateCore
import NIOSSL
import Synchronization

/// The certificate and key that new connections are given; they can be exchanged while the gateway runs.
package final class ServerTLS: Sendable {
  /// Why a pair cannot be used: a sentence for the operator, without any of the key.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  /// What tells one version of the files from another.
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
    /// When the first certificate of the chain ends, in Unix time.
    var expiry: Int64?
    var version: Version
    var problem: Problem?
  }

  private let state: Mutex<State>

  /// - Throws: where certificate and key cannot be used together.
  package init(_ files: TLSFiles) throws(Problem) {
    let version = Self.version(of: files)
    let (context, expiry) = try Self.context(files)
    state = Mutex(State(context: context, expiry: expiry, version: version))
  }

  /// What the next connection is served with.
  var context: NIOSSLContext { state.withLock { $0.context } }

  /// As Prometheus reads it.
  package var families: [MetricFamily] {
    guard let expiry = state.withLock({ $0.expiry }) else { return [] }
    return [
      MetricFamily(.certificateExpiryTimestampSeconds, expiry)
    ]
  }

  /// Whether the files are no longer those that were read last.
  package func hasChanged(_ files: TLSFiles) -> Bool {
    let version = Self.version(of: files)
    return state.withLock { $0.version != version }
  }

  /// Reads the files again where they changed. A pair that cannot be used changes nothing: the old one goes on.
  /// - Returns: what is wrong with the files as they are now; nil where the pair in use is theirs.
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

  /// The cipher suites of TLS 1.2: ephemeral key exchange and authenticated encryption only (Mozilla's "intermediate"
  /// profile, less its finite-field Diffie-Hellman, which BoringSSL does not have). Those of TLS 1.3 are not
  /// configurable and are all of this kind.
  ///
  /// Attack: recorded traffic that is decrypted later by a stolen key (RSA key exchange), and padding oracles (CBC).
  private static let tls12Suites: [NIOTLSCipher] = [
    .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
  ]

  private static func context(_ files: TLSFiles) throws(Problem) -> (NIOSSLContext, expiry: Int64?) {
    do {
      let certificates = try NIOSSLCertificate.fromPEMFile(files.certificate)
      let chain = certificates.map { NIOSSLCertificateSource.certificate($0) }
      let key = try NIOSSLPrivateKey(file: files.key, format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.cipherSuiteValues = tls12Suites
      configuration.applicationProtocols = ApplicationProtocolNegotiation.supported
      return (try NIOSSLContext(configuration: configuration), certificates.map { Int64($0.notValidAfter) }.min())
    } catch {
      throw Problem(
        description:
          "The certificate \(files.certificate) and the key \(files.key), `tls` in gateway.lua, cannot be used together: \(error)"
      )
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
