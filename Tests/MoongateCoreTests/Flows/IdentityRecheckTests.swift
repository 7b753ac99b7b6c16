import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A site that issues tokens and is asked about its users again. Each use of a token replaces it.
private final class Site: FullProvider, Rechecking {
  enum Answer: Sendable {
    case groups([String])
    case said(String)
    case ended(String)
    case another, down
    /// Replaces the token, and then fails.
    case lost
  }

  private struct State {
    var answer = Answer.groups([])
    var number = 0
    var used: [String] = []
    var isWaiting = false
    var isOpen = true
    var issuesTokens = true
  }

  private let state = Mutex(State())

  func answers(_ answer: Answer) { state.withLock { $0.answer = answer } }
  /// The tokens that were used since the last call.
  func used() -> [String] {
    state.withLock { state in
      defer { state.used = [] }
      return state.used
    }
  }

  func issuesTokens(_ does: Bool) { state.withLock { $0.issuesTokens = does } }

  /// Lets calls wait, until `open`.
  func close() { state.withLock { $0.isOpen = false } }
  func open() { state.withLock { $0.isOpen = true } }
  func isAsked() async { while !state.withLock({ $0.isWaiting }) { await Task.yield() } }

  private func token() -> [UInt8] {
    state.withLock { state in
      state.number += 1
      return Array("token-\(state.number)".utf8)
    }
  }

  var descriptor: ProviderDescriptor {
    let toy = ToyGoogle().descriptor
    return ProviderDescriptor(
      name: toy.name, beginFields: [], submitFields: toy.submitFields, settings: [], policy: toy.policy,
      identifierKinds: toy.identifierKinds, outcomes: toy.outcomes, mapsClaims: true, rechecks: true)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await ToyGoogle().begin(step, input)
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard case .proved(var proof) = try await ToyGoogle().submit(step, input) else { return .refused(.oauthCancelled) }
    if state.withLock({ $0.issuesTokens }) { proof.recheck = token() }
    return .proved(proof)
  }

  func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    let answer = state.withLock { state in
      state.used.append(String(decoding: known.state, as: UTF8.self))
      state.isWaiting = true
      return state.answer
    }
    while !state.withLock({ $0.isOpen }) { await Task.yield() }
    func identity(_ groups: [String]) -> Identifier {
      Identifier(kind: .federated, value: known.identity.value, display: known.identity.display, groups: groups)
    }
    switch answer {
    case .groups(let groups):
      try await known.keep(token())
      return .confirmed(identity(groups))
    case .said(let text): return .confirmed(identity(try await tools.identity(["said": .text(text)])?.groups ?? []))
    case .ended(let because): return .ended(because: because)
    case .another:
      let root = "https://google.example root"
      return .confirmed(Identifier(kind: .federated, value: root, display: "", groups: ["root"]))
    case .down: throw WebFault(reason: "no answer")
    case .lost:
      try await known.keep(token())
      throw WebFault(reason: "no answer of userinfo")
    }
  }
}

/// Identities whose sites are asked about them again.
@Suite struct IdentityRecheckTests {
  private static let identity = Identifier(kind: .federated, value: "https://google.example asha", display: "asha")
  private static let function = FunctionName("policies/google_oauth.identity")

  private let site = Site()

  /// Rechecks every minute, with a grace of ten.
  private func bench() async throws -> EngineTestBench {
    try await EngineTestBench(others: [site]) { generation in
      let google = EngineTestBench.google
      generation.flows["login"] = .test("login", account: .any, steps: [.test(google)])
      var settings = ProviderSettings()
      settings.recheck = RecheckSettings(interval: .seconds(60), grace: .seconds(600))
      generation.gateway.providers[google] = settings
      generation.policies[google] = .test(google, limits: [], identity: Self.function, reasons: [:])
      generation.identities[Self.function] = { claims in
        claims["said"]?.text == "guest"
          ? .deny("not_staff") : .mapped(MappedIdentity(groups: [claims["said"]?.text ?? ""]))
      }
    }
  }

  private func signIn(_ bench: EngineTestBench, groups: String = "ops") async throws -> FlowView {
    try await bench.google(sub: "asha", telling: ["groups": groups], by: bench.client()).get()
  }

