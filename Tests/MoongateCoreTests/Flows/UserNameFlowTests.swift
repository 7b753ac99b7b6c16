import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

extension EngineTestBench {
  /// Registers a name by a password.
  fileprivate func register(_ name: String, _ secret: String, from address: [UInt8] = [192, 0, 2, 1]) async -> Result<
    FlowView, Refusal
  > {
    let client = client(address)
    let begun = await self.secret(
      "register_email", ["name": name, "new_secret": secret], provider: "password", by: client)
    guard case .success(let view) = begun, view.status == .pending else { return begun }
    return await engine.skip(view.id, client: client)
  }

  fileprivate func signIn(_ name: String, _ secret: String, from address: [UInt8] = [192, 0, 2, 1]) async -> Result<
    FlowView, Refusal
  > {
    await self.secret(
      "login_password", ["name": name, "secret": secret], provider: "password", by: client(address))
  }

  fileprivate static func named() async throws -> EngineTestBench { try await full(takesNames: true) }
}

/// Users who identify themselves by a name: only one account has it, and it proves nothing.
@Suite struct UserNameFlowTests {
  @Test func nameSignsInToItsAccountInEverySpelling() async throws {
    let bench = try await EngineTestBench.named()
    let account = try #require(try await bench.register("Asha.Rao", "ashas").get().account)
    #expect(account.name == "asha.rao" && account.email == nil && !account.isEmailVerified)
    #expect(try await bench.signIn("asha.rao", "ashas").get().account?.id == account.id)
    #expect(try await bench.signIn(" ＡＳＨＡ.rao ", "ashas").get().account?.id == account.id)
    #expect(await bench.signIn("asha.rao", "wrong").refusal?.code == .invalidPIN)
  }

  /// A user who registers by a name has given no address, so the page of the code asks for one.
  @Test func registrationByANameAsksForAnAddress() async throws {
    let bench = try await EngineTestBench.named()
    for (field, asks) in [("email", false), ("name", true)] {
      let view = try await bench.secret(
        "register_email", [field: "asha911111", "new_secret": "ashas"], provider: "password", by: bench.client()
      ).get()
      #expect(view.status == .pending && view.isSkippable && view.asks(for: .email) == asks, "\(field)")
      guard asks else { continue }
      let sent = try await bench.engine.begin(
        view.id, provider: "email_code", fields: ["phone": .text("922222")], client: bench.client()
      ).get()
      #expect(!sent.isSkippable && sent.step?.isSkippable ?? false)
      await bench.engine.deliveriesEnd()
      let done = try await bench.engine.submit(view.id, fields: ["code": .text(bench.code)], client: bench.client())
        .get()
      #expect(done.account?.name == "asha911111" && done.account?.isEmailVerified ?? false)
    }
  }

  /// Attack: a second account with the name, or with one that looks like it, whose owner is taken for the first.
  @Test(arguments: ["scope", "SCOPE", "ѕсоре"]) func takenNameIsRefusedBeforeAnythingIsDone(_ name: String) async throws
  {
    let bench = try await EngineTestBench.named()
    _ = try await bench.register("scope", "ashas").get()
    let refusal = await bench.register(name, "mallorys").refusal
    #expect(refusal?.code == .alreadyRegistered)
    #expect(refusal?.detail == "This name is taken. Please choose another.")
    #expect(await bench.signIn("scope", "mallorys").refusal?.code == .invalidPIN)
  }

  /// Attack: two registrations of one name, both of which have begun before either completes.
  @Test func ofTwoRegistrationsThatRunOneCompletes() async throws {
    let bench = try await EngineTestBench.named()
    var flows: [FlowID] = []
    for (name, secret) in [("paypal", "ashas"), ("paypa1", "mallorys")] {
      let view = try await bench.secret(
        "register_email", ["name": name, "new_secret": secret], provider: "password", by: bench.client()
      ).get()
      flows.append(view.id)
    }
    #expect(try await bench.engine.skip(flows[0], client: bench.client()).get().status == .complete)
    #expect(await bench.engine.skip(flows[1], client: bench.client()).refusal?.code == .alreadyRegistered)
    #expect(await bench.signIn("paypa1", "mallorys").refusal?.code == .invalidPIN)
  }

  /// Attack: an unknown name is told from a known one by the answer of a sign-in.
  @Test func signInConcealsWhetherANameExists() async throws {
    let bench = try await EngineTestBench.named()
    _ = try await bench.register("asha", "ashas").get()
    // The whole answers, without what differs in each: the ID of the decision.
    var answers: [[Refusal?]] = []
    for name in ["asha", "nobody"] {
      var told: [String] = []
      var whole: [Refusal?] = []
      for _ in 0..<4 {
        var refusal = await bench.signIn(name, "wrong").refusal
        told.append("\(refusal?.code.name ?? "") \(refusal?.attemptsLeft ?? -1)")
        refusal?.decision = DecisionID(text: "")
        whole.append(refusal)
      }
      #expect(told == ["invalid_pin 2", "invalid_pin 1", "too_many_attempts -1", "too_many_attempts -1"], "\(name)")
      answers.append(whole)
    }
    #expect(answers[0] == answers[1])
  }

