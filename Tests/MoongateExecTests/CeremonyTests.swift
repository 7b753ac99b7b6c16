import MoongateSDK
import Testing

@testable import MoongateExec

/// A program that shows a ceremony.
@Suite struct CeremonyTests {
  /// - Parameter answer: the answer to `begin`.
  private static func body(
    presentation: String = #"{"kind": "ceremony", "button": "Use your key"}"#, _ answer: String
  ) -> String {
    #"""
    def introduce(params):
        return {"protocol": 1, "shape": "full", "identifier": "email", "submit": [{"name": "answer", "kind": "json"}],
                "presentation": \#(presentation), "outcomes": [{"reason": "invalid_word", "sentence": "No."}],
                "policy": "return policy \"%s\" {}" % params["name"]}
    def answer(method, params):
        if method == "begin": return \#(answer)
        return {"proved": {}} if json.loads(params["fields"]["answer"])["id"] == "é" else {"refused": "invalid_word"}
    """#
  }

  private static let asks =
    #"{"ask": {"fields": [{"name": "answer", "kind": "json"}], "show": [{"kind": "ceremony", "call": "create", "options": "{\"challenge\": \"AAAA\"}"}]}}"#

  @Test func itShowsOptionsAndJudgesTheAnswer() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(Self.body(Self.asks))
    #expect(provider.descriptor.presentation == .ceremony(button: "Use your key"))
    guard case .ask(let fields, _, let shown) = try await provider.begin(.some(), .words(["email": "ann@example.com"]))
    else {
      Issue.record("asks")
      return
    }
    #expect(
      fields == [InputField(name: "answer", kind: .json)]
        && shown == [.ceremony(.create, options: #"{"challenge": "AAAA"}"#)])
    // Longer than the limit of other fields.
    let long = String(repeating: "x", count: 12_000)
    #expect(try await provider.submit(.some(), .words(["answer": #"{"id":"é","x":"\#(long)"}"#])).isProof)
    #expect(throws: InputProblem.self) { try provider.check(.some(), .words(["answer": #"{"x":"\#(long)\#(long)"}"#])) }
  }

  @Test(arguments: [
    #"{"ask": {"fields": [{"name": "answer", "kind": "json"}], "show": [{"kind": "ceremony", "call": "sign", "options": "{}"}]}}"#,
    #"{"ask": {"fields": [{"name": "answer", "kind": "json"}], "show": [{"kind": "ceremony", "options": "{}"}]}}"#,
    #"{"ask": {"fields": [{"name": "answer", "kind": "json"}], "show": [{"kind": "ceremony", "call": "get"}]}}"#,
    #"{"ask": {"fields": [{"name": "answer", "kind": "json"}], "show": [{"kind": "ceremony", "call": "get", "options": "{\"x\":\"" + "1" * 16384 + "\"}"}]}}"#,
  ])
  func aCeremonyWithoutItsPartsIsAFault(_ answer: String) async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(Self.body(answer))
    await #expect(throws: ProgramFault.self) {
      _ = try await provider.begin(.some(), .words(["email": "ann@example.com"]))
    }
  }

  @Test func itNeedsItsPresentation() throws {
    let fixture = try ProgramFixture()
    #expect(throws: (any Error).self) {
      _ = try fixture.full(Self.body(presentation: #"{"kind": "ceremony"}"#, Self.asks))
    }
    #expect(throws: (any Error).self) { _ = try fixture.full(Self.body(presentation: #"{"kind": "form"}"#, Self.asks)) }
  }
}
