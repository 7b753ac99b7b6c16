import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// Webhooks for a program.
@Suite struct WebhookTests {
  private static let frame = #"""
    def introduce(params):
        return {"protocol": 1, "shape": "full", "identifier": "email", "hook": True, "callback": [{"name": "user", "kind": "text", "required": False}],
                "policy": "return policy \"%s\" {}" % params["name"]}

    """#

  private let tools = StepTools(
    randomBytes: { [UInt8](repeating: 7, count: $0) }, web: NoWeb(), clock: StepClock { 1_000 })

  private func receive(_ body: String, _ webhook: WebhookRequest, _ fixture: ProgramFixture) async throws
    -> WebhookAnswer
  {
    let provider = try fixture.full(Self.frame + body)
    #expect(provider.descriptor.receivesWebhooks && provider.descriptor.callbackFields.map(\.name) == ["user"])
    return try await (try #require(provider as? any WebhookReceiver)).receive(webhook, with: tools)
  }

  private func request(_ body: [UInt8], _ headers: [(String, String)] = []) -> WebhookRequest {
    WebhookRequest(headers: headers.map { (name: $0.0, value: $0.1) }, body: body, remote: "192.0.2.1")
  }

  @Test func programReceivesTheWebhook() async throws {
    let answer = try await receive(
      "def answer(method, params): return {\"accepted\": {\"text\": method + json.dumps(params, sort_keys=True)}}",
      request(Array("{\"id\": \"ü\"}".utf8), [("vendor", "a"), ("vendor", "b"), ("id", "7")]), try ProgramFixture())
    #expect(
      answer
        == .accepted(
          text:
            #"hook{"body": "{\"id\": \"\u00fc\"}", "headers": {"id": "7", "vendor": "a, b"}, "now": 1000, "remote": "192.0.2.1"}"#
        ))
  }

  @Test func binaryBodyIsSentAsBase64() async throws {
    let answer = try await receive(
      "def answer(method, params): return {\"accepted\": {\"text\": str(params.get(\"body\")) + params[\"body_base64\"]}}",
      request([0xff, 0x00]), try ProgramFixture())
    #expect(answer == .accepted(text: "None/wA="))
  }

  @Test(arguments: WebhookAnswer.Refusal.allCases) func programCanRefuseAWebhook(_ refusal: WebhookAnswer.Refusal)
    async throws
  {
    let answer = try await receive(
      "def answer(method, params): return {\"refused\": \"\(refusal.rawValue)\"}", request([]), try ProgramFixture())
    #expect(answer == .refused(refusal))
  }

  @Test func bodyThatIsLongerThanALineIsRefused() async throws {
    let body = [UInt8](repeating: 1, count: 30_000)
    #expect(
      try await receive("", request(body), try ProgramFixture()) == .refused(.tooLarge),
      "each byte takes six on the line")
  }

  @Test(arguments: [
    #"{}"#, #"{"accepted": {}, "refused": "malformed"}"#, #"{"refused": "made_up"}"#, #"{"refused": None}"#, #""yes""#,
    #"{"proved": {}}"#,
  ]) func invalidAnswerIsAFault(_ answer: String) async throws {
    let fixture = try ProgramFixture()
    await #expect(throws: ProgramFault.self) {
      try await receive("def answer(method, params): return \(answer)", request([]), fixture)
    }
  }

  /// Attack: user data from a vendor appears in the operator's log.
  @Test func bodyIsRedacted() async throws {
    let fixture = try ProgramFixture()
    _ = try await receive(
      "def answer(method, params):\n    print(\"got \" + params[\"body\"], file=sys.stderr, flush=True)\n    return {\"accepted\": {}}",
      request(Array("private-approval".utf8)), fixture)
    #expect(try await fixture.heard("got [redacted]"))
    #expect(!fixture.log.lines.contains { $0.contains("private-approval") })
  }
}
