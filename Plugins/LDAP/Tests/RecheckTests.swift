import Foundation
import MoongateSDK
import Testing

@testable import LDAP

/// An entry is read again by its ID.
@Suite("Rechecks by a directory") struct RecheckTests {
  private static let id = "1246eef6-7fba-1041-99dc-d3be810c51f6"
  private static let identity = Identifier(kind: .federated, value: "ldap \(id)", display: "ada", groups: ["ops"])
  private static let isSame = DirectoryFilter.id(UUID(uuidString: id) ?? UUID())
  /// In milliseconds: 2027-01-15.
  private static let now: Int64 = 1_800_000_000_000

  /// A directory that has the entry with these attributes.
  private static func directory(
    _ values: [String: [String]] = [:], isThere: Bool = true, isStill: Bool = true, isUp: Bool = true
  ) -> PretendedDirectory {
    let known = ["entryUUID": [id], "uid": ["ada"], "mail": ["ada@example.com"], "department": ["Analysis"]]
    let ada = DirectoryEntry(name: "uid=ada,dc=example", known.merging(values) { $1 })
    return PretendedDirectory(
      bind: { name, _ in isUp && name == "cn=search" ? BindAnswer(code: 0) : isUp ? BindAnswer(code: 49) : nil },
      search: { search in
        switch search.filter {
        case isSame: isThere ? [ada] : []
        case "(&(uid=ada)\(isSame))": isStill ? [ada] : []
        case let filter where filter.contains("member="): [DirectoryEntry(name: "cn=dev", ["cn": ["dev"]])]
        default: []
        }
      })
  }

  private static func recheck(
    _ directory: PretendedDirectory, _ settings: [String: SettingValue] = [:], state: [UInt8] = [],
    down: Set<String> = []
  ) async throws -> RecheckAnswer {
    let tools = StepTools(
      randomBytes: { [UInt8](repeating: 7, count: $0) },
      settings: Attempted.settings(settings.merging(["recheck": "1h"]) { first, _ in first }), web: NoWeb(),
      clock: StepClock { now })
    return try await directory.provider(down: down).recheck(
      RecheckedIdentity(identity: identity, state: state), with: tools)
  }

  @Test func groupsAndAttributesAreReadAgain() async throws {
    let directory = Self.directory()
    let answer = try await Self.recheck(directory, ["attributes": ["department"]])
    guard case .confirmed(let identity) = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(
      identity == Self.identity && identity.groups == ["dev"] && identity.attributes == ["department": "Analysis"])
    #expect(directory.taken().prefix(3) == ["connect ldap://localhost", "bind cn=search", "search \(Self.isSame)"])
  }

  /// Attack: a new user gets the name of a former one. The entry is found by its ID and not by its name.
  @Test func anEntryThatIsGoneEnds() async throws {
    let directory = Self.directory(isThere: false)
    #expect(try await Self.recheck(directory, state: LDAP.wasMissing) == .ended(because: "no entry"))
  }

