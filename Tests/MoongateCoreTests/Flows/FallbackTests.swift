import Foundation
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// `fallback { "whatsapp_code", "phone_otp" }`: one step and one budget of attempts, with two providers that can send
/// the code.
@Suite struct FallbackTests {
  private static let down = DeliveryFault(reason: "the hub is down")
  private static let notThere = DeliveryFault(ToyMessenger.notThere, "error 131026")

  @Test func firstProviderSendsWhileItCan() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    let created = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get()
    #expect(created.choices == [ToyMessenger.name])
    let view = try await bench.begin(created.id).get()
    #expect(view.step?.provider == ToyMessenger.name && view.step?.fallbacks == [EngineTestBench.phone])
    #expect(bench.delivery.messages.isEmpty)
    let done = try await bench.submit(created.id, try #require(messenger.codes.last)).get()
    #expect(done.passed.map(\.provider) == [ToyMessenger.name])
  }

  @Test(arguments: [notThere, down]) func nextProviderSendsWhereTheFirstCannot(_ fault: DeliveryFault) async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    messenger.fault = fault
    let id = try await bench.flow("enter")
    let view = try await bench.begin(id).get()
    #expect(view.step?.provider == EngineTestBench.phone && view.step?.sentTo == "+919999999999")
    #expect(
      view.step?.fallbacks == (fault == Self.down ? [ToyMessenger.name] : []),
      "what can never reach the number is not offered")
    // A code that was not delivered is not accepted.
    #expect(await bench.submit(id, try #require(messenger.codes.last)).refusal?.code == .invalidCode)
    let done = try await bench.submit(id, bench.code).get()
    #expect(done.passed.map(\.provider) == [EngineTestBench.phone], "only the provider that delivered it is passed")
  }

  @Test func policyOfTheSenderWordsTheMessage() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger) { generation in
      generation.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, code: CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(60)),
        message: "SMS {code}")
    }
    messenger.fault = Self.down
    let view = try await bench.begin(try await bench.flow("enter")).get()
    #expect(bench.delivery.messages.last?.text == "SMS \(bench.code)")
    #expect(view.step?.expiresAt == bench.clock.now() + .seconds(60))
  }

  @Test func reasonIsReportedIfNoProviderDelivers() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    (messenger.fault, bench.delivery.fails) = (Self.notThere, true)
    let refusal = try #require(await bench.begin(try await bench.flow("enter")).refusal)
    #expect(refusal.code == .deliveryFailed && refusal.deliveryReason?.reason == ToyMessenger.notThere)
  }

  @Test func eitherCodeIsTakenAfterASwitchByHand() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    for usesFirst in [true, false] {
      let id = try await bench.begun("enter", phone: usesFirst ? "911111111111" : "922222222222")
      let first = try #require(messenger.codes.last)
      let view = try await bench.switched(id).get()
      #expect(view.step?.provider == EngineTestBench.phone && view.step?.fallbacks == [ToyMessenger.name])
      let done = try await bench.submit(id, usesFirst ? first : bench.code).get()
      #expect(done.passed.map(\.provider) == [usesFirst ? ToyMessenger.name : EngineTestBench.phone])
    }
  }

  /// Attack: a code was sent to a number before somebody else registered it, and would open the account that they
  /// created since.
  @Test func codeOfBeforeTheNumberChangedHandsIsDead() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    let id = try await bench.begun("enter")
    let before = try #require(messenger.codes.last)
    bench.clock.advance(by: .seconds(120))
    let other = try await bench.flow("register")
    _ = try await bench.begin(other, address: [203, 0, 113, 9]).get()
    _ = try await bench.submit(other, try #require(messenger.codes.last), address: [203, 0, 113, 9]).get()
    _ = try await bench.switched(id).get()
    #expect(await bench.submit(id, before).refusal?.code == .invalidCode)
    #expect(try await bench.submit(id, bench.code).get().status == .complete)
  }

  /// Attack: strangers lock the owner out of both providers. A device that has passed one of them has its own counters
  /// at both.
  @Test func strangersDoNotLockOutTheOwnersDevice() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    let registering = try await bench.begun("register")
    let made = try await bench.submit(registering, try #require(messenger.codes.last)).get()
    let device = try #require(made.deviceToken)
    bench.clock.advance(by: .seconds(1000))
    let attacked = try await bench.begun(address: [203, 0, 113, 9])
    for number in 0..<5 {
      _ = await bench.submit(attacked, messenger.codes.last == "00000\(number)" ? "999999" : "00000\(number)")
    }
    #expect(await bench.begin(try await bench.flow()).refusal?.code == .tooManyAttempts)
    let client = bench.client(device: device)
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    let begun = try await bench.engine.begin(
      id, provider: nil, fields: ["phone": .text("919999999999")], client: client
    )
    .get()
    #expect(begun.step?.attemptsLeft == 5)
    let code = try #require(messenger.codes.last)
    #expect(try await bench.engine.submit(id, fields: ["code": .text(code)], client: client).get().status == .complete)
  }

  /// Attack: the expensive message is requested without the cheap one before it, or for another number than the step's.
  @Test func switchUsesOnlyTheOpenStepsIdentifier() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    let id = try await bench.flow("enter")
    #expect(await bench.switched(id).refusal?.code == .stepNotOpen)
    _ = try await bench.begin(id).get()
    let elsewhere = await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("915555555555")], client: bench.client())
    #expect(elsewhere.refusal?.code == .stepNotOpen)
    #expect(bench.delivery.messages.isEmpty)
    _ = try await bench.switched(id).get()
    #expect(bench.delivery.messages.map(\.to) == ["+919999999999"])
  }

  /// Attack: an attacker who forces or requests the fallback gets the attempts of the second provider on top of those
  /// of the first.
  @Test(arguments: [true, false]) func bothProvidersShareOneAttemptBudget(_ forces: Bool) async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    _ = try await bench.registered(by: messenger)
    if forces { messenger.fault = Self.down }
    let id = try await bench.begun()
    if !forces { #expect(try await bench.switched(id).get().step?.attemptsLeft == 5) }
    var wrong = (0..<100).map { "00000\($0)" }.map { String($0.suffix(6)) }.filter {
      $0 != bench.code && !messenger.codes.contains($0)
    }[...]
    for left in [4, 3] {
      let refusal = await bench.submit(id, try #require(wrong.popFirst())).refusal
      #expect(refusal?.code == .invalidCode && refusal?.attemptsLeft == left)
    }
    // Another code from the other provider brings no more attempts.
    messenger.fault = nil
    bench.clock.advance(by: .seconds(120))
    let again = try await bench.engine.begin(
      id, provider: forces ? "phone_otp" : nil, fields: ["phone": .text("919999999999")], client: bench.client()
    )
    .get()
    #expect(again.step?.attemptsLeft == 3)
    for left in [2, 1] { #expect(await bench.submit(id, try #require(wrong.popFirst())).refusal?.attemptsLeft == left) }
    #expect(await bench.submit(id, try #require(wrong.popFirst())).refusal?.code == .tooManyAttempts)
    // Both providers are locked, in every flow.
    bench.clock.advance(by: .seconds(120))
    #expect(await bench.submit(id, bench.code).refusal?.code == .tooManyAttempts)
    #expect(await bench.switched(id).refusal?.code == .tooManyAttempts)
    #expect(await bench.begin(try await bench.flow()).refusal?.code == .tooManyAttempts)
  }

  /// Attack: 200 attempts at once, half of them after the switch.
  @Test func parallelAttemptsAreOneBudget() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    _ = try await bench.registered(by: messenger)
    let id = try await bench.begun()
    _ = try await bench.switched(id).get()
    let wrong = try #require(["000000", "000001", "000002"].first { $0 != bench.code && $0 != messenger.codes.last })
    let results = await withTaskGroup { group in
      for _ in 0..<200 { group.addTask { await bench.submit(id, wrong) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.compactMap { $0.refusal?.attemptsLeft }.sorted() == [1, 2, 3, 4])
    #expect(results.count { $0.refusal?.code == .tooManyAttempts } == 196)
  }

  /// Attack: the owner of one provider's number, right each time, clears the failures at the other's code and guesses
  /// it without end.
  @Test func successByOneProviderKeepsTheFailuresAtTheOther() async throws {
    let messenger = ToyMessenger()
    let hard = Limit.test(
      "hard", on: .verify, per: .identifier, max: 4, counts: .consecutiveFailures, lock: [.seconds(900)])
    let bench = try await EngineTestBench.withFallback(messenger) { generation in
      for name in [ToyMessenger.name, EngineTestBench.phone] {
        generation.policies[name] = .test(name, resendAfter: [], limits: [hard])
      }
    }
    for left in [3, 2, 1] {
      let id = try await bench.begun("enter")
      let code = try #require(messenger.codes.last)
      let wrong = code == "000000" ? "000001" : "000000"
      #expect(await bench.submit(id, wrong).refusal?.attemptsLeft == left)
      _ = try await bench.submit(id, code).get()
    }
    let id = try await bench.begun("enter")
    #expect(
      try await bench.engine.view(id, client: bench.client()).get().step?.attemptsLeft == 1,
      "three failures at the SMS stay")
  }

  /// Attack: what the step shows, limits and timers, or a later flow reveals who is on the messenger or has an account.
  @Test func concealedFallbackLooksTheSameForAllIdentifiers() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger, unknownAccount: .conceal)
    for phone in ["911111111111", "922222222222"] { _ = try await bench.registered(by: messenger, phone) }
    func seen(_ phone: String, _ fault: DeliveryFault?) async throws -> [String] {
      messenger.fault = fault
      let client = bench.client([198, 51, 100, UInt8(phone.utf8.last ?? 0)])
      var all: [String] = []
      func note(_ result: Result<FlowView, Refusal>) {
        switch result {
        case .success(let view):
          let step = view.step.map {
            "\($0.provider) \($0.fallbacks) \($0.attemptsLeft ?? -1) \($0.resendsLeft ?? -1) \($0.resendAt.map { "\($0 - bench.clock.now())" } ?? "-")"
          }
          all.append("\(view.status) \(step ?? "none")")
        case .failure(let refusal):
          all.append("\(refusal.code.name) \(refusal.attemptsLeft ?? -1) \(refusal.retryAfter.map { "\($0)" } ?? "-")")
        }
      }
      let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
      note(await bench.engine.begin(id, provider: nil, fields: ["phone": .text(phone)], client: client))
      await bench.engine.deliveriesEnd()
      note(await bench.engine.view(id, client: client))
      note(await bench.engine.submit(id, fields: ["code": .text("000000")], client: client))
      note(await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client))
      await bench.engine.deliveriesEnd()
      bench.clock.advance(by: .seconds(61))
      note(await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client))
      await bench.engine.deliveriesEnd()
      note(await bench.engine.resend(id, client: client))
      note(await bench.engine.view(id, client: client))
      return all
    }
    let reached = try await seen("911111111111", nil)
    let start = bench.clock.now()
    #expect(try await seen("922222222222", Self.notThere) == reached)
    #expect(try await seen("933333333333", nil) == reached)
    #expect(try await seen("944444444444", Self.down) == reached)
    #expect(bench.clock.now() > start)
  }

  @Test func concealedFallbackReachesThePersonAllTheSame() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger, unknownAccount: .conceal)
    messenger.fault = Self.notThere
    let id = try await bench.begun("enter")
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.messages.count == 1)
    let done = try await bench.submit(id, bench.code).get()
    #expect(done.passed.map(\.provider) == [EngineTestBench.phone])
    // Nothing is sent to an unknown number.
    let stranger = try await bench.begun("login", phone: "955555555555")
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.messages.count == 1)
    #expect(try await bench.engine.view(stranger, client: bench.client()).get().step?.provider == ToyMessenger.name)
  }

  /// Attack: messages without end by way of the fallback. Each provider's own limits count its messages.
  @Test func sendsAreBoundedByEachProvidersLimits() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger) { generation in
      for name in [ToyMessenger.name, EngineTestBench.phone] {
        generation.policies[name] = .test(
          name, resendAfter: [], limits: [.test("send", on: .send, per: .identifier, max: 2, window: .seconds(900))])
      }
    }
    messenger.fault = Self.down
    let id = try await bench.flow("enter")
    for _ in 0..<2 { _ = try await bench.begin(id).get() }
    #expect(await bench.begin(id).refusal?.code == .sendLimit)
    #expect(bench.delivery.messages.count == 2)
  }

  @Test func removedProviderIsSkipped() async throws {
    let messenger = ToyMessenger()
    let bench = try await EngineTestBench.withFallback(messenger)
    let id = try await bench.flow("enter")
    var generation = try #require(bench.generations.current as? TestGeneration)
    generation.policies[ToyMessenger.name] = nil
    bench.generations.activate(generation, at: bench.clock.now())
    #expect(try await bench.engine.view(id, client: bench.client()).get().choices == [EngineTestBench.phone])
    let view = try await bench.begin(id).get()
    #expect(view.step?.provider == EngineTestBench.phone && view.step?.fallbacks == [])
  }
}

extension EngineTestBench {
  /// Creates an account for the number by the messenger, then advances the clock past all timers.
  @discardableResult
  fileprivate func registered(by messenger: ToyMessenger, _ phone: String = "919999999999") async throws -> AccountView
  {
    let id = try await begun("register", phone: phone)
    await engine.deliveriesEnd()
    let view = try await submit(id, messenger.codes.last ?? "").get()
    clock.advance(by: .seconds(1000))
    return try #require(view.account)
  }
}
