import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Sessions that end because another site says so.
@Suite struct SiteSessionTests {
  private static func identity(_ sub: String) -> Identifier {
    Identifier(kind: .federated, value: "https://google.example \(sub)", display: sub)
  }

  /// What a webhook of the provider may do.
  private static func sessions(_ bench: EngineTestBench, of provider: ProviderName = EngineTestBench.google)
    -> SiteSessions
  {
    bench.engine.calls.siteSessions(of: provider, bench.engine.maintenanceRequest(bench.engine.generations.current))
  }

  private static func signIn(_ bench: EngineTestBench, _ sub: String, site: String? = nil) async throws -> FlowView {
    try await bench.google(sub: sub, telling: site.map { ["site": $0] } ?? [:], by: bench.client()).get()
  }

  @Test func sessionsOfTheIdentityEnd() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await Self.signIn(bench, "asha")
    let second = try await Self.signIn(bench, "asha")
    let other = try await Self.signIn(bench, "ravi")
    let before = try await bench.store.sessionChanges(after: .max).latest
    #expect(try await Self.sessions(bench).end(of: Self.identity("asha")) == 2)
    #expect(try await bench.session(first) == nil)
    #expect(try await bench.session(second) == nil)
    #expect(try await bench.session(other) != nil)
    // Every node forgets them.
    #expect(try await bench.store.sessionChanges(after: before).tokens.count == 2)
    #expect(try await Self.sessions(bench).end(of: Self.identity("asha")) == 0)
    #expect(try await Self.sessions(bench).end(of: Self.identity("nobody")) == 0)
  }

  /// A session whose session at the site is unknown may be the one, so it ends as well.
  @Test func onlyTheSessionOfTheSitesSessionEnds() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await Self.signIn(bench, "asha", site: "s-1")
    let second = try await Self.signIn(bench, "asha", site: "s-2")
    let bare = try await Self.signIn(bench, "asha")
    #expect(try await Self.sessions(bench).end(of: Self.identity("asha"), siteSession: "s-3") == 1)
    #expect(try await bench.session(bare) == nil)
    #expect(try await Self.sessions(bench).end(of: Self.identity("asha"), siteSession: "s-1") == 1)
    #expect(try await bench.session(first) == nil)
    #expect(try await bench.session(second) != nil)
    // The site's id is not stored as it is.
    let stored = try await bench.signedIn(second)
    #expect(stored.session.passed.first?.siteSession.map { !$0.contains("s-2") } == true)
  }

  /// Attacks: the site names nobody, so a guessed id ends the session of another user, or that of a user who has an
  /// equal one at another site.
  @Test func sessionsOfASitesSessionEndWithoutAUser() async throws {
    let bench = try await EngineTestBench.full()
    let ended = [
      try await Self.signIn(bench, "asha", site: "s-1"), try await Self.signIn(bench, "asha", site: "s-1"),
      // A site that lets two users share one.
      try await Self.signIn(bench, "ravi", site: "s-1"),
    ]
    let others = [try await Self.signIn(bench, "asha", site: "s-2"), try await Self.signIn(bench, "asha")]
    #expect(try await Self.sessions(bench).end(siteSession: "s-3") == 0)
    #expect(try await Self.sessions(bench, of: EngineTestBench.mail).end(siteSession: "s-1") == 0)
    let before = try await bench.store.sessionChanges(after: .max).latest
    #expect(try await Self.sessions(bench).end(siteSession: "s-1") == 3)
    for view in ended { #expect(try await bench.session(view) == nil) }
    for view in others { #expect(try await bench.session(view) != nil) }
    #expect(try await bench.store.sessionChanges(after: before).tokens.count == 3, "every node forgets them")
    #expect(try await Self.sessions(bench).end(siteSession: "s-1") == 0)
    let event = try #require(try await bench.store.events(limit: 1).first)
    #expect(event.kind == .sessionEnded && event.provider == EngineTestBench.google && event.detail["by"] == "site")
    // The account's other sign-ins go on, and so does a new one.
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.session(Self.signIn(bench, "asha", site: "s-1")) != nil)
  }

  /// Attack: the site names the user and its session, and a session that it has opened belongs to another account.
  @Test(arguments: ["asha", "nobody"]) func sessionsInOtherAccountsEndWithAUser(_ named: String) async throws {
    let bench = try await EngineTestBench.full()
    let own = try await Self.signIn(bench, "asha", site: "s-1")
    let elsewhere = try await Self.signIn(bench, "ravi", site: "s-1")
    let others = [try await Self.signIn(bench, "ravi", site: "s-2"), try await Self.signIn(bench, "ravi")]
    #expect(try await Self.sessions(bench).end(of: Self.identity(named), siteSession: "s-1") == 2)
    #expect(try await bench.session(own) == nil)
    #expect(try await bench.session(elsewhere) == nil)
    for view in others { #expect(try await bench.session(view) != nil) }
    #expect(try await Self.sessions(bench).end(of: Self.identity(named), siteSession: "s-1") == 0)
  }

  @Test func anyNumberOfSessionsEndsWithoutAUser() async throws {
    let bench = try await EngineTestBench.full()
    let session = try await bench.signedIn(try await Self.signIn(bench, "asha", site: "s-1")).session
    let now = bench.clock.now()
    let more = (0..<250).map { number in
      Change.putSession(
        Session(
          id: "se_\(number)", token: SessionToken(from: SystemRandom()).hash, account: session.account, createdAt: now,
          expiresAt: session.expiresAt, idle: session.idle, lastSeenAt: now, passed: session.passed, userAgent: nil))
    }
    #expect(try await bench.store.apply(more, at: now) == .applied(locks: []))
    #expect(try await Self.sessions(bench).end(siteSession: "s-1") == 251)
    #expect(try await bench.store.sessions(of: session.account).isEmpty)
  }

  /// Attack: a session that was renewed since, or that an app has got by a code.
  @Test func renewedSessionsEndWithoutAUser() async throws {
    let bench = try await EngineTestBench.full()
    let session = try await bench.signedIn(try await Self.signIn(bench, "asha", site: "s-1")).session
    let token = SessionToken(from: SystemRandom()).hash
    let renewed = session.renewed(
      token, of: session.account, passed: session.passed, by: SessionUse(at: bench.clock.now()))
    _ = try await bench.store.apply([.replaceSession(session.token, by: renewed)], at: bench.clock.now())
    #expect(try await Self.sessions(bench).end(siteSession: "s-1") == 1)
    #expect(try await bench.store.session(token) == nil)
  }

  /// A session of the same account that the site has not opened goes on.
  @Test func sessionsOfOtherStepsGoOn() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    let joined = try await bench.google(sub: "asha", email: "911111", by: bench.client()).get()
    #expect(joined.account?.id == own.account?.id)
    #expect(try await Self.sessions(bench).end(of: Self.identity("asha"), siteSession: nil) == 1)
    #expect(try await bench.session(own) != nil)
    #expect(try await bench.session(joined) == nil)
  }

  /// Attack: a sign-in that was begun before, and waits for another step, opens a session after the site has ended it.
  @Test(arguments: [nil, "s-1", "s-2"] as [String?]) func waitingSignInsBeginAgain(siteSession: String?) async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.flows["twice"] = .test(
        "twice", account: .existing, steps: [.test(EngineTestBench.google), .test(EngineTestBench.mail)])
    }
    _ = try await bench.google("enter", sub: "asha", email: "911111", by: bench.client()).get()
    let waiting = try await bench.google("twice", sub: "asha", telling: ["site": "s-1"], by: bench.client()).get()
    #expect(waiting.status == .pending)
    _ = try await Self.sessions(bench).end(of: Self.identity("asha"), siteSession: siteSession)
    let begun = await bench.engine.begin(
      waiting.id, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client())
    if case .success = begun {
      await bench.engine.deliveriesEnd()
      let done = await bench.engine.submit(waiting.id, fields: ["code": .text(bench.code)], client: bench.client())
      #expect(done.refusal != nil)
    }
  }

  /// Attack: the same, where the site names nobody.
  @Test(arguments: ["s-1", "s-2"]) func waitingSignInsBeginAgainWithoutAUser(siteSession: String) async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.flows["twice"] = .test(
        "twice", account: .existing, steps: [.test(EngineTestBench.google), .test(EngineTestBench.mail)])
    }
    _ = try await bench.google("enter", sub: "asha", email: "911111", by: bench.client()).get()
    let waiting = try await bench.google("twice", sub: "asha", telling: ["site": "s-1"], by: bench.client()).get()
    #expect(waiting.status == .pending)
    #expect(try await Self.sessions(bench).end(siteSession: siteSession) == 0)
    _ = try await bench.engine.begin(
      waiting.id, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    await bench.engine.deliveriesEnd()
    let done = await bench.engine.submit(waiting.id, fields: ["code": .text(bench.code)], client: bench.client())
    #expect(siteSession == "s-1" ? done.refusal?.code == .flowExpired : done.refusal == nil)
  }

  /// Attack: an app redeems the code of a sign-in after the site has ended it.
  @Test(arguments: [true, false]) func codesOfAppsEnd(namesUser: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let page = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp("login", in: page)
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: page).get()
    let fields: [String: InputValue] = ["sub": .text("asha"), "site": .text("s-1")]
    let next = try #require(try await bench.engine.submit(id, fields: fields, client: page).get().next)
    let code = String(next.split(separator: "=").last ?? "")
    let sessions = Self.sessions(bench)
    let ended =
      namesUser
      ? try await sessions.end(of: Self.identity("asha"), siteSession: "s-1")
      : try await sessions.end(siteSession: "s-1")
    #expect(ended == 0)
    #expect(await bench.redeem(id, code).refusal?.code == .flowExpired)
  }

  /// Attack: a sign-in completes between the sessions being read and being ended.
  @Test func sessionsThatBeginMeanwhileEnd() async throws {
    let bench = try await EngineTestBench.full()
    let session = try await bench.signedIn(try await Self.signIn(bench, "asha", site: "s-1")).session
    let now = bench.clock.now()
    let late = Session(
      id: "se_late", token: SessionToken(from: SystemRandom()).hash, account: session.account, createdAt: now,
      expiresAt: session.expiresAt, idle: session.idle, lastSeenAt: now, passed: session.passed, userAgent: nil)
    let store = ChangingStore(bench.store, first: .putSession(late))
    let ending = SessionEnding(store: store, clock: bench.clock, random: SystemRandom())
    let count = try await ending.end(of: Self.identity("asha"), provedBy: EngineTestBench.google, siteSession: nil)
    #expect(count == 2)
    #expect(try await bench.store.sessions(of: session.account).isEmpty)
  }

  /// Attack: a provider ends sessions that identities of another one have opened, and steps end any.
  @Test func onlyOwnSessionsAndOnlyInWebhooksAndMaintenance() async throws {
    let bench = try await EngineTestBench.full()
    let signedIn = try await Self.signIn(bench, "asha")
    await #expect(throws: (any Error).self) {
      try await Self.sessions(bench, of: EngineTestBench.mail).end(of: Self.identity("asha"))
    }
    let request = bench.engine.maintenanceRequest(bench.engine.generations.current)
    let tools = bench.engine.calls.tools(for: ToyGoogle(), Redaction([]), request)
    await #expect(throws: SiteSessionsUnavailable.self) { try await tools.sessions.end(of: Self.identity("asha")) }
    await #expect(throws: SiteSessionsUnavailable.self) { try await tools.sessions.end(siteSession: "s-1") }
    #expect(try await bench.session(signedIn) != nil)
  }

  /// Attack: a site reports an id that fills the store.
  @Test func longIdsAreFaults() async throws {
    let bench = try await EngineTestBench.full()
    let refusal = try await bench.google(
      sub: "asha", telling: ["site": String(repeating: "s", count: 256)], by: bench.client()
    ).refusal
    #expect(refusal?.code == .busy)
  }
}

/// A store in which something changes just before the first changes of a test.
private final class ChangingStore: ForwardingStore {
  private let inner: any Store
  private let first: Mutex<Change?>

  init(_ inner: any Store, first: Change) {
    self.inner = inner
    self.first = Mutex(first)
  }

  func store(for call: String) -> any Store { inner }

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await inner.reserve(request)
  }

  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    let change = first.withLock { first in
      defer { first = nil }
      return first
    }
    if let change { _ = try await inner.apply([change], at: now) }
    return try await inner.apply(changes, reading: query, at: now)
  }
}
