import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

/// Attempts and races for PINs and passwords with the shipped policies: five wrong ones, then a lock of a quarter of an
/// hour.
@Suite struct SecretAttemptTests {
  private static func counted(gate: (@Sendable () async -> Void)? = nil) throws -> (SecretsBench, CountedPermits) {
    let hashing = SecretHashing(keys: try SecretsBench.keys(), random: SeededRandom(seed: 2), cost: .cheap)
    let permits = CountedPermits(hashing, gate: gate)
    return (try SecretsBench(permits: permits), permits)
  }

  private static func all(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> String) async throws
    -> [String: Int]
  {
    try await withThrowingTaskGroup(of: String.self) { group in
      for index in 0..<count { group.addTask { try await body(index) } }
      return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
  }

  /// An address may begin sixty steps per hour, so a flood needs several addresses.
  private static func address(_ index: Int) -> [UInt8] { [10, 0, 0, UInt8(index / 50)] }

  /// Attack: parallel wrong attempts exceed the limit.
  @Test func twoHundredWrongPINsAtOnceAreFiveComparisons() async throws {
    let (bench, permits) = try Self.counted()
    try await bench.person()
    let session = try await bench.session()
    let told = try await Self.all(200) { index in
      await bench.enter("pin_unlock", "pin", ["pin": "4029\(10 + index % 80)"], by: bench.client(session)).told
    }
    #expect(permits.verified == 5)
    #expect(told == ["invalid_pin": 4, "too_many_attempts": 196])
    #expect(
      await bench.enter("pin_unlock", "pin", ["pin": SecretsBench.pin], by: bench.client(session)).told
        == "too_many_attempts")
    #expect(permits.verified == 5, "the correct PIN is not checked either")
  }

  @Test func twoHundredWrongPasswordsAtOnceAreFiveComparisons() async throws {
    let (bench, permits) = try Self.counted()
    try await bench.person()
    let told = try await Self.all(200) { index in
      await bench.login("guess number \(index)", from: Self.address(index)).told
    }
    #expect(permits.verified == 5)
    #expect(told == ["invalid_password": 4, "too_many_attempts": 196])
  }

  /// Attack: parallel right answers complete a flow more than once.
  @Test func parallelRightSecretsCompleteAFlowOnce() async throws {
    let (bench, _) = try Self.counted()
    try await bench.person()
    let client = bench.client()
    guard
      case .success(let flow) = await bench.engine.create("login_password", returnTo: nil, browser: nil, client: client),
      case .success = await bench.engine.begin(
        flow.id, provider: "password", fields: ["email": .text(SecretsBench.address)], client: client)
    else {
      Issue.record("not begun")
      return
    }
    let one = try await Self.all(50) { _ in
      await bench.engine.submit(flow.id, fields: ["password": .text(SecretsBench.password)], client: bench.client())
        .told
    }
    #expect(one["complete"] == 1, "\(one)")
    #expect(try await bench.store.sessions(of: "ac_1").count == 1)
    let ten = try await Self.all(10) { _ in await bench.login(SecretsBench.password).told }
    #expect(ten == ["complete": 10], "ten sign-ins of one account: \(ten)")
    let session = try await bench.session()
    let pins = try await Self.all(20) { index in
      await bench.enter(
        "pin_unlock", "pin", ["pin": index == 7 ? SecretsBench.pin : "40291\(index % 10)"], by: bench.client(session)
      ).told
    }
    #expect(pins["complete", default: 0] <= 1 && pins["invalid_pin", default: 0] <= 5, "\(pins)")
  }

  /// Attack: a new flow or session resets the attempts.
  @Test func newFlowsAndSpellingsKeepTheCount() async throws {
    let (bench, permits) = try Self.counted()
    try await bench.person()
    let spellings = [
      "asha@example.com", "ASHA@example.com", " asha@EXAMPLE.com", "Asha@Example.Com\t", "asha@ｅｘａｍｐｌｅ.com",
      "asha@exam\u{AD}ple.com",
    ]
    for (index, spelling) in spellings.enumerated() {
      let client = bench.client(from: [198, 51, 100, UInt8(index)])
      let told = await bench.enter(
        "login_password", "password", ["email": spelling, "password": "wrong one"], by: client
      ).told
      #expect(told == (index < 4 ? "invalid_password" : "too_many_attempts"), "\(spelling)")
    }
    #expect(permits.verified == 5)
    // Another flow and another session of the account share the attempts of the PIN.
    for index in 0..<6 {
      let session = try await bench.session()
      let flow = ["pin_unlock", "pin_disable", "pin_unlock"][index % 3]
      let told = await bench.enter(flow, "pin", ["pin": "402917"], by: bench.client(session)).told
      #expect(told == (index < 4 ? "invalid_pin" : "too_many_attempts"))
    }
    let session = try await bench.session()
    let change = await bench.enter(
      "pin_change", "pin", ["pin": SecretsBench.pin, "new_pin": "402917"], by: bench.client(session))
    #expect(change.told == "too_many_attempts")
    #expect(permits.verified == 10)
  }

