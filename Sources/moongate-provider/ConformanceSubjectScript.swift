import Foundation
import MoongateConformance
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// Reads `right` and `wrong` of a subject file: values by field. Some are computed while the suite runs.
struct ConformanceSubjectScript {
  let text: SubjectText

  private static let kinds = ["from_shown", "totp_of", "program"]
  private static let options = ["digits", "period", "offset", "algorithm"]

  /// - Parameter keep: the values that the subject keeps, by name.
  /// - Throws: an error with the invalid value, its place, and how to correct it.
  func values(_ member: String, keep: [String: String]) throws(StartProblem) -> [String: ScriptedValue]? {
    guard let object = try text.object(member) else { return nil }
    var values: [String: ScriptedValue] = [:]
    for (field, value) in object.sorted(by: { $0.key < $1.key }) {
      switch value {
      case .object(let script): values[field] = try scripted(script, field, "\(member).\(field)", keep)
      default: values[field] = .fixed(value.input)
      }
    }
    return values
  }

  private func scripted(
    _ script: [String: SubjectText.Value], _ field: String, _ place: String, _ keep: [String: String]
  ) throws(StartProblem) -> ScriptedValue {
    let said = Self.kinds.filter { script[$0] != nil }
    guard said.count == 1, let kind = said.first else {
      let other = script.keys.sorted().first { !Self.kinds.contains($0) && !Self.options.contains($0) }
      throw text.problem(
        place,
        said.count > 1
          ? "names \(Suggestion.list(said)): use exactly one of them"
          : "does not say how it is computed\(other.map { ": `\($0)` is unknown\(Suggestion.phrase(for: $0, among: Self.kinds))" } ?? "; write {\"from_shown\": \"list.0\"}, {\"totp_of\": \"key\"} or {\"program\": [\"./answer.py\"]}")"
      )
    }
    let allowed = kind == "totp_of" ? [kind] + Self.options : [kind]
    if let unknown = script.keys.sorted().first(where: { !allowed.contains($0) }) {
      throw text.problem(
        "\(place).\(unknown)", "is not a member of `\(kind)`\(Suggestion.phrase(for: unknown, among: allowed))")
    }
    switch (kind, script[kind]) {
    case ("from_shown", .text(let path)?):
      guard ShownPlace(path) != nil else { throw text.problem("\(place).from_shown", ShownPlace.form) }
      return .shown(path)
    case ("totp_of", .text(let key)?): return .totp(try recipe(key, script, place, keep))
    case ("program", .list?):
      guard case .list(let words)? = script[kind]?.setting, let first = words.first, !first.isEmpty else {
        throw text.problem(
          "\(place).program", "is not a command: write a list of strings, for example [\"./answer.py\"]")
      }
      let program = AnswerProgram(
        command: words,
        folder: URL(filePath: text.path).standardizedFileURL.deletingLastPathComponent().path(percentEncoded: false))
      guard program.canRun else {
        throw text.problem(
          "\(place).program",
          "names a program that cannot be run: make sure that `\(first)` exists beside the subject file and is executable"
        )
      }
      return .computed { step, before in try await program.answer(to: step, before, field: field) }
    default:
      throw text.problem(
        "\(place).\(kind)",
        kind == "program"
          ? "must be a list: write [\"./answer.py\"]"
          : "must be a string: write \"\(kind == "totp_of" ? "key" : "list.0")\"")
    }
  }

  private func recipe(
    _ key: String, _ script: [String: SubjectText.Value], _ place: String, _ keep: [String: String]
  ) throws(StartProblem) -> TOTPRecipe {
    guard key == "key" || keep[key] != nil || ShownPlace(key) != nil else {
      throw text.problem(
        "\(place).totp_of",
        "names `\(key)`, which is neither shown nor kept: write \"key\", a path like \"secret.1\", or a name of `keep`"
      )
    }
    func number(_ name: String, _ bounds: ClosedRange<Int>, _ standard: Int) throws(StartProblem) -> Int {
      guard let value = script[name] else { return standard }
      guard case .number(let number) = value, let whole = Int(exactly: number), bounds.contains(whole) else {
        throw text.problem(
          "\(place).\(name)", "must be a whole number from \(bounds.lowerBound) to \(bounds.upperBound)")
      }
      return whole
    }
    var algorithm = TOTPRecipe.Algorithm.sha1
    if let value = script["algorithm"] {
      guard case .text(let said) = value, let known = TOTPRecipe.Algorithm(rawValue: said) else {
        throw text.problem(
          "\(place).algorithm", "must be one of \(Suggestion.list(TOTPRecipe.Algorithm.allCases.map(\.rawValue)))")
      }
      algorithm = known
    }
    return TOTPRecipe(
      of: key, digits: try number("digits", 6...10, 6), period: try number("period", 1...3_600, 30),
      offset: try number("offset", -1_000_000...1_000_000, 0),
      algorithm: algorithm)
  }
}
