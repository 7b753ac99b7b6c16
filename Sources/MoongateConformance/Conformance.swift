import MoongateSDK
import Synchronization

/// The conformance suite: one call runs every rule against a provider, whichever shape it has and wherever it runs.
///
/// It lends the provider tools of its own (a clock, a messenger, other sites, a hasher, a log), plays a person's part by the subject, and looks at
/// what comes of it. It needs no gateway, and no rule looks at the wall clock but for calls that do not end.
public enum Conformance {
  /// Runs all rules.
  /// - Parameters:
  ///   - provider: a `CodeProvider` or a `FullProvider`.
  ///   - subject: nil for one made of the descriptor.
  ///   - patience: how long a call may take, and a cancelled one to end.
  public static func run(
    _ provider: any Provider, _ subject: ConformanceSubject? = nil, patience: Duration = .seconds(10)
  ) async -> ConformanceReport {
    let descriptor = provider.descriptor
    let stage = Stage(
      descriptor, subject ?? ConformanceSubject(of: descriptor), patience: patience, watched: provider as? any WatchedProvider)
    await DescriptorRules(stage: stage, provider: provider).run()
    switch provider {
    case let code as any CodeProvider: await CodeRules(stage: stage, provider: code).run()
    case let full as any FullProvider: await FullRules(stage: stage, provider: full).run()
    default:
      stage.finds(
        .descriptor, "The provider is neither a CodeProvider nor a FullProvider.", "Conform to one of the two: the core knows no other shape.")
    }
    await stage.judgeStragglers()
    await stage.judgeLeavings()
    return stage.report
  }
}

/// Where a provider is tried: the suite's clock and tools, and what was found.
final class Stage: Sendable {
  struct Found: Sendable {
    var findings: [ConformanceFinding] = []
    var judged: Set<ConformanceRule> = []
    var reasons: [ConformanceRule: String] = [:]
  }

  /// So many findings of one rule are told: the others are the same again.
  private static let mostTold = 5

  let descriptor: ProviderDescriptor
  let subject: ConformanceSubject
  let patience: Duration
  let random = SuiteRandom(seed: 7)
  /// The secrets of gateway.lua, by the setting's name.
  let planted: [String: String]
  private let found = Mutex(Found())
  /// Of all calls that have ended.
  private let loans = Mutex<[Loan]>([])
  private let time: Mutex<Int64>
  /// The provider, where it runs elsewhere.
  let watched: (any WatchedProvider)?
  /// What such a one wrote.
  let overheard = Noted()
  /// The secrets of all calls: answers and codes.
  let typedEver = Noted()
  /// Whom steps were for, as identifiers say it.
  let people = Noted()

  init(_ descriptor: ProviderDescriptor, _ subject: ConformanceSubject, patience: Duration, watched: (any WatchedProvider)? = nil) {
    self.watched = watched
    self.descriptor = descriptor
    self.subject = subject
    self.patience = patience
    time = Mutex(subject.start)
    var planted: [String: String] = [:]
    for field in descriptor.settings where field.kind == .secret {
      planted[field.name] = subject.secrets[field.name] ?? "planted-\(field.name)-c41f7be02d"
    }
    self.planted = planted
  }

  // MARK: what was found

  func finds(_ rule: ConformanceRule, _ seen: String, _ advice: String) {
    found.withLock { found in
      found.judged.insert(rule)
      let told = found.findings.filter { $0.rule == rule }
      guard told.count < Self.mostTold, !told.contains(where: { $0.seen == seen }) else { return }
      found.findings.append(ConformanceFinding(rule: rule, seen: seen, advice: advice))
    }
  }

  func isBroken(_ rule: ConformanceRule) -> Bool { found.withLock { $0.findings.contains { $0.rule == rule } } }

  /// Something that the rule is about was seen.
  func judges(_ rule: ConformanceRule) { found.withLock { _ = $0.judged.insert(rule) } }

  /// The rule needs what is not there.
  func passesOver(_ rules: ConformanceRule..., because why: String) {
    found.withLock { found in for rule in rules { found.reasons[rule] = why } }
  }

  var report: ConformanceReport {
    let found = found.withLock { $0 }
    let order = ConformanceRule.allCases
    let lines = order.map { rule in
      if found.findings.contains(where: { $0.rule == rule }) { return ConformanceReport.Line(rule: rule, verdict: .broken) }
      if found.judged.contains(rule) { return ConformanceReport.Line(rule: rule, verdict: .held) }
      return ConformanceReport.Line(rule: rule, verdict: .doesNotApply(why: found.reasons[rule] ?? "there is nothing of it to judge"))
    }
    return ConformanceReport(
      provider: descriptor.name.rawValue, lines: lines, findings: order.flatMap { rule in found.findings.filter { $0.rule == rule } })
  }

