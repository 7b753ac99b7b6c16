import MoongateCore
import MoongateSDK
import Mustache

/// The words of the pages in one language. Templates use them as `{{w.name}}`.
package struct Words: MustacheParent, Sendable {
  /// A tag of BCP 47, such as `hi`.
  package let tag: String
  /// Selects the plural form for a number.
  private let plural: PluralRule
  /// Texts by name.
  private(set) var texts: [String: String] = [:]
  /// Translated sentences by their English text.
  private(set) var sentences: [String: String] = [:]
  /// The current provider's translations by their English text.
  private var providerTranslations: [String: String] = [:]
  /// The translations of all configured providers by their English text.
  private var providers: [[String: String]] = []

  /// The language's own name for itself.
  var language: String { texts["language"] ?? tag }
  /// `ltr` or `rtl`.
  var direction: String { texts["direction"] == "rtl" ? "rtl" : "ltr" }

  /// - Parameters:
  /// - base: provides the texts that this language lacks.
  /// - known: the valid names; nil allows any.
  /// - problem: called for each invalid line.
  init(
    tag: String, base: Words?, _ text: String, known: Set<String>?, problem: (_ line: Int, _ message: String) -> Void
  ) {
    self.tag = tag
    let plural = PluralRule(of: tag)
    self.plural = plural
    var own: [String: String] = [:]
    // `_many` is the name that `_other` had before languages could have more than two forms.
    let current = { (name: String) in
      name.hasSuffix("_many") && !plural.categories.contains(.many) ? name.dropLast(5) + "_other" : name
    }
    for (number, line) in WordsFile.lines(of: text) {
      switch line {
      case .malformed: problem(number, "is not `name = text`")
      case .sentence(let name, let said): sentences[current(name)] = said
      case .text(let name, let said):
        let name = current(name)
        if let known, !known.contains(name), !Self.ownPrefixes.contains(where: { name.hasPrefix($0) }),
          !(Self.general(name, plural).map(known.contains) ?? false)
        {
          problem(number, "unknown words `\(name)`" + TemplateTag.suggestion(name, among: known))
        } else {
          own[name] = said
        }
      }
    }
    guard let base else {
      texts = own
      return
    }
    // A general form in this language takes precedence over the base's forms for specific numbers.
    texts = base.texts.filter { name, _ in
      base.tag == tag
        || name != "language" && name != "direction"
          && !(Self.general(name, base.plural).map { own[$0] != nil } ?? false)
    }.merging(own) { $1 }
    if base.tag == tag { sentences = base.sentences.merging(sentences) { $1 } }
  }

  /// The beginnings of names that operators invent: for a provider in a choice, and for a scope of their own.
  private static let ownPrefixes = ["way_", "scope_"]

  /// The general form of a name, such as `sent_digits` for `sent_digits_8` or `minutes_other` for `minutes_one`; nil
  /// for names without a number or category.
  private static func general(_ name: String, _ plural: PluralRule) -> String? {
    guard let match = name.wholeMatch(of: /(.+)_([a-z]+|\d+)/) else { return nil }
    if match.2.allSatisfy(\.isNumber) { return String(match.1) }
    guard let category = PluralCategory(rawValue: String(match.2)), category != .other,
      plural.categories.contains(category)
    else { return nil }
    return match.1 + "_other"
  }

  /// The same words with a provider's own. The pages' own files take precedence.
  func withTranslations(of provider: StepWords?) -> Words {
    guard let provider else { return self }
    var words = self
    words.providerTranslations = provider.translations(in: tag)
    for (name, text) in provider.page where name != "language" && name != "direction" {
      words.texts[name] = words.known(text) ?? text
    }
    return words
  }

  /// The same words with the translations of providers in this language.
  func withTranslations(of providers: [StepWords]) -> Words {
    var words = self
    words.providers = providers.map { $0.translations(in: tag) }.filter { !$0.isEmpty }
    return words
  }

  package func child(named name: String) -> Any? { texts[name] }

  /// The text of the name; the name itself if it is unknown, which a test would report.
  package subscript(name: String) -> String { texts[name] ?? name }

  /// The operator's name for a provider in a choice: `way_NAME`.
  func text(ofChoice provider: ProviderName) -> String? { texts["way_\(provider)"] }

  /// What a scope lets an app do: `scope_NAME`.
  package func text(ofScope scope: String) -> String {
    texts["scope_\(scope)"] ?? text("consent_scope", ["scope": scope])
  }

  /// The text with its placeholders replaced.
  package func text(_ name: String, _ values: KeyValuePairs<String, String>) -> String { filled(self[name], values) }

  /// The text for a length. `NAME_8` is a special form for the length 8, such as "an 8-digit code".
  func text(_ name: String, length: Int) -> String {
    filled(texts["\(name)_\(length)"] ?? self[name], ["length": String(length)])
  }

  /// The plural form of a name with the number in it: `minutes_one`, `minutes_few`, `minutes_other`.
  func count(_ number: Int, _ name: String) -> String {
    let form = "\(name)_\(plural.category(of: number).rawValue)"
    return text(texts[form] == nil ? name + "_other" : form, ["n": String(number)])
  }

  /// A duration for users, rounded up.
  func wait(_ duration: Duration) -> String {
    let seconds = duration.retryAfterSeconds
    return switch seconds {
    case ..<60: count(seconds, "seconds")
    case ..<3600: count((seconds + 59) / 60, "minutes")
    default: count((seconds + 3599) / 3600, "hours")
    }
  }

  /// Higher numbers of remaining attempts are not shown. Limits per address may allow a hundred.
  private static let fewAttempts = 10

  /// The message of a refusal, with the attempts remaining if there are few.
  /// - Parameter other: the message in place of the refusal's own.
  func sentenceWithAttempts(of refusal: Refusal, saying other: String? = nil) -> String {
    let said = other ?? sentence(of: refusal)
    guard let left = refusal.attemptsLeft, left <= Self.fewAttempts else { return said }
    let isEnded = said.last.map { ".!?।؟。".contains($0) } ?? true
    return said + (isEnded ? " " : ". ") + count(left, "tries")
  }

  /// The message of a refusal.
  package func sentence(of refusal: Refusal) -> String {
    // The reason of a policy is the key of its message.
    if case .policyReason(let reason) = refusal.code, let said = sentences[reason] { return said }
    let english = refusal.sentence
    if let wait = refusal.retryAfter, let range = english.firstRange(of: wait.spokenLength) {
      if let known = known(english.with("{wait}", in: range)) { return filled(known, ["wait": self.wait(wait)]) }
    }
    return translated(english)
  }

  /// The message of a policy's reason, which is the key of its translation.
  /// - Parameter text: the text in the policy.
  func sentence(ofReason reason: String, _ text: String) -> String { sentences[reason] ?? translated(text) }

  /// The translation of an English sentence, or the sentence itself if none exists.
  package func translated(_ english: String) -> String {
    if let known = known(english) { return known }
    guard !(sentences.isEmpty && providerTranslations.isEmpty && providers.isEmpty) else { return english }
    // A sentence about an 8-digit code is also found under its general form with {n}.
    guard let number = english.firstMatch(of: /\d+/), let known = known(english.with("{n}", in: number.range)) else {
      return english
    }
    return filled(known, ["n": String(number.0)])
  }

  private func known(_ english: String) -> String? {
    sentences[english] ?? providerTranslations[english] ?? providers.lazy.compactMap { $0[english] }.first
  }

  /// The texts for scripts, as a JavaScript module.
  var script: [UInt8] {
    let said = texts.filter { $0.key.hasPrefix("say_") }.sorted { $0.key < $1.key }
    let object = JSONValue.object(said.map { JSONMember(name: String($0.key.dropFirst(4)), value: .text($0.value)) })
    return Array("export default ".utf8) + object.bytes + Array("\n".utf8)
  }
}

extension String {
  /// The string with another text in place of the range.
  fileprivate func with(_ text: String, in range: Range<String.Index>) -> String {
    self[..<range.lowerBound] + text + self[range.upperBound...]
  }
}
