import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Which databases are refused, and with which message; none contains a password.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresRefusalTests {
  private let server: PostgresServer
  private let name: String

  init() throws {
    server = try #require(PostgresServer.shared)
    name = try server.makeDatabase()
  }

  private var shown: String { "postgres://127.0.0.1:\(server.port)/\(name)" }

  private func refusal(_ url: String, key: [UInt8] = [1]) throws -> String {
    do throws(StoreRefusal) {
      _ = try PostgresStore(url: url, keyFingerprint: key)
    } catch {
      #expect(!error.description.contains(PostgresServer.password) && !error.description.contains("a%20secret"))
      return error.description
    }
    return "none"
  }

  @Test func aWrongPassword() throws {
    #expect(
      try refusal(server.url(name, password: "guess"))
        == "PostgreSQL refuses the password for \(shown). Correct user and password of `store` in gateway.lua.")
    #expect(
      try refusal(server.url(name, password: nil))
        == "PostgreSQL requires a password for \(shown). Put it into `store`, preferably by env or file, or into PGPASSWORD."
    )
    #expect(try refusal(server.url(name, user: "nobody")).hasPrefix("PostgreSQL refuses the password for \(shown)."))
  }

  @Test func addressWithoutAServer() throws {
    #expect(
      try refusal("postgres://u:a%20secret@127.0.0.1:1/x")
        == "Nothing listens at postgres://127.0.0.1:1/x. Start PostgreSQL there, or correct host and port of `store` in gateway.lua."
    )
    #expect(
      try refusal("postgres://u:a%20secret@nowhere.invalid/x")
        == "The host of postgres://nowhere.invalid/x has no address. Correct it in `store` of gateway.lua, or check the name server."
    )
  }

  /// The port of another program, and a load balancer without a server behind it.
  @Test(arguments: [
    (
      Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
      "What listens at HERE is not PostgreSQL. Correct host and port of `store` in gateway.lua."
    ),
    (
      Array("+OK POP3 ready\r\n".utf8),
      "What listens at HERE is not PostgreSQL. Correct host and port of `store` in gateway.lua."
    ),
    (
      [],
      "HERE accepts connections and closes them. Read the log of the server, or of the load balancer in front of it."
    ),
  ])
  func serverOfAnotherProtocol(greeting: [UInt8], sentence: String) throws {
    for mode in ["disable", "prefer", "require"] {
      let stranger = try FakePostgres(greeting: greeting)
      defer { stranger.end() }
      let told = sentence.replacing("HERE", with: "postgres://127.0.0.1:\(stranger.port)/x")
      #expect(try refusal("postgres://u:a%20secret@127.0.0.1:\(stranger.port)/x?sslmode=\(mode)") == told, "\(mode)")
    }
  }

  @Test func noTLS() throws {
    #expect(
      try refusal(server.url(name, more: "sslmode=require"))
        == "\(shown) has no TLS, and `sslmode` requires it. Enable it there (ssl, ssl_cert_file, ssl_key_file), or correct host and port."
    )
  }

  @Test func noDatabase() throws {
    #expect(
      try refusal(server.url("nothing"))
        == "There is no database of that name at postgres://127.0.0.1:\(server.port)/nothing. Create it (createdb), or correct `store` in gateway.lua."
    )
  }

  @Test func anotherProgramsDatabase() throws {
    try server.sql("CREATE TABLE account (id BIGINT)", in: name)
    #expect(
      try refusal(server.url(name))
        == "\(shown) has a table `account` of another program. Create a database for Moongate and name it as `store` in gateway.lua."
    )
    #expect(
      try server.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace", in: name) == "1")
  }

  @Test func foreignTablesAreAllowed() throws {
    try server.sql("CREATE TABLE theirs (id BIGINT)", in: name)
    #expect(try refusal(server.url(name)) == "none")
  }

  @Test func aNewerSchema() throws {
    #expect(try refusal(server.url(name)) == "none")
    try server.sql("UPDATE moongate_schema SET version = 99", in: name)
    #expect(
      try refusal(server.url(name))
        == "The store \(shown) was written by a newer Moongate (its schema is 99, this program knows \(Schema.current.version)). "
        + "Start the newer program, or name another store in gateway.lua.")
  }

  @Test func anotherKey() throws {
    #expect(try refusal(server.url(name)) == "none")
    #expect(
      try refusal(server.url(name), key: [2])
        == "The store \(shown) was made with another master key. Name that key as `key` in gateway.lua, or name another store."
    )
  }

  @Test func aServerThatOnlyReads() throws {
    try server.sql("ALTER DATABASE \(name) SET default_transaction_read_only = on")
    #expect(
      try refusal(server.url(name))
        == "\(shown) is read-only: a standby, or default_transaction_read_only is on. "
        + "Name the writable server in `store`, or all of them: postgres://user@one,two/database.")
  }

  @Test func noRightToMakeTables() throws {
    try server.sql("ALTER DATABASE \(name) OWNER TO postgres")
    #expect(
      try refusal(server.url(name))
        == "The database user has too few rights in \(shown). Let it own the database, or GRANT CREATE, USAGE ON SCHEMA public TO it; "
        + "if the tables exist, let it own them (REASSIGN OWNED).")
  }

  /// Attack (or accident): without a schema the tables would be temporary, and everything would be lost with the
  /// connection.
  @Test func noSchema() throws {
    try server.sql("DROP SCHEMA public CASCADE", in: name)
    #expect(try refusal(server.url(name)).hasPrefix("The database user has too few rights in \(shown)."))
  }

  @Test func noConnectionLeft() throws {
    try server.sql("ALTER DATABASE \(name) CONNECTION LIMIT 0")
    #expect(
      try refusal(server.url(name))
        == "\(shown) has no connection left. Raise max_connections there, or let each gateway use fewer: ?pool=2 at the end of `store`."
    )
  }

  @Test func anotherEncoding() throws {
    try server.sql("CREATE DATABASE latin_\(name) ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C' OWNER moongate")
    #expect(try refusal(server.url("latin_\(name)")).contains("is not in UTF8"))
  }

  @Test func aBadConnectionString() throws {
    #expect(
      try refusal("postgres://u:a%20se@cret@db/x")
        == "The store's connection string has more than one @: one that belongs to the password is written %40.")
  }
}
