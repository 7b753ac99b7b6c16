import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Attempts, timers and races, tested on the engine.
@Suite struct TriesTests {
  @Test(arguments: EngineTestBench.codes) func fiveWrongCodesLock(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let id = try await desk.begun()
    for left in [4, 3, 2, 1] {
      let refusal = await desk.submit(id, desk.wrong).refusal
      #expect(refusal?.code == .invalidCode)
      #expect(refusal?.attemptsLeft == left)
    }
    let last = await desk.submit(id, desk.wrong).refusal
    #expect(last?.code == .tooManyAttempts)
    #expect(last?.retryAfter == .seconds(900))
    #expect(last?.sentence == "Too many attempts. Please try again in 15 minutes.")
    let view = try await desk.engine.view(id, client: desk.client()).get()
    #expect(view.step?.lockedUntil == desk.clock.now() + .seconds(900))
    #expect(view.step?.attemptsLeft == 0)
    // The right code is refused too, and the answer does not reveal that it was right.
    #expect(await desk.submit(id, desk.code).refusal?.code == .tooManyAttempts)
    // Meanwhile nothing is sent, in this flow or another, from this address or another.
    let sent = desk.delivery.messages.count
    #expect(await desk.engine.resend(id, client: desk.client()).refusal?.code == .tooManyAttempts)
    #expect(await desk.begin(try await desk.flow(), address: [198, 51, 100, 1]).refusal?.code == .tooManyAttempts)
    #expect(desk.delivery.messages.count == sent)
  }

