import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

extension EngineTestBench {
  /// Registers an address by a password, without proving it.
  func claim(_ email: String, _ secret: String, by client: ClientContext? = nil) async throws -> FlowView {
    let client = client ?? self.client()
    let view = try await self.secret(
      "register_email", ["email": email, "new_secret": secret], provider: "password", by: client
    ).get()
    return try await engine.skip(view.id, client: client).get()
  }

  func logIn(_ email: String, _ secret: String, by client: ClientContext? = nil) async -> Result<FlowView, Refusal> {
    await self.secret(
      "login_password", ["email": email, "secret": secret], provider: "password", by: client ?? self.client())
  }
}

/// Unverified addresses have no owner: several accounts may claim the same one.
@Suite struct ClaimedAddressTests {
  /// Attack: a stranger registers the same unverified address so that the first user's password stops working.
  @Test func everyClaimantsPasswordKeepsWorking() async throws {
    let bench = try await EngineTestBench.full()
    let first = try #require(try await bench.claim("911111", "ashas").account)
    bench.clock.advance(by: .seconds(1))
    let second = try #require(try await bench.claim("911111", "mallorys").account)
    #expect(first.id != second.id)
    #expect(try await bench.logIn("911111", "ashas").get().account?.id == first.id)
    #expect(try await bench.logIn("911111", "mallorys").get().account?.id == second.id)
    #expect(await bench.logIn("911111", "neithers").refusal?.code == .invalidPIN)
  }

