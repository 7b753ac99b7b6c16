import MoongateSDK
import Synchronization

/// Where a provider is tried: the suite's clock and tools, and what was found.
final class ConformanceHarness: Sendable {
  struct Found: Sendable {
    var findings: [ConformanceFinding] = []
    /// Also of those that nobody asked about: other rules may have nothing to judge then.
    var broken: Set<ConformanceRule> = []
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
  private let capabilitiesOfCalls = Mutex<[RecordedCapabilities]>([])
  private let time: SuiteTime
  /// What the provider keeps in its key-value store.
  private let entries: Mutex<MemoryKeyValueStore>
  /// The provider, where it runs elsewhere.
  let watched: (any WatchedProvider)?
  /// nil: all.
  private let rules: Set<ConformanceRule>?
  let trace: Trace
  /// How many rounds the right answer has; 0 until that is known.
  let rounds = Mutex(0)
  /// What such a one wrote.
  let overheard = RecordedTexts()
  /// The secrets of all calls: answers and codes.
  let typedEver = RecordedTexts()
  /// Whom steps were for, as identifiers say it.
  let people = RecordedTexts()

  init(
    _ descriptor: ProviderDescriptor, _ subject: ConformanceSubject, patience: Duration, rules: Set<ConformanceRule>?,
    trace: ConformanceTrace,
    watched: (any WatchedProvider)?
  ) {
    self.watched = watched
    self.rules = rules
    self.descriptor = descriptor
    self.subject = subject
    self.patience = patience
    let time = SuiteTime(subject.start)
    self.time = time
    entries = Mutex(MemoryKeyValueStore(clock: StepClock { time.now }))
    var planted: [String: String] = [:]
    for field in descriptor.settings where field.kind == .secret {
      planted[field.name] = subject.secrets[field.name] ?? "planted-\(field.name)-c41f7be02d"
    }
    self.planted = planted
    self.trace = Trace(trace, secrets: planted)
  }

  // MARK: what was found

  /// Rules that any call may break: with one of them asked for, everything is run.
  private static let everywhere: Set<ConformanceRule> = [
    .facts, .malformed, .rounds, .once, .outcomes, .secrets, .cancellation, .cleanup,
  ]

  /// Whether something has to be run that looks at these rules.
  func wants(_ some: ConformanceRule...) -> Bool {
    guard let rules else { return true }
    return !rules.isDisjoint(with: Self.everywhere.union(some))
  }

  /// Whether findings of the rule are told.
  private func tells(_ rule: ConformanceRule) -> Bool { rules?.contains(rule) ?? true }

  /// - Parameters:
  ///   - seen: the likeliest cause first; in the words of the Swift API, which are translated for a program.
  ///   - field: the field that it is about, if it is about one.
  func finds(_ rule: ConformanceRule, _ seen: String, _ advice: String, field: String? = nil) {
    let language = watched?.language ?? .swift
    let finding = ConformanceFinding(rule: rule, seen: language.says(seen), advice: language.says(advice), field: field)
    found.withLock { found in
      found.broken.insert(rule)
      guard tells(rule) else { return }
      found.judged.insert(rule)
      let told = found.findings.filter { $0.rule == rule }
      guard told.count < Self.mostTold, !told.contains(where: { $0.seen == finding.seen }) else { return }
      found.findings.append(finding)
    }
  }

  /// The subject could not work out an answer. What is told under the rule of the right answer is told under the one
  /// rule that was asked for, where that is another one.
  func subjectFailed(_ error: any Error) {
    let rule =
      rules.flatMap { rules in rules.contains(.proof) ? nil : ConformanceRule.allCases.first(where: rules.contains) }
      ?? .proof
    finds(
      rule, "The subject has no answer. \(error)",
      "Change the subject, or let the provider show what the subject needs.")
  }

  func isBroken(_ rule: ConformanceRule) -> Bool { found.withLock { $0.broken.contains(rule) } }

  /// Something that the rule is about was seen.
  func judges(_ rule: ConformanceRule) { found.withLock { _ = $0.judged.insert(rule) } }

