import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// Delivery reasons and facts of proofs from programs.
@Suite struct ProgramDeliveryTests {
  private static func sender(_ answer: String) -> String {
    #"""
    def introduce(params):
        return {"protocol": 1, "shape": "code", "identifier": "email", "policy": "return policy \"word\" {}",
                "delivery_reasons": [{"reason": "not_on_chat", "sentence": "No such person in the chat.", "permanent": True}]}

    def answer(method, params):
        return \#(answer)
    """#
  }

  private func deliver(_ answer: String, _ fixture: ProgramFixture) async throws -> DeliveryFault? {
    let code = try #require(try fixture.start(try fixture.write(Self.sender(answer))) as? any CodeProvider)
    let message = CodeMessage(code: "123456", text: "123456", domainBoundLine: "@host #123456", service: "Ours")
    let identifier = Identifier(kind: .email, value: "ann@example.com", display: "ann@example.com")
    do throws(DeliveryFault) {
      try await code.deliver(
        message, to: identifier, with: StepTools(randomBytes: { _ in [] }, web: NoWeb(), clock: StepClock { 42 }))
      return nil
    } catch {
      return error
    }
  }

  @Test func declaredReasonArrives() async throws {
    let fixture = try ProgramFixture()
    let fault = try #require(try await deliver(#"{"failed": "not_on_chat"}"#, fixture))
    #expect(fault == DeliveryFault("not_on_chat", "it answered `not_on_chat`"))
  }

  @Test func emptyAnswerIsADelivery() async throws {
    #expect(try await deliver("{}", try ProgramFixture()) == nil)
    #expect(try await deliver(#"{"failed": None}"#, try ProgramFixture()) == nil)
  }

  /// Attack: a program shows arbitrary text to a user on the gateway's page.
  @Test(arguments: ["no_such_reason", "Not a reason!", "too_many_attempts"]) func undeclaredReasonIsAFault(
    _ reason: String
  ) async throws {
    let fixture = try ProgramFixture()
    let fault = try #require(try await deliver(#"{"failed": "\#(reason)"}"#, fixture))
    #expect(fault.declared == nil && fault.reason.contains("undeclared reason"))
    #expect(fixture.log.lines.contains { $0.contains("is not valid") })
  }

  @Test func declarationIsChecked() throws {
    func problems(_ hello: String) throws -> [String] {
      let fixture = try ProgramFixture()
      let specification = try fixture.write("old = introduce\ndef introduce(params): return {**old(params), \(hello)}")
      guard case .failure(let problem)? = fixture.programs.introduce([specification]).first else { return [] }
      return problem.sentences
    }
    let reason = #""delivery_reasons": [{"reason": "gone", "sentence": "It is gone."}]"#
    #expect(
      try problems(reason) == [
        "has `delivery_reasons` but is not a code provider"
      ])
    let code = #""shape": "code", "submit": None, "outcomes": None, "#
    #expect(
      try problems(code + #""delivery_reasons": [{"reason": "Gone!", "sentence": "It is gone."}]"#) == [
        "\"Gone!\" is not a valid delivery reason: use lower-case letters, digits and _"
      ])
    #expect(
      try problems(code + #""delivery_reasons": [{"reason": "gone", "sentence": ""}]"#) == [
        "the delivery reason `gone` needs one sentence for the person: plain text of at most 300 bytes"
      ])
    #expect(try problems(code + reason) == [])
  }

  // MARK: - Facts of a proof

  private static func teller(_ facts: String) -> String {
    #"""
    old = introduce
    def introduce(params):
        return {**old(params), "facts": [{"name": "length", "kind": "number"}, {"name": "rare", "kind": "flag"}]}

    def answer(method, params): return {"proved": {"facts": \#(facts)}}
    """#
  }

  private func proved(_ facts: String, _ fixture: ProgramFixture) async throws -> [String: String] {
    let provider = try fixture.full(Self.teller(facts))
    let ann = Identifier(kind: .email, value: "ann@example.com", display: "ann@example.com")
    guard
      case .proved(let proof) = try await provider.judge(
        "open", .some(account: StepAccount(id: "ac_1", record: nil, identifiers: [ann])))
    else {
      return ["proves": "nothing"]
    }
    return proof.facts
  }

  /// Attack: a program sends facts of the gateway's own parser, or undeclared ones.
  @Test func declaredFactsOfAProofArrive() async throws {
    let facts = #"{"length": 7, "rare": True, "domain": "bank.example", "made_up": "x"}"#
    let fixture = try ProgramFixture()
    #expect(try await proved(facts, fixture) == ["length": "7", "rare": "true"])
    #expect(
      fixture.log.lines.contains {
        $0.contains("sent the undeclared fact `domain` of a proof, which is ignored")
      })
  }

  @Test func longFactIsAFault() async throws {
    let fixture = try ProgramFixture()
    await #expect(throws: ProgramFault.broken("its fact `length` is longer than 300 bytes")) {
      try await proved(#"{"length": "x" * 301}"#, fixture)
    }
  }
}
