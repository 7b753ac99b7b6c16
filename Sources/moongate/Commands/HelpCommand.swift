import ArgumentParser
import MoongatePolicy
import MoongateProgram

/// `moongate help NAME`: prints an entry of the reference or the help of a command.
struct HelpCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "help", abstract: "Print the help of a command or the reference entry of a name.",
    discussion: """
      A name is a field, for example policy.limits.window, or one of fact.phone.country, function.cidr, metric.moongate_locks, event.locked, \
      code.too_many_attempts, cause.operator_lock and header.Remote-User.
      """)

  @Argument(help: "A command with its subcommands, or a name from the reference.") var names: [String] = []

  func run() throws {
    if let help = Self.help(of: names) { return print(help) }
    let name = names.joined(separator: " ")
    let reference = try ReferenceCommand.reference()
    guard let text = reference.text(of: name) else {
      let commands = Self.subcommands(of: RootCommand.self).map(\.name)
      let ending = reference.names.first { $0.hasSuffix(".\(name)") }
      let meant = ending ?? Suggestion.nearest(to: name, among: reference.names + commands)
      let advice =
        meant.map { "Did you mean `\($0)`?" }
        ?? "Documentation/reference/ lists all names; `moongate help` lists the commands."
      throw StartProblem("Unknown name `\(name)`. \(advice)", status: .couldNotRun)
    }
    print(text)
  }

  /// Returns the help of the command with this path of names, or nil if there is no such command.
  static func help(of names: [String]) -> String? {
    var command: any ParsableCommand.Type = RootCommand.self
    for name in names {
      guard let next = subcommands(of: command).first(where: { $0.name == name }) else { return nil }
      command = next.type
    }
    return RootCommand.helpMessage(for: command)
  }

  private static func subcommands(of command: any ParsableCommand.Type) -> [(
    name: String, type: any ParsableCommand.Type
  )] {
    command.configuration.subcommands.map { ($0._commandName, $0) }
  }
}
