import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Registration, sign-in, and what must not lead to a session.
@Suite struct SignInTests {
  @Test func aNewPersonRegistersAndThenSignsIn() async throws {
    let bench = try await EngineTestBench()
    let made = try await bench.submit(try await bench.begun("register"), bench.code).get()
    #expect(made.status == .complete)
    #expect(made.account?.phone == "+919999999999")
    #expect(made.account?.isPhoneVerified == true)
    #expect(made.account?.isNewUser == true)
    #expect(made.next == "/profile-setup")
    #expect(made.session?.aal == 1)
    bench.clock.advance(by: .seconds(60))
    let back = try await bench.submit(try await bench.begun("login"), bench.code).get()
    #expect(back.account?.id == made.account?.id)
    #expect(back.account?.isNewUser == false)
    #expect(back.next == "/home")
    #expect(try await bench.signedIn(back).account.id == made.account?.id)
  }

  @Test func newUserIsRedirectedToTheRequestedPage() async throws {
    let bench = try await EngineTestBench()
    let made = try await bench.submit(try await bench.begun("register", returnTo: "/a?b=c&d"), bench.code).get()
    #expect(made.next == "/profile-setup?return_to=%2Fa%3Fb%3Dc%26d")
    bench.clock.advance(by: .seconds(60))
    let back = try await bench.submit(try await bench.begun("enter", returnTo: "/a?b=c&d"), bench.code).get()
    #expect(back.next == "/a?b=c&d")
  }

  @Test func unknownNumberIsRefusedBeforeAMessageIsSent() async throws {
    let bench = try await EngineTestBench()
    #expect(await bench.begin(try await bench.flow()).refusal?.code == .accountNotFound)
    #expect(bench.delivery.messages.isEmpty)
  }

