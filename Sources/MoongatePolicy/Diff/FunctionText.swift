import MoongateCore
import MoongateSDK

/// The tokens of a function and of the code before its file's table, for comparison. White space and comments do not
/// matter.
struct FunctionText: Equatable {
  let location: SourceLocation
  private let words: [String]
  private let helpers: [String]

  static func == (left: Self, right: Self) -> Bool { left.words == right.words && left.helpers == right.helpers }

  /// - Returns: nil if the generation has no such function.
  init?(_ generation: Generation, _ name: FunctionName) {
    guard let function = generation.functions.entries[name]?.function, let source = generation.sources[function.source]
    else { return nil }
    location = function.location
    var words: [String] = []
    var helpers: [String] = []
    var tokens = LuaTokens(source.bytes)
    // The number of open blocks, and the depth at which the function's text begins.
    var depth = 0
    var taken: Int?
    var isBeforeTable = true
    while let token = tokens.next() {
      let word = String(decoding: source.bytes[token.range], as: UTF8.self)
      if depth == 0, case .keyword("return") = token.kind { isBeforeTable = false }
      if isBeforeTable { helpers.append(word) }
      if case .opener(let opener) = token.kind {
        if opener == "function", token.line == function.line, taken == nil { taken = depth }
        depth += 1
      }
      if taken != nil { words.append(word) }
      if case .closer = token.kind {
        depth -= 1
        // Several functions on one line are taken together.
        if depth == taken { taken = nil }
      }
    }
    self.words = words
    // A function of a file may call any shared file, and one of a shared file any of its own.
    if function.shared != nil || LuaNames(source.bytes).globals.contains(where: { $0.path.first == "include" }) {
      for shared in generation.shared {
        var tokens = LuaTokens(shared.bytes)
        while let token = tokens.next() { helpers.append(String(decoding: shared.bytes[token.range], as: UTF8.self)) }
      }
    }
    self.helpers = helpers
  }
}
