import Foundation
import MoongateConformance
import MoongateCore
import MoongateExec
import MoongateSDK
import Synchronization

// `moongate provider test ./program`: the same suite, run against a provider that is another program.

/// A program that is tried out: started as a gateway would start it, with settings that the subject says or the suite
/// makes up, in an empty folder of its own that goes with it.
struct TriedProgram {
  let provider: any Provider
  private let stage: ProgramTestEnvironment

  /// Starts it and gives it its settings.
  /// - Parameters:
  ///   - path: relative to the working folder.
  ///   - file: what its author tells the suite.
  /// - Throws: what is wrong with it, a sentence each.
  init(_ path: String, _ file: ConformanceSubjectFile? = nil) throws(StartProblem) {
    let program = URL(filePath: path).standardizedFileURL
    guard FileManager.default.isExecutableFile(atPath: program.path(percentEncoded: false)) else {
      throw StartProblem(
        "\(path) cannot be run: there is no such file, or it wants `chmod +x \(path)`.", status: .couldNotRun)
    }
    let name = program.deletingPathExtension().lastPathComponent.replacing("-", with: "_")
    guard ProviderName(rawValue: name) != nil else {
      throw StartProblem(
        "\(path) is called like no provider: lower-case letters, digits and _, as in sms_hub.py.", status: .couldNotRun)
    }
    stage = try ProgramTestEnvironment(sendsBy: file?.sendsBy, answers: file?.siteAnswers ?? [:])
    do throws(StartProblem) {
      provider = try Self.start(program.path(percentEncoded: false), as: path, name: name, file, stage)
    } catch {
      // A traceback says more than that it ended.
      for line in stage.sightings().lines { LineLog.standardError(LineLog.plain(line) + "\n") }
      stage.end()
      throw error
    }
  }

  private static func start(
    _ program: String, as path: String, name: String, _ file: ConformanceSubjectFile?, _ stage: ProgramTestEnvironment
  ) throws(StartProblem) -> any Provider {
    let introduced: IntroducedProgram
    do throws(ProgramProblem) {
      introduced = try stage.introduced(program, as: name)
    } catch {
      throw StartProblem("\(path): \(error.sentences.joined(separator: "; ")).")
    }
    var subject = ConformanceSubject(of: introduced.descriptor)
    file?.change(&subject)
    var values: [String: SettingValue] = [:]
    var secrets: [String: String] = [:]
    for field in introduced.descriptor.settings {
      if field.kind == .secret {
        secrets[field.name] = subject.secrets[field.name] ?? "planted-\(field.name)-c41f7be02d"
      } else if field.name == file?.sendsBy?.setting {
        values[field.name] = .text(stage.outlet)
      } else if let value = subject.settings[field.name] ?? field.standard
        ?? (field.isRequired ? Self.example(of: field.kind) : nil)
      {
        values[field.name] = field.kind == .file ? value.absolute : value
      }
    }
    if let setting = file?.sendsBy?.setting, values[setting] == nil {
      throw StartProblem(
        "\(path) has no setting `\(setting)`, by which the subject says that it sends.", status: .couldNotRun)
    }
    do throws(ProgramProblem) {
      let started = try stage.programs.configure(introduced, values: values, secrets: secrets)
      let language = introduced.library.flatMap(ProviderLanguage.init) ?? .json
      if let code = started as? any CodeProvider {
        return WatchedCodes(base: code, stage: stage, program: program, language: language)
      }
      if let full = started as? any FullProvider {
        return WatchedSteps(base: full, stage: stage, program: program, language: language)
      }
      return started
    } catch {
      let hint =
        "Say its settings in a file and name that by --subject, as in {\"settings\": {\"url\": \"http://localhost:8065\"}}."
      throw StartProblem("\(path): \(error.sentences.joined(separator: "; ")). \(hint)")
    }
  }

  /// Ends the program, and takes its folder away.
  func end() { stage.end() }

  /// Of a setting that must be there.
  private static func example(of kind: SettingField.Kind) -> SettingValue? {
    switch kind {
    case .text: .text("example")
    case .number(let bounds): .number(bounds.contains(1) ? 1 : bounds.lowerBound)
    case .flag: .flag(true)
    case .choice(let words): words.first.map { .text($0) }
    case .list: .list([])
    case .secret, .messages, .file: nil
    }
  }
}

extension SettingValue {
  /// A path from the working folder, in whose place the program runs in another.
  fileprivate var absolute: SettingValue {
    if case .text(let path) = self {
      .text(URL(filePath: path).standardizedFileURL.path(percentEncoded: false))
    } else {
      self
    }
  }
}

/// What surrounds a tried program: its folder, what it sends by, and whoever listens to it.
final class ProgramTestEnvironment: Sendable {
  let programs: Programs
  /// Where it runs; absolute.
  let folder: String
  private let site: ProgramTestSite?
  private let file: ProgramTestFile?
  private let listening: Listening

