import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// A flow's rules, without store, clock or policy.
@Suite struct FlowMachineTests {
  private let now = ManualClock.start
  private let phone = ProviderName(test: "phone_otp")
  private let pin = ProviderName(test: "pin")
  private let mail = ProviderName(test: "email_code")

  private func machine(_ steps: StepRule...) -> FlowMachine {
    FlowMachine(
      FlowRecord(
        id: TokenHash(of: "f".utf8), definition: .test("login", account: .existing, steps: steps), codes: [:], createdAt: now, returnTo: nil,
        browser: nil,
        network: [], account: nil))
  }

  @Test func stepsPassInOrderAndThenItIsComplete() {
    var flow = machine(.test(phone), .test(pin))
    #expect(flow.next == .offer([phone]))
    flow.passed(phone, proved: [], account: "ac_1", at: now)
    #expect(flow.next == .offer([pin]))
    flow.passed(pin, proved: [], account: nil, at: now)
    #expect(flow.next == .complete)
    #expect(flow.record.account == "ac_1")
    #expect(flow.record.passed.map(\.provider) == [phone, pin])
  }

  @Test(arguments: [true, false]) func aConditionIsAskedOnce(applies: Bool) {
    var flow = machine(.test(pin, when: FunctionName("w")), .test(phone))
    #expect(flow.next == .askWhether(FunctionName("w")))
    flow.stepApplies(applies)
    #expect(flow.next == .offer([applies ? pin : phone]))
  }

  @Test func onlyASkippableStepIsSkipped() {
    var flow = machine(.test(mail, isSkippable: true), .test(phone))
    let first = flow.skipped()
    let second = flow.skipped()
    #expect(first && !second)
    #expect(flow.next == .offer([phone]))
  }

  @Test func whatAPolicyAsksForComesNextAndOnce() {
    var flow = machine(.test(phone), .test(mail))
    flow.passed(phone, proved: [], account: "ac_1", at: now)
    flow.requireNext(pin)
    flow.requireNext(pin)
    flow.requireNext(phone)
    #expect(flow.next == .offer([pin]))
    flow.passed(pin, proved: [], account: nil, at: now)
    #expect(flow.next == .offer([mail]))
  }

  @Test(
    arguments: [
      (899, nil), (900, .expired), (1799, .expired), (1800, .gone),
    ] as [(Int, FlowMachine.Closed?)]) func itsLifeIsHalfOpen(seconds: Int, closed: FlowMachine.Closed?)
  {
    #expect(machine(.test(phone)).closed(at: now + .seconds(seconds)) == closed)
  }

  @Test func aCompleteOrFailedFlowIsOver() {
    var flow = machine(.test(phone))
    flow.completed(account: "ac_1", isNew: false, next: "/home")
    #expect(flow.closed(at: now) == .over)
    var other = machine(.test(phone))
    other.failed()
    #expect(other.closed(at: now) == .over)
  }
}
