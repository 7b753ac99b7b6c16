import Foundation
import MoongateProgram

/// The source of Moongate for a new package.
struct MoongateSource {
  /// The dependency in Package.swift.
  let dependency: String
  /// The place of the `config/` folder, for the README.
  let configuration: String

  /// - Parameter named: a folder or a Git URL; nil for the sources that this program was built from.
  /// - Throws: an error if the sources are missing.
  init(_ named: String?) throws(StartProblem) {
    if let named, named.contains("://") || named.hasPrefix("git@") {
      guard !named.contains("\""), !named.contains("\\") else {
        throw StartProblem("\(named) is not a Git URL.", status: .couldNotRun)
      }
      dependency = ".package(url: \"\(named)\", branch: \"main\")"
      configuration = named
      return
    }
    let start = named ?? Bundle.main.executablePath ?? "."
    var folder = URL(filePath: start).standardizedFileURL.resolvingSymlinksInPath()
    // If a folder was named, do not search its parents.
    while !Self.isSource(folder) {
      guard named == nil, folder.pathComponents.count > 1 else {
        throw StartProblem(
          named.map { "\($0) does not contain Moongate's sources. Give their folder or a Git URL with --moongate." }
            ?? "The sources that this program was built from are missing. Give their place with --moongate FOLDER or --moongate https://….",
          status: .couldNotRun)
      }
      folder.deleteLastPathComponent()
    }
    let path = folder.path(percentEncoded: false)
    let clean = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !clean.contains("\""), !clean.contains("\\") else {
      throw StartProblem("\(clean) must not contain quotes.", status: .couldNotRun)
    }
    dependency = ".package(name: \"moongate\", path: \"\(clean)\")"
    configuration = "\(clean)/config"
  }

  private static func isSource(_ folder: URL) -> Bool {
    guard let text = try? String(contentsOf: folder.appending(path: "Package.swift"), encoding: .utf8) else {
      return false
    }
    return text.contains("name: \"moongate\",") && text.contains("MoongateSDK")
  }
}
