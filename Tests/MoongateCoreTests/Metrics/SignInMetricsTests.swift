import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// What `/metrics` reports about sign-ins, attempts and messages.
@Suite struct SignInMetricsTests {
  private static let pin = ProviderName(test: "pin")

  private func event(
    _ kind: AuditEvent.Kind, flow: String? = "login", provider: ProviderName? = nil, code: String? = nil
  ) -> AuditEvent {
    AuditEvent(
      id: DecisionID(text: "dc_1"), at: ManualClock.start, kind: kind, flow: flow, provider: provider, code: code)
  }

  private func lines(_ families: [MetricFamily]) -> [String] {
    MetricText.write(families).split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }

  @Test func signInsAndAttemptsAreCountedByOutcome() {
    let metrics = SignInMetrics()
    metrics.note([
      event(.sessionStarted), event(.sessionStarted), event(.codeVerified, provider: Self.pin),
      event(.refused, provider: Self.pin, code: "x"),
    ])
    metrics.note(refused: event(.refused, provider: Self.pin, code: "invalid_pin"))
    metrics.note(refused: event(.refused, flow: nil, code: "not_found"))
    #expect(
      lines(metrics.families) == [
        #"moongate_sign_ins_total{flow="login",outcome="completed"} 2"#,
        #"moongate_sign_ins_total{flow="login",outcome="refused"} 1"#,
        #"moongate_attempts_total{provider="pin",outcome="invalid_pin"} 1"#,
        #"moongate_attempts_total{provider="pin",outcome="verified"} 1"#,
      ])
  }

  /// Attack: a flood of refusals is folded into one event of the trail; the dashboard must still count each attempt.
  @Test func eachRefusalOfAFloodCounts() throws {
    let metrics = SignInMetrics()
    let audit = AuditTrail(store: try MemoryStore.make(), logger: CapturedLog().logger, signIns: metrics)
    for _ in 0..<500 { audit.record(event(.refused, provider: Self.pin, code: "invalid_pin")) }
    #expect(lines(metrics.families).contains(#"moongate_attempts_total{provider="pin",outcome="invalid_pin"} 500"#))
  }

  /// Attack: labels that grow with client input fill the memory of the gateway and of Prometheus.
  @Test func seriesAreBounded() {
    let metrics = SignInMetrics()
    for number in 0..<5_000 { metrics.note(refused: event(.refused, flow: "flow\(number)")) }
    #expect(lines(metrics.families).count == 1_000)
    let sends = SendMetrics()
    for country in ["IN", "in", "IND", "I\n", "ÅÄ", nil] as [String?] {
      let attributes = country.map { ["country": $0] } ?? [:]
      let phone = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999", attributes: attributes)
      sends.record(ProviderName(test: "phone_otp"), to: phone, isDelivered: country == "IN")
    }
    #expect(
      lines(sends.families) == [
        #"moongate_sends_total{provider="phone_otp",channel="sms",country="IN",outcome="delivered"} 1"#,
        #"moongate_sends_total{provider="phone_otp",channel="sms",country="none",outcome="failed"} 1"#,
        #"moongate_sends_total{provider="phone_otp",channel="sms",country="other",outcome="failed"} 4"#,
      ])
  }
}
