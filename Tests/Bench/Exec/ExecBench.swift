import Foundation
import Logging
import MoongateExec
import MoongateSDK

/// The bench's provider in process: what `word.py` is as a program.
struct Word: FullProvider {
  let descriptor = ProviderDescriptor(
    name: "word", beginFields: [], submitFields: [InputField(name: "word", kind: .text)], settings: [],
    policy: PolicySource(file: "word.lua", text: "return policy \"word\" {}"), identifierKinds: [.federated],
    outcomes: [Outcome("wrong_word", "That is not the word.")])

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.submitFields, state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let identifier = Identifier(kind: .federated, value: "word 1", display: "word 1")
    return try input.text("word") == "open" ? .proved(Proof(proved: [identifier])) : .refused("wrong_word")
  }
}

struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "none here") }
}

/// What a provider costs that is another program, beside the same one in process, call by call with one clock.
@main enum ExecBench {
  /// More at the median than in process.
  static let bound = Duration.microseconds(500)

  static func main() async throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "word.py").path(
      percentEncoded: false)
    let programs = Programs(
      readers: [:], logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }), jitter: { 0.5 })
    func start(_ name: String, _ arguments: [String] = []) throws -> any FullProvider {
      let specification = ProgramSpecification(
        name: name, path: script, arguments: arguments,
        environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"],
        folder: NSTemporaryDirectory(), timeout: .seconds(30), digest: name)
      guard let introduced = try programs.introduce([specification]).first?.get(),
        let full = try programs.configure(introduced, values: [:], secrets: [:]) as? any FullProvider
      else { throw CancellationError() }
      return full
    }
    let (inside, outside, hanging) = (Word(), try start("word"), try start("hanging", ["hang"]))

    _ = try await times(outside, 200)
    var (within, without): ([Duration], [Duration]) = ([], [])
    // In turns, so that what else the machine does falls on both.
    for _ in 0..<20 {
      within += try await times(inside, 200)
      without += try await times(outside, 200)
    }
    let more = median(without) - median(within)
    print("a submit in process               \(text(median(within))) median, \(text(ninetyNinth(within))) p99")
    print("the same by a program in Python   \(text(median(without))) median, \(text(ninetyNinth(without))) p99")
    print("more at the median                \(text(more)) (at most \(text(bound)))")

    let begun = ContinuousClock.now
    let proofs = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<1_000 { group.addTask { (try? await prove(outside)) ?? false } }
      var proofs = 0
      for await isProof in group where isProof { proofs += 1 }
      return proofs
    }
    print("1,000 submits at once             \(proofs) proved in \(text(ContinuousClock.now - begun))")

    let stuck = (0..<1_000).map { _ in Task { try await prove(hanging) } }
    let beside = try await times(outside, 4_000)
    let alone = try await times(inside, 200)
    print(
      "beside 1,000 calls that hang      \(text(median(beside))) median, \(text(ninetyNinth(beside))) p99 (in process \(text(median(alone))))"
    )
    for task in stuck { task.cancel() }
    for task in stuck { _ = await task.result }
    programs.end()
    if more > bound || proofs < 1_000 { exit(1) }
  }

  static func prove(_ provider: any FullProvider) async throws -> Bool {
    let step = StepContext(
      flow: "login", purpose: .prove, account: nil, identifier: nil, state: [], now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, web: NoWeb()))
    if case .proved = try await provider.submit(
      step, ProviderInput(fields: ["word": .text("open")], defaultRegion: "IN"))
    {
      return true
    }
    return false
  }

  static func times(_ provider: any FullProvider, _ count: Int) async throws -> [Duration] {
    var all: [Duration] = []
    for _ in 0..<count {
      let begun = ContinuousClock.now
      guard try await prove(provider) else { throw CancellationError() }
      all.append(ContinuousClock.now - begun)
    }
    return all
  }

  static func median(_ times: [Duration]) -> Duration { times.sorted()[times.count / 2] }

  static func ninetyNinth(_ times: [Duration]) -> Duration { times.sorted()[times.count * 99 / 100] }

  static func text(_ time: Duration) -> String { String(format: "%9.4f ms", time / .milliseconds(1)) }
}
