import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy types`: what editors are told.
struct PolicyTypes: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "types", abstract: "Print the types of the Lua files for lua-language-server.",
    discussion: """
      config/editor/moongate.d.lua is this output: write it again where your build has providers of its own, or, with --config, where your folder names \
      programs that declare facts.
      """)

  @Option(name: .customLong("config"), help: "A folder whose programs are asked what facts they declare.") var folder:
    String?

  func run() async throws {
    let providers = try await ConfigurationOption.registry(of: folder).all.map(\.descriptor)
    print(EditorTypes(providers: providers).text, terminator: "")
  }
}
