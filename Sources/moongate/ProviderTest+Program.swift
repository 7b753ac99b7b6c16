import Foundation
import MoongateConformance
import MoongateCore
import MoongateExec
import MoongateSDK

// `moongate provider test ./program`: the same suite, run against a provider that is another program.

/// A program that is tried out: started as a gateway would start it, with settings that the subject says or the suite makes up.
struct TriedProgram {
  let provider: any Provider
  private let programs: Programs

  /// Starts it and gives it its settings.
  /// - Parameters:
  ///   - path: relative to the working folder, where it runs.
  ///   - change: puts what the subject's file says over what is made up.
  /// - Throws: what is wrong with it, a sentence each.
  init(_ path: String, change: (inout ConformanceSubject) -> Void) throws(StartProblem) {
    let folder = FileManager.default.currentDirectoryPath
    let file = URL(filePath: path).standardizedFileURL
    guard FileManager.default.isExecutableFile(atPath: file.path(percentEncoded: false)) else {
      throw StartProblem("\(path) cannot be run: there is no such file, or it wants `chmod +x \(path)`.", status: .couldNotRun)
    }
    let name = file.deletingPathExtension().lastPathComponent.replacing("-", with: "_")
    guard ProviderName(rawValue: name) != nil else {
      throw StartProblem("\(path) is called like no provider: lower-case letters, digits and _, as in sms_hub.py.", status: .couldNotRun)
    }
    programs = ProgramHouse.programsForTools()
    let specification = ProgramSpecification(
      name: name, path: file.path(percentEncoded: false), environment: ProgramSpecification.leastEnvironment, folder: folder, digest: "")
    let introduced: IntroducedProgram
    do throws(ProgramProblem) {
      guard let first = try programs.introduce([specification]).first?.get() else { throw ProgramProblem(sentences: []) }
      introduced = first
    } catch {
      throw StartProblem("\(path): \(error.sentences.joined(separator: "; ")).")
    }
    var subject = ConformanceSubject(of: introduced.descriptor)
    change(&subject)
    var values: [String: SettingValue] = [:]
    var secrets: [String: String] = [:]
    for field in introduced.descriptor.settings {
      if field.kind == .secret {
        secrets[field.name] = subject.secrets[field.name] ?? "planted-\(field.name)-c41f7be02d"
      } else if let value = subject.settings[field.name] ?? field.standard ?? (field.isRequired ? Self.example(of: field.kind) : nil) {
        values[field.name] = value
      }
    }
    do throws(ProgramProblem) {
      let started = try programs.configure(introduced, values: values, secrets: secrets)
      provider = (started as? any CodeProvider).map(ReportedDeliveries.init) ?? started
    } catch {
      let hint = "Say its settings in a file and name that by --subject, as in {\"settings\": {\"url\": \"http://localhost:8065\"}}."
      throw StartProblem("\(path): \(error.sentences.joined(separator: "; ")). \(hint)")
    }
  }

  /// Ends the program.
  func end() { programs.end() }

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

extension ConformanceReport {
  /// The report without what the suite cannot look at in a program: it uses none of the tools that the suite lends, so it was none of the program
  /// that failed or waited when those did.
  var ofProgram: ConformanceReport {
    let lines = lines.map { line in
      switch (line.rule, line.verdict) {
      case (.faults, .held):
        Line(rule: line.rule, verdict: .doesNotApply(why: "a program sends by ways of its own, which the suite cannot let fail"))
      case (.cancellation, .held):
        Line(rule: line.rule, verdict: .doesNotApply(why: "the gateway itself stops waiting for a program; whether that stops too, only it can tell"))
      default: line
      }
    }
    return ConformanceReport(provider: provider, lines: lines, findings: findings)
  }
}

/// A code provider that is a program, as the suite can see it: the suite looks at what was done with its own messenger, and a program sends by ways
/// of its own. What the program took over is therefore reported to the messenger, once it has.
private struct ReportedDeliveries: CodeProvider {
  let base: any CodeProvider

  init(_ base: any CodeProvider) { self.base = base }

  var descriptor: ProviderDescriptor { base.descriptor }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try base.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await base.deliver(code, to: identifier, with: tools)
    let channel: MessageChannel = identifier.kind == .phone ? .sms : .mail
    try await tools.send(Message(channel: channel, to: identifier.value, subject: code.service, text: code.text, code: code.code))
  }
}
