import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A provider like a directory: the name is typed here, and the identity proved there. The password is `right`, and
/// `mallory's` for an identity of the attacker's.
private struct ToyDirectory: FullProvider {
  static let name: ProviderName = "directory"
  private static let wrong: RefusalReason = "wrong_password"
  private static let password = InputField(name: "password", kind: .password)

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: Self.name, beginFields: [InputField(name: "username", kind: .text)], submitFields: [Self.password],
      settings: [], policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.federated],
      outcomes: [Outcome(Self.wrong, "Wrong.")])
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    let name = try input.text("username")
    return Identifier(kind: .federated, value: "directory \(name)", display: name)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask([Self.password], state: Array((try readIdentifier(input)?.display ?? "").utf8))
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let password = try input.text("password")
    guard password != "wrong" else { return .refused(Self.wrong) }
    let subject = password == "right" ? String(decoding: step.state, as: UTF8.self) : "mallory"
    return .proved(
      Proof(proved: [Identifier(kind: .federated, value: "directory id of \(subject)", display: subject)]))
  }
}

/// A name that is typed for another site is counted, and leads to no account.
@Suite struct DirectoryNameTests {
  private static func bench(_ unknown: UnknownAccount = .conceal) async throws -> EngineTestBench {
    try await EngineTestBench(others: [ToyDirectory()]) { generation in
      generation.policies[ToyDirectory.name] = .test(
        ToyDirectory.name,
        limits: [
          .test("verify", on: .verify, per: .identifier, max: 3, window: .seconds(86_400), lock: [.seconds(900)])
        ], unknownAccount: unknown)
      for (name, rule) in [("work", AccountRule.any), ("known", .existing)] {
        generation.flows[name] = .test(name, account: rule, steps: [.test(ToyDirectory.name)])
      }
      generation.flows["connect"] = .test(
        "connect", purpose: .join(.federated), account: .existing, steps: [.test(ToyDirectory.name)])
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(ToyDirectory.name)])
    }
  }

  private static func signIn(
    _ bench: EngineTestBench, _ name: String, _ password: String = "right", flow: String = "work",
    as session: SessionSnapshot? = nil, on device: SecretText? = nil
  ) async -> Result<FlowView, Refusal> {
    await bench.secret(
      flow, ["username": name, "password": password], provider: ToyDirectory.name,
      by: bench.client(session: session, device: device))
  }

  /// Attack: flow after flow, each with another guess for the same name.
  @Test func attemptsAreCountedByTheTypedName() async throws {
    let bench = try await Self.bench()
    var refused: [RefusalCode?] = []
    for password in ["wrong", "wrong", "wrong", "right"] {
      refused.append(await Self.signIn(bench, "ada", password).refusal?.code)
    }
    #expect(refused.suffix(2) == [.tooManyAttempts, .tooManyAttempts], "the right one is not tried")
    #expect(refused.first == refused[1] && refused.first != .tooManyAttempts)
    #expect(try await Self.signIn(bench, "bob").get().status == .complete)
  }

  /// Attack: somebody who has signed in by the directory steps up with another user's name. Each of their devices would
  /// be the owner's of that step, and have attempts of its own.
  @Test func aSessionGivesNoFurtherAttemptsAtAnotherName() async throws {
    let bench = try await Self.bench()
    var refused: [RefusalCode?] = []
    for _ in 1...2 {
      let eve = try await Self.signIn(bench, "eve").get()
      let session = try #require(try await bench.session(eve))
      for _ in 1...2 {
        let answer = await Self.signIn(bench, "ada", "wrong", flow: "step_up", as: session, on: eve.deviceToken)
        refused.append(answer.refusal?.code)
      }
    }
    #expect(refused.first == refused[1] && refused.first != .tooManyAttempts)
    #expect(refused.suffix(2) == [.tooManyAttempts, .tooManyAttempts])
    #expect(await Self.signIn(bench, "ada").refusal?.code == .tooManyAttempts, "one counter for all")
  }

  /// The lock of a name is found by the name, whether it looks like an address or not.
  @Test(arguments: ["ada", "ada@example.com"]) func operatorsFindTheLockOfAName(_ name: String) async throws {
    let bench = try await Self.bench()
    for _ in 1...3 { _ = await Self.signIn(bench, name, "wrong") }
    let operators = AccountAdministration(
      store: bench.store, providers: bench.engine.providers, keys: bench.keys, clock: bench.clock,
      random: SystemRandom())
    let locks = try await operators.locks(named: name, region: "IN", in: bench.generations.current)
    #expect(locks.map(\.identifier?.display) == [name])
  }

  @Test(arguments: [UnknownAccount.conceal, .reveal])
  func theProofTellsWhoseAccountItIs(_ unknown: UnknownAccount) async throws {
    let bench = try await Self.bench(unknown)
    let ada = try #require(try await Self.signIn(bench, "ada").get().account?.id)
    #expect(try await Self.signIn(bench, "ada", flow: "known").get().account?.id == ada)
    #expect(await Self.signIn(bench, "nobody", flow: "known").refusal?.code == .accountNotFound)
    // Attack: the name of another user with a password of one's own.
    let mallory = try #require(try await Self.signIn(bench, "ada", "mallory's").get().account?.id)
    #expect(mallory != ada)
  }

  @Test func aSessionConnectsAndStepsUpByATypedName() async throws {
    let bench = try await Self.bench()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    #expect(try await Self.signIn(bench, "ada", flow: "connect", as: own).get().status == .complete)
    #expect(try await Self.signIn(bench, "ada").get().account?.id == own.account.id)
    // Attack: somebody at an open session steps up with an identity of their own.
    let session = try #require(try await bench.session(try await Self.signIn(bench, "ada").get()))
    #expect(await Self.signIn(bench, "ada", "mallory's", flow: "step_up", as: session).refusal?.code == .denied)
    #expect(try await Self.signIn(bench, "ada", flow: "step_up", as: session).get().status == .complete)
  }
}
