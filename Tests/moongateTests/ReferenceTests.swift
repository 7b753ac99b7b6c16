import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import Testing

@testable import MoongateGateway
@testable import MoongateProviderTools

/// Documentation/reference/ and `moongate help` match the code completely.
@Suite struct ReferenceTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private let reference: Reference

  init() throws { reference = try ReferenceCommand.reference(tools: ProviderToolsCommand._dumpHelp()) }

  private func source(_ path: String) throws -> String {
    try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
  }

  private func names(_ file: String) -> [String] {
    reference.pages.filter { $0.file == file }.flatMap {
      $0.sections.flatMap { section in section.entries.map { String($0.name.dropFirst(section.prefix.count)) } }
    }
  }

  /// Every source file in Sources/, by its path.
  private func sources() throws -> [String: String] {
    let folder = Self.root.appending(path: "Sources")
    let files =
      FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects.compactMap { $0 as? URL }
      ?? []
    return try Dictionary(
      uniqueKeysWithValues: files.filter { $0.pathExtension == "swift" }.map {
        ($0.path, try String(contentsOf: $0, encoding: .utf8))
      })
  }

  /// To fix a failure, run `moongate reference Documentation/reference`.
  @Test func committedPagesEqualTheGeneratedOnes() throws {
    let folder = Self.root.appending(path: "Documentation/reference")
    let committed = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(Set(committed) == Set(reference.pages.map(\.file)))
    for page in reference.pages {
      #expect(
        try source("Documentation/reference/\(page.file)") == page.markdown,
        "\(page.file): run `moongate reference Documentation/reference`")
    }
  }

  /// The editor types are written by other code from the same shapes. Both must have the same fields, facts and
  /// functions.
  @Test func everyFieldFactAndFunctionOfTheEditorTypesIsThere() throws {
    var fields = 0
    var facts: Set<String> = []
    var type = ""
    for line in try source("config/editor/moongate.d.lua").split(separator: "\n") {
      if let found = line.firstMatch(of: /^---@class (?:\(exact\) )?moongate\.(\S+)/) { type = String(found.1) }
      guard let found = line.firstMatch(of: /^---@field ([a-z0-9_]+)\?? (\S+)/) else { continue }
      if type.hasPrefix("Facts.") {
        if found.2.hasPrefix("moongate.Facts.") { continue }
        facts.insert(type == "Facts.limit" ? "limits.NAME.\(found.1)" : "\(type.dropFirst(6)).\(found.1)")
      } else if type.hasSuffix("Facts") {
        if !found.2.hasPrefix("moongate.Facts.") && found.1 != "limits" { facts.insert(String(found.1)) }
      } else if type != "Providers" {
        fields += 1
      }
    }
    let tables = ["gateway", "policies", "flows", "routes", "accounts", "apps", "guarantees", "tests"].flatMap {
      names("\($0).md")
    }
    #expect(fields > 200)
    #expect(tables.count == fields)
    #expect(facts.count > 30)
    #expect(Set(names("facts.md").filter { $0.contains(".") || facts.contains($0) }) == facts)
    let declared = try source("config/editor/moongate.d.lua").matches(of: /(?m)^function ([a-z_]+)\(/).map {
      String($0.1)
    }
    let constructors = Set(Providers.all.map(\.descriptor.name.rawValue))
    let functions = Set(declared.filter { !constructors.contains($0) } + ["allow"])
    #expect(functions.count > 40)
    #expect(
      Set(reference.entries.map(\.entry.name).filter { $0.hasPrefix("function.") }.map { String($0.dropFirst(9)) })
        == functions)
  }

  @Test func everyFieldHasADescription() {
    let bare = [
      "true or false", "a whole number", "a text", "a PEM file", "a function of facts", "a duration, such as \"15m\"",
    ]
    let found = reference.entries.map(\.entry).filter {
      bare.contains($0.help) || $0.help.isEmpty || $0.help.hasPrefix("one of `")
    }
    #expect(found.map(\.name) == [])
  }

  /// The parser's help texts are written by other code than the description that the reference reads.
  @Test func everyOptionOfEveryCommandIsThere() throws {
    var commands = 0
    func check(_ command: any ParsableCommand.Type, _ path: String, of root: any ParsableCommand.Type) throws {
      commands += 1
      let help = root.helpMessage(for: command, columns: 400)
      let shown = help.matches(of: /(?m)^  (?:-[a-z], )?(--[a-z-]+)/).map { String($0.1) }.filter {
        $0 != "--help" && $0 != "--version"
      }
      let arguments = help.matches(of: /(?m)^  <([a-z-]+)>/).map { "<\($0.1)>" }
      let section = try #require(reference.pages.flatMap(\.sections).first { $0.title == path }, "\(path) is missing")
      let told = section.entries.map { String($0.name.dropFirst(path.count + 1)) }
      #expect(told.count == shown.count + arguments.count, "\(path): \(told), \(shown), \(arguments)")
      for name in shown { #expect(told.contains { $0.contains(name) }, "\(path) \(name)") }
      for child in command.configuration.subcommands { try check(child, "\(path) \(child._commandName)", of: root) }
    }
    for root: any ParsableCommand.Type in [RootCommand.self, ProviderToolsCommand.self] {
      for command in root.configuration.subcommands {
        try check(command, "\(root._commandName) \(command._commandName)", of: root)
      }
    }
    #expect(commands > 40)
    #expect(reference.pages.first { $0.file == "commands.md" }?.sections.count == commands)
  }

  @Test func everyMetricOfTheSourcesIsThere() throws {
    var made: Set<String> = []
    for (path, text) in try sources() where !path.hasSuffix("MetricDefinition.swift") {
      #expect(!text.contains(/MetricFamily\(\s*"/), "\(path) makes a metric that MetricDefinition does not know")
      made.formUnion(text.matches(of: /MetricFamily\(\s*\.(\w+)/).map { String($0.1) })
      made.formUnion(text.matches(of: /MetricDefinition\.(\w+)\.name/).map { String($0.1) })
    }
    let defined = Set(
      try source("Sources/MoongateCore/Metrics/MetricDefinition.swift").matches(
        of: /static let (\w+) = MetricDefinition/
      ).map { String($0.1) })
    #expect(made == defined)
    #expect(names("metrics.md").count == defined.count)
    #expect(Set(names("metrics.md")).count == defined.count)
  }

  @Test func everyEventCodeAndHeaderOfTheSourcesIsThere() throws {
    let kinds = try source("Sources/MoongateCore/Events/AuditEvent.swift").matches(
      of: /(?m)^    case [a-z]\w*(?: = "\w+")?$/)
    #expect(names("events.md").count == kinds.count)
    let codes = Set(
      try source("Sources/MoongateCore/Refusals/Refusal.swift").matches(of: /: \("([a-z_]+)", \d{3}\)/).map {
        String($0.1)
      })
    let causes = Set(RefusalCause.allCases.map(\.rawValue))
    #expect(Set(names("codes.md")) == codes.union(causes))
    #expect(names("codes.md").count == codes.count + causes.count)
    var headers: Set<String> = []
    for (path, text) in try sources() where !path.contains("/Sources/moongate/") {
      headers.formUnion(
        text.matches(of: /"((?:X-Moongate|Moongate|Remote)-[A-Z][a-z]+(?:-[A-Z][a-z]+)*)[":]/).map { String($0.1) })
    }
    #expect(Set(names("headers.md")) == headers)
  }

  @Test func helpMatchesTheReference() throws {
    let window = try #require(reference.text(of: "policy.limits.window"))
    #expect(window.contains("Duration|Vary") && window.contains("time window in which events are counted"))
    #expect(window.hasSuffix("Documentation/reference/policies.md#policylimits"))
    #expect(reference.text(of: "gateway.audit.webhook")?.contains("gateway.audit.webhook.secret") == true)
    #expect(reference.text(of: "fact.phone.country")?.contains("string?") == true)
    #expect(reference.text(of: "code.too_many_attempts")?.contains("429") == true)
    #expect(reference.text(of: "metric.moongate_requests_total")?.contains("route, outcome, status") == true)
    #expect(reference.text(of: "event.locked")?.contains("security") == true)
    #expect(reference.text(of: "policy.limits.windw") == nil)
  }

  @Test(arguments: [
    (["policy.limits.windw"], "policy.limits.window"), (["code.too_many_attemps"], "code.too_many_attempts"),
    (["serv"], "serve"), (["google_oauth.trusted_domains"], "gateway.providers.google_oauth.trusted_domains"),
  ])
  func unknownNameSuggestsTheNearestAndIsBadUsage(names: [String], nearest: String) throws {
    let help = try #require(try RootCommand.parseAsRoot(["help"] + names) as? HelpCommand)
    let problem = #expect(throws: StartProblem.self) { try help.run() }
    #expect(problem?.sentence.contains("Did you mean `\(nearest)`?") == true)
    #expect(problem?.status == .couldNotRun)
  }

  @Test func helpOfACommandIsTheCommandsHelp() throws {
    #expect(HelpCommand.help(of: ["policy", "show"]) == RootCommand.helpMessage(for: Show.self))
    #expect(HelpCommand.help(of: []) == RootCommand.helpMessage())
  }
}
