import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What a proof that is too old, or of something that is too new, may not do. Beside each attack stands the legitimate
/// use.
@Suite struct YoungProofTests {
  private static let phone = EngineTestBench.phone
  private static let mail = EngineTestBench.mail
  private static let pin = EngineTestBench.pin
  private static let delay: Duration = .seconds(86_400)

  /// An account with a number only, and its session on a trusted device, a day after it was created.
  private func owner(_ bench: EngineTestBench) async throws -> (session: SessionSnapshot, device: SecretText) {
    _ = try await bench.pass("register", Self.phone, "911111", by: bench.client())
    bench.clock.advance(by: Self.delay)
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client())
    return (try await bench.signedIn(view), try #require(view.deviceToken))
  }

  private func isTrusted(_ device: SecretText, _ account: String, _ bench: EngineTestBench) async throws -> Bool {
    let stored = try #require(try await bench.store.account(account))
    return bench.keys.knows(bench.keys.device(device, at: bench.clock.now()), stored, by: nil)
  }

  private func told(_ text: String, _ bench: EngineTestBench) async -> [String] {
    await bench.engine.deliveriesEnd()
    return bench.delivery.notices.filter { $0.text.contains(text) }.map(\.to)
  }

  // MARK: - A session without a recent proof

  /// Attack: a session that was stolen long ago removes the owner's devices, one by one or by signing out everywhere.
  /// Wrong codes of other clients then lock the owner out, and the thief stays signed in.
  @Test func staleSessionEndsSessionsAndKeepsTheTrustInDevices() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    bench.clock.advance(by: .seconds(1800))
    let client = bench.client(session: own)
    let other = try await bench.signedIn(
      try await bench.pass("login", Self.phone, "911111", by: bench.client(device: device)))
    for id in try #require(try await bench.store.account(own.account.id)).devices {
      let refusal = await bench.engine.removeDevice(id, client: client).refusal
      #expect(refusal?.code == .stepUpRequired && refusal?.flow == "step_up")
    }
    try await bench.engine.signOutEverywhere(keepsOwn: true, client: client).get()
    #expect(try await bench.store.session(other.session.token) == nil)
    #expect(try await isTrusted(device, own.account.id, bench))
    #expect(await told("trusted device was removed", bench).isEmpty)
    // The legitimate use: the owner confirms, and is told.
    let kept = try #require(
      try await SessionDirectory(store: bench.store, clock: bench.clock).find(own.session.token))
    let proved = try await bench.signedIn(
      try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: kept)))
    try await bench.engine.signOutEverywhere(keepsOwn: true, client: bench.client(session: proved)).get()
    #expect(try await isTrusted(device, own.account.id, bench) == false)
    #expect(await told("trusted device was removed", bench) == ["+911111"])
  }

  @Test func removedDeviceIsToldToTheOwner() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    let id = try #require(try await bench.store.account(own.account.id)?.devices.first)
    try await bench.engine.removeDevice(id, client: bench.client(session: own, device: device)).get()
    #expect(await told("trusted device was removed", bench) == ["+911111"])
  }

  // MARK: - Something that is too new

  /// Attack: a thief adds an address of their own within a stolen session, signs in by it, and their device is trusted
  /// for a year, also after the owner has replaced the address.
  @Test func signInByAnAddressThatIsTooNewTrustsNoDevice() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    _ = try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: own))
    let signedIn = try await bench.pass("login", Self.mail, "933333", by: bench.client())
    #expect(signedIn.status == .complete && signedIn.deviceToken == nil)
    // The legitimate use.
    bench.clock.advance(by: Self.delay)
    #expect(try await bench.pass("login", Self.mail, "933333", by: bench.client()).deviceToken != nil)
  }

  /// Requires one of these at each sign-in.
  private func require(_ bench: EngineTestBench, _ choices: ProviderName...) {
    guard var generation = bench.generations.current as? TestGeneration else { return }
    generation.id += "+"
    generation.accounts.signIn = [
      SignInRequirement(
        choices: choices, when: nil, enroll: false, location: SourceLocation(file: "accounts.lua", line: 2))
    ]
    bench.generations.activate(generation, at: bench.clock.now())
  }

  /// Signs in by the number, and proves the address if a step asks for it.
  private func signsIn(_ bench: EngineTestBench) async throws -> FlowView {
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client())
    guard view.choices.contains(Self.mail) else { return view }
    _ = try await bench.engine.begin(view.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    return try await bench.engine.submit(view.id, fields: ["code": .text(bench.code)], client: bench.client()).get()
  }

  /// Attack: the rule asks for the PIN or a code by mail. A thief with the SIM and a session adds an address of their
  /// own, and needs no PIN.
  @Test func addressThatIsTooNewDoesNotStandInForThePIN() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let set = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    let proved = try await bench.signedIn(
      try await bench.secret("step_up", ["secret": "1"], by: bench.client(session: set)).get())
    _ = try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: proved))
    require(bench, Self.pin, Self.mail)
    #expect(try await signsIn(bench).choices == [Self.pin], "and not the address")
    // The legitimate use.
    bench.clock.advance(by: Self.delay)
    #expect(try await signsIn(bench).status == .complete)
  }

  /// An account that has nothing older still signs in.
  @Test func addressThatIsTooNewCountsIfTheAccountHasNothingOlder() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    _ = try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: own))
    require(bench, Self.pin, Self.mail)
    #expect(try await signsIn(bench).status == .complete)
  }
}
