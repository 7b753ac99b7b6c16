import Foundation
import MoongateSDK
import Testing

@testable import LDAP

@Suite("Sign-in by a directory") struct SignInTests {
  @Test func findsTheEntryAndBindsWithItsName() async throws {
    let directory = PretendedDirectory.open()
    var attempt = Attempted(provider: directory.provider())
    attempt.settings = Attempted.settings(["attributes": ["Department", "missing"]])
    let proof = try #require(try await attempt.signIn(" Ada ").proof)
    #expect(proof.proved.map(\.value) == ["ldap 1246eef6-7fba-1041-99dc-d3be810c51f6"])
    #expect(proof.proved.first?.groups == ["ops"])
    #expect(proof.proved.first?.attributes == ["Department": "Analysis"])
    #expect(proof.claimed.map(\.value) == ["ada@example.com"] && proof.attested.isEmpty)
    #expect([proof.firstName, proof.lastName] == ["Ada", "Lovelace"])
    #expect(
      directory.taken() == [
        "connect ldap://localhost", "bind cn=search", "search (uid=Ada)", "bind uid=ada,dc=example", "bind cn=search",
        #"search (&(objectClass=groupOfNames)(member=uid\3dada\2cdc\3dexample))"#,
      ])
  }

  @Test func groupsOfGroups() async throws {
    var attempt = Attempted(provider: PretendedDirectory.open().provider())
    attempt.settings = Attempted.settings(["nested_groups": true])
    #expect(try await attempt.signIn().proof?.proved.first?.groups == ["all", "ops"])
  }

  /// Attack: a directory in which people edit their own address.
  @Test func anAddressIsVerifiedAsFarAsTheOperatorSays() async throws {
    var attempt = Attempted(provider: PretendedDirectory.open().provider())
    attempt.settings = Attempted.settings(["email_verified": "always"])
    var proof = try #require(try await attempt.signIn().proof)
    #expect(proof.proved.count == 1 && proof.attested.map(\.value) == ["ada@example.com"] && proof.claimed.isEmpty)
    attempt.settings = Attempted.settings(["email_verified": "always", "trusted_domains": ["Example.com"]])
    proof = try #require(try await attempt.signIn().proof)
    #expect(proof.proved.map(\.kind) == [.federated, .email] && proof.attested.isEmpty)
  }

  /// Attack: the answers, or their times, tell which names are known. An unknown name is bound too.
  @Test func unknownNamesAreBoundToo() async throws {
    let directory = PretendedDirectory.open()
    #expect(
      try await Attempted(provider: directory.provider()).refusal("nobody") == ["invalid_credentials", "no entry"])
    #expect(directory.taken().last == "bind cn=nobody-BwcHBwcHBwcHBwcH,dc=example")
    let attempt = Attempted(provider: directory.provider())
    #expect(try await attempt.refusal("ada", "wrong") == ["invalid_credentials", "result 49: wrong password"])
    let several = Attempted(provider: directory.provider())
    #expect(try await several.refusal("several") == ["invalid_credentials", "several entries"])
    // Attack: Active Directory finds `ada` by `áda`, which has attempts of its own.
    let accent = Attempted(provider: directory.provider())
    #expect(try await accent.refusal("áda").first == "invalid_credentials")
    #expect(directory.taken().last == "bind cn=nobody-BwcHBwcHBwcHBwcH,dc=example")
  }

  /// Attack (RFC 4513 section 5.1.2): an empty password is an anonymous bind, which succeeds. So is one that begins
  /// with NUL, for a server written in C.
  @Test(arguments: ["", "\0", "\0right", "ri\0ght", String(repeating: "x", count: 1025)])
  func passwordsThatReachNoDirectory(_ password: String) async throws {
    let directory = PretendedDirectory(bind: { _, _ in BindAnswer(code: 0) }, search: { _ in [] })
    guard case .malformed(let problem) = try await Attempted(provider: directory.provider()).signIn("ada", password)
    else {
      Issue.record("not malformed")
      return
    }
    #expect(problem.field == "password" && directory.taken().isEmpty)
  }

  @Test func everyKeyboardGivesTheSamePassword() throws {
    let bytes = { (text: String) in
      try TypedSecret.bytes(in: ProviderInput(fields: ["password": .text(text)], defaultRegion: ""))
    }
    #expect(try bytes("u\u{308}") == bytes("ü"))
    #expect(try bytes(" a ") == Array(" a ".utf8))
  }

  @Test func asksTheNextServer() async throws {
    let directory = PretendedDirectory.open()
    let provider = directory.provider(down: ["ldap://a.example.com"])
    var attempt = Attempted(provider: provider)
    attempt.settings = Attempted.settings(["url": "ldap://a.example.com", "also": ["ldap://b.example.com"]])
    #expect(try await attempt.signIn().proof != nil)
    #expect(directory.taken().prefix(2) == ["connect ldap://a.example.com", "connect ldap://b.example.com"])
    // For a while, the one that did not answer comes last.
    #expect(try await attempt.signIn().proof != nil)
    #expect(directory.taken().first == "connect ldap://b.example.com")
  }

  @Test func aDirectoryThatIsDownIsAFault() async throws {
    let attempt = Attempted(provider: PretendedDirectory.open().provider(down: ["ldap://localhost"]))
    await #expect(throws: DirectoryFault.self) { try await attempt.signIn() }
  }

  /// Attack: a directory that answers wrong passwords late, or breaks the connection, would make each guess a fault,
  /// which is not counted. Another server is not asked either: one attempt is one bind.
  @Test func aBindWithoutAnAnswerCounts() async throws {
    let directory = PretendedDirectory(
      bind: { name, _ in name == "cn=search" ? BindAnswer(code: 0) : nil }, search: PretendedDirectory.open().search)
    var attempt = Attempted(provider: directory.provider())
    attempt.settings = Attempted.settings(["also": ["ldap://b.example.com"]])
    #expect(
      try await attempt.refusal() == [
        "directory_silent", "no answer to the bind: ldap: a bind failed with result -5: Timed out",
      ])
    #expect(directory.taken().filter { $0.hasPrefix("bind uid") }.count == 1)
  }

  @Test func tooManyGroupsAreAFault() async throws {
    let open = PretendedDirectory.open()
    let directory = PretendedDirectory(bind: open.bind) { $0.attributes == ["cn"] ? nil : open.search($0) }
    let attempt = Attempted(provider: directory.provider())
    await #expect {
      try await attempt.signIn()
    } throws: {
      "\($0)" == "ldap: a user has more than 500 groups: narrow `groups` or `group_base`"
    }
  }

  @Test func aDryRunAsksNoDirectory() async throws {
    struct Nowhere: Messenger {
      func send(_ message: Message) async throws(DeliveryFault) {}
    }
    let played = PretendedDirectory.open().provider().rehearsal(sending: Nowhere())
    let attempt = Attempted(provider: try #require(played as? LDAP))
    await #expect(throws: DirectoryFault.self) { try await attempt.signIn() }
  }

  /// Attack: the time of a refusal tells whether the directory has hashed a password.
  @Test func refusalsTakeTheSameTime() {
    let pace = RefusalPace()
    #expect(pace.remaining(after: .milliseconds(20), "a", isOfEntry: false) == .milliseconds(230))
    #expect(pace.remaining(after: .milliseconds(400), "a", isOfEntry: true) == .milliseconds(100))
    #expect(pace.remaining(after: .milliseconds(20), "a", isOfEntry: false) == .milliseconds(480))
    #expect(pace.remaining(after: .milliseconds(20), "b", isOfEntry: false) == .milliseconds(230))
    // A known name waits as long.
    #expect(pace.remaining(after: .milliseconds(20), "a", isOfEntry: true) == .milliseconds(480))
    for _ in 1...10 { _ = pace.remaining(after: .milliseconds(20), "a", isOfEntry: true) }
    #expect(pace.remaining(after: .milliseconds(20), "a", isOfEntry: false) == .milliseconds(230))
    _ = pace.remaining(after: .seconds(9), "a", isOfEntry: true)
    #expect(pace.remaining(after: .milliseconds(20), "a", isOfEntry: false) == .milliseconds(1980))
    // Attack: names that find several entries are refused soon, and would make the time short again.
    #expect(!DirectoryRefusal.several.isOfEntry && !DirectoryRefusal.otherName.isOfEntry)
  }
}
