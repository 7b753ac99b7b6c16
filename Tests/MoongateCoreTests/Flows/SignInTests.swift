import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Registration, sign-in, and what must not lead to a session.
@Suite struct SignInTests {
  @Test func aNewPersonRegistersAndThenSignsIn() async throws {
    let desk = try await EngineTestBench()
    let made = try await desk.submit(try await desk.begun("register"), desk.code).get()
    #expect(made.status == .complete)
    #expect(made.account?.phone == "+919999999999")
    #expect(made.account?.isPhoneVerified == true)
    #expect(made.account?.isNewUser == true)
    #expect(made.next == "/profile-setup")
    #expect(made.session?.aal == 1)
    desk.clock.advance(by: .seconds(60))
    let back = try await desk.submit(try await desk.begun("login"), desk.code).get()
    #expect(back.account?.id == made.account?.id)
    #expect(back.account?.isNewUser == false)
    #expect(back.next == "/home")
    let token = try #require(back.session?.token)
    let found = try await SessionDirectory(store: desk.store, clock: desk.clock).find(
      TokenHash(of: token.reveal().utf8))
    #expect(found?.account.id == made.account?.id)
  }

  @Test func newUserIsRedirectedToTheRequestedPage() async throws {
    let desk = try await EngineTestBench()
    let made = try await desk.submit(try await desk.begun("register", returnTo: "/a?b=c&d"), desk.code).get()
    #expect(made.next == "/profile-setup?return_to=%2Fa%3Fb%3Dc%26d")
    desk.clock.advance(by: .seconds(60))
    let back = try await desk.submit(try await desk.begun("enter", returnTo: "/a?b=c&d"), desk.code).get()
    #expect(back.next == "/a?b=c&d")
  }

  @Test func unknownNumberIsRefusedBeforeAMessageIsSent() async throws {
    let desk = try await EngineTestBench()
    #expect(await desk.begin(try await desk.flow()).refusal?.code == .accountNotFound)
    #expect(desk.delivery.messages.isEmpty)
  }

  @Test func askingWhoIsRegisteredCostsTheAddress() async throws {
    let desk = try await EngineTestBench()
    let id = try await desk.flow()
    for number in 0..<30 { #expect(await desk.begin(id, phone: "91\(number)00000").refusal?.code == .accountNotFound) }
    let refusal = await desk.begin(id, phone: "9177777").refusal
    #expect(refusal?.code == .rateLimited)
    #expect(refusal?.retryAfter == .seconds(3600))
    #expect(await desk.begin(id, phone: "9177777", address: [192, 0, 2, 9]).refusal?.code == .accountNotFound)
  }

  @Test func aKnownNumberCannotRegisterAgain() async throws {
    let desk = try await EngineTestBench()
    try await desk.registered()
    let sent = desk.delivery.messages.count
    #expect(await desk.begin(try await desk.flow("register")).refusal?.code == .alreadyRegistered)
    #expect(desk.delivery.messages.count == sent)
  }

  @Test func concealRevealsNothingAndSendsNoMessage() async throws {
    let desk = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, unknownAccount: .conceal)
    }
    try await desk.registered("911111")
    let sent = desk.delivery.messages.count
    let unknown = try await desk.flow()
    let view = try await desk.begin(unknown, phone: "922222").get()
    #expect(view.step?.sentTo == "+922222")
    #expect(view.step?.attemptsLeft == 5)
    #expect(view.step?.resendAt == desk.clock.now() + .seconds(60))
    for left in [4, 3, 2, 1] { #expect(await desk.submit(unknown, "123456").refusal?.attemptsLeft == left) }
    #expect(await desk.submit(unknown, "123456").refusal?.code == .tooManyAttempts)
    #expect(desk.delivery.messages.count == sent)
  }

