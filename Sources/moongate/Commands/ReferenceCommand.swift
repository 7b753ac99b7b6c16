import ArgumentParser
import Foundation
import MoongateProgram
import MoongateSDK

/// `moongate reference FOLDER`: writes the pages of Documentation/reference/.
struct ReferenceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reference",
    abstract: "Write the reference as Markdown: fields, facts, commands, metrics, events, codes and headers.")

  @Argument(help: "The output folder. Existing files are overwritten.") var folder: String

  /// The reference of this program: its providers and its commands.
  /// - Parameter tools: the commands of `moongate-provider`, as `--experimental-dump-help` prints them.
  static func reference(tools: String? = nil) throws -> Reference {
    try Reference(
      providers: Providers.all.map(\.descriptor),
      commandHelp: [RootCommand._dumpHelp(), tools].compactMap(\.self))
  }

  func run() throws {
    let reference = try Self.reference(tools: ProviderTools.dumpedHelp())
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      for page in reference.pages {
        try Data(page.markdown.utf8).write(
          to: URL(fileURLWithPath: folder).appending(path: page.file), options: .atomic)
      }
    } catch {
      throw StartProblem("\(folder) cannot be written: \(error.localizedDescription)", status: .couldNotRun)
    }
  }
}
