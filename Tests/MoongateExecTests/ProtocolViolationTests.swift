import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// Programs that violate the protocol. Each fails only its own step, and the violation is logged.
@Suite struct ProtocolViolationTests {
  /// - Returns: the fault of a single submit.
  private func fault(
    of body: String, step: StepContext = .some(), fixture: ProgramFixture, timeout: Duration = .seconds(5)
  ) async throws
    -> ProgramFault?
  {
    let provider = try fixture.full(body, timeout: timeout)
    do {
      _ = try await provider.judge("open", step)
      return nil
    } catch { return error as? ProgramFault }
  }

  static let lies: [(body: String, words: String)] = [
    (#"{"refused": "made_up"}"#, "undeclared reason: `made_up`"),
    (#"{"proved": {"identifiers": [{"kind": "email", "value": "bob@example.com"}]}}"#, "of another user"),
    (#"{"proved": {"identifiers": [{"kind": "phone", "value": "+919999999999"}]}}"#, "of another user"),
    (
      #"{"proved": {"identifiers": [{"kind": "federated", "value": "https://accounts.google.com 1"}]}}"#,
      "of another user"
    ),
    (#"{"proved": {"identifiers": [{"kind": "federated", "value": "word 1"}]}}"#, "of another user"),
    (#"{"proved": {"claimed": [{"kind": "phone", "value": "+919999999999"}]}}"#, "only email addresses may be claimed"),
    (#"{"proved": {"record": {"replace": "x" * 20000}}}"#, "its record is longer than 16384 bytes"),
    (#"{"proved": {"first_name": "A\x1b[2J"}}"#, "control characters"),
    (#"{"proved": {}, "refused": "invalid_word"}"#, "exactly one of"),
    (#"{"accepted": True}"#, "exactly one of"),
    (#""proved""#, "cannot be read"),
    (#"{"redirect": {"to": "javascript:alert(1)"}}"#, "not https"),
    (#"{"redirect": {"to": "http://localhost.example.com/"}}"#, "not https"),
    (#"{"redirect": {"to": "https:///nowhere"}}"#, "not https"),
    (#"{"redirect": {"to": "http://localhost@example.com/"}}"#, "not https"),
    (#"{"redirect": {"to": "https://a\\@b/"}}"#, "not https"),
    (#"{"redirect": {"to": "https://bank.example@example.com/"}}"#, "not https"),
    (#"{"redirect": {"to": "https://example.com/" + "a" * 4077}}"#, "not https"),
    (#"{"ask": {"fields": [{"name": "<b>", "kind": "text"}]}}"#, "invalid names"),
    (#"{"ask": {"fields": [{"name": "word", "kind": "html"}]}}"#, "cannot be read"),
    (#"{"malformed": {"field": "word", "reason": "made_up", "detail": "no"}}"#, "unknown reason: `made_up`"),
  ]

  @Test(arguments: lies) func protocolViolationIsAFault(_ lie: (body: String, words: String)) async throws {
    let fixture = try ProgramFixture()
    let fault = try await fault(of: "def answer(method, params): return \(lie.body)", fixture: fixture)
    #expect("\(try #require(fault))".contains(lie.words), "\(String(describing: fault))")
    #expect(fixture.log.lines.contains { $0.contains("violates the protocol") && $0.contains("provider=word") })
  }

  /// Attack: a program that its operator takes for one factor raises `aal` past a route that asks for two.
  @Test func severalFactorsMustBeDeclared() async throws {
    let answer = #"def answer(method, params): return {"proved": {"multi_factor": True}}"#
    func body(_ more: String) -> String {
      "old = introduce\ndef introduce(params): return {**old(params)\(more)}\n" + answer
    }
    let fixture = try ProgramFixture()
    #expect(
      try await fault(of: body(""), fixture: fixture)
        == .broken("it answers `multi_factor`, which its `hello` does not declare"))
    let other = try ProgramFixture()
    let declared = try other.full(body(", \"multi_factor\": True"))
    guard case .proved(let proof) = try await declared.judge("open", .some()) else {
      Issue.record("not proved")
      return
    }
    #expect(proof.isMultiFactor && declared.descriptor.mayProveSeveralFactors)
  }

  @Test func beginCannotProveAUser() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(#"def answer(method, params): return {"proved": {}}"#)
    await #expect(throws: ProgramFault.broken("it answers `proved` before an attempt")) {
      try await provider.begin(.some(), .words([:]))
    }
  }

  @Test func proofWithoutAnExpectedUserIsRefused() async throws {
    let fixture = try ProgramFixture()
    #expect(
      try await fault(of: "", step: .some(identifier: nil), fixture: fixture)
        == .broken("it answers `proved` without an identifier"))
  }

  @Test func programCanProveItsOwnFederatedIdentities() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      old = introduce
      def introduce(params): return {**old(params), "federated": True}
      def answer(method, params): return {"proved": {"identifiers": [{"kind": "federated", "value": "word 7"}], "record": {"replace": "r", "once": True}}}
      """#)
    guard case .proved(let proof) = try await provider.judge("open", .some(identifier: nil)) else { return }
    #expect(proof.proved.map(\.value) == ["word 7"])
    guard case .replaceOnce(Array("r".utf8)) = proof.record else {
      Issue.record("once")
      return
    }
  }

  @Test(arguments: ["https://site.example/a?b=c", "http://localhost:8080/", "http://127.0.0.1/"])
  func validSiteAddressesAreAccepted(
    _ address: String
  ) {
    #expect(SiteAddress.isSite(address, atMost: ReplyRules.longestAddress))
  }

  private static let federated = """
    old = introduce
    def introduce(params): return {**old(params), "federated": True}

    """

  /// Attack: the right user with a display and attributes invented by the program, which policies would read.
  @Test func identifierOfAProofIsNormalisedByTheGateway() async throws {
    let fixture = try ProgramFixture()
    let phone = Identifier(
      kind: .phone, value: "+919999999999", display: "+91 99999 99999", attributes: ["country": "IN"])
    let provider = try fixture.full(
      Self.federated
        + #"""
        def answer(method, params):
            dress = {"display": "\x1b[2JAnn", "attributes": {"country": "NL", "line_type": "mobile", "domain": "bank.example"}}
            return {"proved": {"identifiers": [{"kind": "email", "value": "ann@example.com", **dress}, {"kind": "phone", "value": "+919999999999", **dress},
                                               {"kind": "federated", "value": "word 7", **dress, "display": "Ann of word"}]}}
        """#)
    let account = StepAccount(id: "ac_1", record: nil, identifiers: [phone])
    guard case .proved(let proof) = try await provider.judge("open", .some(account: account)) else {
      Issue.record("proves")
      return
    }
    let ann = try #require(EmailAddress("ann@example.com").map(Identifier.init))
    #expect(proof.proved.map(\.display) == [ann.display, phone.display, "Ann of word"])
    #expect(proof.proved.map(\.attributes) == [ann.attributes, phone.attributes, [:]])
  }

  private static let telling = """
    old = introduce
    def introduce(params):
        return {**old(params), "federated": True, "facts": [{"name": "floor", "kind": "number", "help": "where they sit"},
                {"name": "badge", "kind": "text", "of": "federated"}]}

    """

  /// A program can send declared facts, but neither undeclared ones nor those of the gateway's parser.
  @Test func programCanSendDeclaredFacts() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.telling
        + #"""
        def answer(method, params):
            tells = {"attributes": {"floor": "3", "badge": "b1", "domain": "bank.example", "made_up": "x"}}
            return {"proved": {"identifiers": [{"kind": "email", "value": "ann@example.com", **tells}, {"kind": "federated", "value": "word 7", **tells}]}}
        """#)
    #expect(
      provider.descriptor.facts == [
        .emailDomain, FactField(name: "floor", kind: .number, help: "where they sit"),
        FactField(name: "badge", kind: .text, of: .federated, help: "what the program calls badge"),
      ])
    guard case .proved(let proof) = try await provider.judge("open") else {
      Issue.record("proves")
      return
    }
    #expect(proof.proved.map(\.attributes) == [["domain": "example.com", "floor": "3"], ["badge": "b1"]])
  }

  /// Attack: a user who was an administrator when the account was created, but is no longer one, still counts as one
  /// for the policies of a step-up.
  @Test func declaredFactsAreTakenFromTheLatestProof() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.telling
        + #"""
        def answer(method, params):
            return {"proved": {"identifiers": [{"kind": "federated", "value": "word 7", "attributes": {"badge": "guest"}},
                                               {"kind": "federated", "value": "elsewhere 7", "attributes": {"badge": "guest"}}]}}
        """#)
    let held = ["word 7", "elsewhere 7"].map {
      Identifier(kind: .federated, value: $0, display: $0, attributes: ["badge": "admin"])
    }
    guard
      case .proved(let proof) = try await provider.judge(
        "open", .some(account: StepAccount(id: "ac_1", record: nil, identifiers: held)))
    else {
      Issue.record("proves")
      return
    }
    #expect(proof.proved.map(\.attributes) == [["badge": "guest"], ["badge": "admin"]])
  }

  private static func grouped(_ groups: String, value: String = "word 7") -> String {
    federated
      + #"""
      def answer(method, params):
          return {"proved": {"identifiers": [{"kind": "federated", "value": "\#(value)", "groups": \#(groups)}]}}
      """#
  }

  /// Attack: somebody who has left a group in the directory keeps it. The groups are those of the latest proof, and
  /// none if it names none.
  @Test(arguments: [(#"["ops", "née"]"#, ["ops", "née"]), ("[]", []), ("None", [])] as [(String, [String])])
  func groupsAreTakenFromTheLatestProof(_ said: String, _ groups: [String]) async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(Self.grouped(said))
    let held = Identifier(kind: .federated, value: "word 7", display: "word 7", groups: ["admins"])
    guard
      case .proved(let proof) = try await provider.judge(
        "open", .some(account: StepAccount(id: "ac_1", record: nil, identifiers: [held])))
    else {
      Issue.record("proves")
      return
    }
    #expect(proof.proved.map(\.groups) == [groups])
  }

  /// The largest groups fit into a line.
  @Test func groupsUpToTheLimitAreTaken() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(Self.grouped(#"[("%03d" % n) + "x" * 128 for n in range(500)]"#))
    guard case .proved(let proof) = try await provider.judge("open") else {
      Issue.record("proves")
      return
    }
    #expect(proof.proved.first?.groups.count == 500)
  }

  /// Attack: groups are cut, and with them the one by which a service refuses.
  @Test(arguments: [
    #"["g%d" % n for n in range(501)]"#, #"["x" * 257]"#, #"[""]"#, #"["a\nb"]"#,
    #"[("%03d" % n) + "x" * 200 for n in range(400)]"#,
  ]) func tooManyOrLongGroupsAreAFault(_ groups: String) async throws {
    let fixture = try ProgramFixture()
    let told = "\(try #require(try await fault(of: Self.grouped(groups), fixture: fixture)))"
    #expect(told.contains("group"), "\(told)")
  }

  @Test(arguments: [#""x" * 301"#, #""\x1b[2J""#]) func longOrUnprintableFactIsAFault(_ badge: String) async throws {
    let fixture = try ProgramFixture()
    let body =
      #"def answer(method, params): return {"proved": {"identifiers": [{"kind": "federated", "value": "word 7", "attributes": {"badge": \#(badge)}}]}}"#
    let told = "\(try #require(try await fault(of: Self.telling + body, fixture: fixture)))"
    #expect(told.contains("longer than 300 bytes") || told.contains("control characters"), "\(told)")
  }

  @Test(arguments: [#""display": "\x1b[2J""#, #""display": "\u009b2J""#]) func federatedIdentityMustBePlainText(
    _ dress: String
  ) async throws {
    let fixture = try ProgramFixture()
    let body =
      #"def answer(method, params): return {"proved": {"identifiers": [{"kind": "federated", "value": "word 7", \#(dress)}]}}"#
    #expect(
      "\(try #require(try await fault(of: Self.federated + body, fixture: fixture)))".contains("control characters"))
  }

  @Test func answerWithAnUnknownIdIsIgnored() async throws {
    let fixture = try ProgramFixture()
    // The id of the next call can be guessed, but the call has not been sent yet.
    let fault = try await fault(
      of: #"def take(message): say({"jsonrpc": "2.0", "id": message["id"] + 1, "result": {"proved": {}}})"#,
      fixture: fixture,
      timeout: .milliseconds(300))
    #expect(fault == .late(.milliseconds(300)))
    #expect(fixture.log.lines.contains { $0.contains("sent an unexpected or repeated answer") })
  }

  @Test func secondAnswerIsIgnored() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      def take(message):
          say({"jsonrpc": "2.0", "id": message["id"], "result": {"refused": "invalid_word"}})
          say({"jsonrpc": "2.0", "id": message["id"], "result": {"proved": {}}})
      """#)
    for _ in 0..<3 { #expect(try await !provider.judge("open").isProof) }
    #expect(try await fixture.heard("sent an unexpected or repeated answer"))
  }

  @Test func lateAnswerIsIgnored() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      held = []
      def take(message):
          held.append(message)
          if len(held) == 2:
              say({"jsonrpc": "2.0", "id": held[0]["id"], "result": {"proved": {}}})
              say({"jsonrpc": "2.0", "id": held[1]["id"], "result": {"refused": "invalid_word"}})
      """#, timeout: .milliseconds(500))
    await #expect(throws: ProgramFault.late(.milliseconds(500))) { try await provider.judge("open") }
    #expect(try await !provider.judge("open").isProof)
    #expect(try await fixture.heard("answered a call after its time"))
  }

  @Test(arguments: [
    "not json at all", "[]", "{}", "null", #"{"jsonrpc": "1.0", "id": 3, "result": {}}"#,
    #"{"jsonrpc": "2.0", "id": "x", "result": {}}"#,
    #"{"jsonrpc": "2.0", "id": "\#(String(repeating: "x", count: 129))", "method": "give_session"}"#,
    #"{"jsonrpc": "2.0", "id": 3}"#,
    #"{"jsonrpc": "2.0", "id": 3.5, "result": {}}"#, "\u{fffd}\u{1}",
  ])
  func invalidMessageIsLoggedAndTheNextIsRead(_ rubbish: String) async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          print(bytes(\(Array(rubbish.utf8))).decode(), flush=True)
          old(message)
      """)
    #expect(try await provider.judge("open").isProof)
    #expect(fixture.log.lines.contains { $0.contains("not a JSON-RPC message") })
  }

  @Test func deepNestingDoesNotCrash() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      """
      old = take
      def take(message):
          print("[" * 30000, flush=True)
          print('{"jsonrpc":"2.0","id":1,"result":' + '{"a":' * 5000 + '1' + '}' * 5000 + '}', flush=True)
          old(message)
      """)
    #expect(try await provider.judge("open").isProof)
  }

  @Test func unknownRequestsOfTheProgramAreRefused() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      old = take
      def take(message):
          say({"jsonrpc": "2.0", "id": "mine", "method": "give_session", "params": {}})
          reply = json.loads(sys.stdin.readline())
          assert reply["id"] == "mine" and reply["error"]["code"] == -32601, reply
          old(message)
      """#)
    #expect(try await provider.judge("open").isProof)
    #expect(fixture.log.lines.contains { $0.contains("sent a request `give_session`") })
  }

  /// Attack: a program that sends requests without reading the answers fills the gateway's memory.
  @Test func programThatDoesNotReadItsInputIsStopped() async throws {
    let fixture = try ProgramFixture { $0.unread = 2_000 }
    let provider = try fixture.full(
      #"""
      old = take
      def take(message):
          for number in range(900): say({"jsonrpc": "2.0", "id": "x" * 100, "method": "give_session", "params": {}})
          old(message)
      """#)
    await #expect(throws: ProgramFault.ended("does not read its input")) { try await provider.judge("open") }
  }

  @Test func textIsRedactedBeforeItIsTruncated() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      def take(message):
          word = message["params"]["fields"]["word"]
          say({"jsonrpc": "2.0", "method": "log", "params": {"message": "told", "values": {"n" * 40 + word: 1}}})
          say({"jsonrpc": "2.0", "method": "x" * 36 + word})
          say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "x" * 494 + word}})
      """#)
    await #expect(throws: ProgramFault.failed(String(repeating: "x", count: 494) + "[redac")) {
      try await provider.judge("a-long-word")
    }
    #expect(try await fixture.heard("an unknown notification"))
    #expect(try await fixture.heard("says: told"))
    #expect(!fixture.log.lines.contains { $0.contains("xa-l") || $0.contains("na-l") })
  }

  @Test func failureTextsAreRedacted() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"def take(message): say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "no " + message["params"]["fields"]["word"]}})"#
    )
    await #expect(throws: ProgramFault.failed("no [redacted]")) { try await provider.judge("a-long-word") }
  }
}
