import Foundation
import Logging
import MoongateConformance
import MoongateCore
import MoongateExec
import MoongateProgram
import MoongateSDK
import Synchronization

// `moongate-provider test ./program`: runs the conformance suite against a provider program.

/// A program under test. It is started like in a gateway, with settings from the subject file or made up, in a
/// separate temporary folder.
struct TriedProgram {
  let provider: any Provider
  private let stage: ProgramTestEnvironment

  /// Starts the program and gives it its settings.
  /// - Parameters:
  ///   - path: relative to the working folder.
  ///   - file: the subject file of the author.
  /// - Throws: an error that says what is wrong with the program.
  init(_ path: String, _ file: ConformanceSubjectFile? = nil) throws(StartProblem) {
    let program = URL(filePath: path).standardizedFileURL
    guard FileManager.default.isExecutableFile(atPath: program.path(percentEncoded: false)) else {
      throw StartProblem(
        "\(path) cannot be run: the file does not exist or is not executable (`chmod +x \(path)`).",
        status: .couldNotRun)
    }
    let name = program.deletingPathExtension().lastPathComponent.replacing("-", with: "_")
    guard ProviderName(rawValue: name) != nil else {
      throw StartProblem(
        "\(path) is not named like a provider: use lower-case letters, digits and _, for example sms_hub.py.",
        status: .couldNotRun)
    }
    stage = try ProgramTestEnvironment(sendsBy: file?.sendsBy, answers: file?.siteAnswers ?? [:])
    do throws(StartProblem) {
      provider = try Self.start(program.path(percentEncoded: false), as: path, name: name, file, stage)
    } catch {
      // Print the program's output first: a traceback is more useful than the error.
      for line in stage.takeObservations().lines { LineLog.standardError(LineLog.plain(line) + "\n") }
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
        "\(path) has no setting `\(setting)`, which the subject file names in `sends_by`.", status: .couldNotRun)
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
        "Put its settings into a file, for example {\"settings\": {\"url\": \"http://localhost:8065\"}}, and pass it with --subject."
      throw StartProblem("\(path): \(error.sentences.joined(separator: "; ")). \(hint)")
    }
  }

  /// Stops the program and removes its folder.
  func end() { stage.end() }

  /// An example value for a required setting.
  private static func example(of kind: SettingField.Kind) -> SettingValue? {
    switch kind {
    case .text: .text("example")
    case .number(let bounds): .number(bounds.contains(1) ? 1 : bounds.lowerBound)
    case .flag: .flag(true)
    case .choice(let words): words.first.map { .text($0) }
    case .list: .list([])
    case .table: .table([:])
    case .secret, .messages, .file, .source: nil
    }
  }
}

extension SettingValue {
  /// The setting with an absolute path, because the program runs in another folder.
  fileprivate var absolute: SettingValue {
    if case .text(let path) = self {
      .text(URL(filePath: path).standardizedFileURL.path(percentEncoded: false))
    } else {
      self
    }
  }
}

/// The environment of a program under test: its folder, its message outlet, and a listener for its notifications.
final class ProgramTestEnvironment: Sendable {
  let programs: Programs
  /// The working folder of the program, as an absolute path.
  let folder: String
  private let site: ProgramTestSite?
  private let file: ProgramTestFile?
  private let listening: Listening