  private func groups(_ bench: EngineTestBench) async throws -> [String]? {
    try await bench.store.account(holding: Self.identity)?.identifiers.first { $0.identifier == Self.identity }?
      .identifier.groups
  }

  /// The next recheck, at the latest time at which it is due.
  private func recheck(_ bench: EngineTestBench, _ rechecks: IdentityRechecks? = nil) async {
    bench.clock.advance(by: .seconds(66))
    await (rechecks ?? IdentityRechecks(bench.engine)).step()
  }

  private func ends(_ bench: EngineTestBench) async throws -> [[String: String]] {
    try await bench.store.events(limit: 100).filter { $0.kind == .sessionEnded }.map(\.detail)
  }

  @Test func newGroupsReplaceTheOldOnesEverywhere() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    await IdentityRechecks(bench.engine).step()
    #expect(site.used().isEmpty, "not before it is due")
    let before = try await bench.store.sessionChanges(after: .max).latest
    site.answers(.groups(["dev", "ops2"]))
    await recheck(bench)
    #expect(try await groups(bench) == ["dev", "ops2"])
    #expect(try await bench.session(view) != nil)
    // Every node reads the account again.
    let account = try #require(view.account?.id)
    #expect(try await bench.store.sessionChanges(after: before).accounts == [account])
    let event = try await bench.store.events(limit: 100).first { $0.kind == .identityChanged }
    #expect(event?.detail == ["groups_added": "dev, ops2", "groups_removed": "ops"] && event?.account == account)
    await recheck(bench)
    await recheck(bench)
    #expect(site.used() == ["token-1", "token-2", "token-3"], "each token is used once")
    #expect(try await bench.store.events(limit: 100).count { $0.kind == .identityChanged } == 1)
  }

  @Test func sessionsOfAUserWhoIsGoneEnd() async throws {
    let bench = try await bench()
    let (first, second) = (try await signIn(bench), try await signIn(bench))
    site.answers(.ended("invalid_grant"))
    await recheck(bench)
    #expect(try await bench.session(first) == nil)
    #expect(try await bench.session(second) == nil)
    let details = try await ends(bench)
    #expect(details.count == 2 && details.allSatisfy { $0["by"] == "recheck" && $0["because"] == "invalid_grant" })
    // Attack: the user signs in by a passkey or a password of the account, and still has the groups.
    #expect(try await groups(bench) == [])
    let event = try await bench.store.events(limit: 100).first { $0.kind == .identityChanged }
    #expect(event?.detail == ["groups_removed": "ops"])
    await recheck(bench)
    #expect(site.used() == ["token-2"], "the refused token is not used again")
    // A new sign-in is rechecked again.
    site.answers(.groups(["ops"]))
    _ = try await signIn(bench)
    await recheck(bench)
    #expect(site.used() == ["token-3"])
  }

  @Test func denialByThePolicyEndsSessions() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.answers(.said("staff"))
    await recheck(bench)
    #expect(try await groups(bench) == ["staff"])
    site.answers(.said("guest"))
    await recheck(bench)
    #expect(try await bench.session(view) == nil)
    #expect(try await ends(bench).first?["because"] == "the policy denies: not_staff")
  }

  /// Attack: someone cuts the gateway off from the site, to stay signed in, or to sign everybody out.
  @Test func sessionsGoOnWithoutAnAnswerUntilTheGraceHasPassed() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.answers(.groups(["ops"]))
    let node = IdentityRechecks(bench.engine)
    await recheck(bench, node)
    site.answers(.down)
    for _ in 0..<8 { await recheck(bench, node) }
    #expect(try await bench.session(view) != nil)
    #expect(try await groups(bench) == ["ops"])
    for _ in 0..<2 { await recheck(bench, node) }
    #expect(try await bench.session(view) == nil)
    #expect(try await ends(bench).first?["because"]?.hasPrefix("the site has not confirmed the identity since") == true)
  }

  @Test func anAnswerBeginsTheGraceAnew() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    let node = IdentityRechecks(bench.engine)
    for _ in 0..<4 {
      site.answers(.down)
      for _ in 0..<6 { await recheck(bench, node) }
      site.answers(.groups([]))
      await recheck(bench, node)
    }
    #expect(try await bench.session(view) != nil)
  }

  /// Attack: a site that is down is asked for each of its users, and holds all calls.
  @Test func aSiteThatIsDownIsLeftAloneForAWhile() async throws {
    let bench = try await bench()
    for number in 0..<40 {
      _ = try await bench.google(sub: "user \(number)", by: bench.client()).get()
    }
    site.answers(.down)
    let node = IdentityRechecks(bench.engine)
    bench.clock.advance(by: .seconds(66))
    await node.step()
    // Sixteen calls run at the same time, and two more begin before the third one has failed.
    #expect((3...18).contains(site.used().count))
    bench.clock.advance(by: .seconds(20))
    await node.step()
    #expect(site.used().isEmpty)
    let log = bench.log.lines.count { $0.contains("a recheck failed") }
    #expect((1...3).contains(log))
    #expect(try await ends(bench).isEmpty)
  }

  /// Attack: the site, or someone in between, answers about another user, whose groups this one would get.
  @Test func anAnswerAboutAnotherUserIsNoAnswer() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.answers(.another)
    await recheck(bench)
    #expect(try await groups(bench) == ["ops"])
    #expect(try await bench.session(view) != nil)
    #expect(bench.log.lines.contains { $0.contains("it answers about another identity") })
  }

  /// Attack: a site names so many groups that the one by which a service refuses is lost.
  @Test func tooManyGroupsAreNoAnswer() async throws {
    let bench = try await bench()
    _ = try await signIn(bench)
    site.answers(.groups((0...Identifier.maxGroups).map { "group \($0)" }))
    await recheck(bench)
    #expect(try await groups(bench) == ["ops"])
  }

  /// Attack: a refresh token of someone who has signed out is used, and kept, for ever.
  @Test func onlyIdentitiesWithLiveSessionsAreRechecked() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    let session = try await bench.signedIn(view).session
    _ = try await bench.store.apply([.endSession(session.token)], at: bench.clock.now())
    await recheck(bench)
    #expect(try await groups(bench) == ["ops"], "the user may come back")
    bench.clock.advance(by: .seconds(600))
    await recheck(bench)
    #expect(try await groups(bench) == [], "nobody asks about them any more")
    _ = try await bench.store.apply([.putSession(session)], at: bench.clock.now())
    await recheck(bench)
    #expect(site.used().isEmpty, "its token was dropped")
  }

  /// Attack: someone who loses a group at the site signs out and signs in by a passkey or a password. The group is a
  /// fact of the account, so it is asked about whatever has opened the session.
  @Test func groupsAreRecheckedWhateverHasOpenedTheSession() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    var session = try await bench.signedIn(view).session
    session.passed = []
    _ = try await bench.store.apply([.endSession(session.token), .putSession(session)], at: bench.clock.now())
    site.answers(.groups([]))
    await recheck(bench)
    #expect(try await groups(bench) == [])
    // Only what the identity has opened ends with it.
    site.answers(.ended("invalid_grant"))
    await recheck(bench)
    #expect(site.used() == ["token-1", "token-2"])
    #expect(try await bench.session(view) != nil)
  }

  private func putToken(_ bench: EngineTestBench, of view: FlowView) async throws {
    let id = try #require(view.account?.id)
    let account = try #require(try await bench.store.account(id))
    let token = AccessToken(
      id: "tk_1", name: "ci", owner: AccountVersion(id: account.id, epoch: account.epoch), createdAt: bench.clock.now(),
      expiresAt: nil, hash: AccessTokenHash(key: "k", bytes: [1]))
    _ = try await bench.store.apply([.putAccessToken(token)], at: bench.clock.now())
  }

  /// Attack: someone who loses a group at the site signs out, and goes on with a personal access token.
  @Test func accountsWithTokensAreRechecked() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    try await putToken(bench, of: view)
    let session = try await bench.signedIn(view).session
    _ = try await bench.store.apply([.endSession(session.token)], at: bench.clock.now())
    site.answers(.groups([]))
    await recheck(bench)
    #expect(try await groups(bench) == [] && site.used() == ["token-1"])
  }

  /// Scripts of a user who is gone at the site end. Those of others go on without groups while the site is down.
  @Test(arguments: [true, false])
  func tokensStayOnlyIfTheSiteHasNotAnswered(isDown: Bool) async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    try await putToken(bench, of: view)
    let node = IdentityRechecks(bench.engine)
    site.answers(isDown ? .down : .ended("gone"))
    for _ in 0..<(isDown ? 11 : 1) { await recheck(bench, node) }
    #expect(try await bench.session(view) == nil)
    let found = try #require(try await bench.store.accessToken("tk_1"))
    #expect((found.token.owner?.epoch == found.account?.epoch) == isDown)
    #expect(try await groups(bench) == [])
  }

  /// Attack: a user removes `offline_access` from the address of the sign-in, so that the site issues no token.
  @Test func sessionsOfASignInWithoutATokenEndAfterTheGrace() async throws {
    let bench = try await bench()
    site.issuesTokens(false)
    let view = try await signIn(bench)
    let node = IdentityRechecks(bench.engine)
    for _ in 0..<8 { await recheck(bench, node) }
    #expect(try await bench.session(view) != nil)
    for _ in 0..<2 { await recheck(bench, node) }
    #expect(try await bench.session(view) == nil)
    #expect(try await groups(bench) == [] && site.used().isEmpty)
    #expect(!bench.log.lines.contains { $0.contains("a recheck failed") }, "the site is not at fault")
    // A token of an earlier sign-in is used.
    site.issuesTokens(true)
    _ = try await signIn(bench)
    site.issuesTokens(false)
    _ = try await signIn(bench)
    await recheck(bench, node)
    #expect(site.used() == ["token-1"])
  }

  /// Attack on ourselves: after a weekend without a gateway, the first call that fails ends everybody's sessions.
  @Test func timeInWhichNobodyAskedDoesNotCount() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.answers(.down)
    bench.clock.advance(by: .seconds(2_000))
    let node = IdentityRechecks(bench.engine)
    for _ in 0..<9 { await recheck(bench, node) }
    #expect(try await bench.session(view) != nil)
    for _ in 0..<2 { await recheck(bench, node) }
    #expect(try await bench.session(view) == nil)
  }

  /// Attack on ourselves: a call that ignores its cancellation holds its place, and nothing is rechecked any more.
  @Test func aCallThatIgnoresItsTimeLimitIsLeftAlone() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.close()
    bench.clock.advance(by: .seconds(66))
    await IdentityRechecks(bench.engine, sleep: { _ in }).step()
    #expect(bench.log.lines.contains { $0.contains("and is cancelled") })
    #expect(try await bench.session(view) != nil)
    site.open()
  }

  /// Attack on ourselves: one slow call delays those of all other sites.
  @Test func aSlowCallDelaysNoOther() async throws {
    let bench = try await bench()
    _ = try await signIn(bench)
    site.close()
    bench.clock.advance(by: .seconds(66))
    let node = IdentityRechecks(bench.engine)
    let first = Task { await node.step() }
    await site.isAsked()
    #expect(site.used() == ["token-1"])
    _ = try await bench.google(sub: "ravi", by: bench.client()).get()
    bench.clock.advance(by: .seconds(66))
    let second = Task { await node.step() }
    var used: [String] = []
    for _ in 0..<1_000_000 where used.isEmpty {
      await Task.yield()
      used = site.used()
    }
    #expect(used == ["token-2"])
    site.open()
    await first.value
    await second.value
  }

  /// Attack: a recheck brings an account back that an operator has locked, or an identity that was disconnected.
  @Test(arguments: [true, false])
  func lockedAccountsAndDisconnectedIdentitiesAreNotRechecked(isLocked: Bool) async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    let account = try #require(view.account?.id)
    site.close()
    bench.clock.advance(by: .seconds(66))
    let node = IdentityRechecks(bench.engine)
    let running = Task { await node.step() }
    await site.isAsked()
    let change =
      isLocked
      ? Change.setLocked(account: account, true) : .removeIdentifier(account: account, Self.identity)
    _ = try await bench.store.apply([change], at: bench.clock.now())
    site.answers(.groups(["root"]))
    site.open()
    await running.value
    #expect(try await bench.session(view) == nil || !isLocked)
    #expect(try await groups(bench) == (isLocked ? [] : nil))
    _ = site.used()
    await recheck(bench, node)
    await recheck(bench, node)
    #expect(site.used().isEmpty)
    #expect(try await bench.store.account(account)?.isLocked == isLocked)
  }

  /// Attack on ourselves: the site replaces the token, and what follows fails. The old one, used again, is taken for a
  /// stolen one, and the user is thrown out.
  @Test func aReplacedTokenIsStoredBeforeAnythingCanFail() async throws {
    let bench = try await bench()
    _ = try await signIn(bench)
    site.answers(.lost)
    await recheck(bench)
    await recheck(bench)
    #expect(site.used() == ["token-1", "token-2"])
  }

  /// Attack on ourselves: two gateways use one token at the same moment.
  @Test func oneGatewayAtATimeAsksAboutAnIdentity() async throws {
    let bench = try await bench()
    for number in 0..<30 { _ = try await bench.google(sub: "user \(number)", by: bench.client()).get() }
    bench.clock.advance(by: .seconds(66))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<5 { group.addTask { await IdentityRechecks(bench.engine).step() } }
    }
    let used = site.used()
    #expect(used.count == 30 && Set(used).count == 30)
  }

  /// Attack: somebody signs in again while the old token is refused. The new session must not end with the old one.
  @Test func aSignInMeanwhileWins() async throws {
    let bench = try await bench()
    _ = try await signIn(bench)
    site.answers(.ended("invalid_grant"))
    site.close()
    bench.clock.advance(by: .seconds(66))
    let node = IdentityRechecks(bench.engine)
    let running = Task { await node.step() }
    await site.isAsked()
    let view = try await signIn(bench, groups: "dev")
    site.open()
    await running.value
    #expect(try await bench.session(view) != nil)
    #expect(try await groups(bench) == ["dev"])
    site.answers(.groups(["dev"]))
    await recheck(bench, node)
    #expect(site.used().last == "token-2")
  }

  /// Attack: someone reads the database, or puts the token of their own identity beside that of another user, so that
  /// the other one is never found to be disabled.
  @Test func statesAreSealedForTheirIdentity() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    let account = try #require(view.account?.id)
    bench.clock.advance(by: .seconds(66))
    let now = bench.clock.now()
    let claim = try #require(
      try await bench.store.claimRechecks(limit: 1, until: now + .seconds(1), at: now).first)
    let sealed = try #require(claim.recheck.sealed)
    #expect(!String(decoding: sealed, as: UTF8.self).contains("token-1"))
    let other = Identifier(kind: .federated, value: "https://google.example ravi", display: "ravi")
    let moved = try IdentityRechecks.seal(
      Array("token-9".utf8), of: other, by: EngineTestBench.google, bench.engine.keys)
    let recheck = StoredRecheck(
      provider: EngineTestBench.google, sealed: moved, confirmedAt: now, dueAt: now)
    _ = try await bench.store.apply(
      [.putRecheck(account: account, Self.identity, recheck, under: nil)], at: now)
    await IdentityRechecks(bench.engine).step()
    #expect(site.used().isEmpty)
    #expect(bench.log.lines.contains { $0.contains("the state of a recheck cannot be opened") })
  }

  /// Attack: the clock of a gateway is a week ahead. Sessions must not end while the site answers.
  @Test func aClockThatIsAheadEndsNothingWhileTheSiteAnswers() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    site.answers(.groups(["ops"]))
    bench.clock.advance(by: .seconds(1_000))
    await IdentityRechecks(bench.engine).step()
    #expect(try await bench.session(view) != nil && site.used() == ["token-1"])
  }

  @Test func withoutTheSettingNothingIsKept() async throws {
    let bench = try await EngineTestBench(others: [site]) { generation in
      generation.flows["login"] = .test("login", account: .any, steps: [.test(EngineTestBench.google)])
    }
    _ = try await bench.google(sub: "asha", by: bench.client()).get()
    let now = bench.clock.now() + .seconds(86_400)
    #expect(try await bench.store.claimRechecks(limit: 1, until: now, at: now).isEmpty)
  }

  /// Attack: a provider's state fills the store.
  @Test func statesAreBounded() throws {
    #expect(Proof.longestRecheck == 16_384)
    let descriptor = site.descriptor
    #expect(descriptor.mistakes.isEmpty)
    let alone = ProviderDescriptor(
      name: "toy", beginFields: [], submitFields: [], settings: [], policy: descriptor.policy,
      identifierKinds: [.email], rechecks: true)
    #expect(alone.mistakes.contains("it declares `rechecks` and proves no federated identity"))
  }
}
