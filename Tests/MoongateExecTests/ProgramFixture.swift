import Foundation
import MoongateExec
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateExec

/// A folder with a test's program and everything needed to run it.
final class ProgramFixture {
  let folder: ScratchFolder
  let log = CapturedLog()
  let programs: Programs
  var limits: ProgramLimits

  /// - Parameter limits: short limits, so that tests of timeouts are fast.
  init(limits change: (inout ProgramLimits) -> Void = { _ in }) throws {
    folder = try ScratchFolder()
    var limits = ProgramLimits()
    limits.handshake = .seconds(10)
    limits.farewell = .milliseconds(300)
    limits.firstDelay = .milliseconds(20)
    change(&limits)
    self.limits = limits
    programs = Programs(limits: limits, readers: [.email: MailReader()], logger: log.logger, jitter: { 0.5 })
  }

  deinit { programs.end() }

  /// The frame of all test programs. It handles the handshake and answers each call with `answer(method, params)`, a
  /// dictionary. The body can redefine its functions.
  static let frame = #"""
    #!/usr/bin/env python3
    import json, os, signal, sys, time

    def say(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def introduce(params):
        return {"protocol": 1, "shape": "full", "identifier": "email", "submit": [{"name": "word", "kind": "text"}],
                "outcomes": [{"reason": "invalid_word", "sentence": "That is not the word."}],
                "policy": "return policy \"%s\" {}" % params["name"]}

    def configure(params):
        return {}

    def answer(method, params):
        if method == "begin":
            return {"ask": {"fields": [{"name": "word", "kind": "text"}], "state": "begun"}}
        if method == "submit":
            return {"proved": {}} if params["fields"].get("word") == "open" else {"refused": "invalid_word"}
        return {}

    def take(message):
        say({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params"))})

    def run():
        for line in sys.stdin:
            message = json.loads(line)
            if message["method"] == "hello":
                say({"jsonrpc": "2.0", "id": message["id"], "result": introduce(message["params"])})
            elif message["method"] == "configure":
                say({"jsonrpc": "2.0", "id": message["id"], "result": configure(message["params"])})
            elif message["method"] == "shutdown":
                return
            elif "id" in message:
                take(message)

    """#

  /// Writes a program.
  /// - Parameter body: Python code that follows the frame.
  func write(_ body: String, as name: String = "program.py") throws -> ProgramSpecification {
    try script(Self.frame + body + "\nrun()\n", as: name)
  }

  /// Writes any script.
  func script(_ text: String, as name: String = "program.py", digest: String = UUID().uuidString, mode: Int = 0o755)
    throws -> ProgramSpecification
  {
    try folder.write(text, to: name)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.path(name))
    return ProgramSpecification(
      name: "word", path: folder.path(name),
      environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"],
      folder: folder.path, timeout: .seconds(5), digest: digest)
  }

  /// Starts the program and sends its settings.
  func start(
    _ specification: ProgramSpecification, values: [String: SettingValue] = [:], secrets: [String: String] = [:]
  ) throws -> any Provider {
    let introduced = try #require(programs.introduce([specification]).first).get()
    return try programs.configure(introduced, values: values, secrets: secrets)
  }

  /// A full provider with this body.
  func full(_ body: String, timeout: Duration = .seconds(5)) throws -> any FullProvider {
    try #require(try start(try write(body).taking(timeout)) as? any FullProvider)
  }

  /// Waits until the log contains a line with this text.
  func heard(_ text: String, within time: Duration = .seconds(10)) async throws -> Bool {
    try await holds(within: time) { log.lines.contains { $0.contains(text) } }
  }
}

/// Whether the condition holds within the time.
func holds(within time: Duration, _ condition: () -> Bool) async throws -> Bool {
  let end = ContinuousClock.now + time
  while !condition() {
    guard ContinuousClock.now < end else { return false }
    try await Task.sleep(for: .milliseconds(2))
  }
  return true
}

extension ProgramSpecification {
  func taking(_ timeout: Duration) -> ProgramSpecification {
    ProgramSpecification(
      name: name, path: path, arguments: arguments, environment: environment, folder: folder, timeout: timeout,
      digest: digest)
  }
}

/// The gateway's parser for email addresses.
struct MailReader: CodeProvider {
  let descriptor = ProviderDescriptor(
    name: "mail_reader", beginFields: [InputField(name: "email", kind: .email)], submitFields: [], settings: [],
    policy: PolicySource(file: "", text: ""), identifierKinds: [.email], facts: [.emailDomain])

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {}
}

struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "none here") }
}

extension StepContext {
  /// A step as described by the core.
  static func some(
    account: StepAccount? = nil, identifier: Identifier? = EmailAddress("ann@example.com").map(Identifier.init),
    state: [UInt8] = [],
    asked: [InputField] = []
  ) -> StepContext {
    StepContext(
      flow: "login", purpose: .prove, account: account, identifier: identifier, state: state, now: 1_000, callback: nil,
      asked: asked,
      tools: StepTools(randomBytes: { [UInt8](repeating: 7, count: $0) }, web: NoWeb()))
  }
}

extension ProviderInput {
  static func words(_ fields: [String: String]) -> ProviderInput {
    ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
  }
}

extension FullProvider {
  /// The answer to a word.
  func judge(_ word: String, _ step: StepContext = .some()) async throws -> StepAnswer {
    try await submit(step, .words(["word": word]))
  }
}

extension StepAnswer {
  var isProof: Bool { if case .proved = self { true } else { false } }
}