  @Test(arguments: EngineTestBench.codes) func afterTheLockTheUnspentCodeWorks(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by) {
      $0.policies[by] = .test(
        by,
        limits: [
          .test(
            "verify", on: .verify, per: .identifier, max: 2, window: .seconds(86_400),
            lock: [.seconds(60), .seconds(3600)])
        ])
    }
    try await desk.registered()
    let id = try await desk.begun()
    for _ in 0..<2 { _ = await desk.submit(id, desk.wrong) }
    #expect(await desk.submit(id, desk.code).refusal?.retryAfter == .seconds(60))
    desk.clock.advance(by: .milliseconds(59_999))
    #expect(await desk.submit(id, desk.code).refusal?.code == .tooManyAttempts)
    desk.clock.advance(by: .milliseconds(1))
    #expect(try await desk.submit(id, desk.code).get().status == .complete)
    // The next lock is the longer one.
    desk.clock.advance(by: .seconds(60))
    let next = try await desk.begun()
    _ = await desk.submit(next, desk.wrong)
    #expect(await desk.submit(next, desk.wrong).refusal?.retryAfter == .seconds(3600))
  }

  @Test(arguments: EngineTestBench.codes) func aRightCodeOnTheLastTryPasses(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let id = try await desk.begun()
    for _ in 0..<4 { _ = await desk.submit(id, desk.wrong) }
    #expect(try await desk.submit(id, desk.code).get().status == .complete)
    // Failures stay counted after a success.
    desk.clock.advance(by: .seconds(60))
    let next = try await desk.begun()
    #expect(await desk.submit(next, desk.wrong).refusal?.code == .tooManyAttempts)
  }

  @Test(arguments: EngineTestBench.codes) func newFlowAddressOrCodeKeepsTheCounters(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    for (number, left) in [4, 3, 2, 1].enumerated() {
      desk.clock.advance(by: .seconds(900))
      let id = try await desk.begun(
        phone: ["919999999999", "+91 99999-99999"][number % 2], address: [198, 51, 100, UInt8(number)])
      #expect(await desk.submit(id, desk.wrong, address: [203, 0, 113, UInt8(number)]).refusal?.attemptsLeft == left)
    }
  }

  @Test(arguments: EngineTestBench.codes) func aCodeLivesUntilItsEndAndNotAtIt(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let first = try await desk.begun()
    desk.clock.advance(by: .milliseconds(599_999))
    #expect(try await desk.submit(first, desk.code).get().status == .complete)
    let second = try await desk.begun()
    desk.clock.advance(by: .seconds(600))
    #expect(await desk.submit(second, desk.code).refusal?.code == .codeExpired)
    // Nothing is charged, whatever is entered, and a resend is possible at once.
    for _ in 0..<9 { #expect(await desk.submit(second, desk.wrong).refusal?.code == .codeExpired) }
    #expect(try await desk.engine.view(second, client: desk.client()).get().step?.attemptsLeft == 5)
    _ = try await desk.engine.resend(second, client: desk.client()).get()
    #expect(try await desk.submit(second, desk.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func onlyAResendInTheSameFlowReplacesACode(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let first = try await desk.begun()
    let firstCode = desk.code
    desk.clock.advance(by: .seconds(60))
    let second = try await desk.begun()
    let secondCode = desk.code
    desk.clock.advance(by: .seconds(120))
    _ = try await desk.engine.resend(second, client: desk.client()).get()
    if desk.code != secondCode { #expect(await desk.submit(second, secondCode).refusal?.code == .invalidCode) }
    if firstCode != desk.code { #expect(await desk.submit(second, firstCode).refusal?.code == .invalidCode) }
    #expect(try await desk.submit(first, firstCode).get().status == .complete)
    #expect(try await desk.submit(second, desk.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func anotherNumberInTheFlowKillsTheCodeBefore(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    let id = try await desk.begun("register", phone: "911111")
    let code = desk.code
    _ = try await desk.begin(id, phone: "922222").get()
    if code != desk.code { #expect(await desk.submit(id, code).refusal?.code == .invalidCode) }
    #expect(try await desk.submit(id, desk.code).get().account.flatMap { $0.phone ?? $0.email } == "+922222")
  }

  @Test(arguments: EngineTestBench.codes) func resendsWaitAndRunOut(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    let id = try await desk.begun("register")
    #expect(try await desk.engine.view(id, client: desk.client()).get().step?.resendsLeft == 3)
    for wait in [60, 120, 120] {
      let refusal = await desk.engine.resend(id, client: desk.client()).refusal
      #expect(refusal?.code == .resendTooSoon)
      #expect(refusal?.retryAfter == .seconds(wait))
      #expect(refusal?.resendAt == desk.clock.now() + .seconds(wait))
      // Another flow for the same number has to wait as well.
      #expect(await desk.begin(try await desk.flow("enter")).refusal?.code == .resendTooSoon)
      desk.clock.advance(by: .seconds(wait))
      _ = try await desk.engine.resend(id, client: desk.client()).get()
    }
    desk.clock.advance(by: .seconds(120))
    let refusal = await desk.engine.resend(id, client: desk.client()).refusal
    #expect(refusal?.code == .sendLimit)
    #expect(refusal?.retryAfter == .seconds(900 - 420))
    #expect(desk.delivery.messages.count == 4)
    let view = try await desk.engine.view(id, client: desk.client()).get()
    #expect(view.step?.resendsLeft == 0)
    #expect(view.step?.resendAt == desk.clock.now() + .seconds(480))
  }

  @Test(arguments: EngineTestBench.codes) func aSuccessClearsTheTimer(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    _ = try await desk.submit(try await desk.begun("register"), desk.code).get()
    _ = try await desk.begun("login")
  }

  @Test(arguments: EngineTestBench.codes) func aFailedDeliveryChargesTheAddressAlone(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    let id = try await desk.flow("register")
    desk.delivery.fails = true
    for _ in 0..<29 { #expect(await desk.begin(id).refusal?.code == .deliveryFailed) }
    desk.delivery.fails = false
    let view = try await desk.begin(id).get()
    #expect(view.step?.resendsLeft == 0, "29 failures and one message are the 30 of this address")
    #expect(view.step?.resendAt == desk.clock.now() + .seconds(3600))
    #expect(try await desk.submit(id, desk.code).get().status == .complete)
  }

  @Test(arguments: EngineTestBench.codes) func twentyParallelSendsAreOneMessage(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    let results = try await parallel(20) { _ in await desk.begin(try await desk.flow("enter")) }
    #expect(desk.delivery.messages.count == 1)
    #expect(results.count { $0.refusal == nil } == 1)
    #expect(results.count { $0.refusal?.code == .resendTooSoon } == 19)
  }

  @Test(arguments: EngineTestBench.codes) func twoHundredParallelWrongCodesAreFiveTries(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let id = try await desk.begun()
    let wrong = desk.wrong
    let results = try await parallel(200) { _ in await desk.submit(id, wrong) }
    #expect(results.compactMap { $0.refusal?.attemptsLeft }.sorted() == [1, 2, 3, 4])
    #expect(results.count { $0.refusal?.code == .invalidCode } == 4)
    #expect(results.count { $0.refusal?.code == .tooManyAttempts } == 196)
    #expect(results.allSatisfy { ($0.refusal?.retryAfter).map { $0 > .zero && $0 <= .seconds(900) } ?? true })
    #expect(try await desk.audit.events(limit: 1000).count { $0.kind == .locked } == 1)
  }

  @Test(arguments: EngineTestBench.codes) func fiftyParallelRightCodesAreOneSession(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by)
    let account = try await desk.registered()
    let id = try await desk.begun()
    let code = desk.code
    let results = try await parallel(50) { _ in await desk.submit(id, code) }
    #expect(results.count { $0.refusal == nil } == 1)
    #expect(try await desk.store.sessions(of: account.id).count == 2, "one of registering, one of signing in")
    #expect(
      try await desk.engine.view(try await desk.begunLater(), client: desk.client()).get().step?.attemptsLeft == 5,
      "rivals gave their tries back")
  }

  @Test(arguments: EngineTestBench.codes) func oneRightAmongTwentyWrongIsAtMostOneSuccess(by: ProviderName) async throws
  {
    let desk = try await EngineTestBench(by: by)
    try await desk.registered()
    let id = try await desk.begun()
    let (code, wrong) = (desk.code, desk.wrong)
    let results = try await parallel(21) { number in await desk.submit(id, number == 10 ? code : wrong) }
    #expect(results.count { $0.refusal == nil } <= 1)
    #expect(results.count { $0.refusal?.code == .invalidCode } <= 5)
  }

  @Test(arguments: EngineTestBench.codes) func tenParallelSignInsOfOneAccountAllSucceed(by: ProviderName) async throws {
    let desk = try await EngineTestBench(by: by) {
      $0.policies[by] = .test(
        by, resendAfter: [],
        limits: [
          .test("verify", on: .verify, per: .identifier, max: 5, window: .seconds(86_400), lock: [.seconds(900)])
        ])
    }
    try await desk.registered()
    var flows: [(FlowID, String)] = []
    for _ in 0..<10 { flows.append((try await desk.begun(), desk.code)) }
    let all = flows
    let results = try await parallel(10) { number in await desk.submit(all[number].0, all[number].1) }
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