  @Test func concealReportsAlreadyRegisteredAfterTheProof() async throws {
    let desk = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, unknownAccount: .conceal)
    }
    func proved() async throws -> Result<FlowView, Refusal> {
      let before = desk.delivery.messages.count
      let id = try await desk.begun("register")
      while desk.delivery.messages.count == before { await Task.yield() }
      return await desk.submit(id, desk.code)
    }
    #expect(try await proved().get().status == .complete)
    desk.clock.advance(by: .seconds(1000))
    #expect(try await proved().refusal?.code == .alreadyRegistered)
  }

  @Test func aFlowOfABrowserIsThatBrowsersAlone() async throws {
    let desk = try await EngineTestBench()
    let mine = TokenHash(of: "mine".utf8)
    let id = try await desk.engine.create("enter", returnTo: nil, browser: mine, client: desk.client()).get().id
    #expect(await desk.engine.view(id, client: desk.client()).refusal?.code == .flowNotFound)
    #expect(
      await desk.engine.view(id, client: desk.client(browser: TokenHash(of: "other".utf8))).refusal?.code
        == .flowNotFound)
    #expect(try await desk.engine.view(id, client: desk.client(browser: mine)).get().choices == [EngineTestBench.phone])
  }

  @Test func endedFlowReportsHowItEnded() async throws {
    let desk = try await EngineTestBench()
    let id = try await desk.begun("register")
    let other = try await desk.begun("enter", phone: "922222")
    _ = try await desk.engine.delete(other, client: desk.client()).get()
    #expect(await desk.submit(other, desk.code).refusal?.code == .flowNotFound)
    desk.clock.advance(by: .seconds(900))
    #expect(await desk.submit(id, "123456").refusal?.code == .flowExpired)
    desk.clock.advance(by: .seconds(900))
    #expect(await desk.submit(id, "123456").refusal?.code == .flowNotFound)
    #expect(await desk.submit(FlowID(text: "fl_nonsense"), "123456").refusal?.code == .flowNotFound)
  }

  @Test func completeFlowAcceptsNothingAndShowsNoToken() async throws {
    let desk = try await EngineTestBench()
    let id = try await desk.begun("register")
    let code = desk.code
    _ = try await desk.submit(id, code).get()
    #expect(await desk.submit(id, code).refusal?.code == .stepNotOpen)
    #expect(await desk.begin(id).refusal?.code == .stepNotOpen)
    #expect(await desk.engine.resend(id, client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(await desk.engine.skip(id, client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(await desk.engine.delete(id, client: desk.client()).refusal?.code == .stepNotOpen)
    let view = try await desk.engine.view(id, client: desk.client()).get()
    #expect(view.status == .complete)
    #expect(view.session == nil)
  }

  @Test func nothingCompletesWithoutAProof() async throws {
    let when = FunctionName("w")
    let desk = try await EngineTestBench {
      $0.flows["skips"] = .test("skips", account: .any, steps: [.test(EngineTestBench.phone, isSkippable: true)])
      $0.flows["never"] = .test("never", account: .any, steps: [.test(EngineTestBench.phone, when: when)])
      $0.conditions[when] = { _ in false }
    }
    #expect(await desk.engine.skip(try await desk.flow("skips"), client: desk.client()).refusal?.code == .denied)
    #expect(
      await desk.engine.create("never", returnTo: nil, browser: nil, client: desk.client()).refusal?.code == .denied)
    let id = try await desk.flow("login")
    #expect(await desk.engine.submit(id, fields: [:], client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(
      await desk.engine.submit(id, fields: ["passed": .flag(true)], client: desk.client()).refusal?.code == .stepNotOpen
    )
    #expect(await desk.engine.resend(id, client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(await desk.engine.skip(id, client: desk.client()).refusal?.code == .stepNotOpen)
  }

  @Test func aSecondStepIsForWhatTheAccountHolds() async throws {
    let desk = try await EngineTestBench {
      $0.flows["both"] = .test(
        "both", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.mail)])
    }
    try await desk.registered()
    let id = try await desk.begun("both")
    _ = try await desk.submit(id, desk.code).get()
    // The attacker has the phone and enters an address of their own.
    #expect(await desk.begin(id, phone: "955555").refusal?.code == .denied)
  }

  @Test func theOldTokenIsDeadAfterASignIn() async throws {
    let desk = try await EngineTestBench()
    try await desk.registered()
    let directory = SessionDirectory(store: desk.store, clock: desk.clock)
    let first = try await desk.submit(try await desk.begun(), desk.code).get()
    let old = TokenHash(of: try #require(first.session?.token).reveal().utf8)
    let session = try await directory.find(old)
    desk.clock.advance(by: .seconds(1000))
    let id = try await desk.begun()
    let second = try await desk.engine.submit(
      id, fields: ["code": .text(desk.code)], client: desk.client(session: session)
    ).get()
    #expect(try await directory.find(old) == nil)
    #expect(try await directory.find(TokenHash(of: try #require(second.session?.token).reveal().utf8)) != nil)
  }

  @Test func anUnknownFlowIsNamed() async throws {
    let refusal = await (try await EngineTestBench()).engine.create(
      "lgin", returnTo: nil, browser: nil, client: try await EngineTestBench().client()
    ).refusal
    #expect(refusal?.code == .invalidInput)
    #expect(refusal?.field == "flow")
  }
}