  /// Attack on ourselves: a replica that does not have the entry yet, or that no longer lets it be read, signs users
  /// out.
  @Test func anEntryMustBeMissingTwiceAndAtAllServers() async throws {
    let directory = Self.directory(isThere: false)
    await #expect(throws: DirectoryFault.self) { try await Self.recheck(directory) }
    let also: [String: SettingValue] = ["also": ["ldap://b.example.com"]]
    await #expect(throws: DirectoryFault.self) {
      try await Self.recheck(directory, also, state: LDAP.wasMissing, down: ["ldap://b.example.com"])
    }
    let answer = try await Self.recheck(directory, also, state: LDAP.wasMissing)
    #expect(answer == .ended(because: "no entry"))
    #expect(directory.taken().contains("connect ldap://b.example.com"))
  }

  /// Directories do not compare case, so a sign-in works by an entry whose suffix is written in another way.
  @Test func namesWithASuffixAreFoundWhateverTheirCase() {
    let entry = DirectoryEntry(name: "cn=ada", ["userPrincipalName": ["ada@Corp.Example.com"]])
    func name(_ value: String) -> String? {
      entry.name(comparedBy: [DirectoryFilter.Comparison(attribute: "userprincipalname", value: value)])
    }
    #expect(name("{name}@corp.example.com") == "ada" && name("ADA@{name}") == "Corp.Example.com")
    #expect(name("{name}") == "ada@Corp.Example.com" && name("{name}@other.example.com") == nil)
  }

  /// Attack: the operator's filter demands a group, from which the user was removed.
  @Test func anEntryThatTheFilterNoLongerFindsEnds() async throws {
    let answer = try await Self.recheck(Self.directory(isStill: false))
    #expect(answer == .ended(because: "`user` no longer finds the entry"))
  }

  /// Attack: a disabled account goes on, because its entry is still there.
  @Test(arguments: [
    ("userAccountControl", "514"), ("accountExpires", "134100000000000000"),
    ("pwdAccountLockedTime", "000001010000Z"), ("nsAccountLock", "TRUE"), ("shadowExpire", "1"),
  ])
  func disabledAndExpiredEntriesEnd(attribute: String, value: String) async throws {
    guard case .ended(let because) = try await Self.recheck(Self.directory([attribute: [value]])) else {
      Issue.record("\(attribute) is not read")
      return
    }
    #expect(because.hasPrefix(attribute))
  }

  /// Not every server refuses the bind of an entry that has ended.
  @Test func anEntryThatHasEndedCannotSignIn() async throws {
    let ada = DirectoryEntry(
      name: "uid=ada,dc=example", ["entryUUID": [Self.id], "uid": ["ada"], "nsAccountLock": ["TRUE"]])
    let directory = PretendedDirectory(
      bind: { _, _ in BindAnswer(code: 0) }, search: { $0.filter == "(uid=ada)" ? [ada] : [] })
    let attempt = Attempted(provider: directory.provider())
    #expect(try await attempt.refusal() == ["directory_denied", "nsAccountLock: disabled"])
  }

  /// Attack: strangers lock a user out by wrong passwords, and so end the sessions.
  @Test(arguments: [
    ("userAccountControl", "512"), ("accountExpires", "0"), ("accountExpires", "9223372036854775807"),
    ("accountExpires", "200000000000000000"), ("pwdAccountLockedTime", "20260101000000Z"), ("nsAccountLock", "false"),
    ("shadowExpire", "-1"), ("shadowExpire", "0"), ("shadowExpire", "99999"),
  ])
  func otherValuesEndNothing(attribute: String, value: String) async throws {
    guard case .confirmed = try await Self.recheck(Self.directory([attribute: [value]])) else {
      Issue.record("\(attribute) \(value)")
      return
    }
  }

  /// Attack: a directory that is down, or that no longer takes the password of the gateway, signs everybody out.
  @Test func aDirectoryThatDoesNotAnswerEndsNothing() async throws {
    await #expect(throws: DirectoryFault.self) { try await Self.recheck(Self.directory(isUp: false)) }
    await #expect(throws: DirectoryFault.self) {
      try await Self.recheck(Self.directory(), ["bind.dn": "cn=other"])
    }
  }

  /// The bytes of an `objectGUID` are in another order than those of its text.
  @Test func identitiesOfActiveDirectoryAreFound() {
    #expect(
      Self.isSame.hasSuffix(#"(objectGUID=\f6\ee\46\12\ba\7f\41\10\99\dc\d3\be\81\0c\51\f6))"#), "\(Self.isSame)")
  }

  @Test func aSignInIsRecheckedOnlyWithTheSetting() async throws {
    var attempt = Attempted(provider: PretendedDirectory.open().provider())
    #expect(try await attempt.signIn().proof?.recheck == nil)
    attempt.settings = Attempted.settings(["recheck": "1h"])
    #expect(try await attempt.signIn().proof?.recheck == [])
  }
}
