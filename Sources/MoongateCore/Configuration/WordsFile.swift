/// The lines of a file `pages/LANGUAGE.words`: `name = text`, and below `[sentences]` the translations of sentences.
package enum WordsFile {
  /// The content of one line.
  package enum Line: Sendable, Equatable {
    /// A text of the pages by its name.
    case text(name: String, String)
    /// A translated sentence by its English text or by the reason of a policy.
    case sentence(name: String, String)
    /// Not of the form `name = text`.
    case malformed
  }

  /// Reads the lines, without empty lines, comments and `[sentences]`.
  /// - Returns: each line with its number, from 1.
  package static func lines(of text: String) -> [(number: Int, line: Line)] {
    var isInSentences = false
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    return lines.enumerated().compactMap { index, line in
      let line = line.trimming { $0 == " " || $0 == "\t" || $0 == "\r" }
      if line.isEmpty || line.hasPrefix("#") { return nil }
      if line == "[sentences]" {
        isInSentences = true
        return nil
      }
      guard let separator = line.firstRange(of: " = ") else { return (index + 1, .malformed) }
      let (name, said) = (String(line[..<separator.lowerBound]), String(line[separator.upperBound...]))
      return (index + 1, isInSentences ? .sentence(name: name, said) : .text(name: name, said))
    }
  }
}

extension Substring {
  fileprivate func trimming(while isSpace: (Character) -> Bool) -> Substring {
    var rest = drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return rest
  }
}