  /// The last attempt can succeed.
  @Test func rightSecretOnTheLastAttemptSucceeds() async throws {
    let bench = try SecretsBench()
    try await bench.person()
    for left in [4, 3, 2, 1] { #expect(await bench.login("wrong one").refusal?.attemptsLeft == left) }
    #expect(await bench.login(SecretsBench.password).told == "complete")
    #expect(
      await bench.login("wrong one").refusal?.retryAfter == .seconds(900), "failures stay counted after a success")
    #expect(await bench.login(SecretsBench.password).told == "too_many_attempts")
    bench.clock.advance(by: .seconds(900))
    #expect(await bench.login(SecretsBench.password).told == "complete")
    for _ in 1...4 { _ = await bench.login("wrong one") }
    #expect(await bench.login("wrong one").refusal?.retryAfter == .seconds(3600), "each lock is longer")
  }

  /// Malformed and weak input is not an attempt, and reveals nothing about the current secret.
  @Test func malformedInputIsNotCounted() async throws {
    let (bench, permits) = try Self.counted()
    try await bench.person()
    let session = try await bench.session()
    for typed in ["", "12345", "1234567", "12345a", "七三九一五四", "739154\0", "7391_54"] {
      #expect(await bench.enter("pin_unlock", "pin", ["pin": typed], by: bench.client(session)).told == "invalid_input")
    }
    for pin in [SecretsBench.pin, "402917"] {
      #expect(
        await bench.enter("pin_change", "pin", ["pin": pin, "new_pin": "111111"], by: bench.client(session)).told
          == "weak_pin")
    }
    #expect(await bench.login(String(repeating: "a", count: 1025)).told == "invalid_input")
    #expect(await bench.login("").told == "invalid_input")
    #expect(permits.verified == 0)
    #expect(
      await bench.enter("pin_unlock", "pin", ["pin": "402917"], by: bench.client(session)).refusal?.attemptsLeft == 4)
    #expect(await bench.login("wrong one").refusal?.attemptsLeft == 4)
  }

  /// The process ends between the reservation and the answer.
  @Test func unsettledAttemptStaysCharged() async throws {
    let gate = Mutex<[CheckedContinuation<Void, Never>]>([])
    let isHeld = Atomic(true)
    let (bench, _) = try Self.counted {
      guard isHeld.load(ordering: .relaxed) else { return }
      await withCheckedContinuation { continuation in gate.withLock { $0.append(continuation) } }
    }
    try await bench.person()
    let lost = Task { await bench.login("wrong one").told }
    while gate.withLock({ $0.isEmpty }) { await Task.yield() }
    isHeld.store(false, ordering: .relaxed)
    bench.clock.advance(by: .seconds(11))
    for _ in 1...3 { #expect(await bench.login("wrong one").told == "invalid_password") }
    #expect(
      await bench.login("wrong one").told == "too_many_attempts", "the interrupted attempt counts as the first of five")
    gate.withLock { $0 }.forEach { $0.resume() }
    _ = await lost.value
  }

  /// Success with one factor does not reset the counters of another.
  @Test func oneFactorsSuccessDoesNotClearAnothers() async throws {
    let bench = try SecretsBench()
    try await bench.person()
    let session = try await bench.session()
    for _ in 1...4 { _ = await bench.login("wrong one") }
    #expect(
      await bench.enter("pin_unlock", "pin", ["pin": SecretsBench.pin], by: bench.client(session)).told == "complete")
    #expect(await bench.login("wrong one").told == "too_many_attempts")
  }

  /// During a flood, the answer is `busy`, and no counter is charged.
  @Test func busyAnswersChargeNoAttempt() async throws {
    let busy = try SecretsBench(permits: NoPermits())
    try await busy.person()
    let session = try await busy.session()
    let pins = try await Self.all(100) { _ in
      await busy.enter("pin_unlock", "pin", ["pin": "402917"], by: busy.client(session)).told
    }
    let passwords = try await Self.all(100) { index in await busy.login("wrong one", from: Self.address(index)).told }
    #expect(pins == ["busy": 100] && passwords == ["busy": 100])
    #expect(try await busy.store.locks(at: busy.clock.now()).isEmpty)
    let free = try SecretsBench(store: busy.store)
    #expect(await free.login("wrong one").refusal?.attemptsLeft == 4)
    #expect(
      await free.enter("pin_unlock", "pin", ["pin": "402917"], by: free.client(session)).refusal?.attemptsLeft == 4)
  }

  /// The real thread pool during a flood: it verifies what it accepts, answers `busy` otherwise, and the counters
  /// agree.
  @Test func floodOfTheHashingPoolKeepsTheCount() async throws {
    let pool = HashingPool(
      keys: try SecretsBench.keys(), random: SeededRandom(seed: 3), cost: .cheap, threads: 1, queue: 1)
    let bench = try SecretsBench(permits: pool)
    try await bench.person()
    let told = try await Self.all(300) { index in await bench.login("wrong one", from: Self.address(index)).told }
    #expect(told["invalid_password", default: 0] <= 4)
    #expect(told.keys.allSatisfy { ["invalid_password", "too_many_attempts", "busy"].contains($0) }, "\(told)")
    bench.clock.advance(by: .seconds(86_400))
    #expect(await bench.login(SecretsBench.password).told == "complete")
  }
}