  /// Attack: names are tried one after another at the registration, which says of each whether it exists.
  @Test func askingForTakenNamesIsCountedByAddress() async throws {
    let bench = try await EngineTestBench.full(takesNames: true) { generation in
      generation.policies["password"] = .test(
        "password",
        limits: [.test("verify_ip", on: .verify, per: .ip, max: 3, window: .seconds(3600), counts: .failures)],
        unknownAccount: .conceal)
    }
    _ = try await bench.register("asha", "ashas", from: [198, 51, 100, 1]).get()
    for _ in 0..<3 { #expect(await bench.register("asha", "x").refusal?.code == .alreadyRegistered) }
    #expect(await bench.register("asha", "x").refusal?.code == .tooManyAttempts)
    #expect(await bench.register("asha", "x", from: [198, 51, 100, 2]).refusal?.code == .alreadyRegistered)
  }

  /// Attack: a name gives what only a verified identifier may give: a reset, a recovery, or a proof in a flow.
  @Test func nameAuthorisesNoReset() async throws {
    let bench = try await EngineTestBench.named()
    let view = try await bench.register("asha", "ashas").get()
    let id = try #require(view.account).id
    let account = try #require(try await bench.store.account(id))
    #expect(account.identifiers.map(\.verifiedAt) == [nil])
    #expect(account.reachableAddresses.isEmpty)
    // A reset in which the attacker has proved an address of their own.
    let own = try #require(try await bench.register("mallory", "old").get().account).id
    let address = Identifier(kind: .email, value: "+933333", display: "933333")
    _ = try await bench.store.apply([.verifyIdentifier(account: own, address)], at: bench.clock.now())
    bench.clock.advance(by: bench.generations.current.accounts.recoveryDelay)
    let reset = try await bench.pass("password_reset", EngineTestBench.mail, "933333", by: bench.client())
    let begun = await bench.engine.begin(
      reset.id, provider: "password", fields: ["name": .text("asha"), "new_secret": .text("mallorys")],
      client: bench.client())
    #expect(begun.refusal?.code == .denied)
    #expect(try await bench.signIn("asha", "ashas").get().status == .complete)
    let done = await bench.engine.begin(
      reset.id, provider: "password", fields: ["new_secret": .text("mallorys")], client: bench.client())
    #expect(try done.get().account?.id == own)
  }

  /// Attack: wrong passwords at a name lock its owner out, also after the owner has reset the password by mail.
  @Test func resetByMailEndsTheLocksOfTheName() async throws {
    let bench = try await EngineTestBench.named()
    let id = try #require(try await bench.register("asha", "ashas").get().account).id
    let address = Identifier(kind: .email, value: "+911111", display: "911111")
    _ = try await bench.store.apply(
      [.verifyIdentifier(account: id, address, forgetting: [], waitingUntil: nil)], at: bench.clock.now())
    bench.clock.advance(by: bench.generations.current.accounts.recoveryDelay)
    for _ in 0..<3 { _ = await bench.signIn("asha", "wrong") }
    #expect(await bench.signIn("asha", "ashas").refusal?.code == .tooManyAttempts)
    let reset = try await bench.pass("password_reset", EngineTestBench.mail, "911111", by: bench.client())
    let done = await bench.engine.begin(
      reset.id, provider: "password", fields: ["new_secret": .text("new")], client: bench.client())
    #expect(try done.get().status == .complete)
    #expect(try await bench.signIn("asha", "new").get().account?.id == id)
  }

  /// Attack: an account claims somebody else's address, and each reset of its own password clears what was counted at
  /// that address: when an operator makes the link, or when it is used.
  @Test func resetKeepsWhatIsCountedByAClaimedAddress() async throws {
    let bench = try await EngineTestBench.full(takesNames: true) { generation in
      generation.policies["password"] = .test(
        "password",
        limits: [
          .test("verify", on: .verify, per: .identifier, max: 3, window: .seconds(86_400), lock: [.seconds(900)])
        ], unknownAccount: .conceal)
    }
    let id = try #require(try await bench.register("mallory", "mallorys").get().account).id
    let claimed = Identifier(kind: .email, value: "+922222", display: "922222")
    _ = try await bench.store.apply([.claimIdentifier(account: id, claimed)], at: bench.clock.now())
    let guess = {
      await bench.secret(
        "login_password", ["email": "922222", "secret": "guess"], provider: "password", by: bench.client()
      ).refusal?.code
    }
    for _ in 0..<2 { #expect(await guess() == .invalidPIN) }
    #expect(await guess() == .tooManyAttempts)
    let made = try #require(
      try await bench.engine.makeResetLink(
        "password", of: id, lasting: .seconds(600), by: OperatorIdentity(name: "ravi", tool: "test"),
        client: bench.client()))
    let flow = FlowID(text: String(try #require(made.address.split(separator: "id=").last)))
    #expect(await guess() == .tooManyAttempts)
    let done = await bench.engine.begin(
      flow, provider: "password", fields: ["new_secret": .text("new")], client: bench.client())
    #expect(try done.get().status == .complete)
    #expect(await guess() == .tooManyAttempts)
    // An account that has nothing but the address is not locked after the operator's reset.
    let other = try await bench.secret(
      "register_email", ["email": "933333", "new_secret": "binas"], provider: "password", by: bench.client()
    ).get()
    let only = try #require(try await bench.engine.skip(other.id, client: bench.client()).get().account).id
    for _ in 0..<3 {
      _ = await bench.secret(
        "login_password", ["email": "933333", "secret": "guess"], provider: "password", by: bench.client())
    }
    let locks = try await bench.store.locks(at: bench.clock.now()).count
    let outcome = try await bench.engine.resetFactor(
      "password", of: only, by: OperatorIdentity(name: "ravi", tool: "test"), client: bench.client())
    #expect(outcome == .done)
    #expect(try await bench.store.locks(at: bench.clock.now()).count == locks - 1)
  }

  /// Attack: the owner of a name has mistyped an address. Whoever reads its mail recovers the account.
  @Test func claimedAddressDoesNotRecoverAnAccountWithAName() async throws {
    let bench = try await EngineTestBench.named()
    let id = try #require(try await bench.register("asha", "ashas").get().account).id
    let address = Identifier(kind: .email, value: "+911111", display: "911111")
    _ = try await bench.store.apply([.claimIdentifier(account: id, address)], at: bench.clock.now())
    let account = try #require(try await bench.store.account(id))
    #expect(account.credentials == ["password"] && !account.isRecoverable(by: address))
    // The legitimate use: an account that has nothing but the address that it claims.
    let other = try await bench.secret(
      "register_email", ["email": "922222", "new_secret": "binas"], provider: "password", by: bench.client()
    ).get()
    _ = try await bench.engine.skip(other.id, client: bench.client()).get()
    for (typed, messages) in [("911111", 0), ("922222", 1)] {
      let reset = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client())
        .get()
      _ = await bench.engine.begin(
        reset.id, provider: "email_code", fields: ["phone": .text(typed)], client: bench.client())
      await bench.engine.deliveriesEnd()
      #expect(bench.delivery.messages.count == messages, "\(typed)")
    }
  }

  /// Attack: a thief in a stolen session adds an address, which resets the password of an account that has nothing but
  /// a name.
  @Test func addressAddedToANameIsTooNewToAuthoriseChanges() async throws {
    let bench = try await EngineTestBench.named()
    let view = try await bench.register("asha", "ashas").get()
    let id = try #require(view.account).id
    var account = try #require(try await bench.store.account(id))
    bench.clock.advance(by: .seconds(60))
    let added = HeldIdentifier(
      identifier: Identifier(kind: .email, value: "+911111", display: "911111"), verifiedAt: bench.clock.now())
    account.identifiers.append(added)
    let rules = bench.generations.current.accounts
    #expect(account.isTooNewUntil(added, rules, at: bench.clock.now()) != nil)
    #expect(account.isTooNewUntil(added, rules, at: bench.clock.now() + rules.recoveryDelay) == nil)
  }

  /// Attack: a provider says that it has proved a name, and a name that anyone can type would authorise resets.
  @Test func provenNameIsAFaultOfItsProvider() async throws {
    let bench = try await EngineTestBench(others: [ProvingName()]) { generation in
      generation.flows["enter"] = .test("enter", account: .any, steps: [.test("names")])
    }
    let refusal = await bench.secret("enter", ["name": "asha", "word": "x"], provider: "names", by: bench.client())
      .refusal
    #expect(refusal?.code == .busy)
    #expect(bench.log.lines.contains { $0.contains("proves an identifier that can only be claimed") })
  }

  /// Attack: a code provider reads names, and its codes verify them.
  @Test func codesCannotGoToNames() {
    #expect(throws: ProviderMistake(provider: "names", "it sends codes to names, which receive none")) {
      try ProviderRegistry([ToyCode(name: "names", kind: .name)])
    }
  }

  /// Attack: someone registers the name of a deleted account, and gets what belonged to it.
  @Test func nameOfADeletedAccountLeadsToANewAccount() async throws {
    let bench = try await EngineTestBench.named()
    let first = try #require(try await bench.register("asha", "ashas").get().account)
    _ = try await bench.store.apply([.deleteAccount(first.id, traces: [])], at: bench.clock.now())
    let second = try #require(try await bench.register("asha", "mallorys").get().account)
    #expect(second.id != first.id)
    #expect(await bench.signIn("asha", "ashas").refusal?.code == .invalidPIN)
  }
}

/// A provider that says that it has proved a name.
private struct ProvingName: FullProvider {
  let descriptor = ProviderDescriptor(
    name: "names", beginFields: [.userName], submitFields: [InputField(name: "word", kind: .text)], settings: [],
    policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.name])

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { try input.userName() }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.submitFields, state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .proved(Proof(proved: [step.identifier].compactMap(\.self)))
  }
}
