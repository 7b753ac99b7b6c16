import Foundation

/// The order of a target's folders, from the bottom up.
struct FolderOrder {
  private let places: [String: Int]

  init(_ folders: [String]) { places = Dictionary(zip(folders, folders.indices)) { first, _ in first } }

  /// Every use of a type of a folder further up, a sentence for each.
  func violations(of files: [SourceFile]) -> [String] {
    var owners: [String: [SourceFile]] = [:]
    for file in files { for type in file.declaredTypes { owners[type, default: []].append(file) } }
    return files.flatMap { file in
      file.usedNames.sorted().compactMap { name -> String? in
        guard let found = owners[name], found.count == 1, let place = places[file.folder],
          let other = places[found[0].folder], other > place
        else {
          return nil
        }
        let owner = found[0]
        return
          "\(file.folder)/\(file.name) uses `\(name)` of \(owner.folder)/\(owner.name), and \(owner.folder) is above \(file.folder)"
      }
    }
  }
}

/// A Swift file, as far as types are declared and named in it.
struct SourceFile {
  let folder: String
  let name: String
  /// The types that it declares at its top level, for other files too.
  let declaredTypes: Set<String>
  /// All that could be a type's name in it, outside comments and texts.
  let usedNames: Set<String>

  init(folder: String, name: String, source: String) {
    self.folder = folder
    self.name = name
    let code = Self.code(in: source)
    let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    declaredTypes = Set(
      code.split(separator: "\n").compactMap { line in
        guard !line.hasPrefix(" "), !line.hasPrefix("private"), !line.hasPrefix("fileprivate") else { return nil }
        let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        guard let keyword = words.firstIndex(where: { keywords.contains($0) }) else { return nil }
        return words.dropFirst(keyword + 1).first.map(String.init)
      })
    usedNames = Set(
      code.split { !($0.isLetter || $0.isNumber || $0 == "_") }.filter { $0.first?.isUppercase ?? false }.map(
        String.init))
  }

  /// Without comments and without texts in quotes.
  private static func code(in source: String) -> String {
    var isInText = false
    return source.split(separator: "\n").map { line in
      let isEdge = line.contains("\"\"\"")
      defer { if isEdge { isInText.toggle() } }
      if isInText || isEdge { return "" }
      let whole = line.split(separator: "//", maxSplits: 1, omittingEmptySubsequences: false)[0]
      return whole.split(separator: "\"", omittingEmptySubsequences: false).enumerated().filter {
        $0.offset.isMultiple(of: 2)
      }.map(\.element)
        .joined(separator: " ")
    }.joined(separator: "\n")
  }

  /// Every Swift file of the folders of a target.
  static func all(in target: URL) throws -> [SourceFile] {
    let files = FileManager.default
    return try files.contentsOfDirectory(atPath: target.path).sorted().flatMap { folder -> [SourceFile] in
      var isFolder: ObjCBool = false
      let path = target.appendingPathComponent(folder)
      guard files.fileExists(atPath: path.path, isDirectory: &isFolder), isFolder.boolValue else { return [] }
      return try files.subpathsOfDirectory(atPath: path.path).filter { $0.hasSuffix(".swift") }.sorted().map {
        SourceFile(
          folder: folder, name: $0, source: try String(contentsOf: path.appendingPathComponent($0), encoding: .utf8))
      }
    }
  }
}
