import ArgumentParser
import Foundation
import MoongateConformance
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate-provider test NAME` and `moongate-provider test ./program`: the conformance suite, run against a provider.
struct ProviderTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Run the conformance suite against a provider.",
    discussion: """
      Prints one line per rule: passed (✓), broken (✗, with what was observed and how to fix it), or not applicable (-). Information that the suite needs about a \
      provider, for example a right answer, comes from --subject, from the subject.json beside a program, or is derived from the descriptor. A program is \
      started in a temporary folder, with settings from the subject file or made up, and stopped again. Exit status: 1 if a rule is broken.

      --rule NAME runs one rule. With --trace, it then prints every message between the suite and the provider. Secrets are hidden unless you add --show-secrets.
      """)

  @Argument(help: "The name of a provider of this program, or the path of a provider program: ./sms_hub.py.")
  var name: String
  @Option(help: "A JSON file with identifiers and answers for the suite.") var subject: String?
  @Option(help: "Run only this rule.") var rule: String?
  @Flag(help: "Print every message between the suite and the provider. Requires --rule.") var trace = false
  @Flag(help: "With --trace: print secrets, codes and answers too.") var showSecrets = false
  @Flag(help: "Print JSON.") var json = false

  func validate() throws {
    if trace, rule == nil { throw ValidationError("--trace needs one rule, for example --trace --rule counted.") }
    if showSecrets, !trace {
      throw ValidationError("--show-secrets needs a trace: use --trace --rule NAME --show-secrets.")
    }
  }

  func run() async throws {
    let rules = try rule.map { Set([try Self.rule(named: $0)]) }
    let file = try (subject ?? Self.subject(beside: name)).map { try ConformanceSubjectFile(path: $0) }
    let tried: TriedProgram? = if Self.isPath(name) { try TriedProgram(name, file) } else { nil }
    defer { tried?.end() }
    let provider = if let tried { tried.provider } else { try find() }
    var subject = ConformanceSubject(of: provider.descriptor)
    file?.change(&subject)
    try await Self.printReport(
      provider, subject, rules: rules, trace: trace ? (showSecrets ? .complete : .withoutSecrets) : .off, json: json)
  }

  /// - Throws: an error that names the most similar rule if the rule does not exist.
  static func rule(named name: String) throws(StartProblem) -> ConformanceRule {
    if let rule = ConformanceRule(rawValue: name) { return rule }
    let hint = Suggestion.phrase(for: name, among: ConformanceRule.allCases.map(\.rawValue))
    throw StartProblem("There is no rule `\(name)`\(hint)\(hint.hasSuffix("?") ? "" : ".")", status: .couldNotRun)
  }

  /// The `subject.json` beside a program, as `moongate-provider new` writes it.
  static func subject(beside name: String) -> String? {
    guard isPath(name) else { return nil }
    let file = URL(filePath: name).standardizedFileURL.deletingLastPathComponent().appending(path: "subject.json").path(
      percentEncoded: false)
    return FileManager.default.fileExists(atPath: file) ? file : nil
  }

  /// Provider names contain no slash and no dot, so `chat_code.py` is a program in the working folder.
  static func isPath(_ name: String) -> Bool { name.contains("/") || name.contains(".") }

  private func find() throws(StartProblem) -> any Provider {
    let all = try Providers.registry().all
    if let provider = all.first(where: { $0.descriptor.name.rawValue == name }) { return provider }
    throw StartProblem(
      "This program has no provider `\(name)`. It has \(all.map(\.descriptor.name.rawValue).joined(separator: ", ")).",
      status: .couldNotRun)
  }

  /// Runs the suite against a provider and prints the report.
  /// - Throws: exit status 1 if a rule is broken.
  static func printReport(
    _ provider: any Provider, _ subject: ConformanceSubject, rules: Set<ConformanceRule>? = nil,
    trace: ConformanceTrace = .off, json: Bool
  ) async throws {
    let report = await Conformance.run(provider, subject, rules: rules, trace: trace)
    print(json ? try ToolJSON.text(ReportDocument(report)) : text(report, colour: Terminal.showsColour))
    if !report.findings.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }

  /// One line per rule; under a broken rule, what was observed and how to fix it.
  static func text(_ report: ConformanceReport, colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    let width = ConformanceRule.allCases.map(\.rawValue.count).max() ?? 0
    var lines = [report.provider]
    for line in report.lines {
      let name = line.rule.rawValue.padding(toLength: width, withPad: " ", startingAt: 0)
      switch line.verdict {
      case .held: lines.append("  \(style.green("✓")) \(name)  \(line.rule.summary)")
      case .broken:
        lines.append("  \(style.red("✗")) \(name)  \(line.rule.summary)")
        for finding in report.findings where finding.rule == line.rule {
          lines +=
            ["      \(finding.seen)"] + (finding.field.map { ["      Field: \($0)"] } ?? []) + [
              "      \(style.dim(finding.advice))"
            ]
        }
      case .doesNotApply(let why): lines.append("  \(style.dim("- \(name)  does not apply: \(why)"))")
      }
    }
    let count = { (verdict: (ConformanceReport.Verdict) -> Bool) in report.lines.count { verdict($0.verdict) } }
    let (held, broken) = (count { $0 == .held }, count { $0 == .broken })
    lines.append("\(held) held, \(broken) broken, \(report.lines.count - held - broken) not applying")
    if !report.messages.isEmpty {
      lines += ["", "Messages (→ to the provider, ← from it):"] + report.messages.map { "  " + LineLog.plain($0) }
    }
    return lines.joined(separator: "\n")
  }
}

/// The JSON form of a report.
private struct ReportDocument: Encodable {
  struct Rule: Encodable {
    let rule: String
    let verdict: String
    let why: String?
  }

  let provider: String
  let rules: [Rule]
  let findings: [ConformanceFinding]
  /// nil if no trace was requested.
  let messages: [String]?

  init(_ report: ConformanceReport) {
    provider = report.provider
    findings = report.findings
    messages = report.messages.isEmpty ? nil : report.messages
    rules = report.lines.map { line in
      switch line.verdict {
      case .held: Rule(rule: line.rule.rawValue, verdict: "held", why: nil)
      case .broken: Rule(rule: line.rule.rawValue, verdict: "broken", why: nil)
      case .doesNotApply(let why): Rule(rule: line.rule.rawValue, verdict: "does_not_apply", why: why)
      }
    }
  }
}