  /// The rule needs what is not there.
  func passesOver(_ rules: ConformanceRule..., because why: String) {
    found.withLock { found in for rule in rules { found.reasons[rule] = why } }
  }

  var report: ConformanceReport {
    let found = found.withLock { $0 }
    let order = ConformanceRule.allCases.filter(tells)
    let lines = order.map { rule in
      if found.findings.contains(where: { $0.rule == rule }) {
        return ConformanceReport.Line(rule: rule, verdict: .broken)
      }
      if found.judged.contains(rule) { return ConformanceReport.Line(rule: rule, verdict: .held) }
      return ConformanceReport.Line(
        rule: rule, verdict: .doesNotApply(why: found.reasons[rule] ?? "there is nothing of it to judge"))
    }
    return ConformanceReport(
      provider: descriptor.name.rawValue, lines: lines,
      findings: order.flatMap { rule in found.findings.filter { $0.rule == rule } },
      messages: trace.messages)
  }

  // MARK: tools

  var now: Int64 { time.now }

  func turn(to moment: Int64) { time.turn(to: moment) }

  /// Empties the provider's key-value store: the next step is of somebody who was never here.
  func forget() { entries.withLock { [time] entries in entries = MemoryKeyValueStore(clock: StepClock { time.now }) } }

  /// The provider's tools for one call.
  /// - Parameter hasMessenger: whether gateway.lua names a way for messages.
  func tools(_ capabilities: RecordedCapabilities, hasMessenger: Bool = true, hashes: Bool = false) -> StepTools {
    var values = Dictionary(descriptor.settings.compactMap { field in Self.example(field).map { (field.name, $0) } }) {
      first, _ in first
    }
    values.merge(subject.settings) { _, given in given }
    return StepTools(
      randomBytes: { [random] count in
        capabilities.note("randomness") { $0.random.append(count) }
        return random.bytes(count)
      },
      settings: StepSettings(secrets: planted.mapValues { secret in { @Sendable in secret } }, values: values),
      hasher: hashes ? SuiteHasher(capabilities: capabilities, random: random) : nil,
      web: SuiteWeb(capabilities: capabilities, answers: subject.web),
      messenger: hasMessenger ? SuiteMessenger(capabilities: capabilities) : nil,
      log: StepLog { level, sentence, values in
        let line = ([level.rawValue, sentence] + values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
          .joined(separator: " ")
        capabilities.note("log") { $0.lines.append(line) }
      }, clock: StepClock { [self] in now },
      store: SuiteStore(capabilities: capabilities, entries: entries.withLock { $0 }))
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
  func call<Answer: Sendable>(
    _ capabilities: RecordedCapabilities, _ body: @escaping @Sendable () async throws -> Answer
  ) async -> Called<Answer> {
    watched?.meets(capabilities.manner)
    let outcome = await Race.run(for: patience) { () async -> Called<Answer> in
      do { return .answered(try await body()) } catch { return .threw(Thrown(error)) }
    }
    look(capabilities)
    if capabilities.manner != .works { watched?.meets(.works) }
    guard let outcome else {
      finds(
        .cancellation, "A call had not ended after \(patience).",
        "Put a limit on whatever you wait for, and let it end when the task is cancelled.")
      return .late
    }
    capabilities.end()
    capabilitiesOfCalls.withLock { $0.append(capabilities) }
    return outcome
  }

  /// Looks once more at what was lent: a provider that works on after its answer has had the time to.
  func judgeStragglers() async {
    try? await Task.sleep(for: .milliseconds(20))
    for capabilities in capabilitiesOfCalls.withLock({ $0 }) { judgeLate(capabilities) }
  }
}

/// The suite's clock.
final class SuiteTime: Sendable {
  private let moment: Mutex<Int64>

  init(_ start: Int64) { moment = Mutex(start) }

  var now: Int64 { moment.withLock { $0 } }

  func turn(to moment: Int64) { self.moment.withLock { $0 = moment } }
}
