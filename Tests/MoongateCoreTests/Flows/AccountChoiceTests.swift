import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Several accounts claim one address. Whoever proves the address by a code chooses their account, and nothing that
/// somebody else set in it stays.
@Suite struct AccountChoiceTests {
  /// A bench with two accounts that claim the address, and a password reset in which the right code has been entered.
  private func proved(_ claims: [String] = ["ashas", "mallorys"]) async throws -> (
    bench: EngineTestBench, accounts: [FlowView], flow: FlowID, view: FlowView
  ) {
    let bench = try await EngineTestBench.full()
    var accounts: [FlowView] = []
    for secret in claims {
      accounts.append(try await bench.claim("911111", secret))
      bench.clock.advance(by: .seconds(60))
    }
    let id = try await reset(bench)
    return (bench, accounts, id, try await bench.submit(id, bench.code).get())
  }

  private func reset(_ bench: EngineTestBench) async throws -> FlowID {
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    return id
  }

  private func submit(_ bench: EngineTestBench, _ id: FlowID, _ fields: [String: String]) async -> Result<
    FlowView, Refusal
  > {
    await bench.engine.submit(id, fields: fields.mapValues { .text($0) }, client: bench.client())
  }

  private func finish(_ bench: EngineTestBench, _ id: FlowID, _ secret: String = "new") async -> Result<
    FlowView, Refusal
  > {
    await bench.engine.begin(id, provider: "password", fields: ["new_secret": .text(secret)], client: bench.client())
  }

  @Test func proofOfASharedAddressOffersTheAccounts() async throws {
    let (bench, accounts, id, view) = try await proved()
    #expect(view.status == .pending && view.choices.isEmpty && view.account == nil)
    let options = try #require(view.step?.accounts)
    #expect(options.map(\.value) == ["1", "2"])
    #expect(
      options.map(\.createdAt) == options.map(\.lastUsedAt)
        && options[0].createdAt + .seconds(60) == options[1].createdAt)
    #expect(try await submit(bench, id, ["account": "1"]).get().choices == ["password"])
    let done = try await finish(bench, id).get()
    #expect(done.account?.id == accounts[0].account?.id && done.account?.isEmailVerified == true)
    let left = try #require(accounts[1].account)
    let other = try #require(try await bench.store.account(left.id))
    #expect(other.identifiers.isEmpty && other.credentials.isEmpty, "the others lose the address")
    for account in accounts { #expect(try await bench.session(account) == nil) }
    #expect(await bench.logIn("911111", "mallorys").refusal?.code == .invalidPIN)
    #expect(try await bench.logIn("911111", "new").get().account?.id == done.account?.id)
  }

  @Test(arguments: ["", "0", "3", "-1", "x", "ac_1", "1 ", "99999999999999999999"]) func onlyOfferedAccountsCanBeChosen(
    _ typed: String
  ) async throws {
    let (bench, _, id, _) = try await proved()
    let refusal = await submit(bench, id, ["account": typed]).refusal
    #expect(refusal?.code == .invalidInput && refusal?.field == "account")
    #expect(try await submit(bench, id, ["account": "2"]).get().choices == ["password"], "it can be chosen again")
  }

  @Test func accountChoiceBlocksOtherSteps() async throws {
    let (bench, _, id, _) = try await proved()
    #expect(await submit(bench, id, ["new_secret": "new"]).refusal?.field == "account")
    #expect(await finish(bench, id).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.skip(id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.resend(id, client: bench.client()).refusal?.code == .stepNotOpen)
    _ = try await submit(bench, id, ["account": "1"]).get()
    #expect(await submit(bench, id, ["account": "2"]).refusal?.code == .stepNotOpen, "it is chosen once")
  }

  @Test func passwordSentWithTheCodeWaitsForTheChoice() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.claim("911111", "ashas")
    bench.clock.advance(by: .seconds(1))
    _ = try await bench.claim("911111", "mallorys")
    let id = try await reset(bench)
    let view = try await submit(bench, id, ["code": bench.code, "new_secret": "new"]).get()
    #expect(view.step?.accounts.count == 2)
    #expect(try await bench.logIn("911111", "ashas").get().status == .complete, "nothing is changed yet")
  }

  @Test func singleClaimantNeedsNoChoice() async throws {
    let (bench, accounts, id, view) = try await proved(["ashas"])
    #expect(view.step == nil && view.choices == ["password"])
    #expect(try await finish(bench, id).get().account?.id == accounts[0].account?.id)
  }

  /// Attack: somebody registers an account with the victim's address beforehand, with a PIN, a second address and a
  /// session of their own.
  @Test func unverifiedPartsOfTheAccountAreRemoved() async throws {
    let bench = try await EngineTestBench.full()
    let mallory = try await bench.claim("911111", "mallorys")
    let session = try #require(try await bench.session(mallory))
    let withPIN = try await bench.secret("pin_set", ["new_secret": "1357"], by: bench.client(session: session)).get()
    let id = session.account.id
    let extra = Identifier(kind: .phone, value: "+922222", display: "922222")
    _ = try await bench.store.apply(
      [.claimIdentifier(account: id, extra), .putProviderRecord(account: id, "totp", sealed: [1])],
      at: bench.clock.now()
    )
    let flow = try await reset(bench)
    _ = try await bench.submit(flow, bench.code).get()
    let done = try await finish(bench, flow).get()
    #expect(done.account?.id == id && done.account?.hasPIN == false && done.account?.phone == nil)
    let left = try #require(try await bench.store.account(id))
    #expect(left.identifiers.map(\.identifier.value) == ["+911111"] && left.credentials == ["password"])
    #expect(try await bench.session(withPIN) == nil)
    #expect(try await bench.store.sessions(of: id).count == 1, "the one that the reset made")
  }

  /// Attack: while the victim chooses a password for the account, the attacker proves a number of their own in it.
  @Test func accountWithAProofMadeMeanwhileIsNotHandedOver() async throws {
    let (bench, accounts, id, _) = try await proved()
    _ = try await submit(bench, id, ["account": "2"]).get()
    let mallory = try #require(accounts[1].account).id
    let number = Identifier(kind: .phone, value: "+922222", display: "922222")
    _ = try await bench.store.apply([.verifyIdentifier(account: mallory, number)], at: bench.clock.now())
    #expect(await finish(bench, id).refusal != nil)
    let left = try #require(try await bench.store.account(mallory))
    #expect(left.identifiers.filter { $0.verifiedAt != nil }.map(\.identifier) == [number])
    #expect(try await bench.logIn("911111", "mallorys").get().account?.id == mallory)
    // If that happens before the code is entered, the account is not offered at all.
    let again = try await reset(bench)
    #expect(try await bench.submit(again, bench.code).get().step == nil, "one is left")
  }

  @Test func lockedAccountIsRefusedOnlyAfterItIsChosen() async throws {
    let (bench, accounts, id, view) = try await proved()
    #expect(view.step?.accounts.count == 2)
    let locked = try #require(accounts[1].account)
    _ = try await bench.store.apply([.setLocked(account: locked.id, true)], at: bench.clock.now())
    #expect(await submit(bench, id, ["account": "2"]).refusal?.code == .disabled)
    #expect(try await submit(bench, id, ["account": "1"]).get().status == .pending)
  }
}
