import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Attempts, timers and races, tested on the engine.
@Suite struct CodeAttemptTests {
  @Test(arguments: EngineTestBench.codes) func fiveWrongCodesLock(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let id = try await bench.begun()
    for left in [4, 3, 2, 1] {
      let refusal = await bench.submit(id, bench.wrong).refusal
      #expect(refusal?.code == .invalidCode)
      #expect(refusal?.attemptsLeft == left)
    }
    let last = await bench.submit(id, bench.wrong).refusal
    #expect(last?.code == .tooManyAttempts)
    #expect(last?.retryAfter == .seconds(900))
    #expect(last?.sentence == "Too many attempts. Please try again in 15 minutes.")
    let view = try await bench.engine.view(id, client: bench.client()).get()
    #expect(view.step?.lockedUntil == bench.clock.now() + .seconds(900))
    #expect(view.step?.attemptsLeft == 0)
    // The right code is refused too, and the answer does not reveal that it was right.
    #expect(await bench.submit(id, bench.code).refusal?.code == .tooManyAttempts)
    // Meanwhile nothing is sent, in this flow or another, from this address or another.
    let sent = bench.delivery.messages.count
    #expect(await bench.engine.resend(id, client: bench.client()).refusal?.code == .tooManyAttempts)
    #expect(await bench.begin(try await bench.flow(), address: [198, 51, 100, 1]).refusal?.code == .tooManyAttempts)
    #expect(bench.delivery.messages.count == sent)
  }

