import Foundation
import MoongateSDK
import Synchronization

/// What a user has typed.
struct DirectoryQuestion: Sendable {
  let name: TypedName
  let password: [UInt8]
  /// A name that no entry has.
  let nobody: String
  /// Milliseconds since the Unix epoch.
  let now: Int64
}

/// A user whose password is right.
struct DirectoryUser: Sendable {
  let identity: String
  /// See `DirectoryEntry.claims`.
  let claims: [String: JSONClaim]
  /// How many groups have names that cannot be stored.
  let omitted: Int
}

/// What has become of an entry.
enum RecheckedEntry: Sendable {
  case found(DirectoryUser)
  /// No server finds it. It may also be unreadable.
  case missing
  case ended(because: String)
}

/// Finds a user's entry and judges the password, by the servers of a directory.
struct Directory: Sendable {
  /// Connects to a server for a limited time.
  typealias Connector =
    @Sendable (DirectoryServer, DirectorySettings, Duration) throws(DirectoryFault)
    -> any DirectoryConnection

  /// The maximum time of a call, waiting and all servers included. The gateway counts an attempt as failed whose call
  /// takes longer than ten seconds.
  static let patience: Duration = .seconds(8)
  /// Attributes that are always read.
  private static let attributes = ["entryUUID", "objectGUID", "givenName", "sn", "displayName", "cn", "mail"]

  let settings: DirectorySettings
  let servers: ServerHealth
  let connect: Connector
  let end: ContinuousClock.Instant

  /// Asks the servers in turn until one answers. Blocks the thread, until `end` at the latest.
  /// - Throws: `DirectoryRefusal` or `DirectoryFault`.
  func user(for question: DirectoryQuestion) throws -> DirectoryUser {
    try asking { try user(for: question, by: $0, at: $1) }
  }

  /// Reads the entry of an identity again. Blocks the thread, until `end` at the latest.
  ///
  /// Attack: someone who was removed from the group that `user` demands, or whose entry has a former user's name, goes
  /// on. The entry is found by its ID, and must still be one that `user` finds by its own name.
  ///
  /// Attack on ourselves: a server that does not have the entry yet, or no longer lets it be read, signs users out.
  /// Every server must answer so.
  /// - Parameter now: milliseconds since the Unix epoch.
  /// - Throws: `DirectoryFault`.
  func recheck(_ known: Identifier, at now: Int64) throws -> RecheckedEntry {
    guard let id = UUID(uuidString: String(known.value.dropFirst(LDAP.name.count + 1))) else {
      throw DirectoryFault("the identity has no ID of an entry")
    }
    let isSame = DirectoryFilter.id(id)
    let isBelieved = { (answer: RecheckedEntry) -> Bool in if case .missing = answer { false } else { true } }
    return try asking(until: isBelieved) { connection, _ in
      guard let entry = try only(isSame, at: connection) else { return .missing }
      guard let name = entry.name(comparedBy: settings.user.comparisons) else {
        throw DirectoryFault("an entry has no attribute that `user` compares, or it cannot be read")
      }
      guard let filter = settings.user.filled({ _ in name }),
        try only("(&\(filter)\(isSame))", at: connection) != nil
      else { return .ended(because: "`user` no longer finds the entry") }
      if let end = entry.end(at: now) { return .ended(because: end) }
      return .found(try user(of: entry, at: connection))
    }
  }

  /// The only entry of a filter; nil if there is none.
  private func only(_ filter: String, at connection: any DirectoryConnection) throws(DirectoryFault)
    -> DirectoryEntry?
  {
    let search = DirectorySearch(
      base: settings.base, filter: filter, attributes: wanted + DirectoryEntry.ends, most: 1)
    guard let found = try connection.entries(search) else { throw DirectoryFault("several entries have one ID") }
    return found.first { !$0.name.isEmpty }
  }

  /// - Parameter isBelieved: whether an answer of one server is enough. Otherwise all must give one.
  private func asking<Answer>(
    until isBelieved: (Answer) -> Bool = { _ in true },
    _ body: (any DirectoryConnection, DirectoryServer) throws -> Answer
  ) throws -> Answer {
    var last = DirectoryFault("all connections were in use")
    var doubtful: [Answer] = []
    for server in servers.ordered(settings.servers) {
      let left = min(settings.timeout, ContinuousClock.now.duration(to: end))
      guard left > .milliseconds(50) else { break }
      do {
        let answer = try body(try connection(to: server, within: left), server)
        servers.answered(server)
        if isBelieved(answer) { return answer }
        doubtful.append(answer)
      } catch let fault as DirectoryFault where fault.isOfServer {
        servers.failed(server)
        last = fault
      }
    }
    if let answer = doubtful.first, doubtful.count == settings.servers.count { return answer }
    throw last
  }

  /// Connects to a server and binds as the account that searches.
  func connection(to server: DirectoryServer, within time: Duration) throws(DirectoryFault)
    -> any DirectoryConnection
  {
    let connection = try connect(server, settings, time)
    try bindForSearch(connection)
    return connection
  }

