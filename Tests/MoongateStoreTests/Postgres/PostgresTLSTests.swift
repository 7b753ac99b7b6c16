import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Test certificates and who signed them; made by openssl.
struct TestAuthority: Sendable {
  /// The folder of the files, readable by PostgreSQL's user only.
  let folder: String

  init() throws {
    folder = "/tmp/moongate-tls-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try authority("authority")
    try authority("stranger")
    try certificate("server", of: "localhost", days: 2)
    try certificate("expired", of: "localhost", days: -1)
    try certificate("moongate", of: "moongate", days: 2)
    try certificate("unknown", of: "moongate", days: 2, by: "stranger")
    // Owned by the user of the server, not of the tests.
    if getuid() == 0 { try run("/bin/chown", ["-R", "postgres", folder]) }
  }

  func remove() { try? FileManager.default.removeItem(atPath: folder) }

  private static let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

  private func authority(_ name: String) throws {
    try openssl(
      ["req", "-x509"] + Self.curve + [
        "-keyout", "\(name).key", "-out", "\(name).pem", "-days", "2", "-subj", "/CN=\(name)",
      ])
  }

  private func certificate(_ name: String, of host: String, days: Int, by authority: String = "authority") throws {
    let names = ["-addext", "subjectAltName=DNS:\(host)"]
    try openssl(
      ["req"] + Self.curve + ["-keyout", "\(name).key", "-out", "\(name).csr", "-subj", "/CN=\(host)"] + names)
    try openssl([
      "x509", "-req", "-in", "\(name).csr", "-CA", "\(authority).pem", "-CAkey", "\(authority).key", "-CAcreateserial",
      "-days", "\(days)",
      "-copy_extensions", "copy", "-out", "\(name).pem",
    ])
  }

  private func openssl(_ arguments: [String]) throws { try run("/usr/bin/openssl", arguments) }

  private func run(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw CocoaError(.executableNotLoadable, userInfo: [NSDebugDescriptionErrorKey: "\(arguments)"])
    }
  }
}

/// Authentication of server and client by certificates: valid ones connect, and each kind of invalid one has its
/// message.
@Suite(.serialized, .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) final class PostgresTLSTests {
  private let authority: TestAuthority
  private let server: PostgresServer
  private let name: String

  init() throws {
    authority = try TestAuthority()
    server = try Self.server(authority, "server")
    name = try server.makeDatabase()
  }

  deinit {
    server.end()
    authority.remove()
  }

  /// The database user `certain` authenticates by a certificate over TLS; all others by password.
  private static func server(_ authority: TestAuthority, _ certificate: String) throws -> PostgresServer {
    let rules = authority.folder + "/rules"
    try Data("local all all trust\nhostssl all certain all cert map=ours\nhost all all all scram-sha-256\n".utf8).write(
      to: URL(fileURLWithPath: rules))
    try Data("ours moongate certain\n".utf8).write(to: URL(fileURLWithPath: rules + ".map"))
    return try PostgresServer(settings: [
      "ssl=on", "ssl_cert_file=\(authority.folder)/\(certificate).pem",
      "ssl_key_file=\(authority.folder)/\(certificate).key",
      "ssl_ca_file=\(authority.folder)/authority.pem", "hba_file=\(rules)", "ident_file=\(rules).map",
    ])
  }

  private func url(
    _ query: String, user: String = "moongate:a%20secret", host: String = "localhost", at server: PostgresServer? = nil
  ) -> String {
    let server = server ?? self.server
    return
      "postgres://\(user)@\(host):\(server.port)/\(name)?hostaddr=127.0.0.1&\(query.replacing("HERE", with: authority.folder))"
  }

  private func refusal(_ url: String) -> String {
    do throws(StoreRefusal) {
      let store = try PostgresStore(url: url, keyFingerprint: [1])
      try? store.close()
      return "none"
    } catch {
      #expect(!error.description.contains("secret"))
      return error.description
    }
  }

