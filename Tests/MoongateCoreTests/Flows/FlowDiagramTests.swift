import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// The arrows of `flow.mermaid` are the changes of state that the events of `FlowMachine` cause.
@Suite struct FlowDiagramTests {
  private static let now = ManualClock.start
  private static let phone = ProviderName(test: "phone_otp")
  private static let pin = ProviderName(test: "pin")
  private static let mail = ProviderName(test: "email_code")
  private static let account = AccountVersion(id: "ac_1", epoch: 3)
  private static let choice = AccountChoice(
    provider: phone, identifier: Identifier(kind: .phone, value: "+911", display: "+911"), accounts: [account])
  private static let grant = Grant(
    client: "mobile", redirect: "https://app.example/done",
    challenge: Base64URL.encode(TokenHash(of: "verifier".utf8).bytes))
  private static let code = GrantCode(
    hash: TokenHash(of: "code".utf8), expiresAt: now + GrantCode.lifetime, factors: [])

  /// Every kind of step that can follow: with a condition, without one, and none.
  private static let following: [[StepRule]] = [[.test(mail, when: FunctionName("w"))], [.test(mail)], []]
  /// What the diagram means by an arrow to `deciding`: the state depends on the step that follows.
  private static let anything: Set = ["deciding", "offering", "passed"]

  private static func machine(_ steps: [StepRule], grant: Grant? = nil) -> FlowMachine {
    FlowMachine(
      FlowRecord(
        id: TokenHash(of: "f".utf8), definition: .test("login", account: .existing, steps: steps), codes: [:],
        createdAt: now, returnTo: nil, browser: nil, network: [], account: nil, grant: grant))
  }

  private static func name(_ state: FlowMachine.State) -> String {
    switch state {
    case .deciding: "deciding"
    case .offering: "offering"
    case .open: "open"
    case .choosingAccount: "choosingAccount"
    case .passed: "passed"
    case .handingOver: "handingOver"
    case .complete: "complete"
    case .failed: "failed"
    }
  }

  private static func name(_ phase: FlowMachine.StepPhase) -> String {
    switch phase {
    case .code: "code"
    case .asking: "asking"
    case .waiting: "waiting"
    case .atSite: "atSite"
    case .returned: "returned"
    }
  }

  private static func open(_ flow: inout FlowMachine) {
    flow.opened(StepRecord(provider: phone, identifier: nil, isSkippable: false, account: nil, challenge: nil))
  }
  private static func pass(_ flow: inout FlowMachine) {
    flow.passed(PassedProof(PassedStep(provider: phone, at: now), account: account))
  }
  private static func skip(_ flow: inout FlowMachine) {
    let isSkipped = flow.skipped()
    #expect(isSkipped)
  }
  private static func complete(_ flow: inout FlowMachine, _ code: GrantCode?) {
    flow.completed(account: account, isNew: false, next: "/", code: code)
  }