  @Test func unknownNumbersAreRateLimitedByAddress() async throws {
    let bench = try await EngineTestBench()
    let id = try await bench.flow()
    for number in 0..<30 { #expect(await bench.begin(id, phone: "91\(number)00000").refusal?.code == .accountNotFound) }
    let refusal = await bench.begin(id, phone: "9177777").refusal
    #expect(refusal?.code == .rateLimited)
    #expect(refusal?.retryAfter == .seconds(3600))
    #expect(await bench.begin(id, phone: "9177777", address: [192, 0, 2, 9]).refusal?.code == .accountNotFound)
  }

  @Test func aKnownNumberCannotRegisterAgain() async throws {
    let bench = try await EngineTestBench()
    try await bench.registered()
    let sent = bench.delivery.messages.count
    #expect(await bench.begin(try await bench.flow("register")).refusal?.code == .alreadyRegistered)
    #expect(bench.delivery.messages.count == sent)
  }

  @Test func concealRevealsNothingAndSendsNoMessage() async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, unknownAccount: .conceal)
    }
    try await bench.registered("911111")
    let sent = bench.delivery.messages.count
    let unknown = try await bench.flow()
    let view = try await bench.begin(unknown, phone: "922222").get()
    #expect(view.step?.sentTo == "+922222")
    #expect(view.step?.attemptsLeft == 5)
    #expect(view.step?.resendAt == bench.clock.now() + .seconds(60))
    for left in [4, 3, 2, 1] { #expect(await bench.submit(unknown, "123456").refusal?.attemptsLeft == left) }
    #expect(await bench.submit(unknown, "123456").refusal?.code == .tooManyAttempts)
    #expect(bench.delivery.messages.count == sent)
  }

  @Test func concealReportsAlreadyRegisteredAfterTheProof() async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, unknownAccount: .conceal)
    }
    func proved() async throws -> Result<FlowView, Refusal> {
      let before = bench.delivery.messages.count
      let id = try await bench.begun("register")
      while bench.delivery.messages.count == before { await Task.yield() }
      return await bench.submit(id, bench.code)
    }
    #expect(try await proved().get().status == .complete)
    bench.clock.advance(by: .seconds(1000))
    #expect(try await proved().refusal?.code == .alreadyRegistered)
  }

  @Test func flowOfABrowserIsNotFoundByOtherClients() async throws {
    let bench = try await EngineTestBench()
    let mine = TokenHash(of: "mine".utf8)
    let id = try await bench.engine.create("enter", returnTo: nil, browser: mine, client: bench.client()).get().id
    #expect(await bench.engine.view(id, client: bench.client()).refusal?.code == .flowNotFound)
    #expect(
      await bench.engine.view(id, client: bench.client(browser: TokenHash(of: "other".utf8))).refusal?.code
        == .flowNotFound)
    #expect(
      try await bench.engine.view(id, client: bench.client(browser: mine)).get().choices == [EngineTestBench.phone])
  }

  @Test func endedFlowReportsHowItEnded() async throws {
    let bench = try await EngineTestBench()
    let id = try await bench.begun("register")
    let other = try await bench.begun("enter", phone: "922222")
    _ = try await bench.engine.delete(other, client: bench.client()).get()
    #expect(await bench.submit(other, bench.code).refusal?.code == .flowNotFound)
    bench.clock.advance(by: .seconds(900))
    #expect(await bench.submit(id, "123456").refusal?.code == .flowExpired)
    bench.clock.advance(by: .seconds(900))
    #expect(await bench.submit(id, "123456").refusal?.code == .flowNotFound)
    #expect(await bench.submit(FlowID(text: "fl_nonsense"), "123456").refusal?.code == .flowNotFound)
  }

  @Test func completeFlowAcceptsNothingAndShowsNoToken() async throws {
    let bench = try await EngineTestBench()
    let id = try await bench.begun("register")
    let code = bench.code
    _ = try await bench.submit(id, code).get()
    #expect(await bench.submit(id, code).refusal?.code == .stepNotOpen)
    #expect(await bench.begin(id).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.resend(id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.skip(id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.delete(id, client: bench.client()).refusal?.code == .stepNotOpen)
    let view = try await bench.engine.view(id, client: bench.client()).get()
    #expect(view.status == .complete)
    #expect(view.session == nil)
  }

  @Test func nothingCompletesWithoutAProof() async throws {
    let when = FunctionName("w")
    let bench = try await EngineTestBench {
      $0.flows["skips"] = .test("skips", account: .any, steps: [.test(EngineTestBench.phone, isSkippable: true)])
      $0.flows["never"] = .test("never", account: .any, steps: [.test(EngineTestBench.phone, when: when)])
      $0.conditions[when] = { _ in false }
    }
    #expect(await bench.engine.skip(try await bench.flow("skips"), client: bench.client()).refusal?.code == .denied)
    #expect(
      await bench.engine.create("never", returnTo: nil, browser: nil, client: bench.client()).refusal?.code == .denied)
    let id = try await bench.flow("login")
    #expect(await bench.engine.submit(id, fields: [:], client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(
      await bench.engine.submit(id, fields: ["passed": .flag(true)], client: bench.client()).refusal?.code
        == .stepNotOpen
    )
    #expect(await bench.engine.resend(id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.skip(id, client: bench.client()).refusal?.code == .stepNotOpen)
  }

  @Test func secondStepAcceptsOnlyIdentifiersOfTheAccount() async throws {
    let bench = try await EngineTestBench {
      $0.flows["both"] = .test(
        "both", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.mail)])
    }
    try await bench.registered()
    let id = try await bench.begun("both")
    _ = try await bench.submit(id, bench.code).get()
    // The attacker has the phone and enters an address of their own.
    #expect(await bench.begin(id, phone: "955555").refusal?.code == .denied)
  }

  @Test func signInInvalidatesTheOldToken() async throws {
    let bench = try await EngineTestBench()
    try await bench.registered()
    let directory = SessionDirectory(store: bench.store, clock: bench.clock)
    let first = try await bench.submit(try await bench.begun(), bench.code).get()
    let old = TokenHash(of: try #require(first.session?.token).reveal().utf8)
    let session = try await directory.find(old)
    bench.clock.advance(by: .seconds(1000))
    let id = try await bench.begun()
    let second = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code)], client: bench.client(session: session)
    ).get()
    #expect(try await directory.find(old) == nil)
    #expect(try await directory.find(TokenHash(of: try #require(second.session?.token).reveal().utf8)) != nil)
  }

  @Test func unknownFlowNameIsRefused() async throws {
    let refusal = await (try await EngineTestBench()).engine.create(
      "lgin", returnTo: nil, browser: nil, client: try await EngineTestBench().client()
    ).refusal
    #expect(refusal?.code == .invalidInput)
    #expect(refusal?.field == "flow")
  }
}
