import MoongateCore
import MoongateSDK

/// The tokens of a function and of the code before its file's table, for comparison. White space and comments do not
/// matter.
struct FunctionText: Equatable {
  let location: SourceLocation
  fileprivate let words: [String]
  fileprivate let helpers: [String]

  static func == (left: Self, right: Self) -> Bool { left.words == right.words && left.helpers == right.helpers }
}

/// The functions of a generation as tokens. Each file is split once, because apps.lua may have thousands of functions.
final class FunctionTexts {
  private struct File {
    var words: [String] = []
    var tokens: [LuaToken] = []
    /// The code before the file's table, and the shared files if the file includes any.
    var helpers: [String] = []
    /// The first function of each line.
    var functions: [Int: Int] = [:]
  }

  private let generation: Generation
  private var files: [String: File] = [:]
  /// The words of all shared files.
  private lazy var shared: [String] = generation.shared.flatMap { Self.split($0.bytes).words }

  init(_ generation: Generation) { self.generation = generation }

  /// - Returns: nil if the generation has no such function.
  func text(of name: FunctionName) -> FunctionText? {
    guard let function = generation.functions.entries[name]?.function, let file = file(function.source) else {
      return nil
    }
    // A function of a file may call any shared file, and one of a shared file any of its own.
    let helpers = function.shared == nil ? file.helpers : file.helpers + shared
    return FunctionText(location: function.location, words: words(at: function.line, of: file), helpers: helpers)
  }

  /// Several functions on one line are taken together.
  private func words(at line: Int, of file: File) -> [String] {
    guard let first = file.functions[line] else { return [] }
    var words: [String] = []
    var depth = 0
    for index in first..<file.tokens.count {
      let token = file.tokens[index]
      if depth == 0 {
        guard token.line == line else { break }
        guard token.kind == .opener("function") else { continue }
      }
      words.append(file.words[index])
      if case .opener = token.kind { depth += 1 }
      if case .closer = token.kind { depth -= 1 }
    }
    return words
  }

  private func file(_ name: String) -> File? {
    if let file = files[name] { return file }
    guard let source = generation.sources[name] else { return nil }
    var file = Self.split(source.bytes)
    if LuaNames(source.bytes).globals.contains(where: { $0.path.first == "include" }) { file.helpers += shared }
    files[name] = file
    return file
  }

  private static func split(_ bytes: [UInt8]) -> File {
    var file = File()
    var depth = 0
    var isBeforeTable = true
    var tokens = LuaTokens(bytes)
    while let token = tokens.next() {
      let word = String(decoding: bytes[token.range], as: UTF8.self)
      if depth == 0, token.kind == .keyword("return") { isBeforeTable = false }
      if isBeforeTable { file.helpers.append(word) }
      if token.kind == .opener("function"), file.functions[token.line] == nil {
        file.functions[token.line] = file.tokens.count
      }
      if case .opener = token.kind { depth += 1 }
      if case .closer = token.kind { depth -= 1 }
      file.words.append(word)
      file.tokens.append(token)
    }
    return file
  }
}
