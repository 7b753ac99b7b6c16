import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Reasons that a code provider gives when it cannot reach an identifier.
@Suite struct DeliveryReasonTests {
  private func bench(_ messenger: ToyMessenger, unknownAccount: UnknownAccount = .reveal) async throws
    -> EngineTestBench
  {
    try await EngineTestBench(others: [messenger]) { generation in
      generation.policies[ToyMessenger.name] = .test(ToyMessenger.name, unknownAccount: unknownAccount)
      generation.flows["enter"] = .test("enter", account: .any, steps: [.test(ToyMessenger.name)])
    }
  }

  @Test func declaredReasonIsReportedAndNothingIsCharged() async throws {
    let messenger = ToyMessenger()
    let bench = try await bench(messenger)
    messenger.fault = DeliveryFault(ToyMessenger.notThere, "error 131026 of the hub")
    let id = try await bench.flow("enter")
    for _ in 0..<6 {
      let refusal = try #require(await bench.begin(id).refusal)
      #expect(refusal.code == .deliveryFailed && refusal.code.status == 503)
      #expect(refusal.sentence == "This number is not on WhatsApp.")
      #expect(refusal.deliveryReason?.reason == ToyMessenger.notThere && refusal.deliveryReason?.isPermanent == true)
      #expect(refusal.provider == ToyMessenger.name)
      let document = String(decoding: refusal.document(), as: UTF8.self)
      #expect(
        document.contains(#""code":"delivery_failed""#)
          && document.contains(#""reason":"not_on_whatsapp","permanent":true"#))
    }
    messenger.fault = nil
    let view = try await bench.begin(id).get()
    #expect(view.step?.resendsLeft == 3, "four sends per 15 minutes, and the failed ones are not counted")
  }

  /// Attack: a provider reports an arbitrary reason. A reason that it has not declared is treated as an ordinary fault.
  @Test func undeclaredReasonIsAnOrdinaryFault() async throws {
    let messenger = ToyMessenger()
    let bench = try await bench(messenger)
    messenger.fault = DeliveryFault("blocked_by_asha", "she blocked us")
    let refusal = try #require(await bench.begin(try await bench.flow("enter")).refusal)
    #expect(refusal.code == .deliveryFailed && refusal.deliveryReason == nil && refusal.provider == nil)
    #expect(refusal.sentence == "The code could not be sent. Please try again.")
    try await bench.audit.flush()
    let decision = try #require(try await bench.store.event(refusal.decision))
    #expect(decision.detail["fault"] == "she blocked us" && decision.detail["reason"] == nil)
  }

  @Test func metricsTellReasonsFromFaults() async throws {
    let messenger = ToyMessenger()
    let bench = try await bench(messenger)
    let id = try await bench.flow("enter")
    messenger.fault = DeliveryFault(ToyMessenger.notThere, "no")
    _ = await bench.begin(id)
    messenger.fault = DeliveryFault(reason: "down")
    _ = await bench.begin(id)
    messenger.fault = nil
    _ = try await bench.begin(id).get()
    let text = MetricText.write(bench.engine.providerMetrics.families)
    for outcome in ["delivered", "fault", "undeliverable"] {
      #expect(
        text.contains(
          #"moongate_provider_calls_total{provider="whatsapp_code",call="deliver",outcome="\#(outcome)"} 1"#), "\(text)"
      )
    }
    #expect(text.contains(#"moongate_provider_call_seconds_count{provider="whatsapp_code",call="deliver"} 3"#))
  }

  @Test func explainCountsTheFaultsOfACall() async throws {
    let messenger = ToyMessenger()
    let bench = try await bench(messenger)
    let id = try await bench.flow("enter")
    messenger.fault = DeliveryFault(reason: "hub answered 500 for +919999999999")
    let start = bench.clock.now()
    var details: [[String: String]] = []
    for _ in 0..<3 {
      let refusal = try #require(await bench.begin(id).refusal)
      try await bench.audit.flush()
      details.append(try #require(try await bench.store.event(refusal.decision)).detail)
      bench.clock.advance(by: .seconds(60))
    }
    #expect(details.map { $0["fault_count"] } == ["1", "2", "3"])
    #expect(details[2]["fault_provider"] == "whatsapp_code" && details[2]["fault_call"] == "deliver")
    #expect(details[2]["fault_since"] == start.exactText)
    // Attack: an operator learns the number from the fault text in the audit trail.
    #expect(details[2]["fault"] == "hub answered 500 for [redacted]")
    bench.clock.advance(by: .seconds(3600))
    let later = try #require(await bench.begin(try await bench.flow("enter")).refusal)
    try await bench.audit.flush()
    #expect(try await bench.store.event(later.decision)?.detail["fault_count"] == "1")
  }

  /// Attack: an attacker who enters a number learns from the answer, or from the flow later, whether it is on the
  /// messenger or has an account.
  @Test func concealingPolicyRevealsNothing() async throws {
    let messenger = ToyMessenger()
    let bench = try await bench(messenger, unknownAccount: .conceal)
    var seen: [String] = []
    for fault in [nil, DeliveryFault(ToyMessenger.notThere, "no"), DeliveryFault(reason: "down")] {
      messenger.fault = fault
      let id = try await bench.flow("enter")
      let view = try await bench.begin(id, phone: "9199999999\(seen.count)9").get()
      await bench.engine.deliveriesEnd()
      let later = try await bench.engine.view(id, client: bench.client()).get()
      #expect(view.step == later.step)
      seen.append(
        "\(view.status) \(later.step.map { "\($0.provider) \($0.attemptsLeft ?? -1) \($0.resendsLeft ?? -1)" } ?? "none")"
      )
    }
    #expect(Set(seen).count == 1, "\(seen)")
    try await bench.audit.flush()
    let failed = try await bench.store.events(limit: 100).filter { $0.kind == .deliveryFailed }
    #expect(failed.compactMap { $0.detail["reason"] } == ["not_on_whatsapp"])
    #expect(Set(failed.compactMap { $0.detail["fault"] }) == ["no", "down"])
  }
}
