import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Which flows create accounts by identities at other sites (`registers`), and that every proof renews what a site
/// says.
@Suite struct RegisteringByIdentityTests {
  private static let google = EngineTestBench.google

  /// A bench whose flow `login` is for existing accounts only.
  private static func closed(_ steps: [StepRule] = [.test(EngineTestBench.phone, EngineTestBench.mail, google)])
    async throws -> EngineTestBench
  {
    try await EngineTestBench.full { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: steps)
    }
  }

  /// Attack: registration is closed, and a stranger registers by an identity of their own at the flow that signs in.
  @Test(arguments: [true, false, nil]) func flowForExistingAccountsCreatesNone(isVerified: Bool?) async throws {
    let bench = try await Self.closed()
    for _ in 0..<2 {
      let refusal = try await bench.google(
        sub: "stranger", email: isVerified.map { _ in "911111" }, verified: isVerified ?? false, by: bench.client()
      ).refusal
      #expect(refusal?.code == .accountNotFound)
      #expect(refusal?.code.status == 404)
    }
    let identity = Identifier(kind: .federated, value: "https://google.example stranger", display: "stranger")
    #expect(try await bench.store.account(holding: identity) == nil)
    // A flow that creates accounts still does.
    #expect(try await bench.google("enter", sub: "stranger", by: bench.client()).get().account?.isNewUser == true)
    #expect(try await bench.google(sub: "stranger", by: bench.client()).get().account?.isNewUser == false)
  }

  @Test func flowForExistingAccountsStillOpensThem() async throws {
    let bench = try await Self.closed()
    let known = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    #expect(try await bench.google(sub: "asha", email: "911111", by: bench.client()).get().account?.id == known.id)
    bench.clock.advance(by: .seconds(86_400))
    #expect(try await bench.google(sub: "asha", by: bench.client()).get().account?.id == known.id)
  }

  /// Attack: the same by an app, which receives a code for the new account.
  @Test func anAppGetsNoCodeForANewAccount() async throws {
    let bench = try await Self.closed()
    let client = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp("login", in: client)
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).get()
    let done = await bench.engine.submit(id, fields: ["sub": .text("stranger")], client: client)
    #expect(done.refusal?.code == .accountNotFound)
  }

  /// The flow that names the provider creates accounts by it, but not by another provider of the flow.
  @Test func flowRegistersOnlyByTheNamedProviders() async throws {
    let bench = try await EngineTestBench.full()
    #expect(try await bench.google(sub: "asha", by: bench.client()).get().account?.isNewUser == true)
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    let begun = await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client())
    #expect(begun.refusal?.code == .accountNotFound)
  }

  /// A refused user is invited to create an account only if an identifier of that kind can create one.
  @Test func onlyIdentifiersThatRegisterAreInvited() async throws {
    let open = try await EngineTestBench.full()
    let closed = try await EngineTestBench.full { generation in
      // Only an email address with a password creates accounts, and an identity at another site.
      for name in ["enter", "register"] {
        generation.flows[name] = .test(name, account: name == "enter" ? .any : .new, steps: [.test(Self.google)])
      }
    }
    // Without a detail, clients get the usual sentence: "No account found."
    for (bench, detail) in [(open, "No account found. Create one?"), (closed, nil)] {
      let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
      let begun = await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client())
      #expect(begun.refusal?.code == .accountNotFound && begun.refusal?.detail == detail)
    }
  }

  // MARK: renewal

  private static func identity(_ bench: EngineTestBench, _ account: String) async throws -> Identifier {
    try #require(
      try await bench.store.account(account)?.identifiers.first { $0.identifier.kind == .federated }?.identifier)
  }

  /// Attack: somebody who was removed from `admins` in the directory keeps the group for good.
  @Test func everyProofReplacesGroupsAndAttributes() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.google(
      sub: "asha", telling: ["groups": "admins,ops", "floor": "3"], by: bench.client()
    ).get()
    let account = try #require(first.account?.id)
    #expect(try await Self.identity(bench, account).groups == ["admins", "ops"])
    #expect(try await Self.identity(bench, account).attributes == ["floor": "3"])
    let before = try await bench.store.sessionChanges(after: .max).latest
    _ = try await bench.google(sub: "asha", telling: ["groups": "ops"], by: bench.client()).get()
    #expect(try await Self.identity(bench, account).groups == ["ops"])
    #expect(try await Self.identity(bench, account).attributes == [:], "what is gone is removed")
    // Every node forgets the sessions that it has cached.
    #expect(try await bench.store.sessionChanges(after: before).accounts.contains(account))
    // The live session of the first sign-in reads the new facts.
    let live = try await bench.signedIn(first)
    #expect(live.account.identifiers.first { $0.identifier.kind == .federated }?.identifier.groups == ["ops"])
    _ = try await bench.google(sub: "asha", by: bench.client()).get()
    #expect(try await Self.identity(bench, account).groups == [])
  }

  @Test func aProofInASessionRenewsToo() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.google(sub: "asha", telling: ["groups": "admins"], by: bench.client()).get()
    let client = bench.client(session: try await bench.signedIn(first))
    _ = try await bench.google("step_up", sub: "asha", telling: ["groups": "ops"], by: client).get()
    #expect(try await Self.identity(bench, try #require(first.account?.id)).groups == ["ops"])
  }

  /// An unchanged identity is not announced, so that a sign-in does not empty the caches of the account's sessions.
  @Test func unchangedIdentityIsNotAnnounced() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.google(sub: "asha", telling: ["groups": "ops"], by: bench.client()).get()
    let before = try await bench.store.sessionChanges(after: .max).latest
    _ = try await bench.google(sub: "asha", telling: ["groups": "ops"], by: bench.client()).get()
    #expect(!(try await bench.store.sessionChanges(after: before).accounts.contains(try #require(first.account?.id))))
  }

  /// A flow that is not completed changes nothing.
  @Test func aProofWithoutASessionChangesNothing() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.flows["twice"] = .test(
        "twice", account: .existing, steps: [.test(Self.google), .test(EngineTestBench.mail)])
    }
    let first = try await bench.google(
      "enter", sub: "asha", email: "911111", telling: ["groups": "admins"], by: bench.client()
    ).get()
    let waiting = try await bench.google("twice", sub: "asha", telling: ["groups": "ops"], by: bench.client()).get()
    #expect(waiting.status == .pending)
    #expect(try await Self.identity(bench, try #require(first.account?.id)).groups == ["admins"])
  }

  /// Attack: groups are cut at a limit, and with them the one by which a service refuses.
  @Test(arguments: ["*501x1", "*1x257", "a\u{7}b", "*300x250"]) func tooManyGroupsAreRefusedNotCut(groups: String)
    async throws
  {
    let bench = try await EngineTestBench.full()
    let first = try await bench.google(sub: "asha", telling: ["groups": "admins"], by: bench.client()).get()
    let refusal = try await bench.google(sub: "asha", telling: ["groups": groups], by: bench.client()).refusal
    #expect(refusal?.code == .busy)
    #expect(try await Self.identity(bench, try #require(first.account?.id)).groups == ["admins"])
  }

  @Test func largestGroupsAreStored() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.google(sub: "asha", telling: ["groups": "*500x120"], by: bench.client()).get()
    let groups = ToyGoogle.groups("*500x120")
    #expect(groups.count == 500)
    #expect(try await Self.identity(bench, try #require(first.account?.id)).groups == groups)
  }
}
