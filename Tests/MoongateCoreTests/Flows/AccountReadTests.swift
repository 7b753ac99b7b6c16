import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// How often a request reads an account from the store.
@Suite struct AccountReadTests {
  private static let condition = FunctionName("accounts.sign_in[1].when")

  /// The engine's parts check the account several times: a sign-in requirement, its condition, and the completion.
  @Test func anAccountIsReadOncePerSubmit() async throws {
    let bench = try await EngineTestBench { generation in
      generation.accounts.signIn = [
        SignInRequirement(
          choices: [EngineTestBench.pin], when: Self.condition, enroll: false,
          location: SourceLocation(file: "accounts.lua", line: 2))
      ]
      generation.conditions[Self.condition] = { _ in false }
    }
    try await bench.registered()
    let store = MultiNodeStore([bench.store])
    let engine = bench.engine(on: store)
    let id = try await engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await engine.begin(id, provider: nil, fields: ["phone": .text("919999999999")], client: bench.client())
      .get()
    await engine.deliveriesEnd()
    let before = store.accountReads
    let view = try await engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    #expect(view.status == .complete)
    #expect(store.accountReads - before == 1)
  }

  /// Attack: the time of a wrong code's refusal tells whether an account has the number.
  @Test(arguments: ["919999999999", "918888888888"])
  func aWrongCodeReadsAsMuchForAnyNumber(number: String) async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, resendAfter: [], unknownAccount: .conceal)
    }
    try await bench.registered()
    let store = MultiNodeStore([bench.store])
    let engine = bench.engine(on: store)
    let id = try await engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await engine.begin(id, provider: nil, fields: ["phone": .text(number)], client: bench.client()).get()
    await engine.deliveriesEnd()
    let before = store.accountReads
    let refused = await engine.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
    #expect(refused?.code == .invalidCode)
    #expect(store.accountReads - before == 1)
  }

  /// Attack: the time in which a step begins tells whether an account has the number.
  @Test func aBeginDoesTheSameForAnyNumber() async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, resendAfter: [], unknownAccount: .conceal)
    }
    try await bench.registered()
    let store = MultiNodeStore([bench.store])
    let engine = bench.engine(on: store)
    var operations: [[String]] = []
    for number in ["919999999999", "918888888888"] {
      let before = store.operations.count
      let id = try await engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
      _ = try await engine.begin(id, provider: nil, fields: ["phone": .text(number)], client: bench.client()).get()
      operations.append(Array(store.operations[before...]))
      await engine.deliveriesEnd()
    }
    #expect(operations[0] == operations[1] && operations[0].count > 2, "\(operations)")
  }

  /// Attack: the time of a wrong password's refusal tells whether an account has the name.
  @Test(arguments: [true, false]) func aWrongPasswordReadsAsMuchForAnyName(inOneCall: Bool) async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let registered = try await bench.secret(
      "register_email", ["name": "asha", "new_secret": "ashas"], provider: "password", by: bench.client()
    ).get()
    _ = try await bench.engine.skip(registered.id, client: bench.client()).get()
    let store = MultiNodeStore([bench.store])
    let engine = bench.engine(on: store)
    var reads: [[Int]] = []
    for name in ["asha", "nobody"] {
      let (accounts, operations) = (store.accountReads, store.operations.count)
      let id = try await engine.create("login_password", returnTo: nil, browser: nil, client: bench.client()).get().id
      var fields: [String: InputValue] = ["name": .text(name)]
      let secret: [String: InputValue] = ["secret": .text("wrong")]
      if inOneCall { fields.merge(secret) { $1 } }
      let begun = await engine.begin(id, provider: "password", fields: fields, client: bench.client())
      let answer = inOneCall ? begun : await engine.submit(id, fields: secret, client: bench.client())
      #expect(answer.refusal?.code == .invalidPIN)
      let records = store.operations[operations...].filter { $0.hasPrefix("providerRecord") }
      reads.append([store.accountReads - accounts, records.count])
    }
    #expect(reads[0] == reads[1] && reads[0].allSatisfy { $0 > 1 }, "\(reads)")
  }

  /// Attack: while a request waits for a provider, an operator locks the account.
  @Test func aWaitingRequestReadsTheAccountAgain() async throws {
    let bench = try await EngineTestBench()
    let account = try await bench.registered()
    let request = RequestContext(client: bench.client(), now: bench.clock.now(), generation: bench.generations.current)
    let flow = try await bench.engine.storage.load(try await bench.flow(), request)
    let read = try await bench.engine.lookup.loadAccount(account.id, flow)
    _ = try await bench.store.apply([.raiseEpoch(account: account.id)], at: bench.clock.now())
    #expect(try await bench.engine.lookup.loadAccount(account.id, flow)?.epoch == read?.epoch)
    flow.accounts.forget()
    #expect(try await bench.engine.lookup.loadAccount(account.id, flow)?.epoch != read?.epoch)
  }

  @Test func theHolderIsReadWithAStoredFlowAndThenEachTimeAgain() async throws {
    let bench = try await EngineTestBench()
    let id = try await bench.registered().id
    let account = try #require(try await bench.store.account(id))
    let phone = try #require(account.identifier(.phone)?.identifier)
    let store = MultiNodeStore([bench.store])
    let engine = bench.engine(on: store)
    let request = RequestContext(client: bench.client(), now: bench.clock.now(), generation: bench.generations.current)
    // A step that has begun stores the flow.
    let flowID = try await bench.begun()
    let flow = try await engine.storage.load(flowID, request, withHolderOf: phone)
    #expect(try await engine.lookup.holder(of: phone, flow)?.epoch == account.epoch)
    #expect(store.holderReads == 0)
    _ = try await bench.store.apply([.raiseEpoch(account: account.id)], at: bench.clock.now())
    #expect(try await engine.lookup.holder(of: phone, flow)?.epoch == account.epoch + 1)
    #expect(store.holderReads == 1)
    let other = try await engine.storage.load(flowID, request, withHolderOf: phone)
    other.accounts.forget()
    _ = try await engine.lookup.holder(of: phone, other)
    #expect(store.holderReads == 2)
  }
}
