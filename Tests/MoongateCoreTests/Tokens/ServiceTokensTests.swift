import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Service tokens: what operators do to them, and how they are looked up.
@Suite struct ServiceTokensTests {
  private let clock = ManualClock()
  private let store: SQLiteStore
  private let keys: KeyRing
  private let generations: ActiveGeneration
  private let tokens: ServiceTokens
  private let directory: AccessTokenDirectory
  private let here = ClientAddress(bytes: [192, 0, 2, 7]) ?? .unspecified

  init() throws {
    store = try SQLiteStore.memory()
    keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    generations = ActiveGeneration(TestGeneration(gateway: .test(), flows: [], policies: []), at: clock.now())
    tokens = ServiceTokens(store: store, keys: keys, clock: clock, random: SystemRandom())
    directory = Self.directory(store, generations, keys, clock)
  }

  private static func directory(
    _ store: any Store, _ generations: ActiveGeneration, _ keys: KeyRing, _ clock: ManualClock
  ) -> AccessTokenDirectory {
    AccessTokenDirectory(
      store: store, generations: generations, keys: keys, clock: clock, random: SystemRandom(),
      logger: CapturedLog().logger)
  }

  private func create(_ name: String = "ci", expires: String? = nil) async throws -> CreatedAccessToken {
    try await tokens.create(
      ServiceTokens.NewToken(name: name, groups: [], expires: expires, networks: [], rules: .standard))
  }

  private func finds(_ secret: SecretText, by directory: AccessTokenDirectory? = nil) async throws -> String? {
    guard case .live(let snapshot) = try await (directory ?? self.directory).find(secret, from: here) else {
      return nil
    }
    return snapshot.account.id
  }

