import Foundation

/// Where a new package gets Moongate from.
struct MoongateSource {
  /// As Package.swift names it.
  let dependency: String
  /// Where its `config/` is, for people.
  let configuration: String

  /// - Parameter named: a folder or a git address; nil: the sources that this program was built from.
  /// - Throws: a sentence where there are none.
  init(_ named: String?) throws(StartProblem) {
    if let named, named.contains("://") || named.hasPrefix("git@") {
      guard !named.contains("\""), !named.contains("\\") else {
        throw StartProblem("\(named) is no git address.", status: .couldNotRun)
      }
      dependency = ".package(url: \"\(named)\", branch: \"main\")"
      configuration = named
      return
    }
    let start = named ?? Bundle.main.executablePath ?? "."
    var folder = URL(filePath: start).standardizedFileURL.resolvingSymlinksInPath()
    // Of a folder that was named only it itself counts.
    while !Self.isSource(folder) {
      guard named == nil, folder.pathComponents.count > 1 else {
        throw StartProblem(
          named.map { "\($0) has none of Moongate's sources: name their folder, or a git address, by --moongate." }
            ?? "This program was not built from Moongate's sources here: say where they are by --moongate FOLDER or --moongate https://….",
          status: .couldNotRun)
      }
      folder.deleteLastPathComponent()
    }
    let path = folder.path(percentEncoded: false)
    let clean = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !clean.contains("\""), !clean.contains("\\") else {
      throw StartProblem("\(clean) has quotes in its path.", status: .couldNotRun)
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