  /// - Parameters:
  ///   - sendsBy: how the program sends messages; nil if they cannot be observed.
  ///   - answers: the answers of the site, by path prefix.
  init(sendsBy: ConformanceSubjectFile.DeliveryChannel?, answers: [String: [UInt8]]) throws(StartProblem) {
    let folder = NSTemporaryDirectory() + "moongate-try-" + UUID().uuidString
    self.folder = folder
    switch sendsBy {
    case .site?: (site, file) = (try ProgramTestSite(answers: answers), nil)
    case .file?: (site, file) = (nil, ProgramTestFile(path: folder + "/sent.txt"))
    case nil: (site, file) = (nil, nil)
    }
    let listening = Listening()
    // The findings of the suite report violations, so nothing is logged.
    programs = Programs(
      readers: Providers.readers, logger: Logger(label: "exec") { _ in SwiftLogNoOpLogHandler() },
      listener: { listening.receive($0) }, jitter: { Double.random(in: 0..<1) })
    self.listening = listening
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw StartProblem(
        "The program's folder could not be created: \(error.localizedDescription)", status: .couldNotRun)
    }
  }

  /// The received notifications, until they are read.
  private final class Listening: Sendable {
    private let received = Mutex<[ReceivedNotification]>([])

    func receive(_ what: ReceivedNotification) { received.withLock { $0.append(what) } }

    func taken() -> [ReceivedNotification] {
      received.withLock { received in
        defer { received = [] }
        return received
      }
    }
  }

  /// Starts a program and reads its descriptor.
  /// - Parameter isAgain: whether this is a second process beside the running one.
  func introduced(_ program: String, as name: String, isAgain: Bool = false) throws(ProgramProblem) -> IntroducedProgram
  {
    let specification = ProgramSpecification(
      name: name, path: program, environment: ProgramSpecification.leastEnvironment, folder: folder,
      digest: isAgain ? "again" : "")
    guard let first = try programs.introduce([specification]).first?.get() else { throw ProgramProblem(sentences: []) }
    return first
  }

  /// The value of the setting that names the message outlet.
  var outlet: String { site?.address ?? folder + "/sent.txt" }

  var unobservableReason: String? {
    site == nil && file == nil
      ? "its messages cannot be observed: if it sends any, name the setting in subject.json, for example {\"sends_by\": {\"site\": \"url\"}}"
      : nil
  }

  var canDelayDelivery: Bool { site != nil }

  func setServiceBehavior(_ behavior: ServiceBehavior) {
    site?.setServiceBehavior(behavior)
    file?.setServiceBehavior(behavior)
  }

  func takeObservations() -> ProviderObservations {
    var seen = ProviderObservations(requests: site?.taken() ?? file?.taken() ?? [])
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

  /// The finding for a violation by the program; nil if the failed call is a sufficient report or if the suite provoked
  /// it.
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
    case "lie" where words.contains(ProgramFault.undeclaredReason):
      ConformanceFinding(
        rule: .outcomes, seen: seen,
        advice: "Declare it in `outcomes` of `hello`; until then the gateway answers 503.")
    case "facts":
      ConformanceFinding(
        rule: .facts, seen: "It \(words).",
        advice: "Declare it in `facts` of `hello`, or leave it out: the gateway drops it, and policies cannot read it."
      )
    case "stray": ConformanceFinding(rule: .cleanup, seen: seen, advice: "Answer each call once, by its own id.")
    case "farewell":
      ConformanceFinding(
        rule: .cleanup, seen: "It \(words).",
        advice: "Exit on `shutdown` or at the end of standard input. The gateway kills a program that does not.")
    case "late":
      ConformanceFinding(
        rule: .cancellation, seen: "A call had \(words).",
        advice: "Set a time limit on everything that the program waits for, because a user is waiting too.")
    default: nil
    }
  }

  /// Stops the program and removes its environment. Later calls do nothing.
  func end() {
    programs.end()
    site?.end()
    try? FileManager.default.removeItem(atPath: folder)
  }
}

/// A code provider that is a program, with its test environment.
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

/// A full provider that is a program, with its test environment.
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

/// A provider program with its test environment.
protocol TestedProgram: WatchedProvider {
  var stage: ProgramTestEnvironment { get }
  /// The path of the program file.
  var program: String { get }
}

extension TestedProgram {
  var unobservableReason: String? { stage.unobservableReason }
  var canDelayDelivery: Bool { stage.canDelayDelivery }
  func setServiceBehavior(_ behavior: ServiceBehavior) { stage.setServiceBehavior(behavior) }
  func takeObservations() -> ProviderObservations { stage.takeObservations() }
  func restartedDescriptor() async -> Result<ProviderDescriptor, RestartProblem>? {
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
