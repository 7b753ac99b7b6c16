import Foundation

/// The reference page of the commands, from the descriptions of the argument parser.
extension Reference {
  /// The output of `--experimental-dump-help`.
  private struct Description: Decodable {
    struct Command: Decodable {
      let commandName: String
      let shouldDisplay: Bool
      let abstract: String?
      let discussion: String?
      let subcommands: [Command]?
      let arguments: [Argument]?
    }

    struct Argument: Decodable {
      struct Name: Decodable {
        let kind: String
        let name: String
      }

      let kind: String
      let shouldDisplay: Bool
      let isOptional: Bool
      let names: [Name]?
      let valueName: String?
      let defaultValue: String?
      let allValues: [String]?
      let abstract: String?
    }

    let command: Command
  }

  /// - Parameter commandHelp: the commands of each program, as `--experimental-dump-help` prints them.
  static func commands(_ commandHelp: [String]) throws -> ReferencePage {
    let programs = try commandHelp.map { try JSONDecoder().decode(Description.self, from: Data($0.utf8)).command }
    return ReferencePage(
      file: "commands.md", title: "Commands",
      introduction: """
        `moongate help COMMAND` prints the same text. Every command exits with 0 on success, with 1 if it found a problem, and with 2 if it
        could not run because of bad usage or missing input.
        """,
      sections: programs.flatMap { program in
        own(program.subcommands).flatMap { sections(of: $0, behind: program.commandName) }
      })
  }

  private static func sections(of command: Description.Command, behind parent: String) -> [ReferenceSection] {
    guard command.shouldDisplay else { return [] }
    let path = "\(parent) \(command.commandName)"
    let entries = (command.arguments ?? []).filter { $0.shouldDisplay && !isCommonOption($0) }.map {
      entry(of: $0, in: path)
    }
    let summary = [command.abstract, command.discussion].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    let section = ReferenceSection(
      title: path, summary: summary, subject: "Option", entries: entries, prefix: path + " ")
    return [section] + own(command.subcommands).flatMap { sections(of: $0, behind: path) }
  }

  /// Removes the parser's own `help`.
  private static func own(_ commands: [Description.Command]?) -> [Description.Command] {
    (commands ?? []).filter { $0.abstract != "Show subcommand help information." }
  }

  /// Whether the argument is `--help` or `--version`, which every command has.
  private static func isCommonOption(_ argument: Description.Argument) -> Bool {
    argument.names?.contains { $0.name == "help" || $0.name == "version" } ?? false
  }

  private static func entry(of argument: Description.Argument, in path: String) -> ReferenceEntry {
    let names = (argument.names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name }.sorted { $0.count > $1.count }
    let value = argument.kind == "flag" ? "" : "<\(argument.valueName ?? "value")>"
    let spelled = [names.joined(separator: ", "), value].filter { !$0.isEmpty }.joined(separator: " ")
    let standard = argument.defaultValue ?? (argument.isOptional ? "" : "required")
    let values = argument.allValues.map { " One of \($0.joined(separator: ", "))." } ?? ""
    return ReferenceEntry(
      name: "\(path) \(spelled)", properties: ["default": standard], help: (argument.abstract ?? "") + values)
  }
}