  /// Much data in both directions at once: the bounds of TLS records are not those of PostgreSQL messages.
  @Test func verifiedServerIsAccepted() async throws {
    let url = url("sslmode=verify-full&sslrootcert=HERE/authority.pem&pool=3")
    let store = try PostgresStore(url: url, keyFingerprint: [1])
    for check in StoreConformance.all.prefix(3) { try await check.run(on: store) }
    let isEncrypted = try await store.database.read { one in
      try one.row("SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl")?.count(0)
    }
    #expect(isEncrypted == 1)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<12 {
        group.addTask {
          let bytes = (0..<(number * 100_000 + number)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
          let back = try await store.database.write(at: ManualClock.start) { one in
            try one.row("SELECT CAST(?1 AS BYTEA)", [.bytes(bytes)])?.bytes(0)
          }
          #expect(back == bytes)
        }
      }
      try await group.waitForAll()
    }
    try store.close()
    #expect(refusal(self.url("sslmode=verify-ca&sslrootcert=HERE/authority.pem", host: "another.name")) == "none")
    #expect(refusal(self.url("sslmode=require")) == "none")
  }

  @Test func unverifiedServerIsRefused() throws {
    let shown = "postgres://localhost:\(server.port)/\(name)"
    #expect(
      refusal(url("sslmode=verify-full&sslrootcert=HERE/stranger.pem")) == """
        The certificate of \(shown) is not signed by an authority of `sslrootcert`. Put the certificate of its authority into that file; \
        if the certificate was not replaced, another server may be answering in its place.
        """)
    let elsewhere = "postgres://another.name:\(server.port)/\(name)"
    #expect(
      refusal(url("sslmode=verify-full&sslrootcert=HERE/authority.pem", host: "another.name"))
        == "The certificate of \(elsewhere) is for another host. Name the host in `store` as the certificate does, or give the server one for this name."
    )
    let missing = """
      `sslmode` verifies who signed the certificate of \(shown), but the file of authorities is missing or contains no certificate. \
      Name one that does, such as sslrootcert=/etc/moongate/pg.pem.
      """
    #expect(refusal(url("sslmode=verify-full")) == missing)
    #expect(refusal(url("sslmode=verify-full&sslrootcert=HERE/nothing.pem")) == missing)
    #expect(refusal(url("sslmode=verify-full&sslrootcert=HERE/authority.key")) == missing)
  }

  @Test func expiredCertificateIsRefused() throws {
    let old = try Self.server(authority, "expired")
    defer { old.end() }
    let database = try old.makeDatabase()
    let query = "?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=\(authority.folder)/authority.pem"
    let url = "postgres://moongate:a%20secret@localhost:\(old.port)/\(database)\(query)"
    #expect(
      refusal(url) == """
        The certificate of postgres://localhost:\(old.port)/\(database), or of its authority, is expired or not yet valid. \
        Give the server a new one, or correct the clock that is wrong.
        """)
    // With another authority that problem is reported; `sslmode=require` verifies nothing.
    #expect(
      refusal(url.replacing("authority.pem", with: "stranger.pem")).contains(
        "is not signed by an authority of `sslrootcert`"))
    #expect(
      refusal(String(url.replacing("verify-full", with: "require").prefix { $0 != "&" } + "&sslmode=require")) == "none"
    )
  }

  @Test func aCertificateInPlaceOfAPassword() throws {
    try server.sql("CREATE ROLE certain LOGIN; GRANT ALL ON SCHEMA public TO certain", in: name)
    try server.sql("ALTER DATABASE \(name) OWNER TO certain")
    let (base, shown) = (
      "sslmode=verify-full&sslrootcert=HERE/authority.pem", "postgres://localhost:\(server.port)/\(name)"
    )
    // libpq requires that the key belongs to the user or to root.
    let key = authority.folder + "/own.key"
    try FileManager.default.copyItem(atPath: authority.folder + "/moongate.key", toPath: key)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    #expect(refusal(url("\(base)&sslcert=HERE/moongate.pem&sslkey=HERE/own.key", user: "certain")) == "none")
    #expect(refusal(url(base, user: "certain")).hasSuffix("or that line requires a certificate (`sslcert`, `sslkey`)."))
    let unusable = """
      The certificate for \(shown) cannot be used: `sslcert` and `sslkey` are the PEM files of a certificate and of its key, \
      and both must exist.
      """
    #expect(refusal(url("\(base)&sslcert=HERE/moongate.pem&sslkey=HERE/none.key", user: "certain")) == unusable)
    #expect(refusal(url("\(base)&sslcert=HERE/server.pem&sslkey=HERE/own.key", user: "certain")) == unusable)
    #expect(refusal(url("\(base)&sslcert=HERE/own.key&sslkey=HERE/own.key", user: "certain")) == unusable)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
    #expect(
      refusal(url("\(base)&sslcert=HERE/moongate.pem&sslkey=HERE/own.key", user: "certain"))
        == "The key of our certificate for \(shown) can be read by other users. Make the file of `sslkey` private: chmod 600."
    )
    try Data(contentsOf: URL(fileURLWithPath: authority.folder + "/unknown.key")).write(to: URL(fileURLWithPath: key))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    #expect(
      refusal(url("\(base)&sslcert=HERE/unknown.pem&sslkey=HERE/own.key", user: "certain"))
        == "\(shown) does not accept the certificate of `sslcert`: it is expired or not yet valid, or not signed by an authority of the server (ssl_ca_file there)."
    )
  }

  /// While it serves, an invalid certificate is not an outage that passes by itself: it is logged, and retried less
  /// often.
  @Test func servingGatewayReportsInvalidCertificate() async throws {
    let database = PostgresDatabase(
      try PostgresAddress(url("sslmode=verify-full&sslrootcert=HERE/stranger.pem")), timing: .serving,
      recordsMoments: false)
    for _ in 0..<3 {
      await #expect(
        throws: StoreFault(
          "PostgreSQL is not available: its certificate is not signed by an authority of `sslrootcert`")
      ) {
        try await database.read { one in try one.rows("SELECT 1").count }
      }
    }
    try database.close()
  }
}