  /// The states before and after each event, apart from those of the phases of an open step.
  private static func arrows() -> Set<Arrow> {
    typealias Event = (inout FlowMachine) -> Void
    var arrows: Set<Arrow> = []
    func add(_ start: FlowMachine, _ event: Event) {
      var flow = start
      event(&flow)
      arrows.insert(Arrow(from: name(start.state), to: name(flow.state)))
    }
    func addFollowing(_ first: StepRule, prepared: Event = { _ in }, _ event: Event) {
      var states: Set<String> = []
      var from = ""
      for steps in following {
        var flow = machine([first] + steps)
        prepared(&flow)
        from = name(flow.state)
        event(&flow)
        states.insert(name(flow.state))
      }
      #expect(states == anything)
      arrows.insert(Arrow(from: from, to: "deciding"))
    }
    let conditional = machine([.test(pin, when: FunctionName("w"))])
    add(conditional) { $0.stepApplies(true) }
    for steps in following { add(machine([.test(pin, when: FunctionName("w"))] + steps)) { $0.stepApplies(false) } }

    let offering = machine([.test(phone)])
    add(offering, open)
    addFollowing(.test(phone), pass)
    addFollowing(.test(phone, isSkippable: true), skip)

    var opened = offering
    open(&opened)
    add(opened, open)
    add(opened) { $0.closedStep() }
    add(opened) { $0.requireFirst(pin) }
    addFollowing(.test(phone), prepared: open, pass)
    addFollowing(.test(phone, isSkippable: true), prepared: open, skip)
    add(opened) { flow in
      pass(&flow)
      flow.asks(toChoose: choice)
    }
    add(opened, pass)
    add(opened) { $0.failed() }

    addFollowing(
      .test(phone),
      prepared: { flow in
        pass(&flow)
        flow.asks(toChoose: choice)
      }
    ) { $0.chose(account, by: choice.identifier) }

    var passed = offering
    pass(&passed)
    add(passed) { $0.require([pin], .enroll) }
    add(passed) { complete(&$0, nil) }
    add(passed) { $0.failed() }

    var ofApp = machine([.test(phone)], grant: grant)
    pass(&ofApp)
    add(ofApp) { complete(&$0, code) }
    complete(&ofApp, code)
    add(ofApp) { $0.redeemed() }
    return arrows
  }

  /// The phases of an open step before and after each event.
  private static func phaseArrows() -> Set<Arrow> {
    var asking = machine([.test(phone)])
    open(&asking)
    let more = StepRound(fields: [], state: [])
    var wait = StepRound(fields: [], state: [])
    wait.wait = StepWait(interval: .seconds(5), from: now)
    var redirect = StepRound(fields: nil, state: [])
    redirect.redirectTo = "https://id.example/authorize"
    let answer = PostedCallback(
      handle: TokenHash(of: "handle".utf8), fields: SealedBytes([1]), expiresAt: now + .seconds(60))
    var arrows: Set<Arrow> = []
    func phase(_ flow: FlowMachine) -> String { if case .open(_, let phase) = flow.state { name(phase) } else { "" } }
    func add(_ start: FlowMachine, _ event: (inout FlowMachine) -> Void) -> FlowMachine {
      var flow = start
      event(&flow)
      arrows.insert(Arrow(from: phase(start), to: phase(flow)))
      return flow
    }
    _ = add(asking) { $0.waits(for: more) }
    let waiting = add(asking) { $0.waits(for: wait) }
    _ = add(waiting) { $0.polled(at: now + .seconds(5)) }
    _ = add(waiting) { $0.waits(for: more) }
    let atSite = add(asking) { $0.waits(for: redirect) }
    let returned = add(atSite) { $0.updateCallback(answer) }
    _ = add(returned) { $0.updateCallback(nil) }
    return arrows
  }

  private struct Arrow: Hashable, CustomStringConvertible {
    let from: String
    let to: String
    var description: String { "\(from) --> \(to)" }
  }

  private static func drawn() throws -> Set<Arrow> {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let diagram = try String(
      contentsOf: root.appending(path: "Sources/MoongateCore/FlowRules/flow.mermaid"), encoding: .utf8)
    let arrows = diagram.split(separator: "\n").compactMap { line -> Arrow? in
      let words = line.split(separator: " ")
      guard words.count >= 3, words[1] == "-->", words[0] != "[*]", words[2] != "[*]" else { return nil }
      return Arrow(from: String(words[0]), to: String(words[2]))
    }
    return Set(arrows)
  }

  @Test func arrowsAreTheChangesOfState() throws {
    let (made, drawn) = (Self.arrows().union(Self.phaseArrows()), try Self.drawn())
    #expect(made.subtracting(drawn).isEmpty, "changes of state that the diagram lacks")
    #expect(drawn.subtracting(made).isEmpty, "arrows that no event makes")
    #expect(drawn.count > 20)
  }
}
