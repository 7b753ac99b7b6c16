import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The rules of a flow, without store, clock or policy.
@Suite struct FlowMachineTests {
  private let now = ManualClock.start
  private let phone = ProviderName(test: "phone_otp")
  private let pin = ProviderName(test: "pin")
  private let mail = ProviderName(test: "email_code")
  private let known = AccountVersion(id: "ac_1", epoch: 3)

  private func machine(_ steps: StepRule...) -> FlowMachine {
    FlowMachine(
      FlowRecord(
        id: TokenHash(of: "f".utf8), definition: .test("login", account: .existing, steps: steps), codes: [:],
        createdAt: now, returnTo: nil,
        browser: nil,
        network: [], account: nil))
  }

  @Test func stepsPassInOrderAndThenItIsComplete() {
    var flow = machine(.test(phone), .test(pin))
    #expect(flow.next == .offer([phone]))
    flow.passed(PassedProof(PassedStep(provider: phone, at: now), account: known))
    #expect(flow.next == .offer([pin]))
    flow.passed(PassedProof(PassedStep(provider: pin, at: now)))
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

  @Test func requirementOfAPolicyComesNextAndOnce() {
    var flow = machine(.test(phone), .test(mail))
    flow.passed(PassedProof(PassedStep(provider: phone, at: now), account: known))
    flow.requireNext(pin)
    flow.requireNext(pin)
    flow.requireNext(phone)
    #expect(flow.next == .offer([pin]))
    flow.passed(PassedProof(PassedStep(provider: pin, at: now)))
    #expect(flow.next == .offer([mail]))
  }

  @Test(
    arguments: [
      (899, nil), (900, .expired), (1799, .expired), (1800, .gone),
    ] as [(Int, FlowMachine.Closed?)]) func itsLifeIsHalfOpen(seconds: Int, closed: FlowMachine.Closed?)
  {
    #expect(machine(.test(phone)).closed(at: now + .seconds(seconds)) == closed)
  }

  /// Attack: a number of the thief's own is proved and counts where a fresh code is required.
  @Test func identifierNewToTheAccountIsNotAFactor() {
    let number = Identifier(kind: .phone, value: "+911", display: "+911")
    var flow = machine(.test(phone), .test(pin), .test(mail))
    flow.passed(PassedProof(PassedStep(provider: phone, at: now)))
    #expect(flow.record.passed.map(\.provider) == [phone], "no account is known yet")
    flow.passed(PassedProof(PassedStep(provider: pin, at: now), account: known))
    #expect(flow.record.passed.map(\.provider) == [pin], "the identifier of the earlier proof has no account")
    #expect(flow.record.basis?.epoch == 3)
    var new = PassedProof(PassedStep(provider: mail, at: now))
    new.proved = [number]
    flow.passed(new)
    #expect(flow.record.passed.map(\.provider) == [pin])
    #expect(flow.record.basis?.introduced.map(\.provider) == [phone, mail])
  }

  @Test func aFlowOfAnOlderProgramHasExpired() {
    var flow = machine(.test(phone))
    flow = FlowMachine(flow.record.withoutBasis)
    #expect(flow.closed(at: now) == .expired)
  }

  @Test func aCompleteOrFailedFlowIsOver() {
    var flow = machine(.test(phone))
    flow.completed(account: known, isNew: false, next: "/home")
    #expect(flow.closed(at: now) == .over)
    var other = machine(.test(phone))
    other.failed()
    #expect(other.closed(at: now) == .over)
  }
}

extension FlowRecord {
  /// As stored by a version that does not know `basis`.
  fileprivate var withoutBasis: FlowRecord {
    var record = self
    record.basis = nil
    return record
  }
}