  @Test func tokenIsFoundByTheHashOfItsSecret() async throws {
    let made = try await create()
    let text = made.secret.reveal()
    #expect(
      text.hasPrefix("mgt_") && text.utf8.count == AccessTokenSecret.length
        && text.wholeMatch(of: /mgt_[A-Za-z0-9_-]{43}/) != nil)
    #expect(try await finds(made.secret) == "token:ci")
    #expect(
      made.token.hash.bytes != TokenHash(of: text.utf8).bytes,
      "an HMAC, which a copy of the database cannot be tried against")
    let other = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    #expect(
      try await finds(made.secret, by: Self.directory(store, generations, other, clock)) == nil,
      "another gateway's token")
    #expect("\(made.secret)" == "•••")
  }

  @Test func aTakenNameIsRefused() async throws {
    _ = try await create()
    await #expect(throws: ServiceTokens.Failure.nameTaken) { try await create() }
    try await tokens.revoke("ci")
    _ = try await create()
    await #expect(throws: ServiceTokens.Failure.unknown) { try await tokens.revoke("monitor") }
    await #expect(throws: ServiceTokens.Failure.unknown) { try await tokens.rotate("monitor") }
  }

  @Test func rotatingKeepsTheLifetimeAndTheOldSecretForAWhile() async throws {
    let old = try await create(expires: "90d")
    clock.advance(by: .seconds(86_400))
    let new = try await tokens.rotate("ci", overlap: .seconds(3600))
    #expect(new.token.expiresAt == clock.now() + .seconds(90 * 86_400))
    #expect(try await finds(old.secret) == "token:ci")
    #expect(try await finds(new.secret) == "token:ci")
    #expect(try await tokens.list().map(\.previousUntil) == [clock.now() + .seconds(3600)])
    clock.advance(by: .seconds(3600))
    #expect(try await finds(old.secret) == nil)
    #expect(try await finds(new.secret) == "token:ci")
    #expect(try await tokens.list().map(\.previousUntil) == [nil])
    // Attack: the overlap extends the life of a secret that was about to expire.
    let brief = try await create("brief", expires: "10s")
    _ = try await tokens.rotate("brief", overlap: .seconds(3600))
    clock.advance(by: .seconds(10))
    #expect(try await finds(brief.secret) == nil)
    await #expect(throws: ServiceTokens.Failure.expired) { try await tokens.rotate("brief") }
  }

  @Test func revokingEndsEverySecretOfTheName() async throws {
    let old = try await create()
    let new = try await tokens.rotate("ci")
    try await tokens.revoke("ci")
    #expect(try await finds(old.secret) == nil)
    #expect(try await finds(new.secret) == nil)
    #expect(try await tokens.list().isEmpty)
    let kinds = try await store.events(limit: 10).map(\.kind)
    #expect(kinds.filter { "\($0)".hasPrefix("token") } == [.tokenRevoked, .tokenRotated, .tokenCreated])
    #expect(try await store.events(limit: 10).allSatisfy { !String(decoding: $0.json, as: UTF8.self).contains("mgt_") })
  }

  @Test func tokenExpiresToTheMillisecondAndIsReportedOnce() async throws {
    let made = try await create(expires: "1s")
    clock.advance(by: .milliseconds(999))
    #expect(try await finds(made.secret) == "token:ci")
    clock.advance(by: .milliseconds(1))
    #expect(try await finds(made.secret) == nil)
    #expect(try await tokens.list().map(\.isExpired) == [true])
    let sweep = AccessTokenSweep(store: store, clock: clock, random: SystemRandom())
    for _ in 0..<2 { #expect(try await !sweep.step()) }
    #expect(try await store.events(limit: 10).count { $0.kind == .tokenExpired } == 1)
  }

  /// A rotation of the master key loses no token: each is moved when it is used.
  @Test func aTokenMovesToTheCurrentKeyWhenItIsUsed() async throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let ring = KeyRing(try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated()))
    let made = try await create()
    let after = Self.directory(store, generations, ring, clock)
    #expect(try await store.accessTokensByKey() == [keys.currentName: 1])
    #expect(try await finds(made.secret, by: after) == "token:ci")
    #expect(try await store.accessTokensByKey() == [ring.currentName: 1])
    #expect(try await finds(made.secret, by: after) == "token:ci")
  }

  /// Attack: a thousand guesses at once. The ledger counts them, and an operator who lifts the lock lifts it at once.
  @Test func wrongTokensAreCountedByAddress() async throws {
    let made = try await create()
    for _ in 0..<60 { #expect(try await finds(AccessTokenSecret(from: SystemRandom()).text) == nil) }
    let until = clock.now() + .seconds(900)
    guard case .locked(until) = try await directory.find(made.secret, from: here) else {
      Issue.record("a right token passes from a locked address")
      return
    }
    #expect(directory.limiter.state(of: here, at: clock.now()) == .locked(until: until))
    #expect(directory.limiter.state(of: .unspecified, at: clock.now()) == .open)
    let lock = try #require(try await store.locks(at: clock.now()).first)
    #expect(lock.provider == .token && lock.limit == "wrong")
    #expect(try await store.liftLock(lock.id, at: clock.now()))
    clock.advance(by: .seconds(1))
    #expect(directory.limiter.state(of: here, at: clock.now()) == .unknown, "the ledger is asked again")
    #expect(try await finds(made.secret) == "token:ci")
    #expect(directory.limiter.state(of: here, at: clock.now()) == .open)
  }

  @Test(arguments: [
    ("ci", true), ("a", true), ("ci-2.prod_x", true), ("7zip", true), ("", false), ("CI", false), ("-ci", false),
    (".ci", false), ("c i", false),
    ("c/i", false), ("ci\n", false), ("ci\r\nX: y", false), (String(repeating: "a", count: 49), false), ("ç", false),
  ]) func names(_ text: String, _ isName: Bool) {
    #expect((ServiceTokenName(text) != nil) == isName)
  }

  @Test(
    arguments: [
      ("90d", 7_776_000_000), ("1h30m", 5_400_000), ("0s", 0), ("250ms", 250), ("1m", 60_000), ("", nil), ("90", nil),
      ("d", nil), ("-1d", nil),
      ("1.5h", nil), ("30m1h", nil), ("1h1h", nil), ("99999d", nil), ("1d ", nil),
    ] as [(String, Int64?)]) func durations(_ text: String, _ milliseconds: Int64?)
  {
    #expect(Duration(asWritten: text)?.wholeMilliseconds == milliseconds)
  }

  @Test(
    arguments: [
      ("10.0.0.0/8", "10.0.0.0/8"), ("10.1.2.3/8", "10.0.0.0/8"), ("192.0.2.7", "192.0.2.7/32"),
      ("2001:db8::/32", "2001:db8::/32"),
      ("::1", "::1/128"),
      ("", nil), ("10.0.0.0/33", nil), ("10.0.0.0/", nil), ("10.0.0.0/8/8", nil), ("10.0.0/8", nil), ("host", nil),
      ("10.0.0.0/-1", nil), ("10.0.0.0/+8", nil), ("10.0.0.0/-0", nil), ("10.0.0.0/ 8", nil), ("::/+0", nil),
    ] as [(String, String?)]) func networks(_ text: String, _ meaning: String?)
  {
    #expect(AddressBlock(text)?.description == meaning)
  }

  @Test func invalidInputIsReported() throws {
    func problem(_ name: String = "ci", groups: [String] = [], expires: String? = nil, networks: [String] = [])
      -> OperatorInputProblem?
    {
      do throws(OperatorInputProblem) {
        _ = try ServiceTokens.NewToken(
          name: name, groups: groups, expires: expires, networks: networks, rules: .standard)
        return nil
      } catch {
        return error
      }
    }
    #expect(problem() == nil)
    #expect(problem("C I")?.field == "name")
    #expect(problem(groups: ["ops"])?.sentence == "accounts.lua defines no group \"ops\"; it defines none.")
    #expect(problem(groups: ["a\r\nb"])?.field == "groups")
    #expect(problem(expires: "0s")?.field == "expires" && problem(expires: "soon")?.field == "expires")
    #expect(problem(networks: ["10.0.0.0/99"])?.field == "networks")
  }

  @Test func builtInTokenPolicyHasTheExpectedLimit() {
    let limit = ProviderPolicy.tokens.limits[0]
    #expect(
      limit.key == .ip && limit.max == .fixed(60) && limit.window == .fixed(.seconds(3600))
        && limit.lock == [.fixed(.seconds(900))])
  }
}
