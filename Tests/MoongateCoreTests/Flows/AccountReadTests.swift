import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// How often a request reads an account from the store.
@Suite struct AccountReadTests {
  private static let condition = FunctionName("accounts.sign_in[1].when")

  /// The engine's parts check the account several times: a sign-in requirement, its condition, and the completion.
  @Test func anAccountIsReadOncePerSubmit() async throws {
    let desk = try await EngineTestBench { generation in
      generation.accounts.signIn = [
        SignInRequirement(
          choices: [EngineTestBench.pin], when: Self.condition, enroll: false,
          location: SourceLocation(file: "accounts.lua", line: 2))
      ]
      generation.conditions[Self.condition] = { _ in false }
    }
    try await desk.registered()
    let store = MultiNodeStore([desk.store])
    let engine = desk.engine(on: store)
    let id = try await engine.create("login", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await engine.begin(id, provider: nil, fields: ["phone": .text("919999999999")], client: desk.client()).get()
    await engine.deliveriesEnd()
    let before = store.accountReads
    let view = try await engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get()
    #expect(view.status == .complete)
    #expect(store.accountReads - before == 1)
  }

  /// Attack: while a request waits for a provider, an operator locks the account.
  @Test func aWaitingRequestReadsTheAccountAgain() async throws {
    let desk = try await EngineTestBench()
    let account = try await desk.registered()
    let request = RequestContext(client: desk.client(), now: desk.clock.now(), generation: desk.generations.current)
    let flow = try await desk.engine.storage.load(try await desk.flow(), request)
    let read = try await desk.engine.lookup.loadAccount(account.id, flow)
    _ = try await desk.store.apply([.raiseEpoch(account: account.id)], at: desk.clock.now())
    #expect(try await desk.engine.lookup.loadAccount(account.id, flow)?.epoch == read?.epoch)
    flow.accounts.forget()
    #expect(try await desk.engine.lookup.loadAccount(account.id, flow)?.epoch != read?.epoch)
  }
}
