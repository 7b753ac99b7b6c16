import Foundation
import MoongateSDK
import Synchronization
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

  /// The gateway counts an attempt as failed whose call takes longer than ten seconds.
  @Test func allServersHaveOneDeadline() throws {
    let asked = Attempted.Reasons()
    let settings = try DirectorySettings(Attempted.settings(["also": ["ldap://b.example.com"]]))
    let ask = { (patience: Duration) throws in
      let directory = Directory(
        settings: settings, servers: ServerHealth(),
        connect: { server, _, time throws(DirectoryFault) in
          asked.told.withLock { $0.append(time <= .seconds(2) ? "in time" : "too long") }
          throw DirectoryFault(-1, "no answer", in: server.url)
        }, end: ContinuousClock.now + patience)
      _ = try directory.user(for: DirectoryQuestion(name: try TypedName("ada"), password: [1], nobody: "cn=x", now: 0))
    }
    #expect(throws: DirectoryFault.self) { try ask(.seconds(2)) }
    #expect(throws: DirectoryFault.self) { try ask(.zero) }
    #expect(asked.told.withLock { $0 } == ["in time", "in time"])
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
    // The next attempt asks another server first.
    _ = try await attempt.refusal()
    #expect(directory.taken().first == "connect ldap://b.example.com")
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

  /// Attack: names that find several entries are refused soon, and would make the time of all refusals short again.
  @Test func onlyComparedPasswordsSetThePace() {
    #expect(!DirectoryRefusal.several.isOfEntry && !DirectoryRefusal.otherName.isOfEntry)
  }

  @Test func theFunctionIdentityReadsTheEntry() async throws {
    var attempt = Attempted(provider: PretendedDirectory.open().provider())
    attempt.identity = IdentityMapper { claims in
      MappedIdentity(
        email: "own@example.com", firstName: claims["givenName"]?.text,
        groups: (claims["groups"]?.texts ?? []) + [claims["dn"]?.text ?? ""])
    }
    let proof = try #require(try await attempt.signIn().proof)
    #expect(proof.proved.first?.groups == ["ops", "uid=ada,dc=example"])
    #expect(proof.claimed.map(\.value) == ["own@example.com"] && proof.firstName == "Ada" && proof.lastName == nil)
    // Without it, the rules of `moongate policy claims` are the same.
    let claims: [String: JSONClaim] = [
      "cn": .text("Ada"), "sn": .text("L"), "mail": .list([.text("x"), .text("A@b.cd")]),
    ]
    let mapped = try attempt.provider.identity(from: claims, settings: attempt.settings)
    #expect(mapped == MappedIdentity(email: "a@b.cd", firstName: "Ada"))
  }

  /// A group whose name cannot be stored keeps nobody from signing in.
  @Test func groupsWithUnusableNamesAreLeftOut() async throws {
    let open = PretendedDirectory.open()
    let directory = PretendedDirectory(bind: open.bind) { search in
      guard search.attributes == ["cn"] else { return open.search(search) }
      return ["ops", "a\nb", String(repeating: "x", count: 257), ""].map {
        DirectoryEntry(name: "cn=\($0)", ["cn": [$0]])
      }
    }
    let proof = try await Attempted(provider: directory.provider()).signIn().proof
    #expect(proof?.proved.first?.groups == ["ops"])
  }

  /// A search of groups that takes too long makes no server the last one, and the password is not sent again.
  @Test func aFaultAfterTheBindIsNotTriedElsewhere() async throws {
    let open = PretendedDirectory.open()
    let directory = PretendedDirectory(
      bind: open.bind, search: { open.search($0) }, failing: { $0.attributes == ["cn"] })
    var attempt = Attempted(provider: directory.provider())
    attempt.settings = Attempted.settings(["also": ["ldap://b.example.com"]])
    await #expect(throws: DirectoryFault.self) { try await attempt.signIn() }
    await #expect(throws: DirectoryFault.self) { try await attempt.signIn() }
    let taken = directory.taken()
    #expect(taken.filter { $0.hasPrefix("bind uid") }.count == 2 && !taken.contains("connect ldap://b.example.com"))
  }

  @Test func theDoctorBindsToEachServer() async throws {
    let directory = PretendedDirectory.open()
    var attempt = Attempted(provider: directory.provider())
    attempt.settings = Attempted.settings(["also": ["ldap://b.example.com"]])
    let told = try await attempt.provider.probe(with: attempt.context().tools)
    #expect(told == "ldap://localhost, ldap://b.example.com accepts the password of bind.dn")
    #expect(directory.taken().filter { $0 == "bind cn=search" }.count == 2)
    let down = Attempted(provider: directory.provider(down: ["ldap://localhost"]))
    await #expect(throws: DirectoryFault.self) { try await down.provider.probe(with: down.context().tools) }
  }
}
