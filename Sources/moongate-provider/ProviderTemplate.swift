import Foundation
import MoongateProgram
import MoongateSDK

/// The files of a new provider and the next steps.
struct ProviderTemplate: Sendable {
  /// The contents by path in the folder.
  let files: [String: String]
  /// The paths of executable files.
  var programs: Set<String> = []
  /// The next commands to run inside the folder, each with a description.
  let steps: [(command: String, what: String)]

  /// Fills in the files of Templates/. They are the files of a provider `new_provider`; this name is replaced in paths
  /// and texts.
  /// - Parameter words: additional replacements in the texts.
  static func filled(_ files: [String: [UInt8]], _ words: [String: String], for new: NewProvider) -> [String: String] {
    let names = [
      ("new_provider", new.name.rawValue), ("NewProvider", new.typeName),
      ("new-provider", new.name.rawValue.replacing("_", with: "-")),
      ("New provider", new.title),
    ]
    // Replace multi-line texts first, because they contain placeholders.
    let filling = words.sorted { $0.value.count > $1.value.count } + names.map { (key: $0.0, value: $0.1) }
    let fill = { (text: String) in filling.reduce(text) { $0.replacing($1.key, with: $1.value) } }
    return Dictionary(files.map { (names.reduce($0.key) { $0.replacing($1.0, with: $1.1) }, fill(text($0.value))) }) {
      first, _ in first
    }
  }

  /// The contents of a template file as text.
  static func text(_ file: [UInt8]) -> String { String(decoding: file, as: UTF8.self) }

  /// Writes all files into a new folder.
  /// - Throws: an error if the folder exists or cannot be written.
  func write(to folder: String) throws(StartProblem) {
    let manager = FileManager.default
    guard !manager.fileExists(atPath: folder) else {
      throw StartProblem(
        "\(folder) already exists and is not overwritten. Choose another name, or another folder with --into.",
        status: .couldNotRun)
    }
    do {
      for (path, text) in files.sorted(by: { $0.key < $1.key }) {
        let file = URL(filePath: folder, directoryHint: .isDirectory).appending(path: path)
        try manager.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file, options: .withoutOverwriting)
        if programs.contains(path) {
          try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path(percentEncoded: false))
        }
      }
    } catch {
      throw StartProblem("\(folder) could not be written: \(error.localizedDescription)", status: .couldNotRun)
    }
  }

  /// The text that lists the next steps.
  func next(in folder: String) -> String {
    let width = (steps.map(\.command.count).max() ?? 0) + 2
    let lines = steps.map { "  " + $0.command.padding(toLength: width, withPad: " ", startingAt: 0) + $0.what }
    return
      (["Created \(folder) with \(files.count) files. Next:", "  cd \(folder)"] + lines + [
        "See its README.md for the rest."
      ])
      .joined(separator: "\n")
  }
}
