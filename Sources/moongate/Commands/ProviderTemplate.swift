import Foundation
import MoongateSDK

/// The files of a new provider, and what to do with them.
struct ProviderTemplate: Sendable {
  /// By their paths in the folder.
  let files: [String: String]
  /// Those among them that are programs.
  var programs: Set<String> = []
  /// The commands that come next, inside the folder, each with what it does.
  let steps: [(command: String, what: String)]

  /// The files of Templates/ are those of a provider `new_provider`: what it is called in their texts and names becomes
  /// the name of the new one.
  /// - Parameter words: what stands for what in their texts, besides.
  static func filled(_ files: [String: [UInt8]], _ words: [String: String], for new: NewProvider) -> [String: String] {
    let names = [
      ("new_provider", new.name.rawValue), ("NewProvider", new.typeName),
      ("new-provider", new.name.rawValue.replacing("_", with: "-")),
      ("New provider", new.title),
    ]
    // Those that are texts of several lines have gaps of their own.
    let filling = words.sorted { $0.value.count > $1.value.count } + names.map { (key: $0.0, value: $0.1) }
    let fill = { (text: String) in filling.reduce(text) { $0.replacing($1.key, with: $1.value) } }
    return Dictionary(files.map { (names.reduce($0.key) { $0.replacing($1.0, with: $1.1) }, fill(text($0.value))) }) {
      first, _ in first
    }
  }

  /// A file of Templates/, as text.
  static func text(_ file: [UInt8]) -> String { String(decoding: file, as: UTF8.self) }

  /// Writes all of it into a folder that is not there yet.
  /// - Throws: a sentence where something is in the way.
  func write(to folder: String) throws(StartProblem) {
    let manager = FileManager.default
    guard !manager.fileExists(atPath: folder) else {
      throw StartProblem(
        "\(folder) is there already, and nothing is overwritten: choose another name, or --into another folder.",
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

  /// What to tell whoever began it.
  func next(in folder: String) -> String {
    let width = (steps.map(\.command.count).max() ?? 0) + 2
    let lines = steps.map { "  " + $0.command.padding(toLength: width, withPad: " ", startingAt: 0) + $0.what }
    return
      (["Made \(folder) with \(files.count) files. Next:", "  cd \(folder)"] + lines + ["Its README.md says the rest."])
      .joined(separator: "\n")
  }
}
