import ArgumentParser
import Foundation
import MoongateConformance
import MoongateCore
import MoongateSDK

/// `moongate provider test NAME` and `moongate provider test ./program`: the conformance suite, run against a provider.
struct ProviderTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Run the conformance suite against a provider.",
    discussion: """
      Prints a line for each rule: held (✓), broken (✗, with what was seen and what to do), or not applying (-). What the suite cannot know of a \
      provider, such as a right answer, it makes of the descriptor, or takes from --subject. A program is started in the working folder, with settings from --subject or made up, and ended again. Exits 1 where a rule is broken.
      """)

  @Argument(help: "The name of a provider of this program, or the path of a program that is one: ./sms_hub.py.") var name: String
  @Option(help: "A JSON file that says how people are spelled and what they answer.") var subject: String?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let file = try subject.map { try SubjectFile(path: $0) }
    let tried: TriedProgram? = if Self.isPath(name) { try TriedProgram(name) { file?.change(&$0) } } else { nil }
    defer { tried?.end() }
    let provider = if let tried { tried.provider } else { try find() }
    var subject = ConformanceSubject(of: provider.descriptor)
    file?.change(&subject)
    try await Self.tell(provider, subject, json: json) { tried == nil ? $0 : $0.ofProgram }
  }

  /// No provider's name has a slash or a dot in it: `chat_code.py` is a program in the working folder.
  static func isPath(_ name: String) -> Bool { name.contains("/") || name.contains(".") }

  private func find() throws(StartProblem) -> any Provider {
    let all = try Providers.registry().all
    if let provider = all.first(where: { $0.descriptor.name.rawValue == name }) { return provider }
    throw StartProblem(
      "This program has no provider `\(name)`. It has \(all.map(\.descriptor.name.rawValue).joined(separator: ", ")).", status: .couldNotRun)
  }

  /// Runs the suite against any provider and prints what came of it.
  /// - Parameter seen: what of the report is told.
  /// - Throws: exit status 1 where a rule is broken.
  static func tell(
    _ provider: any Provider, _ subject: ConformanceSubject, json: Bool, as seen: (ConformanceReport) -> ConformanceReport = { $0 }
  ) async throws {
    let report = seen(await Conformance.run(provider, subject))
    print(json ? try ToolJSON.text(ReportDocument(report)) : text(report, colour: Terminal.showsColour))
    if !report.findings.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }

  /// One line per rule, and under a broken one what was seen and what to do.
  static func text(_ report: ConformanceReport, colour: Bool) -> String {
    let paint = { (code: Int, text: String) in colour ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }
    let width = ConformanceRule.allCases.map(\.rawValue.count).max() ?? 0
    var lines = [report.provider]
    for line in report.lines {
      let name = line.rule.rawValue.padding(toLength: width, withPad: " ", startingAt: 0)
      switch line.verdict {
      case .held: lines.append("  \(paint(32, "✓")) \(name)  \(line.rule.summary)")
      case .broken:
        lines.append("  \(paint(31, "✗")) \(name)  \(line.rule.summary)")
        for finding in report.findings where finding.rule == line.rule { lines += ["      \(finding.seen)", "      \(paint(2, finding.advice))"] }
      case .doesNotApply(let why): lines.append("  \(paint(2, "- \(name)  does not apply: \(why)"))")
      }
    }
    let count = { (verdict: (ConformanceReport.Verdict) -> Bool) in report.lines.count { verdict($0.verdict) } }
    let (held, broken) = (count { $0 == .held }, count { $0 == .broken })
    lines.append("\(held) held, \(broken) broken, \(report.lines.count - held - broken) not applying")
    return lines.joined(separator: "\n")
  }
}

/// A report for programs.
private struct ReportDocument: Encodable {
  struct Rule: Encodable {
    let rule: String
    let verdict: String
    let why: String?
  }

  let provider: String
  let rules: [Rule]
  let findings: [ConformanceFinding]

  init(_ report: ConformanceReport) {
    provider = report.provider
    findings = report.findings
    rules = report.lines.map { line in
      switch line.verdict {
      case .held: Rule(rule: line.rule.rawValue, verdict: "held", why: nil)
      case .broken: Rule(rule: line.rule.rawValue, verdict: "broken", why: nil)
      case .doesNotApply(let why): Rule(rule: line.rule.rawValue, verdict: "does_not_apply", why: why)
      }
    }
  }
}

/// What a provider's author tells the suite in a file: people, in several spellings, and what they answer. Every member may be left out.
/// ```json
/// { "spellings": [{"email": "a@x.example"}, {"email": "A@X.example"}], "others": [{"email": "b@x.example"}],
///   "malformed_begins": [{"email": "nobody"}], "malformed_submits": [{"word": ""}],
///   "right": {"word": "pigeon"}, "wrong": {"word": "penguin"}, "settings": {"loft": "north", "birds": 3} }
/// ```
struct SubjectFile: Decodable {
  private enum Value: Decodable {
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([String])
    case other

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let list = try? container.decode([String].self) {
        self = .list(list)
      } else {
        self = .other
      }
    }

    var input: InputValue {
      switch self {
      case .flag(let flag): .flag(flag)
      case .text(let text): .text(text)
      case .number, .list, .other: .other
      }
    }

    var setting: SettingValue? {
      switch self {
      case .flag(let flag): .flag(flag)
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .list(let list): .list(list)
      case .other: nil
      }
    }
  }

  private let spellings: [[String: Value]]?
  private let others: [[String: Value]]?
  private let malformedBegins: [[String: Value]]?
  private let malformedSubmits: [[String: Value]]?
  private let right: [String: Value]?
  private let wrong: [String: Value]?
  private let settings: [String: Value]?
  private let setsUp: Bool?
  private let isOneTime: Bool?

  private enum CodingKeys: String, CodingKey {
    case spellings, others, right, wrong, settings
    case malformedBegins = "malformed_begins"
    case malformedSubmits = "malformed_submits"
    case setsUp = "sets_up"
    case isOneTime = "one_time"
  }

  /// - Throws: a sentence where the file cannot be read.
  init(path: String) throws(StartProblem) {
    guard let data = FileManager.default.contents(atPath: path) else { throw StartProblem("There is no file \(path).", status: .couldNotRun) }
    do {
      self = try JSONDecoder().decode(Self.self, from: data)
    } catch {
      throw StartProblem(
        "\(path) is no subject: it is a JSON object such as {\"right\": {\"word\": \"pigeon\"}, \"wrong\": {\"word\": \"penguin\"}}.",
        status: .couldNotRun)
    }
  }

  /// Puts what the file says over what was made of the descriptor.
  func change(_ subject: inout ConformanceSubject) {
    let inputs = { (list: [[String: Value]]?) in list?.map { $0.mapValues(\.input) } }
    subject.spellings = inputs(spellings) ?? subject.spellings
    subject.others = inputs(others) ?? subject.others
    subject.malformedBegins = inputs(malformedBegins) ?? subject.malformedBegins
    subject.malformedSubmits = inputs(malformedSubmits) ?? subject.malformedSubmits
    if let answer = right?.mapValues(\.input) { subject.right = { _ in answer } }
    if let answer = wrong?.mapValues(\.input) { subject.wrong = { _ in answer } }
    subject.settings.merge((settings ?? [:]).compactMapValues(\.setting)) { _, new in new }
    subject.setsUp = setsUp ?? subject.setsUp
    subject.isOneTime = isOneTime ?? subject.isOneTime
  }
}
