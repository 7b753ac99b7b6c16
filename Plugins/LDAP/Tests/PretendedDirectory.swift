import Foundation
import MoongateSDK
import Synchronization

@testable import LDAP

/// A directory with recorded answers.
final class PretendedDirectory: Sendable {
  /// What it was asked.
  let asked = Mutex<[String]>([])
  let bind: @Sendable (_ name: String, _ password: String) -> BindAnswer?
  let search: @Sendable (DirectorySearch) -> [DirectoryEntry]?
  let failing: @Sendable (DirectorySearch) -> Bool

  /// - Parameter failing: searches without an answer.
  init(
    bind: @escaping @Sendable (String, String) -> BindAnswer?,
    search: @escaping @Sendable (DirectorySearch) -> [DirectoryEntry]?,
    failing: @escaping @Sendable (DirectorySearch) -> Bool = { _ in false }
  ) {
    self.bind = bind
    self.search = search
    self.failing = failing
  }

  struct Connection: DirectoryConnection {
    let directory: PretendedDirectory
    let url: String

    func bind(_ name: String, _ password: [UInt8]) throws(DirectoryFault) -> BindAnswer {
      directory.asked.withLock { $0.append("bind \(name)") }
      guard let answer = directory.bind(name, String(decoding: password, as: UTF8.self)) else {
        throw DirectoryFault(-5, "Timed out", in: "a bind")
      }
      return answer
    }

    func entries(_ search: DirectorySearch) throws(DirectoryFault) -> [DirectoryEntry]? {
      directory.asked.withLock { $0.append("search \(search.filter)") }
      if directory.failing(search) { throw DirectoryFault(-5, "Timed out", in: "a search") }
      return directory.search(search)
    }
  }

  /// The provider with this directory.
  /// - Parameter down: servers that do not answer.
  func provider(down: Set<String> = []) -> LDAP {
    LDAP(pace: RefusalPace { _ in }) { [self] server, _, _ throws(DirectoryFault) in
      asked.withLock { $0.append("connect \(server.url)") }
      if down.contains(server.url) { throw DirectoryFault(-1, "Can't contact LDAP server", in: server.url) }
      return Connection(directory: self, url: server.url)
    }
  }

  /// What it was asked since the last call.
  func taken() -> [String] {
    asked.withLock { asked in
      defer { asked = [] }
      return asked
    }
  }

  /// OpenLDAP with one user, who is in two groups, one of them by the other.
  static func open(password: String = "right") -> PretendedDirectory {
    let ada = DirectoryEntry(
      name: "uid=ada,dc=example",
      [
        "entryUUID": ["1246EEF6-7fba-1041-99dc-d3be810c51f6"], "uid": ["ada"], "mail": ["ada@example.com"],
        "givenName": ["Ada"], "sn": ["Lovelace"], "department": ["Analysis"],
      ])
    return PretendedDirectory(
      bind: { name, given in
        if name.isEmpty || name == "cn=search" { return BindAnswer(code: 0) }
        return BindAnswer(code: name == ada.name && given == password ? 0 : 49)
      },
      search: { search in
        if search.filter.lowercased() == "(uid=ada)" || search.filter == "(uid=\\c3\\a1da)" { return [ada] }
        if search.filter.contains("member=uid\\3dada") { return [group("ops")] }
        if search.filter.contains("member=cn\\3dops") { return [group("all"), group("ops")] }
        return search.filter == "(uid=several)" ? nil : []
      })
  }

  private static func group(_ name: String) -> DirectoryEntry {
    DirectoryEntry(name: "cn=\(name),dc=example", ["cn": [name]])
  }
}

struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

/// A step of the provider.
struct Attempted {
  let provider: LDAP
  var settings = Self.settings()
  var identity = IdentityMapper()
  let reasons = Reasons()

  final class Reasons: Sendable {
    let told = Mutex<[String]>([])
  }

  static func settings(_ values: [String: SettingValue] = [:]) -> StepSettings {
    let standard = DirectorySettings.fields.compactMap { field in field.standard.map { (field.name, $0) } }
    let own: [String: SettingValue] = [
      "url": "ldap://localhost", "base": "dc=example", "bind.dn": "cn=search", "user": "(uid={name})",
      "groups": "(&(objectClass=groupOfNames)(member={dn}))",
    ]
    return StepSettings(
      secrets: ["bind.password": { "of the searcher" }],
      values: Dictionary(standard) { first, _ in first }.merging(own) { _, own in own }.merging(values) { _, own in own
      })
  }

  func context(state: [UInt8] = []) -> StepContext {
    let reasons = reasons
    return StepContext(
      flow: "work", purpose: .prove, account: nil, identifier: nil, state: state, now: 0, callback: nil,
      tools: StepTools(
        randomBytes: { [UInt8](repeating: 7, count: $0) }, settings: settings, web: NoWeb(),
        log: StepLog(explaining: { reason in reasons.told.withLock { $0.append(reason) } }) { _, _, _ in },
        identity: identity))
  }

  func signIn(_ name: String = "ada", _ password: String = "right") async throws -> StepAnswer {
    let begun = ProviderInput(fields: ["username": .text(name)], defaultRegion: "")
    guard case .ask(_, let state, _) = try await provider.begin(context(), begun) else {
      return try await provider.begin(context(), begun)
    }
    let input = ProviderInput(fields: ["password": .text(password)], defaultRegion: "")
    return try await provider.submit(context(state: state), input)
  }

  /// The reason of the refusal for the user, and the one for the operator.
  func refusal(_ name: String = "ada", _ password: String = "right") async throws -> [String] {
    guard case .refused(let reason) = try await signIn(name, password) else { return [] }
    return [reason.rawValue] + reasons.told.withLock { $0 }
  }
}

extension StepAnswer {
  var proof: Proof? { if case .proved(let proof) = self { proof } else { nil } }
}