  /// - Parameters:
  ///   - sendsBy: nil: what it sends is not seen.
  ///   - answers: of the site, by the beginning of a path.
  init(sendsBy: ConformanceSubjectFile.DeliveryChannel?, answers: [String: [UInt8]]) throws(StartProblem) {
    let folder = NSTemporaryDirectory() + "moongate-try-" + UUID().uuidString
    self.folder = folder
    switch sendsBy {
    case .site?: (site, file) = (try ProgramTestSite(answers: answers), nil)
    case .file?: (site, file) = (nil, ProgramTestFile(path: folder + "/sent.txt"))
    case nil: (site, file) = (nil, nil)
    }
    let listening = Listening()
    programs = ProviderProcessManager.programsForTools { listening.hears($0) }
    self.listening = listening
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw StartProblem("The program's folder could not be made: \(error.localizedDescription)", status: .couldNotRun)
    }
  }

  /// What it heard, until it is asked.
  private final class Listening: Sendable {
    private let heard = Mutex<[ReceivedNotification]>([])

    func hears(_ what: ReceivedNotification) { heard.withLock { $0.append(what) } }

    func taken() -> [ReceivedNotification] {
      heard.withLock { heard in
        defer { heard = [] }
        return heard
      }
    }
  }

  /// Starts a program and asks it what it is.
  /// - Parameter isAgain: whether it is started beside the one that runs.
  func introduced(_ program: String, as name: String, isAgain: Bool = false) throws(ProgramProblem) -> IntroducedProgram
  {
    let specification = ProgramSpecification(
      name: name, path: program, environment: ProgramSpecification.leastEnvironment, folder: folder,
      digest: isAgain ? "again" : "")
    guard let first = try programs.introduce([specification]).first?.get() else { throw ProgramProblem(sentences: []) }
    return first
  }

  /// What the setting says by which it sends.
  var outlet: String { site?.address ?? folder + "/sent.txt" }

  var isUnseen: String? {
    site == nil && file == nil
      ? "what it sends is not seen: if it does, say in subject.json which setting leads there, as in {\"sends_by\": {\"site\": \"url\"}}"
      : nil
  }

  var canBeHeldUp: Bool { site != nil }

  func meets(_ manner: SiteManner) {
    site?.meets(manner)
    file?.meets(manner)
  }

  func sightings() -> Sightings {
    var seen = Sightings(requests: site?.taken() ?? file?.taken() ?? [])
    for one in listening.taken() {
      switch one {
      case .said(let line): seen.lines.append(line)
      case .misbehaved(let kind, let sentence):
        if let finding = Self.finding(kind, sentence) { seen.findings.append(finding) }
      case .message(let line, let isOut): seen.messages.append("\(isOut ? "→" : "←") \(line)")
      }
    }
    return seen
  }

  /// What a program may not do, by the rule that it breaks; nil where its call says enough, or it is what the suite
  /// wanted.
  private static func finding(_ kind: String, _ sentence: String) -> ConformanceFinding? {
    let words = sentence.replacing(/\ \(id \d+\)/, with: "")
    let seen = "\(words.prefix(1).uppercased())\(words.dropFirst())."
    return switch kind {
    case "rubbish", "notification", "request", "log":
      ConformanceFinding(
        rule: .cleanup, seen: seen,
        advice:
          "Standard output is for answers and `log` alone; print to standard error. Documentation/plugins/programs.md describes each message."
      )
    case "lie" where words.contains("did not declare"):
      ConformanceFinding(
        rule: .outcomes, seen: seen,
        advice: "Name it among the `outcomes` of `hello`; until then the gateway answers 503.")
    case "facts":
      ConformanceFinding(
        rule: .facts, seen: "It \(words).",
        advice: "Declare it in `facts` of `hello`, or leave it out: the gateway drops it, and no policy can ask for it."
      )
    case "stray": ConformanceFinding(rule: .cleanup, seen: seen, advice: "Answer each call once, by its own id.")
    case "farewell":
      ConformanceFinding(
        rule: .cleanup, seen: "It \(words).",
        advice: "End when `shutdown` comes or standard input ends. The gateway kills a program that waits longer.")
    case "late":
      ConformanceFinding(
        rule: .cancellation, seen: "A call had \(words).",
        advice: "Put a limit of your own on whatever you wait for: a person waits as well.")
    default: nil
    }
  }

  /// Ends the program and its surroundings. Once; later calls do nothing.
  func end() {
    programs.end()
    site?.end()
    try? FileManager.default.removeItem(atPath: folder)
  }
}

/// A code provider that is a program, with what surrounds it.
private struct WatchedCodes: CodeProvider, TestedProgram {
  let base: any CodeProvider
  let stage: ProgramTestEnvironment
  let program: String
  let language: ProviderLanguage

  var descriptor: ProviderDescriptor { base.descriptor }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try base.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await base.deliver(code, to: identifier, with: tools)
  }
}

/// A full provider that is a program, with what surrounds it.
private struct WatchedSteps: FullProvider, TestedProgram {
  let base: any FullProvider
  let stage: ProgramTestEnvironment
  let program: String
  let language: ProviderLanguage

  var descriptor: ProviderDescriptor { base.descriptor }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { try base.readIdentifier(input) }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) { try base.check(step, input) }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await base.begin(step, input)
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await base.submit(step, input)
  }

  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] {
    try await base.upgrade(record, from: version)
  }
}

/// A program that is watched by its stage.
protocol TestedProgram: WatchedProvider {
  var stage: ProgramTestEnvironment { get }
  /// The path of its file.
  var program: String { get }
}

extension TestedProgram {
  var isUnseen: String? { stage.isUnseen }
  var canBeHeldUp: Bool { stage.canBeHeldUp }
  func meets(_ manner: SiteManner) { stage.meets(manner) }
  func sightings() -> Sightings { stage.sightings() }
  func declaredAgain() async -> Result<ProviderDescriptor, RestartProblem>? {
    await DedicatedThread.run(at: nil) {
      do throws(ProgramProblem) {
        return .success(try stage.introduced(program, as: descriptor.name.rawValue, isAgain: true).descriptor)
      } catch {
        return .failure(RestartProblem(error.sentences.joined(separator: "; ")))
      }
    }
  }
  func end() async { await DedicatedThread.run(at: nil) { stage.programs.end() } }
}
