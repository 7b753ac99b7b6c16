import ArgumentParser
import Foundation
import MoongateSDK

/// `moongate provider new NAME`: a folder with a provider that builds, holds the conformance suite, and has its policy,
/// tests and README.
struct ProviderNew: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Begin a provider: a folder that builds, passes the conformance suite, and says what to do next.")

  /// The language that it is written in.
  enum Language: String, ExpressibleByArgument, CaseIterable {
    case swift
    /// A program, started by `exec { … }` in gateway.lua.
    case python, node, go
  }

  /// Which of the two kinds.
  enum Shape: String, ExpressibleByArgument, CaseIterable {
    /// Sends codes; the core makes and compares them.
    case code
    /// Verifies by itself.
    case full
  }

  @Argument(help: "What flows and policies will call it: pigeon_post.") var name: String
  @Option(help: "What it is written in.") var language = Language.swift
  @Option(help: "code: it sends codes. full: it verifies by itself.") var shape = Shape.code
  @Option(
    help: "Moongate's sources: a folder or a git address. Found by itself where this program was built from them.")
  var moongate: String?
  @Option(help: "Where the folder is made.") var into = "."

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

/// A provider that is not there yet.
struct NewProvider: Sendable {
  let name: ProviderName
  let shape: ProviderNew.Shape
  /// Where Moongate's sources are, as they were named; nil where they were not.
  let moongate: String?

  /// Modules and types that a module of the name would hide.
  private static let taken: Set<String> = [
    "Foundation", "Swift", "Testing", "Gateway", "Moongate", "MoongateSDK", "MoongateConformance", "MoongateCommand",
    "Provider", "CodeProvider",
    "FullProvider", "Identifier", "Message", "Messenger", "Outcome", "Proof", "Shown", "String", "Int", "Array", "Task",
    "Result",
  ]

  /// - Throws: a sentence where the name is none, or is taken.
  init(name text: String, shape: ProviderNew.Shape, moongate: String?) throws(StartProblem) {
    guard let name = ProviderName(rawValue: text), !text.hasSuffix("_"), !text.contains("__") else {
      throw StartProblem(
        "`\(text)` is no name of a provider: lower-case letters, digits and single underscores, a letter first, 48 characters at most, as in pigeon_post.",
        status: .couldNotRun)
    }
    self.name = name
    self.shape = shape
    self.moongate = moongate
    if Providers.all.contains(where: { $0.descriptor.name == name }) {
      throw StartProblem("This program has a provider `\(name)` already: choose another name.", status: .couldNotRun)
    }
    if Self.taken.contains(typeName) {
      throw StartProblem(
        "A module named \(typeName) would hide one of that name: choose another name.", status: .couldNotRun)
    }
  }

  /// `PigeonPost` of `pigeon_post`.
  var typeName: String {
    name.rawValue.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }

  /// `Pigeon post`, for people.
  var title: String {
    let words = name.rawValue.replacing("_", with: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}
