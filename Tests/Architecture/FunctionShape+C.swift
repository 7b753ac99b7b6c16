import Foundation

/// Functions in C, in the style of this repository: a definition begins and ends in the first column, and each line of
/// its body is indented.
extension FunctionShape {
  /// The functions that a C file defines.
  static func allInC(in source: String, file: String) -> [FunctionShape] {
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return lines.indices.compactMap { line in
      guard let signature = signature(at: line, in: lines) else { return nil }
      let body = lines[(line + signature.lines)...].prefix { !$0.hasPrefix("}") }
      let isOnOneLine = signature.text.hasSuffix("}")
      return FunctionShape(
        file: file, line: line + 1, parameters: signature.parameters, lines: isOnOneLine ? 0 : body.count,
        comment: lines[..<line].reversed().prefix { $0.hasPrefix("//") }.last ?? "")
    }
  }

  /// The functions of every C file below the folder, except those of tests.
  static func allInC(below folder: String) throws -> [FunctionShape] {
    try Repository.sources(below: folder, [".c", ".h"]).flatMap { allInC(in: try Repository.text(of: $0), file: $0) }
  }

  /// The signature that begins in this line, up to the brace of its body; nil if no definition begins there.
  private static func signature(at line: Int, in lines: [String]) -> Signature? {
    guard let first = lines[line].first, first.isLetter || first == "_" else { return nil }
    var text = ""
    for (count, part) in lines[line...].enumerated() {
      let code = part.components(separatedBy: " //")[0]
      if count > 0, !code.hasPrefix(" ") { return nil }
      text += code
      if code.hasSuffix(";") { return nil }
      if let brace = text.firstIndex(of: "{") {
        let head = text[..<brace]
        // Not a struct, an enum or the initial value of a variable.
        return head.contains("(") && !head.contains("=") ? Signature(text: text, head: head, lines: count + 1) : nil
      }
    }
    return nil
  }

  private struct Signature {
    /// What its lines contain, without comments.
    let text: String
    /// The part before the brace.
    let head: Substring
    let lines: Int

    /// The number of parameters in the last list of the signature.
    var parameters: Int {
      var (depth, commas) = (0, 0)
      var list = ""
      for character in head {
        if character == ")" { depth -= 1 }
        if depth > 0 { list.append(character) }
        if character == "(" {
          if depth == 0 { (commas, list) = (0, "") }
          depth += 1
        }
        if character == ",", depth == 1 { commas += 1 }
      }
      return ["", "void"].contains(list.trimmingCharacters(in: .whitespaces)) ? 0 : commas + 1
    }
  }
}
