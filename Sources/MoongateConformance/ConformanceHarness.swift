import MoongateSDK
import Synchronization

/// The test environment of a provider: clock, tools and findings.
final class ConformanceHarness: Sendable {
  struct Found: Sendable {
    var findings: [ConformanceFinding] = []
    /// Includes rules that were not selected, because other rules may then not apply.
    var broken: Set<ConformanceRule> = []
    var checked: Set<ConformanceRule> = []
    var reasons: [ConformanceRule: String] = [:]
  }

  /// The maximum number of reported findings per rule.
  private static let maxReported = 5

  let descriptor: ProviderDescriptor
  let subject: ConformanceSubject
  let patience: Duration
  let random = SuiteRandom(seed: 7)
  /// The secret settings of gateway.lua, by name.
  let planted: [String: String]
  private let found = Mutex(Found())
  /// The capabilities of all calls that have ended.
  private let capabilitiesOfCalls = Mutex<[RecordedCapabilities]>([])
  private let time: SuiteTime
  /// The provider's key-value store.
  private let entries: Mutex<MemoryKeyValueStore>
  /// The provider, if it is external.
  let watched: (any WatchedProvider)?
  /// The selected rules; nil for all.
  private let rules: Set<ConformanceRule>?
  let trace: Trace
  /// The number of rounds of the right answer; 0 until it is known.
  let rounds = Mutex(0)
  /// The output of an external provider.
  let operatorOutput = RecordedTexts()
  /// The secrets of all calls: answers and codes.
  let typedEver = RecordedTexts()
  /// The users of steps, as in their identifiers.
  let people = RecordedTexts()

  /// More than five parameters: everything that is fixed for a run of the suite.
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

  // MARK: findings

  /// Rules that any call may break. If one of them is selected, all calls run.
  private static let everywhere: Set<ConformanceRule> = [
    .facts, .malformed, .rounds, .once, .outcomes, .secrets, .cancellation, .cleanup,
  ]

  /// Whether a check for these rules must run.
  func needs(_ some: ConformanceRule...) -> Bool {
    guard let rules else { return true }
    return !rules.isDisjoint(with: Self.everywhere.union(some))
  }

  /// Whether findings of the rule are reported.
  private func isReported(_ rule: ConformanceRule) -> Bool { rules?.contains(rule) ?? true }

  /// Reports a finding.
  /// - Parameters:
  ///   - seen: the observation, most likely cause first, in terms of the Swift API. It is translated for programs.
  ///   - field: the related field, if any.
  func addFinding(_ rule: ConformanceRule, _ seen: String, _ advice: String, field: String? = nil) {
    let language = watched?.language ?? .swift
    let finding = ConformanceFinding(
      rule: rule, seen: language.translate(seen), advice: language.translate(advice), field: field)
    found.withLock { found in
      found.broken.insert(rule)
      guard isReported(rule) else { return }
      found.checked.insert(rule)
      let told = found.findings.filter { $0.rule == rule }
      guard told.count < Self.maxReported, !told.contains(where: { $0.seen == finding.seen }) else { return }
      found.findings.append(finding)
    }
  }

  /// Reports that the subject could not compute an answer. The finding belongs to the rule `proof`, or to another
  /// selected rule.
  func subjectFailed(_ error: any Error) {
    let rule =
      rules.flatMap { rules in rules.contains(.proof) ? nil : ConformanceRule.allCases.first(where: rules.contains) }
      ?? .proof
    addFinding(
      rule, "The subject has no answer: \(error)",
      "Change the subject, or make the provider show what the subject needs.")
  }

  func isBroken(_ rule: ConformanceRule) -> Bool { found.withLock { $0.broken.contains(rule) } }

  /// Records that the rule was checked.
  func markChecked(_ rule: ConformanceRule) { found.withLock { _ = $0.checked.insert(rule) } }

  /// Records why rules do not apply.
  func markInapplicable(_ rules: ConformanceRule..., because why: String) {
    found.withLock { found in for rule in rules { found.reasons[rule] = why } }
  }

  var report: ConformanceReport {
    let found = found.withLock { $0 }
    let order = ConformanceRule.allCases.filter(isReported)
    let lines = order.map { rule in
      if found.findings.contains(where: { $0.rule == rule }) {
        return ConformanceReport.Line(rule: rule, verdict: .broken)
      }
      if found.checked.contains(rule) { return ConformanceReport.Line(rule: rule, verdict: .held) }
      return ConformanceReport.Line(
        rule: rule,
        verdict: .doesNotApply(why: found.reasons[rule] ?? "the provider does nothing that this rule covers"))
    }
    return ConformanceReport(
      provider: descriptor.name.rawValue, lines: lines,
      findings: order.flatMap { rule in found.findings.filter { $0.rule == rule } },
      messages: trace.messages)
  }

  // MARK: tools

  var now: Int64 { time.now }

  func setTime(to moment: Int64) { time.setTime(to: moment) }

  /// Empties the provider's key-value store, so that the next step has a new user.
  func forget() { entries.withLock { [time] entries in entries = MemoryKeyValueStore(clock: StepClock { time.now }) } }

  /// The tools for one call.
  /// - Parameter hasMessenger: whether gateway.lua configures a message service.
  func tools(_ capabilities: RecordedCapabilities, hasMessenger: Bool = true, hashes: Bool = false) -> StepTools {
    var values = Dictionary(descriptor.settings.compactMap { field in Self.example(field).map { (field.name, $0) } }) {
      first, _ in first
    }
    if descriptor.rechecks { values["recheck"] = "1h" }
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
    case .table: return .table(["one": "two"])
    case .file, .source, .secret, .messages: return nil
    }
  }

  /// Calls the provider with a time limit.
  func call<Answer: Sendable>(
    _ capabilities: RecordedCapabilities, _ body: @escaping @Sendable () async throws -> Answer
  ) async -> Called<Answer> {
    watched?.setServiceBehavior(capabilities.behavior)
    let outcome = await Race.run(for: patience) { () async -> Called<Answer> in
      do { return .answered(try await body()) } catch { return .threw(InspectedError(error)) }
    }
    look(capabilities)
    if capabilities.behavior != .works { watched?.setServiceBehavior(.works) }
    guard let outcome else {
      addFinding(
        .cancellation, "A call had not ended after \(patience).",
        "Set a time limit on everything that you wait for, and stop when the task is cancelled.")
      return .late
    }
    capabilities.end()
    capabilitiesOfCalls.withLock { $0.append(capabilities) }
    return outcome
  }

  /// Checks the tools again, after a provider has had time to use them after its answer.
  func checkLateToolUse() async {
    try? await Task.sleep(for: .milliseconds(20))
    for capabilities in capabilitiesOfCalls.withLock({ $0 }) { checkLate(capabilities) }
  }
}

/// The clock of the suite.
final class SuiteTime: Sendable {
  private let moment: Mutex<Int64>

  init(_ start: Int64) { moment = Mutex(start) }

  var now: Int64 { moment.withLock { $0 } }

  func setTime(to moment: Int64) { self.moment.withLock { $0 = moment } }
}
