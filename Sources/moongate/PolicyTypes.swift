import ArgumentParser
import MoongatePolicy
import MoongateSDK

/// `moongate policy types`: what editors are told.
struct PolicyTypes: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "types", abstract: "Print the types of the Lua files for lua-language-server.",
    discussion: "config/editor/moongate.d.lua is this output: write it again where your build has providers of its own.")

  func run() throws { print(EditorTypes(providers: Providers.all.map(\.descriptor)).text, terminator: "") }
}