  @Test(arguments: EngineTestBench.codes) func unusedCodeWorksAfterTheLock(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by) {
      $0.policies[by] = .test(
        by,
        limits: [
          .test(
            "verify", on: .verify, per: .identifier, max: 2, window: .seconds(86_400),
            lock: [.seconds(60), .seconds(3600)])
        ])
    }
    try await bench.registered()
    let id = try await bench.begun()
    for _ in 0..<2 { _ = await bench.submit(id, bench.wrong) }
    #expect(await bench.submit(id, bench.code).refusal?.retryAfter == .seconds(60))
    bench.clock.advance(by: .milliseconds(59_999))
    #expect(await bench.submit(id, bench.code).refusal?.code == .tooManyAttempts)
    bench.clock.advance(by: .milliseconds(1))
    #expect(try await bench.submit(id, bench.code).get().status == .complete)
    // The next lock is the longer one.
    bench.clock.advance(by: .seconds(60))
    let next = try await bench.begun()
    _ = await bench.submit(next, bench.wrong)
    #expect(await bench.submit(next, bench.wrong).refusal?.retryAfter == .seconds(3600))
  }

  @Test(arguments: EngineTestBench.codes) func rightCodeOnTheLastAttemptSucceeds(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let id = try await bench.begun()
    for _ in 0..<4 { _ = await bench.submit(id, bench.wrong) }
    #expect(try await bench.submit(id, bench.code).get().status == .complete)
    // Failures stay counted after a success.
    bench.clock.advance(by: .seconds(60))
    let next = try await bench.begun()
    #expect(await bench.submit(next, bench.wrong).refusal?.code == .tooManyAttempts)
  }

  @Test(arguments: EngineTestBench.codes) func newFlowAddressOrCodeKeepsTheCounters(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    for (number, left) in [4, 3, 2, 1].enumerated() {
      bench.clock.advance(by: .seconds(900))
      let id = try await bench.begun(
        phone: ["919999999999", "+91 99999-99999"][number % 2], address: [198, 51, 100, UInt8(number)])
      #expect(await bench.submit(id, bench.wrong, address: [203, 0, 113, UInt8(number)]).refusal?.attemptsLeft == left)
    }
  }

  @Test(arguments: EngineTestBench.codes) func codeIsInvalidFromItsExpiryOn(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let first = try await bench.begun()
    bench.clock.advance(by: .milliseconds(599_999))
    #expect(try await bench.submit(first, bench.code).get().status == .complete)
    let second = try await bench.begun()
    bench.clock.advance(by: .seconds(600))
    #expect(await bench.submit(second, bench.code).refusal?.code == .codeExpired)
    // Nothing is charged, whatever is entered, and a resend is possible at once.
    for _ in 0..<9 { #expect(await bench.submit(second, bench.wrong).refusal?.code == .codeExpired) }
    #expect(try await bench.engine.view(second, client: bench.client()).get().step?.attemptsLeft == 5)
    _ = try await bench.engine.resend(second, client: bench.client()).get()
    #expect(try await bench.submit(second, bench.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func onlyAResendInTheSameFlowReplacesACode(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let first = try await bench.begun()
    let firstCode = bench.code
    bench.clock.advance(by: .seconds(60))
    let second = try await bench.begun()
    let secondCode = bench.code
    bench.clock.advance(by: .seconds(120))
    _ = try await bench.engine.resend(second, client: bench.client()).get()
    if bench.code != secondCode { #expect(await bench.submit(second, secondCode).refusal?.code == .invalidCode) }
    if firstCode != bench.code { #expect(await bench.submit(second, firstCode).refusal?.code == .invalidCode) }
    #expect(try await bench.submit(first, firstCode).get().status == .complete)
    #expect(try await bench.submit(second, bench.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func anotherNumberInTheFlowInvalidatesTheEarlierCode(by: ProviderName)
    async throws
  {
    let bench = try await EngineTestBench(by: by)
    let id = try await bench.begun("register", phone: "911111")
    let code = bench.code
    _ = try await bench.begin(id, phone: "922222").get()
    if code != bench.code { #expect(await bench.submit(id, code).refusal?.code == .invalidCode) }
    #expect(try await bench.submit(id, bench.code).get().account.flatMap { $0.phone ?? $0.email } == "+922222")
  }

  @Test(arguments: EngineTestBench.codes) func resendsWaitAndRunOut(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    let id = try await bench.begun("register")
    #expect(try await bench.engine.view(id, client: bench.client()).get().step?.resendsLeft == 3)
    for wait in [60, 120, 120] {
      let refusal = await bench.engine.resend(id, client: bench.client()).refusal
      #expect(refusal?.code == .resendTooSoon)
      #expect(refusal?.retryAfter == .seconds(wait))
      #expect(refusal?.resendAt == bench.clock.now() + .seconds(wait))
      // Another flow for the same number has to wait as well.
      #expect(await bench.begin(try await bench.flow("enter")).refusal?.code == .resendTooSoon)
      bench.clock.advance(by: .seconds(wait))
      _ = try await bench.engine.resend(id, client: bench.client()).get()
    }
    bench.clock.advance(by: .seconds(120))
    let refusal = await bench.engine.resend(id, client: bench.client()).refusal
    #expect(refusal?.code == .sendLimit)
    #expect(refusal?.retryAfter == .seconds(900 - 420))
    #expect(bench.delivery.messages.count == 4)
    let view = try await bench.engine.view(id, client: bench.client()).get()
    #expect(view.step?.resendsLeft == 0)
    #expect(view.step?.resendAt == bench.clock.now() + .seconds(480))
  }

  @Test(arguments: EngineTestBench.codes) func successClearsTheResendTimer(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    _ = try await bench.submit(try await bench.begun("register"), bench.code).get()
    _ = try await bench.begun("login")
  }

  @Test(arguments: EngineTestBench.codes) func aFailedDeliveryChargesTheAddressAlone(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    let id = try await bench.flow("register")
    bench.delivery.fails = true
    for _ in 0..<29 { #expect(await bench.begin(id).refusal?.code == .deliveryFailed) }
    bench.delivery.fails = false
    let view = try await bench.begin(id).get()
    #expect(view.step?.resendsLeft == 0, "29 failures and one message are the 30 of this address")
    #expect(view.step?.resendAt == bench.clock.now() + .seconds(3600))
    #expect(try await bench.submit(id, bench.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func twentyParallelSendsAreOneMessage(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    let results = try await parallel(20) { _ in await bench.begin(try await bench.flow("enter")) }
    #expect(bench.delivery.messages.count == 1)
    #expect(results.count { $0.refusal == nil } == 1)
    #expect(results.count { $0.refusal?.code == .resendTooSoon } == 19)
  }

  @Test(arguments: EngineTestBench.codes) func twoHundredParallelWrongCodesAreFiveAttempts(by: ProviderName)
    async throws
  {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let id = try await bench.begun()
    let wrong = bench.wrong
    let results = try await parallel(200) { _ in await bench.submit(id, wrong) }
    #expect(results.compactMap { $0.refusal?.attemptsLeft }.sorted() == [1, 2, 3, 4])
    #expect(results.count { $0.refusal?.code == .invalidCode } == 4)
    #expect(results.count { $0.refusal?.code == .tooManyAttempts } == 196)
    #expect(results.allSatisfy { ($0.refusal?.retryAfter).map { $0 > .zero && $0 <= .seconds(900) } ?? true })
    #expect(try await bench.audit.events(limit: 1000).count { $0.kind == .locked } == 1)
  }

  @Test(arguments: EngineTestBench.codes) func fiftyParallelRightCodesAreOneSession(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by)
    let account = try await bench.registered()
    let id = try await bench.begun()
    let code = bench.code
    let results = try await parallel(50) { _ in await bench.submit(id, code) }
    #expect(results.count { $0.refusal == nil } == 1)
    #expect(try await bench.store.sessions(of: account.id).count == 2, "one of registering, one of signing in")
    #expect(
      try await bench.engine.view(try await bench.begunLater(), client: bench.client()).get().step?.attemptsLeft == 5,
      "rivals gave their tries back")
  }

  @Test(arguments: EngineTestBench.codes) func oneRightAmongTwentyWrongIsAtMostOneSuccess(by: ProviderName) async throws
  {
    let bench = try await EngineTestBench(by: by)
    try await bench.registered()
    let id = try await bench.begun()
    let (code, wrong) = (bench.code, bench.wrong)
    let results = try await parallel(21) { number in await bench.submit(id, number == 10 ? code : wrong) }
    #expect(results.count { $0.refusal == nil } <= 1)
    #expect(results.count { $0.refusal?.code == .invalidCode } <= 5)
  }

  @Test(arguments: EngineTestBench.codes) func tenParallelSignInsOfOneAccountAllSucceed(by: ProviderName) async throws {
    let bench = try await EngineTestBench(by: by) {
      $0.policies[by] = .test(
        by, resendAfter: [],
        limits: [
          .test("verify", on: .verify, per: .identifier, max: 5, window: .seconds(86_400), lock: [.seconds(900)])
        ])
    }
    try await bench.registered()
    var flows: [(FlowID, String)] = []
    for _ in 0..<10 { flows.append((try await bench.begun(), bench.code)) }
    let all = flows
    let results = try await parallel(10) { number in await bench.submit(all[number].0, all[number].1) }
    #expect(results.count { $0.refusal == nil } == 10, "\(results.compactMap(\.refusal))")
  }

  /// Runs the body this many times concurrently.
  private func parallel<Answer: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Answer)
    async throws -> [Answer]
  {
    try await withThrowingTaskGroup(of: Answer.self) { group in
      for number in 0..<count { group.addTask { try await body(number) } }
      var answers: [Answer] = []
      for try await answer in group { answers.append(answer) }
      return answers
    }
  }
}

extension EngineTestBench {
  /// Creates a flow after every timer has expired.
  fileprivate func begunLater() async throws -> FlowID {
    clock.advance(by: .seconds(1000))
    return try await begun()
  }
}
