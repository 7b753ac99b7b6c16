import ArgumentParser
import Foundation
import MoongateProgram
import MoongateSDK

/// `moongate-provider new NAME`: creates a folder with a provider that builds and passes the conformance suite, with
/// its policy, tests and README.
struct ProviderNew: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Create a provider: a folder that builds, passes the conformance suite, and lists the next steps.")

  /// The programming language of the provider.
  enum Language: String, ExpressibleByArgument, CaseIterable {
    case swift
    /// A program, started by `exec { … }` in gateway.lua.
    case python, node, go
  }

  /// The kind of provider.
  enum Shape: String, ExpressibleByArgument, CaseIterable {
    /// Sends codes that the core creates and verifies.
    case code
    /// Verifies users itself.
    case full
  }

  @Argument(help: "The provider's name in flows and policies: pigeon_post.") var name: String
  @Option(help: "The programming language.") var language = Language.swift
  @Option(help: "code: the provider sends codes. full: the provider verifies users itself.") var shape = Shape.code
  @Option(
    help: "Moongate's sources: a folder or a Git URL. Default: the sources that this program was built from.")
  var moongate: String?
  @Option(help: "The parent folder of the new folder.") var into = "."

  func run() throws {
    let new = try NewProvider(name: name, shape: shape, moongate: moongate)
    let folder = URL(filePath: into, directoryHint: .isDirectory).appending(path: name, directoryHint: .isDirectory)
    let template: ProviderTemplate =
      switch language {
      case .swift: try .swift(new)
      case .python: .program(new, in: .python, isPlaced: into != ".")
      case .node: .program(new, in: .node, isPlaced: into != ".")
      case .go: .program(new, in: .go, isPlaced: into != ".")
      }
    try template.write(to: folder.path(percentEncoded: false))
    print(template.next(in: into == "." ? name : folder.path(percentEncoded: false)))
  }
}

/// The description of the provider to create.
struct NewProvider: Sendable {
  let name: ProviderName
  let shape: ProviderNew.Shape
  /// The place of Moongate's sources from the command line, or nil.
  let moongate: String?

  /// Names of modules and types that a module of the same name would hide.
  private static let taken: Set<String> = [
    "Foundation", "Swift", "Testing", "Gateway", "Moongate", "MoongateSDK", "MoongateConformance", "MoongateCommand",
    "Provider", "CodeProvider",
    "FullProvider", "Identifier", "Message", "Messenger", "Outcome", "Proof", "Shown", "String", "Int", "Array", "Task",
    "Result",
  ]

  /// - Throws: an error if the name is invalid or in use.
  init(name text: String, shape: ProviderNew.Shape, moongate: String?) throws(StartProblem) {
    guard let name = ProviderName(rawValue: text), !text.hasSuffix("_"), !text.contains("__") else {
      throw StartProblem(
        "`\(text)` is not a provider name: use lower-case letters, digits and single underscores, with a letter first, at most 48 characters, for example pigeon_post.",
        status: .couldNotRun)
    }
    self.name = name
    self.shape = shape
    self.moongate = moongate
    if Providers.all.contains(where: { $0.descriptor.name == name }) {
      throw StartProblem("This program already has a provider `\(name)`. Choose another name.", status: .couldNotRun)
    }
    if Self.taken.contains(typeName) {
      throw StartProblem(
        "A module named \(typeName) would hide another type or module. Choose another name.", status: .couldNotRun)
    }
  }

  /// The type name, for example `PigeonPost` for `pigeon_post`.
  var typeName: String {
    name.rawValue.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }

  /// The title in texts, for example `Pigeon post`.
  var title: String {
    let words = name.rawValue.replacing("_", with: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}
