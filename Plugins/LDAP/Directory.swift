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
    var last = DirectoryFault("no server")
    for server in servers.ordered(settings.servers) {
      do {
        let proof = try proof(for: question, at: try connect(server, settings))
        servers.answered(server)
        return proof
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
    let placeholders = settings.groups?.placeholders ?? []
    let wanted =
      ["entryUUID", "objectGUID", "givenName", "sn", "displayName", "cn", "mail"] + settings.attributes
      + compared.map(\.attribute) + placeholders.subtracting(["dn"])
    guard let filter = settings.user.filled({ _ in name.text }) else { return .failure(.unknown) }
    let search = DirectorySearch(base: settings.base, filter: filter, attributes: wanted, most: 1)
    guard let entries = try connection.entries(search) else { return .failure(.several) }
    guard let entry = entries.first, !entry.name.isEmpty else { return .failure(.unknown) }
    let isNamed = compared.contains { comparison in
      let value = comparison.value.replacing("{name}", with: name.text)
      return entry.texts(comparison.attribute).contains { TypedName.canonical($0) == TypedName.canonical(value) }
    }
    return isNamed ? .success(entry) : .failure(.otherName)
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
