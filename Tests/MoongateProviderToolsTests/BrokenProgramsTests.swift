import Foundation
import MoongateConformance
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProviderTools

/// The suite can fail for programs as for providers in Swift: each of these breaks one thing, and the suite reports the
/// right rule.
@Suite struct BrokenProgramsTests {
  struct Broken: Sendable, CustomTestStringConvertible {
    let what: String
    let rules: Set<ConformanceRule>
    let program: String
    let subject: String
    /// Whether other rules may also be broken, depending on thread scheduling.
    var breaksMore = false
    var testDescription: String { "\(rules.map(\.rawValue).sorted().joined(separator: ", ")): \(what)" }
  }

  /// Runs the suite against a test's program.
  static func report(_ program: String, _ subject: String) async throws -> ConformanceReport {
    let scratch = try ScratchFolder()
    try scratch.write(program, to: "toy.py")
    try scratch.write(subject, to: "subject.json")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: scratch.path("toy.py"))
    let file = try ConformanceSubjectFile(path: scratch.path("subject.json"))
    let tried = try TriedProgram(scratch.path("toy.py"), file)
    defer { tried.end() }
    var told = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&told)
    return await Conformance.run(tried.provider, told)
  }

  @Test(arguments: codes + words + ticks + answers + secrets + examples) func failsOnTheRightRule(_ broken: Broken)
    async throws
  {
    let report = try await Self.report(broken.program, broken.subject)
    let found = Set(report.findings.map(\.rule))
    #expect(
      broken.breaksMore ? found.isSuperset(of: broken.rules) : found == broken.rules,
      "\(report.findings.map(\.description).joined(separator: "\n"))")
    for finding in report.findings {
      #expect(finding.seen.hasSuffix(".") || finding.seen.contains(":"))
      // The author knows the messages, not the Swift API.
      let said = "\(finding.seen) \(finding.advice)"
      #expect(
        !said.contains(/isFailure|InputProblem|replaceOnce|beginFields|`\.[a-z]|tools\.[a-z]|step\.[a-z]/), "\(said)")
    }
  }

  /// All rules that can be observed from outside.
  @Test func everyRuleThatAppliesIsBrokenByOneOfThem() {
    let ours: Set<ConformanceRule> = [.spelling, .malformed, .unknown]
    // The gateway itself is responsible for these three: it reads identifiers and knows their accounts.
    #expect(
      (Self.codes + Self.words + Self.ticks + Self.answers + Self.secrets + Self.examples).reduce(into: ours) {
        $0.formUnion($1.rules)
      }
        == Set(ConformanceRule.allCases))
  }

  struct Whole: Sendable, CustomTestStringConvertible {
    let what: String
    let program: String
    let subject: String
    /// The rules that it holds, in order.
    let held: String
    var testDescription: String { what }
  }

  private static let whole: [Whole] = [
    Whole(
      what: "codes by a site", program: code(), subject: site,
      held: "descriptor spelling facts malformed delivery begin_twice faults secrets cancellation cleanup"),
    Whole(
      what: "codes by a file",
      program: code(delivers: "    with open(settings['url'], 'a') as file: file.write(json.dumps(params) + '\\n')"),
      subject: #"{"sends_by": {"file": "url"}}"#,
      held: "descriptor spelling facts malformed delivery begin_twice faults secrets cleanup"),
    Whole(
      what: "codes by a way that is not seen", program: code(delivers: "    pass"), subject: "{}",
      held: "descriptor spelling facts malformed secrets cleanup"),
    Whole(
      what: "a word", program: word(), subject: phrase,
      held:
        "descriptor spelling facts malformed proof rounds asked_fields begin_twice concurrency refusals counted whole_answer outcomes faults secrets unknown timing cancellation cleanup"
    ),
    Whole(
      what: "an answer that lasts", program: tick(), subject: lasting,
      held:
        "descriptor malformed proof rounds asked_fields begin_twice expiry concurrency refusals counted whole_answer outcomes secrets cleanup"
    ),
    Whole(
      what: "a secret that is set", program: setting(), subject: chosen,
      held:
        "descriptor malformed proof rounds asked_fields begin_twice concurrency refusals counted whole_answer once hashing outcomes secrets cleanup"
    ),
    Whole(
      what: "a secret with records of an older version", program: setting(upgrades: "'old:' + params['record']"),
      subject: chosenBefore,
      held:
        "descriptor malformed proof rounds asked_fields begin_twice concurrency refusals counted whole_answer once hashing upgrade outcomes secrets cleanup"
    ),
    Whole(
      what: "recovery codes", program: recovery(), subject: ofRecovery,
      held:
        "descriptor malformed proof rounds asked_fields begin_twice concurrency refusals counted whole_answer once hashing outcomes secrets cleanup"
    ),
    Whole(
      what: "an authenticator app", program: authenticator(), subject: ofAuthenticator,
      held:
        "descriptor malformed proof rounds asked_fields begin_twice expiry concurrency refusals counted whole_answer once hashing outcomes secrets cleanup"
    ),
  ]

  @Test(arguments: whole) func thoseThatAreNotBrokenPass(_ whole: Whole) async throws {
    let report = try await Self.report(whole.program, whole.subject)
    #expect(report.findings == [])
    #expect(report.lines.filter { $0.verdict == .held }.map(\.rule.rawValue).joined(separator: " ") == whole.held)
  }

  /// Unobservable messages are reported, with how to make them observable.
  @Test func unobservableRulesAreNotReportedAsHeld() async throws {
    let report = try await Self.report(Self.code(delivers: "    pass"), "{}")
    for rule in [ConformanceRule.delivery, .beginTwice, .faults, .cancellation] {
      guard case .doesNotApply(let why)? = report.lines.first(where: { $0.rule == rule })?.verdict else {
        Issue.record("\(rule) is judged")
        continue
      }
      #expect(why.contains("sends_by"))
    }
  }

  /// The run leaves nothing in the working folder.
  @Test func runUsesATemporaryFolder() async throws {
    let scratch = try ScratchFolder()
    let seen = scratch.path("seen.txt")
    let program = Self.code(delivers: "    open('codes.txt', 'a').write('x'); open('\(seen)', 'w').write(os.getcwd())")
    _ = try await Self.report(program, "{}")
    let folder = try String(contentsOfFile: seen, encoding: .utf8)
    #expect(folder.contains("moongate-try-") && !FileManager.default.fileExists(atPath: folder))
    #expect(!FileManager.default.fileExists(atPath: FileManager.default.currentDirectoryPath + "/codes.txt"))
  }

  @Test func theSubjectBesideAProgramIsTaken() throws {
    let scratch = try ScratchFolder()
    try scratch.write("{}", to: "subject.json")
    #expect(ProviderTest.subject(beside: scratch.path("toy.py")) == scratch.path("subject.json"))
    #expect(
      ProviderTest.subject(beside: scratch.path("none/toy.py")) == nil && ProviderTest.subject(beside: "totp") == nil)
  }

  // MARK: the programs

  static let policy = """
    return policy "toy" { limits = { send = { on = "send", per = "email", max = 4, window = "15m" }, \
    verify = { on = "verify", per = "email", max = 5, window = "24h", lock = { "15m" } } }, unknown_account = "conceal" }
    """

  static let head = #"""
    #!/usr/bin/env python3
    import hashlib, json, os, sys, threading, time, urllib.request
    POLICY = '\#(policy)'
    settings = {}

    def say(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def tell(what): print(what, file=sys.stderr, flush=True)

    def post(what):
        request = urllib.request.Request(settings["url"], method="POST", data=json.dumps(what).encode())
        urllib.request.urlopen(request, timeout=20).read()

    def configure(params):
        settings.update(params["settings"])
        return {}

    def shutdown(): sys.exit(0)

    """#

  static let tail = #"""

    def answer(message):
        try:
            said = {"result": METHODS[message["method"]](message["params"])}
        except Exception as error:
            said = {"error": {"code": 1, "message": FAULT(error)}}
        say({"jsonrpc": "2.0", "id": message["id"], **said})

    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "shutdown": shutdown()
        elif "id" in message and "method" in message: answer(message)

    """#

  static let site = #"{"sends_by": {"site": "url"}}"#

  /// A program that sends codes through a site; tests replace parts of it.
  static func code(
    declares: String = "", delivers: String = "    post({'to': params['to']['value'], 'text': params['text']})",
    more: String = ""
  ) -> String {
    head + """
      def hello(params):
          said = {"protocol": 1, "shape": "code", "identifier": "email", "policy": POLICY,
                  "settings": [{"name": "url", "kind": "text", "required": True, "help": "where"}, {"name": "token", "kind": "secret", "help": "by what"}]}
          \(declares)
          return said

      def deliver(params):
      \(delivers)
          return {}

      METHODS = {"hello": hello, "configure": configure, "deliver": deliver}
      FAULT = lambda error: type(error).__name__
      \(more)
      """ + tail
  }

  static func code(
    _ what: String, _ rules: Set<ConformanceRule>, declares: String = "", delivers: String? = nil, more: String = ""
  ) -> Broken {
    let program =
      delivers.map { code(declares: declares, delivers: "    " + $0, more: more) }
      ?? code(declares: declares, more: more)
    return Broken(what: what, rules: rules, program: program, subject: site)
  }

  private static let send = "post({'to': params['to']['value'], 'text': params['text']})"

  private static let codes: [Broken] = [
    code(
      "no limit per person", [.descriptor],
      declares: #"said["policy"] = said["policy"].replace('per = "email"', 'per = "ip"')"#),
    code("writes the code to standard error", [.secrets], delivers: "tell('sending ' + params['code']); \(send)"),
    code(
      "writes the code after its answer", [.secrets],
      delivers: "threading.Timer(0.05, tell, ['sent ' + params['code']]).start(); \(send)"),
    code(
      "writes whom it is for to standard error", [.secrets], delivers: "tell('to ' + params['to']['value']); \(send)"),
    code("writes its secret setting to standard error", [.secrets], delivers: "tell(settings['token']); \(send)"),
    code(
      "writes its secret setting in hexadecimal", [.secrets],
      delivers: "tell(settings['token'].encode().hex()); \(send)"),
    code(
      "logs the code", [.secrets],
      delivers:
        "say({'jsonrpc': '2.0', 'method': 'log', 'params': {'message': 'sent', 'values': {'c': params['code']}}}); \(send)"
    ),
    code(
      "tells the code in its fault", [.secrets],
      more:
        "FAULT = lambda error: 'could not send ' + now['text']\ndef deliver(params):\n    now.update(params)\n    \(send)\n    return {}\nnow = {}\nMETHODS['deliver'] = deliver"
    ),
    code("writes a secret as it ends", [.secrets], more: "def shutdown(): tell(settings['token']); sys.exit(0)"),
    code("sends it twice", [.delivery], delivers: "\(send); \(send)"),
    code("sends nothing", [.delivery, .faults], delivers: "pass"),
    code(
      "sends it to another recipient", [.delivery],
      delivers: "post({'to': 'copy@vendor.example', 'text': params['text']})"),
    code(
      "sends the second code only on Sundays", [.beginTwice],
      delivers: "settings['n'] = settings.get('n', 0) + 1\n    if settings['n'] != 2: \(send)"
    ),
    code("swallows what fails", [.faults], delivers: "try: \(send)\n    except Exception: pass"),
    Broken(
      what: "sends it later", rules: [.delivery, .faults],
      program: code(
        delivers: "    threading.Timer(0.3, post, [{'to': params['to']['value'], 'text': params['text']}]).start()"),
      subject: site,
      breaksMore: true),
    code(
      "stops working after a cancelled call", [.cancellation],
      delivers:
        "if settings.get('stuck'): raise Exception()\n    try: \(send)\n    except urllib.error.HTTPError: raise\n    except Exception: settings['stuck'] = True"
    ),
    code("prints to standard output", [.cleanup], delivers: "print('sent a message', flush=True); \(send)"),
    code(
      "sends a request without an answer", [.cleanup],
      delivers: "say({'jsonrpc': '2.0', 'id': 'a', 'method': 'give_session', 'params': {}}); \(send)"),
    code(
      "answers twice", [.cleanup],
      more:
        "old = say\ndef say(message):\n    old(message)\n    if message.get('id', 0) and 'result' in message and message['result'] == {}: old(message)"
    ),
    code(
      "does not end", [.cleanup],
      more: "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef shutdown(): time.sleep(60)"),
  ]

  static let phrase = #"""
    {"sends_by": {"site": "url"}, "right": {"word": "a quiet pigeon"}, "wrong": {"word": "a quiet penguin"}}
    """#

  /// A program that asks a site whether a word is right.
  static func word(declares: String = "", begins: String = "pass", submits: String = "pass", proves: String = "{}")
    -> String
  {
    head + """
      def hello(params):
          said = {"protocol": 1, "shape": "full", "identifier": "email", "policy": POLICY, "submit": [{"name": "word", "kind": "password"}],
                  "outcomes": [{"reason": "wrong_word", "sentence": "This is not the word."}],
                  "facts": [{"name": "floor", "kind": "number", "help": "where they sit"}],
                  "settings": [{"name": "url", "kind": "text", "required": True, "help": "where"}, {"name": "token", "kind": "secret", "help": "by what"}]}
          \(declares)
          return said

      def begin(params):
          \(begins)
          return {"ask": {"fields": [{"name": "word", "kind": "password"}]}}

      def submit(params):
          word = params["fields"]["word"]
          \(submits)
          post({"of": "word", "hash": hashlib.sha256(word.encode()).hexdigest()})
          if word != "a quiet pigeon": return {"refused": "wrong_word"}
          return {"proved": \(proves)}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }

  static func word(
    _ what: String, _ rules: Set<ConformanceRule>, declares: String = "", begins: String = "pass",
    submits: String = "pass", proves: String = "{}",
    subject: String = phrase
  ) -> Broken {
    Broken(
      what: what, rules: rules, program: word(declares: declares, begins: begins, submits: submits, proves: proves),
      subject: subject)
  }

  private static let words: [Broken] = [
    word("proves in begin", [.proof], begins: "return {'proved': {}}"),
    word("proves nobody", [.proof], submits: "return {'refused': 'wrong_word'}"),
    word("proves anybody", [.refusals], submits: "return {'proved': {}}"),
    word("fails where it should refuse", [.refusals], submits: "if word != 'a quiet pigeon': raise Exception()"),
    word(
      "counts by itself", [.refusals],
      submits:
        "n = settings['n'] = settings.get('n', 0) + (word != 'a quiet pigeon')\n    if n > 3 and word == 'a quiet pigeon': settings['n'] = 0; return {'refused': 'wrong_word'}"
    ),
    word(
      "refuses for a reason of its own", [.outcomes],
      submits: "if word != 'a quiet pigeon': return {'refused': 'made_up'}"),
    word(
      "takes a site that fails for a wrong word", [.faults],
      submits: "try: post({})\n    except Exception: return {'refused': 'wrong_word'}"),
    word(
      "takes a site that fails for a right word", [.faults],
      submits: "try: post({})\n    except Exception: return {'proved': {}}"),
    word("keeps the word", [.secrets], proves: "{'record': {'replace': word}}"),
    word(
      "quotes the word to the person", [.secrets],
      submits:
        "if word == 'a quiet penguin': return {'malformed': {'field': 'word', 'detail': word + ' is too easy.'}}",
      subject: phrase.replacing(
        "\"wrong\": {\"word\": \"a quiet penguin\"}",
        with: "\"wrong\": {\"word\": \"another word\"}, \"malformed_submits\": [{\"word\": \"a quiet penguin\"}]")),
    word("writes the word to standard error", [.secrets], submits: "tell(word)"),
    word(
      "shows its token", [.secrets],
      begins:
        "return {'ask': {'fields': [{'name': 'word', 'kind': 'password'}], 'show': [{'kind': 'qr', 'text': 'x?' + settings['token']}]}}"
    ),
    word(
      "tells a number that is none", [.facts],
      proves: "{'identifiers': [{**params['identifier'], 'attributes': {'floor': 'third'}}]}"),
    word(
      "one step for all", [.beginTwice],
      begins:
        "settings['last'] = os.urandom(4).hex(); return {'ask': {'fields': [{'name': 'word', 'kind': 'password'}], 'state': settings['last']}}",
      submits: "if params['state'] != settings['last']: return {'refused': 'wrong_word'}"),
    word(
      "another provider's policy", [.descriptor],
      declares: "said['policy'] = said['policy'].replace('policy \"toy\"', 'policy \"toys\"')"),
  ]

  private static let lasting = #"""
    {"right": {"word": "a quiet pigeon"}, "wrong": {"word": "a quiet penguin"}, "lifetime": "30s", "one_time": true, "record": "0"}
    """#

  /// A program with one-time answers that are valid for half a minute.
  private static func tick(
    life: String = "30000", record: String = "{'replace': str(begun), 'once': True}", looks: String = "True"
  ) -> String {
    head + """
      def hello(params):
          return {"protocol": 1, "shape": "full", "policy": POLICY.replace("email", "account"), "submit": [{"name": "word", "kind": "password"}],
                  "outcomes": [{"reason": "wrong_word", "sentence": "This is not the word."},
                               {"reason": "already_set", "sentence": "There is one.", "counts": False}]}

      def begin(params): return {"ask": {"fields": [{"name": "word", "kind": "password"}], "state": str(params["now"])}}

      def submit(params):
          begun, used = int(params["state"]), int((params.get("account") or {}).get("record") or 0)
          if params["purpose"] == "set" and used: return {"refused": "already_set"}
          if params["fields"]["word"] != "a quiet pigeon" or params["now"] >= begun + \(life) or \(looks) and begun <= used: return {"refused": "wrong_word"}
          return {"proved": {"record": \(record)}}

      METHODS = {"hello": hello, "configure": configure, "begin": begin, "submit": submit}
      FAULT = lambda error: type(error).__name__

      """ + tail
  }

  private static let ticks: [Broken] = [
    Broken(what: "a moment too long", rules: [.expiry], program: tick(life: "30001"), subject: lasting),
    Broken(what: "a moment too short", rules: [.expiry], program: tick(life: "29999"), subject: lasting),
    Broken(what: "for ever", rules: [.expiry], program: tick(life: "10**12"), subject: lasting),
    Broken(
      what: "once, but twice at once", rules: [.concurrency], program: tick(record: "{'replace': str(begun)}"),
      subject: lasting),
    Broken(what: "again and again", rules: [.concurrency], program: tick(looks: "False"), subject: lasting),
    Broken(
      what: "leaves the record when it is disabled", rules: [.cleanup],
      program: tick(record: "{'replace': str(begun), 'once': True}"),
      subject: lasting.replacing("\"record\": \"0\"", with: "\"sets_up\": true")),
  ]
}
