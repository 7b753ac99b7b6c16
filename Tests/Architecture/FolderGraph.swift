/// The folders of one target from the bottom up, each with the folders whose types it uses.
struct FolderMap {
  struct Folder {
    let name: String
    let uses: Set<String>
  }

  let folders: [Folder]

  /// The maps of all targets in the text of `folders.txt`: a line for a target, then an indented line for each folder.
  static func all(in text: String) -> [String: FolderMap] {
    var found: [String: [Folder]] = [:]
    var target = ""
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      guard line.hasPrefix(" ") else {
        target = String(line)
        continue
      }
      let parts = line.split(separator: ":", maxSplits: 1)
      let name = parts[0].filter { $0 != " " }
      let uses = parts.count > 1 ? parts[1].split { $0 == "," || $0 == " " }.map(String.init) : []
      found[target, default: []].append(Folder(name: name, uses: Set(uses)))
    }
    return found.mapValues { FolderMap(folders: $0) }
  }

  /// The folder that a file belongs to: the longest one that contains it; nil for a file outside of all of them.
  /// - Parameter path: the file's path in the target.
  func folder(of path: String) -> String? {
    folders.map(\.name).filter { path.hasPrefix("\($0)/") }.max { $0.count < $1.count }
  }

  /// Folders that use one which is not below them, a sentence for each. Without these, there are no cycles.
  var upwardUses: [String] {
    folders.indices.flatMap { index in
      folders[index].uses.subtracting(folders[..<index].map(\.name)).sorted().map {
        "\(folders[index].name) uses \($0), which is no folder above it in the list"
      }
    }
  }

  /// The differences between this map and the files, a sentence for each.
  func violations(of files: [SourceFile]) -> [String] {
    var owners: [String: [SourceFile]] = [:]
    for file in files { for type in file.declaredTypes { owners[type, default: []].append(file) } }
    let allowed = Dictionary(folders.map { ($0.name, $0.uses) }) { first, _ in first }
    var unused = allowed
    var sentences: [String] = []
    for file in files {
      guard let folder = folder(of: file.path) else { continue }
      for name in file.usedNames.sorted() {
        guard let found = owners[name], found.count == 1 else { continue }
        let other = self.folder(of: found[0].path)
        if other == folder { continue }
        if let other, allowed[folder]?.contains(other) == true {
          unused[folder]?.remove(other)
        } else {
          sentences.append(
            "\(file.path) uses `\(name)` of \(found[0].path), and \(folder) may not use \(other ?? "files in no folder")"
          )
        }
      }
    }
    return sentences
      + folders.flatMap { folder in
        (unused[folder.name] ?? []).sorted().map { "\(folder.name) does not use \($0): delete it from the line" }
      }
  }
}

/// A Swift file, as far as types are declared and named in it.
struct SourceFile {
  /// Its path in the target.
  let path: String
  /// The types that it declares at its top level, for other files too.
  let declaredTypes: Set<String>
  /// All that could be a type's name in it, outside comments and texts.
  let usedNames: Set<String>

  init(path: String, source: String) {
    self.path = path
    let code = PlainCode.of(Array(source.utf8))
    let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    declaredTypes = Set(
      String(decoding: code, as: UTF8.self).split(separator: "\n").compactMap { line in
        guard !line.hasPrefix(" "), !line.hasPrefix("private"), !line.hasPrefix("fileprivate") else { return nil }
        let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        guard let keyword = words.firstIndex(where: { keywords.contains($0) }) else { return nil }
        return words.dropFirst(keyword + 1).first.map(String.init)
      })
    usedNames = Self.typeNames(in: code)
  }

  /// The words that begin with a capital letter.
  private static func typeNames(in code: [UInt8]) -> Set<String> {
    Set(
      code.split { !$0.isInName }.filter { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0[$0.startIndex]) }.map {
        String(decoding: $0, as: UTF8.self)
      })
  }
}
