import Foundation

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
    let code = Self.code(in: source)
    let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    declaredTypes = Set(
      code.split(separator: "\n").compactMap { line in
        guard !line.hasPrefix(" "), !line.hasPrefix("private"), !line.hasPrefix("fileprivate") else { return nil }
        let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        guard let keyword = words.firstIndex(where: { keywords.contains($0) }) else { return nil }
        return words.dropFirst(keyword + 1).first.map(String.init)
      })
    usedNames = Self.typeNames(in: code)
  }

  /// The words that begin with a capital letter.
  private static func typeNames(in code: String) -> Set<String> {
    var found: Set<String> = []
    var word: [UInt8] = []
    for byte in Array(code.utf8) + [0] {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        word.append(byte)
      default:
        if let first = word.first, first <= UInt8(ascii: "Z"), first >= UInt8(ascii: "A") {
          found.insert(String(decoding: word, as: UTF8.self))
        }
        word.removeAll(keepingCapacity: true)
      }
    }
    return found
  }

  /// Without comments and without texts in quotes, except for the expressions in them. Lines stay lines.
  private static func code(in source: String) -> String {
    var scanner = CodeScanner(Array(source.utf8))
    return scanner.code()
  }

  /// The paths of all Swift files of a target.
  static func paths(in target: URL) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: target.path).filter { $0.hasSuffix(".swift") }.sorted()
  }
}

/// Tells code from comments and texts, byte by byte.
private struct CodeScanner {
  private enum Part {
    /// Code, or an expression in a text, which ends with the parenthesis that is not opened in it.
    case code(parentheses: Int)
    /// A text in one or three quotes, with so many `#` around it.
    case text(quotes: Int, hashes: Int)
  }

  private static let newline = UInt8(ascii: "\n")
  private static let quote = UInt8(ascii: "\"")
  private static let hash = UInt8(ascii: "#")
  private let bytes: [UInt8]
  private var place = 0
  private var kept: [UInt8] = []
  private var parts: [Part] = [.code(parentheses: 0)]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func code() -> String {
    while place < bytes.count {
      switch parts.last {
      case .text(let quotes, let hashes): readText(quotes, hashes)
      case .code(let parentheses): readCode(parentheses)
      case nil: parts = [.code(parentheses: 0)]
      }
    }
    return String(decoding: kept, as: UTF8.self)
  }

  private mutating func readCode(_ parentheses: Int) {
    let byte = bytes[place]
    switch byte {
    case UInt8(ascii: "/") where isNext("//"):
      while place < bytes.count, bytes[place] != Self.newline { place += 1 }
      return
    case Self.quote, Self.hash:
      var hashes = 0
      while isNext(1, of: Self.hash, after: hashes) { hashes += 1 }
      guard isNext("\"", after: hashes) else { break }
      let quotes = isNext("\"\"\"", after: hashes) ? 3 : 1
      place += hashes + quotes
      kept.append(UInt8(ascii: " "))
      return parts.append(.text(quotes: quotes, hashes: hashes))
    case UInt8(ascii: "("): parts[parts.count - 1] = .code(parentheses: parentheses + 1)
    case UInt8(ascii: ")") where parentheses == 0 && parts.count > 1:
      place += 1
      kept.append(UInt8(ascii: " "))
      parts.removeLast()
      return
    case UInt8(ascii: ")"): parts[parts.count - 1] = .code(parentheses: parentheses - 1)
    default: break
    }
    place += 1
    kept.append(byte)
  }

  private mutating func readText(_ quotes: Int, _ hashes: Int) {
    let byte = bytes[place]
    if byte == Self.quote, isNext(quotes, of: Self.quote, after: 0), isNext(hashes, of: Self.hash, after: quotes) {
      place += quotes + hashes
      parts.removeLast()
    } else if byte == UInt8(ascii: "\\"), isNext(hashes, of: Self.hash, after: 1) {
      let isExpression = isNext("(", after: 1 + hashes)
      place += hashes + 2
      guard isExpression else { return }
      kept.append(UInt8(ascii: " "))
      parts.append(.code(parentheses: 0))
    } else {
      if byte == Self.newline {
        kept.append(Self.newline)
        // A quote in a regular expression begins no text.
        if quotes == 1 { parts.removeLast() }
      }
      place += 1
    }
  }

  private func isNext(_ text: StaticString, after offset: Int = 0) -> Bool {
    let start = place + offset, count = text.utf8CodeUnitCount
    guard start + count <= bytes.count else { return false }
    for index in 0..<count where bytes[start + index] != text.utf8Start[index] { return false }
    return true
  }

  /// Whether so many bytes of one kind follow.
  private func isNext(_ count: Int, of byte: UInt8, after offset: Int) -> Bool {
    let start = place + offset
    guard start + count <= bytes.count else { return false }
    for index in start..<start + count where bytes[index] != byte { return false }
    return true
  }
}
