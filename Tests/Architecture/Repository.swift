import Foundation

/// The files of this repository. Paths begin at its root.
enum Repository {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The files below a folder with one of the endings, sorted.
  static func files(below folder: String, _ endings: [String]) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path).sorted()
      .filter { path in endings.contains { path.hasSuffix($0) } }.map { "\(folder)/\($0)" }
  }

  /// The same without the files of tests.
  static func sources(below folder: String, _ endings: [String]) throws -> [String] {
    try files(below: folder, endings).filter { !$0.split(separator: "/").contains("Tests") }
  }

  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }
}
