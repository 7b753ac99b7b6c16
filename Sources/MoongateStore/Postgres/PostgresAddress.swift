import CPostgres
import Foundation

/// Where a PostgreSQL server is and how to enter it: a connection string as libpq reads it, taken apart.
///
/// Says nothing of the password: `name` is what people are shown.
package struct PostgresAddress: Sendable {
  /// One server of those that the string names.
  struct Target: Sendable, Equatable {
    var host: String?
    var hostAddress: String?
    var port: String?
  }

  /// What is wrong with a connection string; never a piece of it, which may be one of the password.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
  }

  /// How many connections there are at most, besides one that listens, unless the string says `pool=`: one for each
  /// processor that may ask, but from 4 to 10. More of them are slower where the server is near: each is a process that
  /// waits for the same locks and the same disk.
  static let usualPool = min(max(4, ProcessInfo.processInfo.activeProcessorCount), 10)

  /// In the order in which they are tried.
  let targets: [Target]
  /// What goes to libpq besides the target.
  let options: [String: String]
  /// At most so many connections; one more listens.
  package let pool: Int
  /// What is known of the servers behind it.
  let timeline = ServerTimeline()
  /// For sentences and logs: hosts, ports and database, without user and password.
  package let name: String

  /// - Parameter text: `postgres://user:password@host:port/database?…`, with libpq's parameters and `pool`.
  /// - Throws: `Problem`.
  package init(_ text: String) throws(Problem) {
    let (plain, pool) = try Self.splitPool(text)
    self.pool = pool
    var values = try Self.parse(plain)
    // Libpq ends the host at the first /: the end of a password with one in it would be taken for the database's name,
    // which people are shown.
    if Self.path(of: plain).contains("@") {
      throw Problem(
        "has an @ after its first /: a / of the password is written %2F, and an @ of the database's name %40")
    }
    let hosts = Self.list(values.removeValue(forKey: "host"))
    let addresses = Self.list(values.removeValue(forKey: "hostaddr"))
    let ports = Self.list(values.removeValue(forKey: "port"))
    // Libpq ends the password at the first @: what follows would be looked up as a name, and told to everybody in the
    // error.
    if hosts.contains(where: { $0.contains("@") }) || addresses.contains(where: { $0.contains("@") }) {
      throw Problem("has more than one @: one that belongs to the password is written %40")
    }
    let count = max(hosts.count, addresses.count, 1)
    guard [hosts.count, addresses.count].allSatisfy({ $0 == 0 || $0 == count }),
      ports.count <= 1 || ports.count == count
    else {
      throw Problem("names \(count) hosts and another number of addresses or ports")
    }
    guard ports.allSatisfy({ $0.isEmpty || (Int($0).map { (1...65535).contains($0) } ?? false) }) else {
      throw Problem("has a port that is none: one is a number from 1 to 65535")
    }
    targets = (0..<count).map { index in
      Target(
        host: hosts.isEmpty ? nil : hosts[index], hostAddress: addresses.isEmpty ? nil : addresses[index],
        port: ports.isEmpty ? nil : ports[ports.count == 1 ? 0 : index])
    }
    name = Self.name(of: targets, database: values["dbname"] ?? values["user"])
    // A standby that only reads would take reads and refuse every write: only a server that writes is one.
    if values["target_session_attrs"] != "primary" { values["target_session_attrs"] = "read-write" }
    // What is sent and not acknowledged in two seconds is lost: a network that swallows packets is found out by the
    // kernel.
    let usual = [
      "application_name": "moongate", "client_encoding": "UTF8", "gssencmode": "disable", "keepalives": "1",
      "keepalives_idle": "2",
      "keepalives_interval": "1", "keepalives_count": "2", "tcp_user_timeout": "2000",
    ]
    values.merge(usual) { said, _ in said }
    values["client_encoding"] = "UTF8"
    options = values
  }

  private static func list(_ text: String?) -> [String] {
    guard let text, !text.isEmpty else { return [] }
    return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// What stands between the first / after the host and the ?.
  private static func path(of text: String) -> Substring {
    let place = text.range(of: "://").map { text[$0.upperBound...] } ?? text[...]
    return place.prefix { $0 != "?" }.drop { $0 != "/" }
  }

  /// Takes our own parameter out, which libpq would refuse.
  private static func splitPool(_ text: String) throws(Problem) -> (String, Int) {
    let afterLogin = text.lastIndex(of: "@").map { text.index(after: $0) } ?? text.startIndex
    guard let question = text[afterLogin...].firstIndex(of: "?") else { return (text, usualPool) }
    var pool = usualPool
    var kept: [Substring] = []
    for item in text[text.index(after: question)...].split(separator: "&", omittingEmptySubsequences: false) {
      guard item.hasPrefix("pool=") else {
        kept.append(item)
        continue
      }
      guard let number = Int(item.dropFirst(5)), (1...200).contains(number) else {
        throw Problem("says pool= with something else than a number of connections, 1 to 200")
      }
      pool = number
    }
    return (String(text[..<question]) + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&")), pool)
  }

  private static func parse(_ text: String) throws(Problem) -> [String: String] {
    var message: UnsafeMutablePointer<CChar>?
    guard !text.utf8.contains(0), let parsed = PQconninfoParse(text, &message) else {
      let words = message.map { String(cString: $0) } ?? ""
      PQfreemem(message)
      throw Problem(Self.sentence(for: words))
    }
    defer { PQconninfoFree(parsed) }
    var values: [String: String] = [:]
    var option = parsed
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }

  /// Libpq's own words quote what they are about, the password perhaps.
  private static func sentence(for words: String) -> String {
    if words.hasPrefix("invalid URI query parameter") {
      return
        "has a parameter after ? that libpq does not know; sslmode, sslrootcert, target_session_attrs and pool are some that there are"
    }
    if words.contains("key/value separator") { return "has a parameter after ? that is not name=value" }
    if words.contains("percent-encoded") {
      return "has a % that is not followed by two hexadecimal digits: a % itself is written %25"
    }
    if words.contains("IPv6") { return "has a [ without its ]: an IPv6 address stands in brackets" }
    if words.contains("unexpected character") {
      return "has something else than : or / after a host: what is no letter of a name is written %XX"
    }
    return "is not understood by libpq; write postgres://user:password@host:5432/database"
  }

  private static func name(of targets: [Target], database: String?) -> String {
    let places = targets.map { target in
      let host = target.host ?? target.hostAddress ?? ""
      let shown = host.contains(":") ? "[\(host)]" : host
      return target.port.map { $0.isEmpty ? shown : "\(shown):\($0)" } ?? shown
    }
    return "postgres://\(places.joined(separator: ","))/\(database ?? "")"
  }
}