  // MARK: tools

  var now: Int64 { time.withLock { $0 } }

  func turn(to moment: Int64) { time.withLock { $0 = moment } }

  /// The provider's tools for one call.
  /// - Parameter hasMessenger: whether gateway.lua names a way for messages.
  func tools(_ loan: Loan, hasMessenger: Bool = true, hashes: Bool = false) -> StepTools {
    var values = Dictionary(descriptor.settings.compactMap { field in Self.example(field).map { (field.name, $0) } }) { first, _ in first }
    values.merge(subject.settings) { _, given in given }
    return StepTools(
      randomBytes: { [random] count in
        loan.note("randomness") { $0.random.append(count) }
        return random.bytes(count)
      },
      settings: StepSettings(secrets: planted.mapValues { secret in { @Sendable in secret } }, values: values),
      hasher: hashes && descriptor.hashesSecrets ? LentHasher(loan: loan, random: random) : nil, web: LentWeb(loan: loan, answers: subject.web),
      messenger: hasMessenger ? LentMessenger(loan: loan) : nil,
      log: StepLog { level, sentence, values in
        let line = ([level.rawValue, sentence] + values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
        loan.note("log") { $0.lines.append(line) }
      }, clock: StepClock { [self] in now })
  }

  private static func example(_ field: SettingField) -> SettingValue? {
    if let standard = field.standard { return standard }
    guard field.isRequired else { return nil }
    switch field.kind {
    case .text: return .text("https://site.example")
    case .number(let bounds): return .number(bounds.lowerBound)
    case .flag: return .flag(true)
    case .choice(let words): return words.first.map { .text($0) }
    case .list: return .list(["one", "two"])
    case .file, .secret, .messages: return nil
    }
  }

  /// A call to the provider, given up where it does not end.
  func call<Answer: Sendable>(_ loan: Loan, _ body: @escaping @Sendable () async throws -> Answer) async -> Called<Answer> {
    watched?.meets(loan.manner)
    let outcome = await Race.run(for: patience) { () async -> Called<Answer> in
      do { return .answered(try await body()) } catch { return .threw(Thrown(error)) }
    }
    look(loan)
    if loan.manner != .works { watched?.meets(.works) }
    guard let outcome else {
      finds(
        .cancellation, "A call had not ended after \(patience).",
        "Put a limit on whatever you wait for, and let it end when the task is cancelled.")
      return .late
    }
    loan.end()
    loans.withLock { $0.append(loan) }
    return outcome
  }

  /// Looks once more at what was lent: whoever goes on behind an answer has had the time to.
  func judgeStragglers() async {
    try? await Task.sleep(for: .milliseconds(20))
    for loan in loans.withLock({ $0 }) { judgeLate(loan) }
  }
}

/// What came of a call.
enum Called<Answer: Sendable>: Sendable {
  case answered(Answer)
  case threw(Thrown)
  /// It never ended, which has been told.
  case late
}

/// An error, as far as it can be looked at.
struct Thrown: Sendable {
  let text: String
  let problem: InputProblem?
  let delivery: DeliveryFault?

  init(_ error: any Error) {
    text = "\(error)"
    problem = error as? InputProblem
    delivery = error as? DeliveryFault
  }
}

/// Runs something for so long and no longer.
enum Race {
  /// - Returns: nil where it had not ended by then; it is cancelled and left behind.
  static func run<Answer: Sendable>(for patience: Duration, _ body: @escaping @Sendable () async -> Answer) async -> Answer? {
    await withCheckedContinuation { continuation in
      let once = Once(continuation)
      let work = Task { once.resume(await body()) }
      let timer = Task {
        try? await Task.sleep(for: patience)
        guard !Task.isCancelled else { return }
        work.cancel()
        once.resume(nil)
      }
      once.onEnd { timer.cancel() }
    }
  }

  /// A continuation that is resumed by whoever comes first.
  private final class Once<Answer: Sendable>: Sendable {
    private struct State {
      var continuation: CheckedContinuation<Answer?, Never>?
      var atEnd: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>

    init(_ continuation: CheckedContinuation<Answer?, Never>) { state = Mutex(State(continuation: continuation)) }

    func resume(_ answer: Answer?) {
      let taken = state.withLock { state in
        defer { state = State() }
        return state
      }
      taken.continuation?.resume(returning: answer)
      taken.atEnd?()
    }

    /// Runs at the end, or now where that has been.
    func onEnd(_ body: @escaping @Sendable () -> Void) {
      let isOver = state.withLock { state in
        if state.continuation == nil { return true }
        state.atEnd = body
        return false
      }
      if isOver { body() }
    }
  }
}
