import MoongateCore

/// Finds reasons of `deny` without a message. Users then read a generic sentence that does not tell them what to do.
struct ReasonWords {
  /// The files that contain functions.
  let files: Set<String>
  /// The reasons that have a text in the `reasons` of a policy.
  let reasons: Set<String>
  let pages: [PageFile]
  let problems: Problems

  /// - Parameter names: the names that each file uses.
  func check(_ names: [String: LuaNames]) {
    let known = reasons.union(pages.filter { $0.name.hasSuffix(".words") }.flatMap(Self.sentenceKeys))
    var told: Set<String> = []
    for file in files.sorted() {
      for call in names[file]?.calls ?? [] where call.function == "deny" {
        guard let reason = call.texts.first.flatMap(\.self).flatMap(UnknownFacts.plain),
          DenyReason.problem(of: reason) == nil,
          !known.contains(reason), told.insert(reason).inserted
        else { continue }
        let policy =
          file.hasPrefix("policies/")
          ? file : ["routes.lua", "apps.lua"].contains(file) ? "a file of policies/" : "accounts.lua"
        problems.warn(
          SourceLocation(file: file, line: call.line), "",
          "deny \"\(reason)\" has no message, so users read \"\(RefusalCode.policyReason(reason).sentence)\": add reasons = { \(reason) = \"…\" } to "
            + "\(policy), or \(reason) = … under [sentences] in pages/en.words")
      }
    }
  }

  /// The names under `[sentences]` of a file of words.
  private static func sentenceKeys(_ file: PageFile) -> [String] {
    WordsFile.lines(of: String(decoding: file.bytes, as: UTF8.self)).compactMap { _, line in
      if case .sentence(let name, _) = line { name } else { nil }
    }
  }
}
