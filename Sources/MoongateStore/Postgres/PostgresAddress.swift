import CPostgres
import Foundation

/// The address of a PostgreSQL server, parsed from a libpq connection string.
///
/// `name` is the display name, without the password.
package struct PostgresAddress: Sendable {
  /// One of the servers that the string names.
  struct Target: Sendable, Equatable {
    var host: String?
    var hostAddress: String?
    var port: String?
  }

  /// The problem with a connection string. Never quotes a part of it, which could be part of the password.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
  }

  /// The default maximum of connections, in addition to one that listens: one per processor, but at least 4 and at most
  /// 10. With a nearby server more connections are slower, because each is a process that waits for the same locks and
  /// the same disk.
  static let usualPool = min(max(4, ProcessInfo.processInfo.activeProcessorCount), 10)

  /// In the order in which they are tried.
  let targets: [Target]
  /// The parameters for libpq other than the target.
  let options: [String: String]
  /// The maximum number of connections, in addition to one that listens.
  package let pool: Int
  /// The timelines of the servers.
  let timeline = ServerTimeline()
  /// The display name for messages and logs: hosts, ports and database, without user and password.
  package let name: String

  /// - Parameter text: `postgres://user:password@host:port/database?…`, with libpq's parameters and `pool`.
  /// - Throws: `Problem`.
  package init(_ text: String) throws(Problem) {
    let (plain, pool) = try Self.splitPool(text)
    self.pool = pool
    var values = try Self.parse(plain)
    // Libpq ends the host at the first `/`. The end of a password with a `/` would be taken for the database name,
    // which is displayed.
    if Self.path(of: plain).contains("@") {
      throw Problem(
        "has an @ after its first /: a / of the password is written %2F, and an @ of the database's name %40")
    }
    let hosts = Self.list(values.removeValue(forKey: "host"))
    let addresses = Self.list(values.removeValue(forKey: "hostaddr"))
    let ports = Self.list(values.removeValue(forKey: "port"))
    // Libpq ends the password at the first `@`. The rest would be looked up as a host name, and appear in the error.
    if hosts.contains(where: { $0.contains("@") }) || addresses.contains(where: { $0.contains("@") }) {
      throw Problem("has more than one @: one that belongs to the password is written %40")
    }
    let count = max(hosts.count, addresses.count, 1)
    guard [hosts.count, addresses.count].allSatisfy({ $0 == 0 || $0 == count }),
      ports.count <= 1 || ports.count == count
    else {
      throw Problem("names \(count) hosts but a different number of addresses or ports")
    }
    guard ports.allSatisfy({ $0.isEmpty || (Int($0).map { (1...65535).contains($0) } ?? false) }) else {
      throw Problem("has an invalid port: a port is a number from 1 to 65535")
    }
    targets = (0..<count).map { index in
      Target(
        host: hosts.isEmpty ? nil : hosts[index], hostAddress: addresses.isEmpty ? nil : addresses[index],
        port: ports.isEmpty ? nil : ports[ports.count == 1 ? 0 : index])
    }
    name = Self.name(of: targets, database: values["dbname"] ?? values["user"])
    // A read-only standby would accept reads and refuse every write, so only a server that accepts writes is used.
    if values["target_session_attrs"] != "primary" { values["target_session_attrs"] = "read-write" }
    // Data that are not acknowledged within two seconds count as lost, so that the kernel detects a network that drops
    // packets.
    let usual = [
      "application_name": "moongate", "client_encoding": "UTF8", "gssencmode": "disable", "keepalives": "1",
      "keepalives_idle": "2",
      "keepalives_interval": "1", "keepalives_count": "2", "tcp_user_timeout": "2000",
    ]
    values.merge(usual) { said, _ in said }
    values["client_encoding"] = "UTF8"
    options = values
  }

  /// Whether a host and a database are named, or a service of pg_service.conf that names them.
  package var isComplete: Bool {
    let hasHosts = targets.allSatisfy { !($0.host ?? $0.hostAddress ?? "").isEmpty }
    return options["service"] != nil || hasHosts && !(options["dbname"] ?? "").isEmpty
  }

  private static func list(_ text: String?) -> [String] {
    guard let text, !text.isEmpty else { return [] }
    return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// The part between the first `/` after the host and the `?`.
  private static func path(of text: String) -> Substring {
    let place = text.range(of: "://").map { text[$0.upperBound...] } ?? text[...]
    return place.prefix { $0 != "?" }.drop { $0 != "/" }
  }

  /// Removes our own parameter, which libpq would refuse.
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
        throw Problem("has a pool= that is not a number of connections from 1 to 200")
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

  /// Our own sentences for libpq's messages, which can quote the connection string and thus the password.
  private static func sentence(for words: String) -> String {
    if words.hasPrefix("invalid URI query parameter") {
      return
        "has a parameter after ? that libpq does not know; it knows, for example, sslmode, sslrootcert and target_session_attrs, and Moongate adds pool"
    }
    if words.contains("key/value separator") { return "has a parameter after ? that is not name=value" }
    if words.contains("percent-encoded") {
      return "has a % that is not followed by two hexadecimal digits: a % itself is written %25"
    }
    if words.contains("IPv6") { return "has a [ without its ]: an IPv6 address is written in brackets" }
    if words.contains("unexpected character") {
      return "has a character other than : or / after a host: special characters are written %XX"
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
