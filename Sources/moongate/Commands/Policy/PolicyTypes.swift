import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy types`: prints the Lua type definitions for editors.
struct PolicyTypes: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "types", abstract: "Print the types of the Lua files for lua-language-server.",
    discussion: """
      config/editor/moongate.d.lua is this output. Generate it again if your build has its own providers or, with --config, if your folder names \
      programs that declare facts.
      """)

  @Option(name: .customLong("config"), help: "A folder with programs whose declared facts are included.") var folder:
    String?

  func run() async throws {
    let providers = try await ConfigurationOption.registry(of: folder).all.map(\.descriptor)
    print(EditorTypes(providers: providers).text, terminator: "")
  }
}
