import MoongateCore
import MoongateSDK
import Mustache

/// The words of the pages in one language. Templates find them as `{{w.name}}`.
struct Words: MustacheParent, Sendable {
  /// A tag of BCP 47, such as `hi`.
  let tag: String
  /// Which form of a word goes with a number.
  private let plural: PluralRule
  /// By name.
  private(set) var texts: [String: String] = [:]
  /// By what they say in English.
  private(set) var sentences: [String: String] = [:]
  /// What a provider says of itself in this language, by what it says in English.
  private var lent: [String: String] = [:]
  /// What all configured providers say in this language, by what they say in English.
  private var providers: [[String: String]] = []

  /// What it calls itself.
  var language: String { texts["language"] ?? tag }
  /// `ltr` or `rtl`.
  var direction: String { texts["direction"] == "rtl" ? "rtl" : "ltr" }

  /// - Parameters:
  ///   - base: gives what the text leaves out.
  ///   - known: the names that there are; nil takes any.
  ///   - problem: is told of each line that cannot be read.
  init(
    tag: String, base: Words?, _ text: String, known: Set<String>?, problem: (_ line: Int, _ message: String) -> Void
  ) {
    self.tag = tag
    let plural = PluralRule(of: tag)
    self.plural = plural
    var own: [String: String] = [:]
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
      var name = String(line[..<separator.lowerBound])
      // The name that `_other` had before languages could have more than two forms.
      if name.hasSuffix("_many"), !plural.categories.contains(.many) { name = name.dropLast(5) + "_other" }
      let said = String(line[separator.upperBound...])
      if isInSentences {
        sentences[name] = said
      } else if let known, !known.contains(name), !name.hasPrefix("way_"),
        !(Self.general(name, plural).map(known.contains) ?? false)
      {
        problem(index + 1, "the pages have no words of the name `\(name)`" + TemplateTag.meant(name, among: known))
      } else {
        own[name] = said
      }
    }
    guard let base else {
      texts = own
      return
    }
    // What a language says in general is not to be said in the base's form for some numbers.
    texts = base.texts.filter { name, _ in
      base.tag == tag
        || name != "language" && name != "direction"
          && !(Self.general(name, base.plural).map { own[$0] != nil } ?? false)
    }.merging(own) { $1 }
    if base.tag == tag { sentences = base.sentences.merging(sentences) { $1 } }
  }

  /// `sent_digits` of `sent_digits_8`, `minutes_other` of `minutes_one`; nil for what is no form for some numbers.
  private static func general(_ name: String, _ plural: PluralRule) -> String? {
    guard let match = name.wholeMatch(of: /(.+)_([a-z]+|\d+)/) else { return nil }
    if match.2.allSatisfy(\.isNumber) { return String(match.1) }
    guard let category = PluralCategory(rawValue: String(match.2)), category != .other,
      plural.categories.contains(category)
    else { return nil }
    return match.1 + "_other"
  }

  /// The same, knowing also what a provider says of itself. What the pages' own files say goes first.
  func speaking(_ words: StepWords?) -> Words {
    guard let words else { return self }
    var speaking = self
    speaking.lent = words.translations(in: tag)
    for (name, text) in words.page where name != "language" && name != "direction" {
      speaking.texts[name] = speaking.lent[text] ?? text
    }
    return speaking
  }

  /// The same, knowing also what providers say of themselves in this language.
  func knowing(_ providers: [StepWords]) -> Words {
    var knowing = self
    knowing.providers = providers.map { $0.translations(in: tag) }.filter { !$0.isEmpty }
    return knowing
  }

  func child(named name: String) -> Any? { texts[name] }

  /// The text of the name; the name itself where there is none, which a test would have shown.
  subscript(name: String) -> String { texts[name] ?? name }

  /// What an operator calls a provider where it is one of several: `way_NAME` of their own words.
  func text(ofChoice provider: ProviderName) -> String? { texts["way_\(provider)"] }

  /// The text with its braces filled in.
  func text(_ name: String, _ values: KeyValuePairs<String, String>) -> String { fill(self[name], values) }

  /// The text for a length; `NAME_8` is the form that the length 8 has of its own: "an 8-digit code".
  func text(_ name: String, length: Int) -> String {
    fill(texts["\(name)_\(length)"] ?? self[name], ["length": String(length)])
  }

  /// The name's form for the number, with the number in it: `minutes_one`, `minutes_few`, `minutes_other`.
  func count(_ number: Int, _ name: String) -> String {
    let form = "\(name)_\(plural.category(of: number).rawValue)"
    return text(texts[form] == nil ? name + "_other" : form, ["n": String(number)])
  }

  /// A time for a person, rounded up.
  func wait(_ duration: Duration) -> String {
    let seconds = duration.retryAfterSeconds
    return switch seconds {
    case ..<60: count(seconds, "seconds")
    case ..<3600: count((seconds + 59) / 60, "minutes")
    default: count((seconds + 3599) / 3600, "hours")
    }
  }

  /// More than that is no news: what counts by address only has a hundred.
  private static let fewTries = 10

  /// What a refusal says to the person, and how many tries are left where these are few.
  func sentenceWithTries(of refusal: Refusal) -> String {
    let said = sentence(of: refusal)
    guard let left = refusal.attemptsLeft, left <= Self.fewTries else { return said }
    let isEnded = said.last.map { ".!?।؟。".contains($0) } ?? true
    return said + (isEnded ? " " : ". ") + count(left, "tries")
  }

  /// What a refusal says to the person.
  func sentence(of refusal: Refusal) -> String {
    // A policy's reason is the key of its own words.
    if case .policyReason(let reason) = refusal.code, let said = sentences[reason] { return said }
    let english = refusal.sentence
    if let wait = refusal.retryAfter, let range = english.firstRange(of: wait.spokenLength) {
      if let known = known(english.with("{wait}", in: range)) { return fill(known, ["wait": self.wait(wait)]) }
    }
    return translated(english)
  }

  /// An English sentence of ours in this language, where it is known.
  func translated(_ english: String) -> String {
    if let known = known(english) { return known }
    guard !(sentences.isEmpty && lent.isEmpty && providers.isEmpty) else { return english }
    // The 8-digit code, in the words of every {n}-digit code.
    guard let number = english.firstMatch(of: /\d+/), let known = known(english.with("{n}", in: number.range)) else {
      return english
    }
    return fill(known, ["n": String(number.0)])
  }

  private func known(_ english: String) -> String? {
    sentences[english] ?? lent[english] ?? providers.lazy.compactMap { $0[english] }.first
  }

  /// What the scripts have to say, as a module.
  var script: [UInt8] {
    let said = texts.filter { $0.key.hasPrefix("say_") }.sorted { $0.key < $1.key }
    let object = JSONValue.object(said.map { JSONMember(name: String($0.key.dropFirst(4)), value: .text($0.value)) })
    return Array("export default ".utf8) + object.bytes + Array("\n".utf8)
  }

  private func fill(_ text: String, _ values: KeyValuePairs<String, String>) -> String {
    var text = text
    for (name, value) in values {
      text = text.replacing("{\(name)}", with: isRightToLeft ? value.isolatedForRightToLeft : value)
    }
    return text
  }
}

extension String {
  /// With something else in place of the range.
  fileprivate func with(_ text: String, in range: Range<String.Index>) -> String {
    self[..<range.lowerBound] + text + self[range.upperBound...]
  }
}

extension Substring {
  fileprivate func trimming(while isSpace: (Character) -> Bool) -> Substring {
    var rest = drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return rest
  }
}
