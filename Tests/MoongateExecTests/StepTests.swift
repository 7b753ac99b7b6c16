import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// A program that follows the protocol.
@Suite struct StepTests {
  @Test func aFullProviderAsksRefusesAndProves() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full("")
    #expect(provider.descriptor.name == "word")
    #expect(provider.descriptor.beginFields == [InputField(name: "email", kind: .email)])
    #expect(provider.descriptor.submitFields == [InputField(name: "word", kind: .text)])
    #expect(provider.descriptor.outcome("invalid_word")?.sentence == "That is not the word.")
    #expect(provider.descriptor.facts == [.emailDomain])
    #expect(try provider.readIdentifier(.words(["email": " Ann@Example.COM "]))?.value == "ann@example.com")
    #expect(try provider.readIdentifier(.words([:])) == nil)

    guard case .ask(let fields, let state, _) = try await provider.begin(.some(), .words(["email": "ann@example.com"]))
    else {
      Issue.record("asks")
      return
    }
    #expect(fields == [InputField(name: "word", kind: .text)] && state == Array("begun".utf8))
    #expect(throws: InputProblem.self) {
      try provider.check(.some(asked: [InputField(name: "word", kind: .text)]), .words([:]))
    }
    guard case .refused("invalid_word") = try await provider.judge("shut") else {
      Issue.record("refuses")
      return
    }
    #expect(try await provider.judge("open").isProof)
  }

  @Test func aCodeProviderDelivers() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.start(
      try fixture.write(
        #"""
        def introduce(params):
            return {"protocol": 1, "shape": "code", "identifier": "email", "policy": "return policy \"word\" {}"}

        def answer(method, params):
            with open("sent.json", "w") as file: json.dump([method, params, sorted(os.environ), os.getcwd()], file)
            return {}
        """#))
    let code = try #require(provider as? any CodeProvider)
    let identifier = try code.readIdentifier(.words(["email": "Ann@example.com"]))
    let tools = StepTools(randomBytes: { _ in [] }, web: NoWeb(), clock: StepClock { 42 })
    try await code.deliver(
      CodeMessage(code: "123456", text: "123456 is your code", domainBoundLine: "@host #123456", service: "Ours"),
      to: identifier, with: tools)
    let sent = try String(contentsOfFile: fixture.folder.path("sent.json"), encoding: .utf8)
    #expect(sent.hasPrefix(#"["deliver", "#) && sent.contains(#""code": "123456""#) && sent.contains(#""now": 42"#))
    #expect(sent.contains(#""value": "ann@example.com""#) && sent.contains(#""domain_bound_line": "@host #123456""#))
    // The environment contains nothing of the gateway's, and the working folder is the configuration folder.
    #expect(!sent.contains("HOME") && sent.contains(#""PATH""#))
    #expect(sent.contains(URL(fileURLWithPath: fixture.folder.path).resolvingSymlinksInPath().lastPathComponent))
  }

  @Test func settingsComeOnceAndSecretsDoNotPrint() async throws {
    let fixture = try ProgramFixture()
    let specification = try fixture.write(
      #"""
      got = {}
      def introduce(params):
          return {"protocol": 1, "shape": "full", "submit": [{"name": "word", "kind": "text"}], "policy": "x", "identifier": "email",
                  "settings": [{"name": "token", "kind": "secret", "required": True}, {"name": "tries", "kind": "number", "minimum": 1, "maximum": 9, "default": 3},
                               {"name": "mode", "kind": "choice", "choices": ["soft", "hard"], "default": "soft"}]}
      def configure(params):
          got.update(params["settings"])
          print("token is", got["token"], file=sys.stderr, flush=True)
          say({"jsonrpc": "2.0", "method": "log", "params": {"level": "warning", "message": "with " + got["token"], "values": {"tries": got["tries"]}}})
          return {}
      def answer(method, params):
          return {"ask": {"fields": [], "state": json.dumps(got, sort_keys=True)}}
      """#)
    let started = try fixture.start(
      specification, values: ["tries": 3, "mode": "hard"], secrets: ["token": "s3cr3t-token"])
    let provider = try #require(started as? any FullProvider)
    #expect(provider.descriptor.settings.map(\.kind) == [.secret, .number(1...9), .choice(["soft", "hard"])])
    guard case .ask(_, let state, _) = try await provider.begin(.some(), .words([:])) else { return }
    #expect(String(decoding: state, as: UTF8.self) == #"{"mode": "hard", "token": "s3cr3t-token", "tries": 3}"#)
    #expect(try await fixture.heard("says: token is [redacted]"))
    #expect(try await fixture.heard("warning says: with [redacted]"))
    #expect(!fixture.log.lines.contains { $0.contains("s3cr3t") })
  }

  @Test func userInputIsRedacted() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      def answer(method, params):
          print(json.dumps(params), file=sys.stderr, flush=True)
          return {"refused": "invalid_word"}
      """#)
    _ = try await provider.judge("my-own-word")
    #expect(try await fixture.heard("[redacted]"))
    #expect(!fixture.log.lines.contains { $0.contains("my-own-word") || $0.contains("ann@example.com") })
  }

  @Test func aThousandStepsAtOnce() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      def run():
          held = []
          for line in sys.stdin:
              message = json.loads(line)
              if message["method"] == "hello": say({"jsonrpc": "2.0", "id": message["id"], "result": introduce(message["params"])})
              elif message["method"] == "configure": say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
              elif message["method"] == "submit":
                  held.append(message)
                  # All of them are under way at once, and are answered in the other order.
                  if len(held) == 1000:
                      for one in reversed(held): take(one)
              elif message["method"] == "shutdown": return
      """#, timeout: .seconds(30))
    let proofs = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<1_000 {
        group.addTask { (try? await provider.judge(number % 2 == 0 ? "open" : "shut").isProof) == (number % 2 == 0) }
      }
      return await group.reduce(into: 0) { count, isRight in count += isRight ? 1 : 0 }
    }
    #expect(proofs == 1_000)
  }

  @Test func callBeyondTheQueueFailsAtOnce() async throws {
    let fixture = try ProgramFixture { $0.outstanding = 8 }
    let provider = try fixture.full("def take(message): pass", timeout: .seconds(2))
    let faults = await withTaskGroup(of: ProgramFault?.self) { group in
      for _ in 0..<20 {
        group.addTask {
          do {
            _ = try await provider.judge("open")
            return nil
          } catch { return error as? ProgramFault }
        }
      }
      return await group.reduce(into: [ProgramFault]()) { all, fault in if let fault { all.append(fault) } }
    }
    #expect(faults.filter { $0 == .busy }.count == 12 && faults.filter { $0 == .late(.seconds(2)) }.count == 8)
  }

  @Test func cancellationReachesTheProgram() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      def run():
          for line in sys.stdin:
              message = json.loads(line)
              if message["method"] == "hello": say({"jsonrpc": "2.0", "id": message["id"], "result": introduce(message["params"])})
              elif message["method"] == "configure": say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
              elif message["method"] == "submit": asked = message["id"]; print("asked", file=sys.stderr, flush=True)
              elif message["method"] == "cancel": print("cancelled", message["params"]["id"] == asked, file=sys.stderr, flush=True)
              elif message["method"] == "shutdown": return
      """#)
    let asking = Task { try await provider.judge("open") }
    #expect(try await fixture.heard("asked"))
    asking.cancel()
    await #expect(throws: ProgramFault.cancelled) { try await asking.value }
    #expect(try await fixture.heard("cancelled True"))
  }

  /// A program without fields: it sends a prompt and waits.
  private static let push = #"""
    def introduce(params):
        return {"protocol": 1, "shape": "full", "identifier": "email", "outcomes": [{"reason": "declined", "sentence": "You declined."}],
                "policy": "return policy \"%s\" {}" % params["name"]}
    def answer(method, params):
        if method == "begin": return {"wait": {"poll": 2000, "state": "prompt 7", "show": [{"kind": "text", "text": "47"}]}}
        return {"wait": {"poll": POLL}} if params.get("state") == "prompt 7" else {"proved": {}}
    """#

  @Test func programMayWait() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full("POLL = 60000\n" + Self.push)
    #expect(provider.descriptor.submitFields == [])
    guard case .wait(let poll, let state, let shown) = try await provider.begin(.some(), .words([:])) else {
      Issue.record("it does not wait")
      return
    }
    #expect(poll == .seconds(2) && String(decoding: state, as: UTF8.self) == "prompt 7" && shown == [.text("47")])
    guard case .wait(.seconds(60), [], []) = try await provider.submit(.some(state: state), .words([:])) else {
      Issue.record("it does not wait once more")
      return
    }
    #expect(try await provider.submit(.some(), .words([:])).isProof)
  }

  @Test(arguments: [999, 60_001, -1]) func pollOutOfBoundsIsAFault(_ poll: Int) async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full("POLL = \(poll)\n" + Self.push)
    await #expect(
      throws: ProgramFault.broken("its `poll` is \(poll) milliseconds; it must be from 1000 to 60000")
    ) {
      try await provider.submit(.some(state: Array("prompt 7".utf8)), .words([:]))
    }
  }

  /// The answer to a later round without fields, for example "I have kept my codes", reaches a program whose declared
  /// fields are required.
  @Test func roundWithoutFieldsAcceptsAnEmptyAnswer() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full("")
    let word = InputField(name: "word", kind: .text)
    #expect(throws: InputProblem(field: "word", reason: .invalidInput, detail: "word is missing.")) {
      try provider.check(.some(asked: [word]), .words([:]))
    }
    try provider.check(.some(state: [1], asked: []), .words([:]))
    try provider.check(.some(asked: []), .words(["email": "ann@example.com"]))
  }

  @Test func aProgramUpgradesItsOlderRecords() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      old = introduce
      def introduce(params): return {**old(params), "record_version": 3}

      def answer(method, params):
          if method == "upgrade":
              if params["record"] == "broken": raise SystemExit(1)
              return {"record": "%s, once %d" % (params["record"], params["version"])} if params["record"] != "huge" else {"record": "x" * 20000}
          return {"proved": {}}
      """#)
    #expect(provider.descriptor.recordVersion == 3)
    #expect(try await provider.upgrade(Array("word".utf8), from: 1) == Array("word, once 1".utf8))
    await #expect(throws: ProgramFault.self) { try await provider.upgrade(Array("huge".utf8), from: 1) }
    await #expect(throws: ProgramFault.self) { try await provider.upgrade([0xff], from: 1) }
    await #expect(throws: ProgramFault.self) { try await provider.upgrade(Array("broken".utf8), from: 2) }
  }

  @Test func recordVersionsCountFromOne() throws {
    let fixture = try ProgramFixture()
    let wrong = try fixture.write(
      "old = introduce\ndef introduce(params): return {**old(params), \"record_version\": 0}")
    #expect {
      try fixture.start(wrong)
    } throws: { error in "\(error)".contains("the version of its records is 0: count from 1") }
  }

  @Test func aProgramIsMaintained() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      old = introduce
      def introduce(params): return {**old(params), "maintain": 3600}

      def take(message):
          if message["method"] == "maintain":
              say({"jsonrpc": "2.0", "id": "p1", "method": "store.set", "params": {"key": "a", "value": str(message["params"]["now"]), "expires_in": 60}})
              sys.stdin.readline()
          say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
      """#)
    #expect(provider.descriptor.maintenanceInterval == .seconds(3600))
    let store = MemoryKeyValueStore(clock: StepClock { 42 })
    try await provider.maintain(
      with: StepTools(randomBytes: { _ in [] }, web: NoWeb(), clock: StepClock { 42 }, store: store))
    #expect(try await store.value(for: "a") == Array("42".utf8))
  }

  /// A hanging maintenance has its own time limit and does not delay other calls.
  @Test func aMaintenanceThatHangsIsCancelledAndHoldsUpNoCall() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      #"""
      import threading
      old = introduce
      def introduce(params): return {**old(params), "maintain": 60}

      def take(message):
          if message["method"] == "maintain": return sys.stderr.write("begun\n") and sys.stderr.flush()
          if message["params"]["fields"].get("word") == "slow": return
          say({"jsonrpc": "2.0", "id": message["id"], "result": {"proved": {}}})
      """#, timeout: .milliseconds(300))
    let tools = StepTools(randomBytes: { _ in [] }, web: NoWeb())
    let maintenance = Task { try await provider.maintain(with: tools) }
    #expect(try await fixture.heard("begun"))
    await #expect(throws: ProgramFault.late(.milliseconds(300))) { try await provider.judge("slow") }
    #expect(try await provider.judge("x").isProof)
    maintenance.cancel()
    await #expect(throws: ProgramFault.cancelled) { try await maintenance.value }
  }
}
