import Testing

@testable import MoongateStore

/// Connection strings: how libpq reads them, and the messages for malformed ones.
@Suite struct PostgresAddressTests {
  private func problem(_ text: String) -> String? {
    do throws(PostgresAddress.Problem) {
      _ = try PostgresAddress(text)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func severalHostsAreTriedInTheirOrder() throws {
    let address = try PostgresAddress(
      "postgresql://u:p%40ss@one,two:5433,[::1]:5434/store?pool=3&sslmode=verify-full&connect_timeout=9")
    #expect(address.targets.map(\.host) == ["one", "two", "::1"])
    #expect(address.targets.map(\.port) == ["", "5433", "5434"])
    #expect(address.pool == 3)
    #expect(address.options["password"] == "p@ss" && address.options["sslmode"] == "verify-full")
    #expect(address.options["target_session_attrs"] == "read-write")
    #expect(address.name == "postgres://one,two:5433,[::1]:5434/store")
  }

  @Test func nameContainsNoPassword() throws {
    for text in [
      "postgres://asha:secret@db/store", "postgres://db/store?user=asha&password=secret",
      "postgres://asha:secret@/store?host=/run/pg",
    ] {
      let address = try PostgresAddress(text)
      #expect(!address.name.contains("secret"))
    }
    #expect(try PostgresAddress("postgres://asha:secret@/store?host=/run/pg").name == "postgres:///run/pg/store")
    #expect(try PostgresAddress("postgres://db/a%40b?user=asha@db").name == "postgres://db/a@b")
    #expect(try PostgresAddress("postgres://db").pool == PostgresAddress.usualPool)
    #expect(
      try PostgresAddress("postgres://db?target_session_attrs=primary&keepalives=0").options["target_session_attrs"]
        == "primary")
    #expect(try PostgresAddress("postgres://db?keepalives=0").options["keepalives"] == "0")
  }

  /// Each message says what is wrong without quoting the string.
  @Test(arguments: [
    ("postgres://u:se@cret@db/x", "has more than one @: one that belongs to the password is written %40"),
    (
      "postgres://u:12/secret@db/x",
      "has an @ after its first /: a / of the password is written %2F, and an @ of the database's name %40"
    ),
    (
      "postgres://u:secret%zz@db/x", "has a % that is not followed by two hexadecimal digits: a % itself is written %25"
    ),
    ("postgres://u:secret@db/x?pool=many", "has a pool= that is not a number of connections from 1 to 200"),
    ("postgres://u:secret@db/x?pool=0", "has a pool= that is not a number of connections from 1 to 200"),
    (
      "postgres://u:secret@db/x?sslmod=require",
      "has a parameter after ? that libpq does not know; it knows, for example, sslmode, sslrootcert and target_session_attrs, and Moongate adds pool"
    ),
    ("postgres://u:secret@db/x?sslmode", "has a parameter after ? that is not name=value"),
    ("postgres://u:secret@[::1/x", "has a [ without its ]: an IPv6 address is written in brackets"),
    ("postgres://u:secret@db:99999/x", "has an invalid port: a port is a number from 1 to 65535"),
    ("postgres://u:secret@a,b:1,c:2/x?hostaddr=::1", "names 3 hosts but a different number of addresses or ports"),
  ])
  func badOnes(text: String, sentence: String) { #expect(problem(text) == sentence) }

  @Test(arguments: [
    (
      "connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL:  28P01",
      PostgresErrorClassification.wrongPassword
    ),
    ("connection to server at \"db\", port 5432 failed: FATAL:  3D000\n", .noDatabase),
    ("connection to server at \"db\", port 5432 failed: FATAL:  53300", .tooManyConnections),
    ("could not translate host name \"db\" to address: Name or service not known", .unknownHost),
    ("connection to server at \"db\", port 5432 failed: server does not support SSL, but SSL was required", .noTLS),
    (
      "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host?",
      .unreachable
    ),
    ("connection to server at \"db\", port 5432 failed: session is read-only", .readOnly),
    ("connection to server at \"db\", port 5432 failed: fe_sendauth: no password supplied", .noPassword),
    (
      "connection to server at \"db\", port 5432 failed: Connection timed out\n\tIs the server running on that host?",
      .silent
    ),
    ("connection to server at \"db\", port 5432 failed: SSL SYSCALL error: EOF detected", .hangsUp),
    (
      "connection to server at \"db\", port 5432 failed: server closed the connection unexpectedly\n\tThis probably means …",
      .hangsUp
    ),
    ("connection to server at \"db\", port 5432 failed: SSL error: tlsv1 alert protocol version", .tls),
    (
      "connection to server at \"db\", port 5432 failed: SSL error: tlsv13 alert certificate required",
      .ownCertificateRefused
    ),
    ("connection to server at \"db\", port 5432 failed: SSL error: certificate verify failed", .certificate(.unknown)),
    // Each address and each way that `sslmode` allows is tried; the most informative message is reported.
    (
      "connection to server at \"db\" (::1), port 5432 failed: Connection refused\n\tIs the server running on that host?\n"
        + "connection to server at \"db\" (10.0.0.1), port 5432 failed: server certificate for \"a\" does not match host name \"db\"",
      .certificate(.otherHost)
    ),
    (
      "connection to server at \"db\" (10.0.0.1), port 5432 failed: server certificate for \"a\" does not match host name \"db\"\n"
        + "connection to server at \"db\" (::1), port 5432 failed: Connection refused\n\tIs the server running on that host?",
      .certificate(.otherHost)
    ),
    (
      "connection to server at \"db\" (10.0.0.1), port 5432 failed: SSL error: tlsv1 alert protocol version\n"
        + "connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL:  28000", .notAdmitted
    ),
  ])
  func obstacles(words: String, obstacle: PostgresErrorClassification) {
    #expect(PostgresErrorClassification(libpq: words) == obstacle)
  }

  /// 42P05: another client of the pooler has prepared the statement in this session. 26000: this session has not.
  @Test(arguments: ["42P05", "26000"]) func aPoolerThatSharesSessionsIsNamed(state: String) {
    let found = PostgresErrorClassification(SQLState(rawValue: state))
    #expect(found.words.contains("like PgBouncer in transaction mode") && found.words.hasSuffix("(\(state))"))
    #expect(!found.mayPass)
  }
}
