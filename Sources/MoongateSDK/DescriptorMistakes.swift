extension ProviderDescriptor {
  /// What its author got wrong, a sentence each; empty where it is well formed. A program refuses to start with a provider that has any,
  /// and the conformance suite names them.
  public var mistakes: [String] {
    guard sdk <= SDKVersion.current, sdk >= 1 else {
      return ["it was written for version \(sdk) of MoongateSDK, and this program has version \(SDKVersion.current): update the program"]
    }
    var found: [String] = []
    if ProviderName(rawValue: name.rawValue) == nil { found.append("its name `\(name)` is ill-formed: \(Self.form)") }
    found += Self.mistakes(in: beginFields.map(\.name), "the begin field")
    found += Self.mistakes(in: submitFields.map(\.name), "the submit field")
    // These two are words of the calls themselves.
    if beginFields.contains(where: { $0.name == "provider" }) {
      found.append("no begin field can be called `provider`: calls name the provider by it")
    }
    if submitFields.contains(where: { $0.name == "code_verifier" }) { found.append("no submit field can be called `code_verifier`") }
    found += Self.mistakes(in: settings.map(\.name), "the setting")
    found += settings.compactMap(\.mistake)
    found += Self.mistakes(in: outcomes.map(\.reason.rawValue), "the outcome")
    for outcome in outcomes where !Self.isSentence(outcome.sentence) {
      found.append("the outcome `\(outcome.reason.rawValue)` needs one sentence for the person: plain text of at most 300 bytes")
    }
    found += Self.mistakes(in: facts.map { "\((of($0)?.rawValue).map { "\($0)_" } ?? "")\($0.name)" }, "the fact")
    for fact in facts {
      guard let kind = of(fact), identifierKinds.contains(kind) else {
        found.append("the fact `\(fact.name)` is of identifiers that the provider does not declare to read")
        continue
      }
    }
    if let words {
      let known = Set((beginFields + submitFields).map(\.name))
      for label in words.labels.keys.sorted() where !known.contains(label) { found.append("a label is for `\(label)`, which is no field") }
      let texts = [words.title] + Array(words.labels.values) + Array(words.links.values) + (words.instruction.isEmpty ? [] : [words.instruction])
      if !texts.allSatisfy(Self.isSentence) { found.append("its words must be plain text of at most 300 bytes each, and its title not empty") }
      for (tag, texts) in words.translations.sorted(by: { $0.key < $1.key }) {
        if !Self.isTag(tag) {
          found.append("`\(tag.prefix(40))` is no tag of a language: its words are translated under tags such as `hi` or `pt-BR`")
        }
        if !texts.allSatisfy({ !$0.key.isEmpty && Self.isPlain($0.value, most: Self.longestTranslation) }) {
          found.append("its words in `\(tag.prefix(40))` must be plain text of at most \(Self.longestTranslation) bytes each, by the English text")
        }
      }
    }
    return found
  }

  /// Whose attribute the fact is.
  public func of(_ fact: FactField) -> IdentifierKind? { fact.of ?? identifierKinds.first }

  fileprivate static let form = "lower-case letters, digits and underscores, a letter first, 48 characters at most"

  private static func mistakes(in names: [String], _ what: String) -> [String] {
    var seen: Set<String> = []
    return names.compactMap { name in
      if ProviderName(rawValue: name) == nil { return "\(what) `\(name)` is ill-formed: \(form)" }
      return seen.insert(name).inserted ? nil : "\(what) `\(name)` is declared twice"
    }
  }

  static func isSentence(_ text: String) -> Bool { isPlain(text, most: 300) }

  /// In bytes. What a step shows may be longer than a sentence, and most scripts take three bytes a letter.
  private static let longestTranslation = 2_000

  private static func isPlain(_ text: String, most: Int) -> Bool {
    !text.isEmpty && text.utf8.count <= most && !text.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }
  }

  private static func isTag(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard let language = parts.first, (2...3).contains(language.utf8.count) else { return false }
    return parts.allSatisfy { (2...8).contains($0.utf8.count) && $0.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0 & 0xdf) } }
  }
}

extension SettingField {
  /// What is wrong with its own declaration.
  fileprivate var mistake: String? {
    if case .choice(let words) = kind, words.isEmpty { return "the setting `\(name)` offers no choice" }
    guard let standard else { return nil }
    if isRequired { return "the setting `\(name)` is required and has a default: one of them is in vain" }
    return standard.fits(kind) ? nil : "the default of the setting `\(name)` does not fit its kind"
  }
}
