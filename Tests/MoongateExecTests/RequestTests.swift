import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateExec

/// Requests of programs to the gateway during a call.
@Suite struct RequestTests {
  /// A program with `ask(method, params)`, which sends a request and returns the complete answer.
  private static let asking = #"""
    def introduce(params):
        return {"protocol": 1, "shape": "full", "identifier": "email", "submit": [{"name": "word", "kind": "text"}],
                "outcomes": [{"reason": "invalid_word", "sentence": "That is not the word."}],
                "policy": "return policy \"%s\" {}" % params["name"]}

    count = 0

    def ask(method, params, id=None):
        global count
        count += 1
        say({"jsonrpc": "2.0", "id": id or "p%d" % count, "method": method, "params": params})
        return json.loads(sys.stdin.readline())

    def told(text):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    """#

  /// A hasher whose output shows its input.
  private struct OpenHasher: SecretHasher {
    func hash(_ secret: [UInt8]) async throws -> String { "hash of \(secret.count)" }
    func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
      guard let hash else { return .wrong }
      return hash == "old"
        ? .right(rehashed: "new") : hash == "hash of \(secret.count)" ? .right(rehashed: nil) : .wrong
    }
  }

  private struct BusyHasher: SecretHasher {
    struct Busy: Error {}
    func hash(_ secret: [UInt8]) async throws -> String { throw Busy() }
    func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict { throw Busy() }
  }

  private static func step(_ store: any KeyValueStore, hasher: (any SecretHasher)? = OpenHasher()) -> StepContext {
    var step = StepContext.some()
    step.tools = StepTools(
      randomBytes: { [UInt8](repeating: 7, count: $0) }, hasher: hasher, web: NoWeb(), store: store)
    return step
  }

  private static func store() -> MemoryKeyValueStore { MemoryKeyValueStore(clock: StepClock { 1_000 }) }

  @Test func aProgramUsesItsStore() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            steps = [
                (ask("store.get", {"key": "a"})["result"], {"value": None}),
                (ask("store.set", {"key": "a", "value": "é", "expires_in": 60})["result"], {"stored": True}),
                (ask("store.set", {"key": "a", "value": "x", "expires_in": 60, "once": True})["result"], {"stored": False}),
                (ask("store.get", {"key": "a"}, id=17)["result"], {"value": "é"}),
                (ask("store.take", {"key": "a"})["result"], {"value": "é"}),
                (ask("store.take", {"key": "a"})["result"], {"value": None}),
                (ask("store.remove", {"key": "b"})["result"], {}),
                (ask("compare", {"a": "same", "b": "same"})["result"], {"match": True}),
                (ask("compare", {"a": "same", "b": "samx"})["result"], {"match": False}),
            ]
            wrong = [str(step) for step in steps if step[0] != step[1]]
            if wrong: told("WRONG " + " ".join(wrong))
            return {"refused": "invalid_word"} if wrong else {"proved": {}}
        """#)
    let store = Self.store()
    try await store.set([1], for: "b", expiresIn: .seconds(60))
    #expect(try await provider.judge("x", Self.step(store)).isProof, "\(fixture.log.lines)")
    #expect(try await store.value(for: "b") == nil)
  }

  @Test func aProgramHashesAndVerifies() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            steps = [
                (ask("hash", {"secret": "four"})["result"], {"hash": "hash of 4"}),
                (ask("verify", {"secret": "four", "hash": "hash of 4"})["result"], {"match": True}),
                (ask("verify", {"secret": "four", "hash": "old"})["result"], {"match": True, "upgrade": "new"}),
                (ask("verify", {"secret": "four", "hash": "hash of 5"})["result"], {"match": False}),
                (ask("verify", {"secret": "four", "hash": None})["result"], {"match": False}),
            ]
            wrong = [str(step) for step in steps if step[0] != step[1]]
            if wrong: told("WRONG " + " ".join(wrong))
            return {"refused": "invalid_word"} if wrong else {"proved": {}}
        """#)
    #expect(try await provider.judge("x", Self.step(Self.store())).isProof, "\(fixture.log.lines)")
  }

  @Test func refusalsSayWhatToDo() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            def error(method, params):
                reply = ask(method, params)
                return "%d %s" % (reply["error"]["code"], reply["error"]["message"]) if "error" in reply else "no error"
            for line in [
                error("store.list", {}), error("store.get", {}), error("store.get", {"key": ""}), error("store.get", {"key": "k" * 257}),
                error("store.set", {"key": "a", "value": "v" * 16385, "expires_in": 60}), error("store.set", {"key": "a", "value": "v"}),
                error("store.set", {"key": "a", "value": "v", "expires_in": 0}), error("store.set", {"key": "a", "value": "v", "expires_in": 1e300}),
                error("store.get", {"key": 7}), error("store.get", {"key": "a", "call": 999}), error("hash", {"secret": "x" * 5000}),
                error("hash", {"secret": "four"}), error("compare", {"a": "x"}), error("store.get", {"key": "bytes"})]:
                told(line)
            return {"proved": {}}
        """#)
    let store = Self.store()
    try await store.set([0xff], for: "bytes", expiresIn: .seconds(60))
    #expect(try await provider.judge("y", Self.step(store, hasher: BusyHasher())).isProof)
    for text in [
      "-32601 there is no method `store.list`: store.get, store.set, store.take, store.remove, hash, verify, compare",
      "-32602 `params.key` is missing", "-32602 a key must have 1 to 256 bytes, this one has 0", "this one has 257",
      "-32602 a value may have 16384 bytes, this one has 16385",
      "-32602 `params.expires_in` is missing: the lifetime of the entry in seconds",
      "-32602 an entry must expire in 1 second to 30 days", "-32602 `params.key` is not a String",
      "-32001 call 999 is not open: the gateway grants services only during a call",
      "-32602 `params.secret` is longer than 4096 bytes",
      "-32000 the secret could not be hashed", "-32602 `params.b` is missing", "-32000 the value is not a string",
    ] { #expect(try await fixture.heard(text), "\(text)\n\(fixture.log.lines)") }
  }

  /// Attack: hashing work for which no attempt was charged.
  @Test func hashingIsRefusedOutsideSubmit() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            told(json.dumps(ask("hash", {"secret": "x"})))
            return {"ask": {"fields": [{"name": "word", "kind": "text"}]}}
        """#)
    _ = try await provider.begin(Self.step(Self.store(), hasher: nil), .words([:]))
    #expect(try await fixture.heard("secrets can be hashed and verified only during `submit`"))
  }

  /// Attack: a program uses the gateway's tools outside of calls.
  @Test func requestsBetweenCallsAreRefused() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def take(message):
            say({"jsonrpc": "2.0", "id": message["id"], "result": {"proved": {}}})
            told(json.dumps(ask("store.set", {"key": "a", "value": "late", "expires_in": 60})))
        """#)
    let store = Self.store()
    #expect(try await provider.judge("x", Self.step(store)).isProof)
    #expect(try await fixture.heard("no call of the gateway is open"))
    #expect(try await store.value(for: "a") == nil)
  }

  /// Attack: a request that looks like the answer to another call, by its id or because it is both.
  @Test func requestIsNotAResponse() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def take(message):
            id = message["id"]
            # A request with the number of the gateway's own call: answered as a request, and the call still waits.
            say({"jsonrpc": "2.0", "id": id, "method": "store.get", "params": {"key": "a"}})
            reply = json.loads(sys.stdin.readline())
            told("reply " + json.dumps(reply, sort_keys=True))
            say({"jsonrpc": "2.0", "id": id, "method": "store.get", "params": {"key": "a"}, "result": {"proved": {}}})
            say({"jsonrpc": "2.0", "id": id, "result": {"refused": "invalid_word"}})
        """#)
    #expect(!(try await provider.judge("x", Self.step(Self.store())).isProof))
    #expect(try await fixture.heard("both a request and an answer"))
    #expect(
      fixture.log.lines.contains {
        $0.contains(#""result\": {\"value\": null}"#) || $0.contains(#""result": {"value": null}"#)
      })
  }

  /// Attack: a program sends endless requests.
  @Test func aFloodOfRequestsEndsTheProgram() async throws {
    let fixture = try ProgramFixture { limits in limits.requestRate = ProgramLimits.Rate(burst: 50, perSecond: 1) }
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            for number in range(60): ask("store.get", {"key": "a"})
            return {"proved": {}}
        """#)
    await #expect(throws: ProgramFault.self) { try await provider.judge("x", Self.step(Self.store())) }
    #expect(try await fixture.heard("floods the gateway with requests"))
  }

  /// Attack: a value of ten megabytes.
  @Test func aValueOfTenMegabytesEndsTheProgram() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            ask("store.set", {"key": "a", "value": "v" * 10_000_000, "expires_in": 60})
            return {"proved": {}}
        """#)
    await #expect(throws: ProgramFault.self) { try await provider.judge("x", Self.step(Self.store())) }
    #expect(try await fixture.heard("wrote a line longer than 131072 bytes"))
  }

  @Test func requestsBeyondThoseUnderWayAreRefusedAtOnce() async throws {
    let fixture = try ProgramFixture { $0.requests = 2 }
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            for number in range(3): say({"jsonrpc": "2.0", "id": number, "method": "store.get", "params": {"key": "a"}})
            told(sys.stdin.readline())
            return {"proved": {}}
        """#)
    // The first two never end, and the third is answered before them.
    #expect(try await provider.judge("x", Self.step(StuckStore())).isProof)
    #expect(try await fixture.heard("2 requests are already in progress"))
  }

  /// Attack: a program uses the gateway's tools before it has said what it is.
  @Test func requestsDuringTheHandshakeAreRefused() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        old, late = introduce, configure
        def introduce(params):
            told("hello: %s" % ask("store.get", {"key": "a"})["error"]["message"])
            return old(params)
        def configure(params):
            told("configure: %s" % ask("hash", {"secret": "x"})["error"]["message"])
            return late(params)
        """#)
    #expect(try await provider.judge("open", Self.step(Self.store())).isProof)
    for place in ["hello", "configure"] {
      #expect(try await fixture.heard("\(place): no call of the gateway is open"))
    }
  }

  /// A value of control characters is six times as long in JSON. The program gets an error instead of waiting.
  @Test func anAnswerThatIsTooLongIsRefused() async throws {
    let fixture = try ProgramFixture { $0.line = 65_536 }
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            told("refused with %s" % ask("store.get", {"key": "a"})["error"])
            return {"proved": {}}
        """#)
    let store = Self.store()
    try await store.set([UInt8](repeating: 1, count: 16_384), for: "a", expiresIn: .seconds(60))
    #expect(try await provider.judge("x", Self.step(store)).isProof)
    #expect(try await fixture.heard("the answer is longer than 65536 bytes"))
  }

  @Test func storedValuesAreRedactedInTheProgramsLog() async throws {
    let fixture = try ProgramFixture()
    let provider = try fixture.full(
      Self.asking + #"""
        def answer(method, params):
            ask("store.set", {"key": "a", "value": "handle-of-an-approval", "expires_in": 60})
            told("I keep handle-of-an-approval here")
            return {"proved": {}}
        """#)
    #expect(try await provider.judge("x", Self.step(Self.store())).isProof)
    #expect(try await fixture.heard("I keep [redacted] here"))
  }
}

/// A store that answers only after the call has ended.
private struct StuckStore: KeyValueStore {
  func value(for key: String) async throws(KeyValueFault) -> [UInt8]? {
    await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    return nil
  }
  func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) {}
  func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) -> Bool {
    false
  }
  func take(_ key: String) async throws(KeyValueFault) -> [UInt8]? { nil }
  func remove(_ key: String) async throws(KeyValueFault) {}
}