  /// Attack: each further claim brings three more guesses at the first user's password.
  @Test func allClaimantsHaveOneCounter() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.claim("911111", "ashas")
    for number in 0..<3 {
      bench.clock.advance(by: .seconds(1))
      #expect(await bench.logIn("911111", "wrong \(number)").refusal?.attemptsLeft ?? 0 == 2 - number)
      _ = try await bench.claim("911111", "mallorys \(number)")
    }
    #expect(await bench.logIn("911111", "ashas").refusal?.code == .tooManyAttempts)
  }

  /// Attack: the attacker's device has passed the password of their own claim on the victim's address and now hopes for
  /// a separate counter.
  @Test func trustedDeviceOfOneClaimantHasNoSeparateCountersForOtherClaimants() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.claim("911111", "ashas")
    bench.clock.advance(by: .seconds(1))
    for number in 0..<3 {
      let device = try #require(try await bench.claim("911111", "mallorys \(number)").deviceToken)
      #expect(await bench.logIn("911111", "wrong", by: bench.client(device: device)).refusal != nil)
      bench.clock.advance(by: .seconds(1))
    }
    let fresh = try #require(try await bench.claim("911111", "mallorys").deviceToken)
    #expect(
      await bench.logIn("911111", "ashas", by: bench.client(device: fresh)).refusal?.code != nil,
      "the tries at hers are used up")
    #expect(try await bench.logIn("911111", "mallorys", by: bench.client(device: fresh)).get().status == .complete)
  }

  /// Attack: right passwords for the attacker's own claim between wrong ones, so that failures are never consecutive.
  @Test func successOfOneClaimantResetsNoCounterOfOthers() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies["password"] = .test(
        "password",
        limits: [
          .test("hard", on: .verify, per: .account, max: 4, counts: .consecutiveFailures, lock: [.seconds(900)])
        ],
        unknownAccount: .conceal)
    }
    _ = try await bench.claim("911111", "ashas")
    bench.clock.advance(by: .seconds(1))
    _ = try await bench.claim("911111", "mallorys")
    for number in 0..<3 {
      #expect(await bench.logIn("911111", "guess \(number)").refusal?.code == .invalidPIN)
      #expect(try await bench.logIn("911111", "mallorys").get().status == .complete)
    }
    _ = await bench.logIn("911111", "guess 3")
    #expect(await bench.logIn("911111", "mallorys").refusal?.code == .tooManyAttempts)
  }

  /// Attack: strangers try passwords at the address until it is locked.
  @Test func wrongPasswordsElsewhereDoNotLockTheRegisteringDevice() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(try await bench.claim("911111", "ashas").deviceToken)
    bench.clock.advance(by: .seconds(1))
    _ = try await bench.claim("911111", "mallorys")
    for _ in 0..<3 { _ = await bench.logIn("911111", "wrong") }
    #expect(await bench.logIn("911111", "ashas").refusal?.code == .tooManyAttempts)
    #expect(try await bench.logIn("911111", "ashas", by: bench.client(device: own)).get().status == .complete)
  }

  @Test func trustedDeviceOfOneClaimantSignsInToAnother() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.claim("911111", "ashas")
    bench.clock.advance(by: .seconds(1))
    let other = try #require(try await bench.claim("911111", "raos").deviceToken)
    #expect(try await bench.logIn("911111", "ashas", by: bench.client(device: other)).get().status == .complete)
  }

  /// Attack: claims without end push the first user out of those whose password is compared.
  @Test func floodOfClaimsDoesNotDisplaceTheFirstClaimant() async throws {
    let bench = try await EngineTestBench.full()
    let first = try #require(try await bench.claim("911111", "ashas").account)
    for number in 0..<20 {
      bench.clock.advance(by: .seconds(1))
      _ = try await bench.claim("911111", "mallorys \(number)")
    }
    #expect(try await bench.logIn("911111", "ashas").get().account?.id == first.id)
    // The latest claimant is not pushed out either, nor one in the middle who uses the device that registered.
    #expect(try await bench.logIn("911111", "mallorys 19").get().status == .complete)
    #expect(await bench.logIn("911111", "mallorys 9").refusal?.code == .invalidPIN)
    let middle = try #require(try await bench.claim("911111", "raos").deviceToken)
    for number in 20..<30 {
      bench.clock.advance(by: .seconds(1))
      _ = try await bench.claim("911111", "mallorys \(number)")
    }
    #expect(try await bench.logIn("911111", "raos", by: bench.client(device: middle)).get().status == .complete)
  }

  /// Attack: claims without end, all of which each attempt at the address has to look through.
  @Test func anAddressThatWasRegisteredTooOftenHasToBeVerified() async throws {
    let bench = try await EngineTestBench.full()
    for number in 0..<FlowEngine.maxClaims {
      let account = Account(
        id: "ac_\(number)", createdAt: bench.clock.now(), lastSeenAt: bench.clock.now(),
        identifiers: [
          HeldIdentifier(identifier: Identifier(kind: .email, value: "+911111", display: "911111"), verifiedAt: nil)
        ])
      _ = try await bench.store.apply([.createAccount(account)], at: bench.clock.now())
    }
    let begun = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "ashas"], provider: "password", by: bench.client()
    ).get()
    #expect(await bench.engine.skip(begun.id, client: bench.client()).refusal?.code == .emailNotVerified)
    _ = try await bench.engine.begin(begun.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    let done = try await bench.submit(begun.id, bench.code).get()
    #expect(done.account?.isEmailVerified == true, "who proves it owns it")
    #expect(
      try await bench.store.accounts(
        claiming: Identifier(kind: .email, value: "+911111", display: ""), having: nil, limit: 1
      ).isEmpty)
  }

  /// Attack: the number of claimants is read from the response time, or multiplies the hashing.
  @Test func oneAddressCostsOneHashWhoeverClaimsIt() throws {
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    let hashing = SecretHashing(keys: keys, random: SystemRandom(), cost: .cheap)
    let salt = [UInt8](repeating: 3, count: 16)
    let stored = try (0..<8).map { try hashing.hash(Array("secret \($0)".utf8), salt: salt) }
    let done = AttemptHashes()
    for (number, hash) in stored.enumerated() {
      let verdict = try hashing.verify(Array("secret 7".utf8), against: hash, salt: salt, remembering: done)
      #expect(verdict == (number == 7 ? .right(rehashed: nil) : .wrong))
    }
    #expect(done.works.count == 1)
    // A hash with another salt is computed separately.
    #expect(
      try hashing.verify(Array("secret 7".utf8), against: try hashing.hash(Array("x".utf8)), remembering: done)
        == .wrong)
    #expect(done.works.count == 2)
  }

  @Test func saltIsOfOneAddress() async throws {
    let bench = try await EngineTestBench.full()
    func salt(_ email: String, _ provider: ProviderName = "password") -> [UInt8]? {
      let context = StepContext(
        flow: "register_email", purpose: .set, account: nil,
        identifier: Identifier(kind: .email, value: email, display: email), state: [], now: 0,
        callback: nil, tools: bench.engine.calls.tools(for: ToySecret(name: provider), Redaction([]), bench.request))
      return bench.engine.parts.providerStep.salt(for: ToySecret(name: provider), context)
    }
    #expect(salt("+1")?.count == 16)
    #expect(salt("+1") == salt("+1"))
    #expect(salt("+1") != salt("+2"))
    #expect(salt("+1", EngineTestBench.pin) == nil, "a PIN goes with no address")
  }
}

extension EngineTestBench {
  /// A minimal request context.
  fileprivate var request: RequestContext {
    RequestContext(client: client(), now: clock.now(), generation: generations.current)
  }
}
