import MoongateCore

/// Reasons that functions deny with and that nobody has put into words: people read a general sentence, and do not
/// learn what they could do.
struct ReasonWords {
  /// The files that functions come from.
  let files: Set<String>
  /// The texts of `reasons` in the policies, by reason.
  let reasons: Set<String>
  let pages: [PageFile]
  let problems: Problems

  /// - Parameter names: of each file.
  func check(_ names: [String: LuaNames]) {
    let known = reasons.union(pages.filter { $0.name.hasSuffix(".words") }.flatMap(Self.sentenceKeys))
    var told: Set<String> = []
    for file in files.sorted() {
      for call in names[file]?.calls ?? [] where call.function == "deny" {
        guard let reason = call.texts.first.flatMap(\.self).flatMap(UnknownFacts.plain),
          LuaEvaluator.problem(ofReason: reason) == nil,
          !known.contains(reason), told.insert(reason).inserted
        else { continue }
        let policy = file.hasPrefix("policies/") ? file : "a file of policies/"
        problems.warn(
          SourceLocation(file: file, line: call.line), "",
          "deny \"\(reason)\" has no words, so people read \"\(RefusalCode.policyReason(reason).sentence)\": add reasons = { \(reason) = \"…\" } to "
            + "\(policy), or \(reason) = … under [sentences] in pages/en.words")
      }
    }
  }

  /// The names under `[sentences]` of a file of words.
  private static func sentenceKeys(_ file: PageFile) -> [String] {
    var isInSentences = false
    return String(decoding: file.bytes, as: UTF8.self).split(whereSeparator: \.isNewline).compactMap { line in
      let line = line.drop { $0 == " " || $0 == "\t" }
      if line.hasPrefix("[sentences]") { isInSentences = true }
      guard isInSentences, !line.hasPrefix("#"), let end = line.firstRange(of: " = ") else { return nil }
      return String(line[..<end.lowerBound])
    }
  }
}
