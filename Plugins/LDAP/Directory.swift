import Foundation
import MoongateSDK
import Synchronization

/// What a user has typed.
struct DirectoryQuestion: Sendable {
  let name: TypedName
  let password: [UInt8]
  /// A name that no entry has.
  let nobody: String
}

/// Finds a user's entry and judges the password, by the servers of a directory.
struct Directory: Sendable {
  typealias Connector = @Sendable (DirectoryServer, DirectorySettings) throws(DirectoryFault) -> any DirectoryConnection

  let settings: DirectorySettings
  let servers: ServerHealth
  let connect: Connector

  /// Asks the servers in turn until one answers. Blocks the thread.
  /// - Throws: `DirectoryRefusal` or `DirectoryFault`.
  func proof(for question: DirectoryQuestion) throws -> Proof {
    try asking { try proof(for: question, at: $0) }
  }

  /// Reads the entry of an identity again. Blocks the thread.
  ///
  /// Attack: someone who was removed from the group that `user` demands, or whose entry has a former user's name, goes
  /// on. The entry is found by its ID, and must still be one that `user` finds by its own name.
  /// - Parameter now: milliseconds since the Unix epoch.
  /// - Throws: `DirectoryFault`.
  func recheck(_ known: Identifier, at now: Int64) throws -> RecheckAnswer {
    guard let id = UUID(uuidString: String(known.value.dropFirst(LDAP.name.count + 1))) else {
      throw DirectoryFault("the identity has no ID of an entry")
    }
    let isSame = DirectoryFilter.id(id)
    return try asking { connection in
      try bindForSearch(connection)
      guard let entry = try only(isSame, at: connection) else { return .ended(because: "no entry") }
      guard let name = entry.name(comparedBy: settings.user.comparisons),
        let filter = settings.user.filled({ _ in name }),
        try only("(&\(filter)\(isSame))", at: connection) != nil
      else { return .ended(because: "`user` no longer finds the entry") }
      if let end = entry.end(at: now) { return .ended(because: end) }
      let groups = try groups(of: entry, at: connection)
      guard let identity = entry.person(named: known.display, groups: groups, by: settings) else {
        throw DirectoryFault("an entry has no ID any more")
      }
      return .confirmed(identity)
    }
  }

  /// The only entry of a filter; nil if there is none.
  private func only(_ filter: String, at connection: any DirectoryConnection) throws(DirectoryFault)
    -> DirectoryEntry?
  {
    let search = DirectorySearch(
      base: settings.base, filter: filter, attributes: attributes + DirectoryEntry.ends, most: 1)
    guard let found = try connection.entries(search) else { throw DirectoryFault("several entries have one ID") }
    return found.first { !$0.name.isEmpty }
  }

  private func asking<Answer>(_ body: (any DirectoryConnection) throws -> Answer) throws -> Answer {
    var last = DirectoryFault("no server")
    for server in servers.ordered(settings.servers) {
      do {
        let answer = try body(try connect(server, settings))
        servers.answered(server)
        return answer
      } catch let fault as DirectoryFault where fault.isOfServer {
        servers.failed(server)
        last = fault
      }
    }
    throw last
  }

  private func proof(for question: DirectoryQuestion, at connection: any DirectoryConnection) throws -> Proof {
    try bindForSearch(connection)
    let found = try entry(of: question.name, at: connection)
    // Attack: the answer for an unknown name comes sooner, and tells who is known. There is a bind in any case.
    let entry: DirectoryEntry? = if case .success(let entry) = found { entry } else { nil }
    let answer: BindAnswer
    do throws(DirectoryFault) {
      answer = try connection.bind(entry?.name ?? question.nobody, question.password)
    } catch {
      throw DirectoryRefusal.silent(error)
    }
    let known = try found.get()
    if let refusal = try DirectoryRefusal(to: answer) { throw refusal }
    let groups = try groups(of: known, at: connection)
    guard let proof = known.proof(of: question.name, groups: groups, by: settings) else {
      throw DirectoryRefusal.noIdentity
    }
    return proof
  }

  private func bindForSearch(_ connection: any DirectoryConnection) throws(DirectoryFault) {
    let password = Array((settings.account?.password ?? "").utf8)
    let answer = try connection.bind(settings.account?.name ?? "", password)
    guard answer.code == 0 else { throw DirectoryFault(answer.code, answer.text, in: "the bind of `bind_dn`") }
  }

  /// The only entry of the name.
  ///
  /// Attack: a name that finds an entry by another spelling has attempts of its own (accents, which Active Directory
  /// ignores). The entry must hold the name as it is counted.
  private func entry(of name: TypedName, at connection: any DirectoryConnection) throws(DirectoryFault) -> Result<
    DirectoryEntry, DirectoryRefusal
  > {
    let compared = settings.user.comparisons
    guard let filter = settings.user.filled({ _ in name.text }) else { return .failure(.unknown) }
    let search = DirectorySearch(base: settings.base, filter: filter, attributes: attributes, most: 1)
    guard let entries = try connection.entries(search) else { return .failure(.several) }
    guard let entry = entries.first, !entry.name.isEmpty else { return .failure(.unknown) }
    let isNamed = compared.contains { comparison in
      let value = comparison.value.replacing("{name}", with: name.text)
      return entry.texts(comparison.attribute).contains { TypedName.canonical($0) == TypedName.canonical(value) }
    }
    return isNamed ? .success(entry) : .failure(.otherName)
  }

  /// The attributes of a user's entry that are read.
  private var attributes: [String] {
    ["entryUUID", "objectGUID", "givenName", "sn", "displayName", "cn", "mail"] + settings.attributes
      + settings.user.comparisons.map(\.attribute) + (settings.groups?.placeholders ?? []).subtracting(["dn"])
  }

  /// The names of the groups, searched as the account that searches.
  private func groups(of entry: DirectoryEntry, at connection: any DirectoryConnection) throws(DirectoryFault)
    -> [String]
  {
    guard let groups = settings.groups else { return [] }
    try bindForSearch(connection)
    var names: Set<String> = []
    var members = [entry.name]
    var searched = 0
    while searched < members.count {
      let member = members[searched]
      searched += 1
      guard let filter = groups.filled({ $0.lowercased() == "dn" ? member : entry.texts($0).first }) else { continue }
      let search = DirectorySearch(
        base: settings.groupBase, filter: filter, attributes: ["cn"], most: Identifier.maxGroups)
      let found = try connection.entries(search)
      names.formUnion((found ?? []).compactMap { $0.texts("cn").first })
      // Refused, not cut: a group that is missing may be one by which a service refuses.
      guard let found, names.count <= Identifier.maxGroups else {
        throw DirectoryFault("a user has more than \(Identifier.maxGroups) groups: narrow `groups` or `group_base`")
      }
      if settings.isNested { members += found.map(\.name).filter { !members.contains($0) } }
    }
    return names.sorted()
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