  private func user(
    for question: DirectoryQuestion, by connection: any DirectoryConnection, at server: DirectoryServer
  ) throws -> DirectoryUser {
    let found = try entry(of: question.name, at: connection)
    // Attack: the answer for an unknown name comes sooner, and tells who is known. There is a bind in any case.
    let entry: DirectoryEntry? = if case .success(let entry) = found { entry } else { nil }
    let answer: BindAnswer
    do throws(DirectoryFault) {
      answer = try connection.bind(entry?.name ?? question.nobody, question.password)
    } catch {
      servers.failed(server)
      throw DirectoryRefusal.silent(error)
    }
    let refusal = DirectoryRefusal(to: answer)
    // Busy or unavailable, whether or not there is an entry.
    if let refusal, [51, 52].contains(answer.code) {
      servers.failed(server)
      throw refusal
    }
    let known = try found.get()
    if let refusal { throw refusal }
    // Not all servers refuse the bind then, and the next recheck would end the session.
    if let end = known.end(at: question.now) { throw DirectoryRefusal.ended(end) }
    return try user(of: known, at: connection)
  }

  private func user(of entry: DirectoryEntry, at connection: any DirectoryConnection) throws -> DirectoryUser {
    guard let identity = entry.identity else { throw DirectoryRefusal.noIdentity }
    let groups: (names: [String], omitted: Int)
    do throws(DirectoryFault) { groups = try self.groups(of: entry, at: connection) } catch {
      // The password is not sent again, and a search that takes too long does not make all servers the last ones.
      var fault = error
      fault.isOfServer = false
      throw fault
    }
    return DirectoryUser(
      identity: identity, claims: entry.claims(wanted, groups: groups.names), omitted: groups.omitted)
  }

  private func bindForSearch(_ connection: any DirectoryConnection) throws(DirectoryFault) {
    let password = Array((settings.account?.password ?? "").utf8)
    let answer = try connection.bind(settings.account?.name ?? "", password)
    guard answer.code == 0 else { throw DirectoryFault(answer.code, answer.text, in: "the bind of `bind.dn`") }
  }

  /// The attributes to read of a user's entry.
  private var wanted: [String] {
    Self.attributes + settings.attributes + settings.user.comparisons.map(\.attribute)
      + (settings.groups?.placeholders ?? []).subtracting(["dn"])
  }

  /// The only entry of the name.
  ///
  /// Attack: a name that finds an entry by another spelling has attempts of its own (accents, which Active Directory
  /// ignores). The entry must hold the name as it is counted.
  private func entry(of name: TypedName, at connection: any DirectoryConnection) throws(DirectoryFault) -> Result<
    DirectoryEntry, DirectoryRefusal
  > {
    guard let filter = settings.user.filled({ _ in name.text }) else { return .failure(.unknown) }
    let search = DirectorySearch(base: settings.base, filter: filter, attributes: wanted + DirectoryEntry.ends, most: 1)
    guard let entries = try connection.entries(search) else { return .failure(.several) }
    guard let entry = entries.first, !entry.name.isEmpty else { return .failure(.unknown) }
    let isNamed = settings.user.comparisons.contains { comparison in
      let value = comparison.value.replacing("{name}", with: name.text)
      return entry.texts(comparison.attribute).contains { TypedName.canonical($0) == TypedName.canonical(value) }
    }
    return isNamed ? .success(entry) : .failure(.otherName)
  }

  /// The names of the groups, searched as the account that searches, and how many cannot be stored. No policy can name
  /// those.
  private func groups(of entry: DirectoryEntry, at connection: any DirectoryConnection) throws(DirectoryFault)
    -> (names: [String], omitted: Int)
  {
    guard let groups = settings.groups else { return ([], 0) }
    try bindForSearch(connection)
    var names: Set<String> = []
    var omitted: Set<String> = []
    var members = [entry.name]
    var searched = 0
    while searched < members.count {
      let member = members[searched]
      searched += 1
      guard let filter = groups.filled({ $0 == "dn" ? member : entry.texts($0).first }) else { continue }
      let search = DirectorySearch(
        base: settings.groupBase, filter: filter, attributes: ["cn"], most: Identifier.maxGroups)
      let found = try connection.entries(search)
      for group in found ?? [] {
        let name = group.texts("cn").first ?? ""
        if Self.isStorable(name) { names.insert(name) } else { omitted.insert(group.name) }
      }
      // Refused, not cut: a group that is missing may be one by which a service refuses.
      guard let found, names.count <= Identifier.maxGroups else {
        throw DirectoryFault("a user has more than \(Identifier.maxGroups) groups: narrow `groups` or `group_base`")
      }
      if settings.isNested { members += found.map(\.name).filter { !members.contains($0) } }
    }
    return (names.sorted(), omitted.count)
  }

  private static func isStorable(_ group: String) -> Bool {
    (1...Identifier.longestGroup).contains(group.utf8.count)
      && !group.unicodeScalars.contains { $0.properties.generalCategory == .control }
  }
}

/// Which servers have not answered lately: they are asked last.
final class ServerHealth: Sendable {
  private static let pause: Duration = .seconds(30)
  private let failures = Mutex<[String: ContinuousClock.Instant]>([:])

  func ordered(_ servers: [DirectoryServer]) -> [DirectoryServer] {
    let failed = failures.withLock { $0.filter { .now < $0.value + Self.pause } }
    return servers.filter { failed[$0.url] == nil } + servers.filter { failed[$0.url] != nil }
  }

  func failed(_ server: DirectoryServer) { failures.withLock { $0[server.url] = .now } }

  func answered(_ server: DirectoryServer) { failures.withLock { $0[server.url] = nil } }
}
