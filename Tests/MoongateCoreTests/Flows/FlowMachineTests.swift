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

  /// A property that `CodingKeys` lacks would be lost between two requests.
  @Test func everyPropertyIsStoredUnderItsName() {
    let labels = Mirror(reflecting: machine(.test(phone)).record).children.compactMap(\.label)
    // Wrapped properties are listed as `_network`.
    let names = labels.map { String($0.trimmingPrefix("_")) }
    #expect(Set(names) == Set(FlowRecord.CodingKeys.allCases.map(\.rawValue)))
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
    ] as [(Int, FlowMachine.Closed?)]) func flowIsClosedFromItsExpiryOn(seconds: Int, closed: FlowMachine.Closed?)
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
    #expect(flow.record.basis.epoch == 3)
    var new = PassedProof(PassedStep(provider: mail, at: now))
    new.proved = [number]
    flow.passed(new)
    #expect(flow.record.passed.map(\.provider) == [pin])
    #expect(flow.record.basis.introduced.map(\.provider) == [phone, mail])
  }

  @Test func aCompleteOrFailedFlowIsOver() {
    var flow = machine(.test(phone))
    flow.completed(account: known, isNew: false, next: "/home")
    #expect(flow.closed(at: now) == .over)
    var other = machine(.test(phone))
    other.failed()
    #expect(other.closed(at: now) == .over)
  }

  @Test func stateFollowsTheStepsToTheEnd() {
    var flow = machine(.test(pin, when: FunctionName("w")), .test(phone))
    #expect(flow.state == .deciding(FunctionName("w")))
    flow.stepApplies(false)
    #expect(flow.state == .offering([phone]))
    flow.passed(PassedProof(PassedStep(provider: phone, at: now), account: known))
    #expect(flow.state == .passed)
    flow.completed(account: known, isNew: false, next: "/home")
    #expect(flow.state == .complete)
    var refused = machine(.test(phone))
    refused.failed()
    #expect(refused.state == .failed)
  }

  @Test func phaseOfAnOpenStepFollowsItsRecord() {
    let challenge = Challenge(
      mac: [1], issuedAt: now, expiresAt: now + .seconds(300),
      rule: CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(300)))
    let site = "https://id.example/authorize"
    var flow = machine(.test(phone))
    func phase() -> FlowMachine.StepPhase? { if case .open(_, let phase) = flow.state { phase } else { nil } }
    flow.opened(StepRecord(provider: phone, identifier: nil, isSkippable: false, account: nil, challenge: challenge))
    #expect(phase() == .code(challenge))
    flow.opened(StepRecord(provider: pin, identifier: nil, isSkippable: false, account: nil, challenge: nil))
    #expect(phase() == .asking)
    var round = StepRound(fields: [], state: [])
    round.wait = StepWait(interval: .seconds(5), from: now)
    flow.waits(for: round)
    #expect(phase() == .waiting(StepWait(interval: .seconds(5), from: now)))
    round = StepRound(fields: nil, state: [])
    round.redirectTo = site
    flow.waits(for: round)
    #expect(phase() == .atSite(site))
    flow.closedStep()
    #expect(flow.state == .offering([phone]))
  }

  @Test func severalClaimingAccountsAreChosenFrom() {
    let mailbox = Identifier(kind: .email, value: "a@example.com", display: "a@example.com")
    let choice = AccountChoice(provider: mail, identifier: mailbox, accounts: [known])
    var flow = machine(.test(mail))
    flow.asks(toChoose: choice)
    #expect(flow.state == .choosingAccount(choice) && flow.next == .chooseAccount)
    flow.chose(known, by: mailbox)
    #expect(flow.state == .offering([mail]))
  }

  @Test func aFlowOfAnAppIsHandedOverOnce() throws {
    let challenge = Base64URL.encode(TokenHash(of: "verifier".utf8).bytes)
    let grant = try #require(Grant(client: "mobile", redirect: "https://app.example/done", challenge: challenge))
    let code = GrantCode(hash: TokenHash(of: "code".utf8), expiresAt: now + GrantCode.lifetime, factors: [])
    var flow = FlowMachine(
      FlowRecord(
        id: TokenHash(of: "f".utf8), definition: .test("login", account: .existing, steps: [.test(phone)]), codes: [:],
        createdAt: now, returnTo: nil, browser: nil, network: [], account: nil, grant: grant))
    flow.completed(account: known, isNew: false, next: grant.redirect, code: code)
    #expect(flow.state == .handingOver(grant, code))
    flow.redeemed()
    #expect(flow.state == .complete)
  }
}
