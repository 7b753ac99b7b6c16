import MoongateCore
import Mustache

/// The words of the pages in one language. Templates find them as `{{w.name}}`.
struct Words: MustacheParent, Sendable {
  /// A tag of BCP 47, such as `hi`.
  let tag: String
  /// By name.
  private(set) var texts: [String: String] = [:]
  /// By what they say in English.
  private(set) var sentences: [String: String] = [:]

  /// What it calls itself.
  var language: String { texts["language"] ?? tag }
  /// `ltr` or `rtl`.
  var direction: String { texts["direction"] == "rtl" ? "rtl" : "ltr" }

  /// - Parameters:
  ///   - base: gives what the text leaves out.
  ///   - known: the names that there are; nil takes any.
  ///   - problem: is told of each line that cannot be read.
  init(tag: String, base: Words?, _ text: String, known: Set<String>?, problem: (_ line: Int, _ message: String) -> Void) {
    self.tag = tag
    if let base {
      texts = base.texts.filter { $0.key != "language" && $0.key != "direction" || base.tag == tag }
      if base.tag == tag { sentences = base.sentences }
    }
    var isInSentences = false
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = line.trimming { $0 == " " || $0 == "\t" || $0 == "\r" }
      if line.isEmpty || line.hasPrefix("#") { continue }
      if line == "[sentences]" {
        isInSentences = true
        continue
      }
      guard let separator = line.firstRange(of: " = ") else {
        problem(index + 1, "is no `name = text`")
        continue
      }
      let name = String(line[..<separator.lowerBound])
      let said = String(line[separator.upperBound...])
      if isInSentences {
        sentences[name] = said
      } else if let known, !known.contains(name) {
        problem(index + 1, "the pages have no words of the name `\(name)`")
      } else {
        texts[name] = said
      }
    }
  }

  func child(named name: String) -> Any? { texts[name] }

  /// The text of the name; the name itself where there is none, which a test would have shown.
  subscript(name: String) -> String { texts[name] ?? name }

  /// The text with its braces filled in.
  func text(_ name: String, _ values: KeyValuePairs<String, String>) -> String { Self.fill(self[name], values) }

  /// The name's form for the number, with the number in it: `minutes_one`, `minutes_many`.
  func count(_ number: Int, _ name: String) -> String { text(name + (number == 1 ? "_one" : "_many"), ["n": String(number)]) }

  /// A time for a person, rounded up.
  func wait(_ duration: Duration) -> String {
    let seconds = duration.retryAfterSeconds
    return switch seconds {
    case ..<60: count(seconds, "seconds")
    case ..<3600: count((seconds + 59) / 60, "minutes")
    default: count((seconds + 3599) / 3600, "hours")
    }
  }

  /// What a refusal says to the person, and how many tries are left.
  func sentenceWithTries(of refusal: Refusal) -> String {
    let said = sentence(of: refusal)
    guard let left = refusal.attemptsLeft else { return said }
    let isEnded = said.last.map { ".!?।".contains($0) } ?? true
    return said + (isEnded ? " " : ". ") + count(left, "tries")
  }

  /// What a refusal says to the person.
  func sentence(of refusal: Refusal) -> String {
    let english = refusal.sentence
    if let known = sentences[english] { return known }
    if let wait = refusal.retryAfter, let range = english.firstRange(of: wait.spokenLength) {
      let pattern = english.replacingCharacters(in: range)
      if let known = sentences[pattern] { return Self.fill(known, ["wait": self.wait(wait)]) }
    }
    return english
  }

  /// An English sentence of ours in this language, where it is known.
  func translated(_ english: String) -> String { sentences[english] ?? english }

  /// What the scripts have to say, as a module.
  var script: [UInt8] {
    let said = texts.filter { $0.key.hasPrefix("say_") }.sorted { $0.key < $1.key }
    let object = JSONValue.object(said.map { JSONMember(name: String($0.key.dropFirst(4)), value: .text($0.value)) })
    return Array("export default ".utf8) + object.bytes + Array("\n".utf8)
  }

  private static func fill(_ text: String, _ values: KeyValuePairs<String, String>) -> String {
    var text = text
    for (name, value) in values { text = text.replacing("{\(name)}", with: value) }
    return text
  }
}

extension String {
  /// With `{wait}` in place of the range.
  fileprivate func replacingCharacters(in range: Range<String.Index>) -> String { self[..<range.lowerBound] + "{wait}" + self[range.upperBound...] }
}

extension Substring {
  fileprivate func trimming(while isSpace: (Character) -> Bool) -> Substring {
    var rest = drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return rest
  }
}
